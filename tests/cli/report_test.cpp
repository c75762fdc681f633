// attmirror report: one page of runs, sweeps and reproductions, and the command in it repeats the run.
#include "base/atomic_file.hpp"
#include "cli/command.hpp"
#include <attmirror/report/page.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

bool holds(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

class Report : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const std::string data = small_data(folder), page = (folder / "report.html").string();

  std::string train(const std::string& name, const Words& options) const {
    const std::string run = (folder / name).string();
    const Outcome outcome = attmirror_command(Words{"train", data, "--quiet", "-o", run} + options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return run;
  }
  Json report(const Words& sources, const Words& options = {}) const {
    const Outcome outcome = attmirror_command(Words{"report", "--json", "-o", page} + sources + options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
};

TEST_F(Report, ShowsRunsTogetherAndOneByOne) {
  const std::string first = train("p3", {"--p", "3", "--normalized", "--steps", "3000"});
  const std::string second = train("p2", {"--p", "2", "--normalized", "--steps", "3000"});
  const Json answer = report({first, second}, {"--title", "Two <geometries>"});
  EXPECT_EQ(answer["status"], "done");
  EXPECT_EQ(answer["output"], page);
  EXPECT_EQ(answer["figures"], 7);  // loss, saturation, divergence; norm and attention of each
  EXPECT_EQ(answer["tables"], 3);
  EXPECT_EQ(answer["plotly"], has_plotly());
  EXPECT_EQ(answer["sources"][1]["kind"], "run");
  for (const Json& file : answer["files"]) EXPECT_TRUE(fs::is_regular_file(file.get<std::string>())) << file;
  const std::string html = file_text(page);
  for (const char* words :
       {"<title>Two &lt;geometries&gt;</title>", "Run p3", "Run p2", "max-margin solution", "certified",
        "figure_runs-divergence", "figure_run-2-attention"})
    EXPECT_TRUE(holds(html, words)) << words;
  EXPECT_TRUE(holds(file_text(folder / "tables/runs.csv"), "p3,\"mirror descent, p = 3"));
}

// The command that the page shows makes the same weights again.
TEST_F(Report, TheCommandRepeatsTheRun) {
  const std::vector<Words> variants{
      {"--p", "1.75", "--normalized", "--steps", "200", "--eps", "paper", "--jacobian", "safe"},
      {"--optimizer", "gd", "--lr", "0.5", "--steps", "100", "--params", "KQ", "--rank", "3", "--init-seed",
       "7"},
      {"--optimizer", "adam", "--beta1", "0.8", "--steps", "100", "--train", "W,v", "--init", "normal:0.1",
       "--record", "every:50"},
      {"--optimizer", "muon", "--steps", "60", "--loss", "exponential", "--scaled", "--penalty", "0.001",
       "--keep", "metrics"},
      {"--optimizer", "steepest", "--norm", "nuclear", "--unnormalized", "--steps", "60", "--params", "W"},
      {"--geometry", "entropy", "--entropy-beta", "0.5", "--steps", "60", "--momentum", "heavy-ball:0.5"},
      {"--params", "prompt", "--steps", "60", "--schedule", "power:0.25"}};
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const std::string run = train("run" + std::to_string(i), variants[i]);
    report({run}, {"--overwrite"});
    const std::string html = file_text(page);
    const std::size_t begin = html.find("attmirror train "), end = html.find("</code>", begin);
    ASSERT_NE(begin, std::string::npos);
    Words words;
    std::string command = html.substr(begin, end - begin), word;
    for (const char c : command + " ")
      if (c != ' ')
        word += c;
      else if (!word.empty())
        words.push_back(std::exchange(word, ""));
    ASSERT_EQ(words[0], "attmirror");
    ASSERT_EQ(words[words.size() - 2], "-o");
    words.erase(words.begin());
    words.back() = (folder / ("again" + std::to_string(i))).string();
    const Outcome outcome = attmirror_command(words + Words{"--quiet"});
    ASSERT_EQ(outcome.code, 0) << command << "\n" << outcome.err;
    for (const char* file : {"final.npz", "metrics.jsonl", "config.json"})
      EXPECT_EQ(file_text(fs::path(words.back()) / file), file_text(fs::path(run) / file)) << command;
  }
}

TEST_F(Report, SaysWhatItCannotShow) {
  const std::string run = train("run", {"--p", "3", "--steps", "100"});
  fs::rename(data, folder / "moved.npz");
  EXPECT_EQ(report({run})["figures"], 3);
  EXPECT_TRUE(holds(file_text(page),
                    "The data of the run cannot be read, so the page has no attention probabilities"));
  fs::rename(folder / "moved.npz", data);

  report({train("adagrad", {"--optimizer", "adagrad", "--steps", "100"})}, {"--overwrite"});
  EXPECT_TRUE(holds(file_text(page), "Theory predicts no norm whose margin adagrad maximizes"));

  const Outcome diverged = attmirror_command({"train", data, "--p", "1.01", "--lr", "100", "--normalized",
                                              "--quiet", "-o", (folder / "bad").string()});
  ASSERT_EQ(diverged.code, 1);
  report({(folder / "bad").string()}, {"--overwrite"});
  EXPECT_TRUE(holds(file_text(page), "The run diverged"));
}

TEST_F(Report, ShowsASweep) {
  std::ofstream(folder / "sweep.toml") << R"(
[sweep]
name = "norms <and> seeds"
[data]
generator = "sphere"
samples = 3
tokens = 4
dim = 5
[train]
normalized = true
steps = 200
[grid]
seed = "1:6"
p = [1.5, 2, 3]
[record]
steps = "log"
curves = ["loss", "own.bregman"]
margins = ["2"]
solutions = ["own"]
)";
  const std::string database = (folder / "results.db").string();
  const Outcome swept =
      attmirror_command({"sweep", (folder / "sweep.toml").string(), "--quiet", "-o", database});
  ASSERT_EQ(swept.code, 0) << swept.err;
  const Json answer = report({database});
  EXPECT_EQ(answer["sources"][0]["kind"], "sweep");
  EXPECT_GE(answer["figures"], 4);
  EXPECT_EQ(answer["tables"], 1);
  const std::string html = file_text(page);
  for (const char* words : {"Sweep norms &lt;and&gt; seeds", " ok", "p = 1.5", "own.bregman",
                            "four runs in five", "figure_sweep-1-curve-loss", "curves = ["})
    EXPECT_TRUE(holds(html, words)) << words;
  EXPECT_TRUE(
      holds(file_text(folder / "tables/sweep-1-summary.csv"), "exponent p of the geometry,quantity,count"));
}

TEST_F(Report, ShowsReproductionsAndMixtures) {
  const std::string out = (folder / "out").string();
  attmirror_command({"reproduce", "p2-lemma", "--quick", "--quiet", "-o", out});
  EXPECT_EQ(report({out})["sources"][0]["kind"], "reproduction");
  EXPECT_EQ(file_text(page), file_text(fs::path(out) / "report.html"));
  const std::string run = train("run", {"--p", "3", "--steps", "100"});
  report({run, out}, {"--overwrite"});
  const std::string html = file_text(page);
  EXPECT_TRUE(holds(html, "Run run") && holds(html, "id=\"p2-lemma\""));
}

TEST_F(Report, RefusesWhatItCannotRead) {
  const std::string run = train("run", {"--p", "3", "--steps", "20"});
  const std::string nothing = (folder / "nothing").string();
  expect_refusal({"report", nothing, "-o", page}, 2, {nothing, "No such file"});
  expect_refusal({"report", data, "-o", page}, 2, {data});
  expect_refusal({"report", run, nothing, "-o", page}, 2, {nothing});
  fs::create_directory(nothing);
  expect_refusal({"report", nothing, "-o", page}, 2, {nothing, "not a folder of results"});
  expect_refusal({"report", run, run + "/", "-o", page}, 2, {run, "given twice"});
  expect_refusal({"report", "-o", page}, 2, {"sources"});
  expect_refusal({"report", run}, 2, {"--output"});
  expect_refusal({"report", run, "-o", nothing}, 2, {"a folder"});
  expect_refusal({"report", run, "-o", (folder / "missing/report.html").string()}, 3, {"missing"});
  std::ofstream(fs::path(run) / "final.npz") << "damaged";
  expect_refusal({"report", run, "-o", page}, 2, {"final.npz"});
  EXPECT_FALSE(fs::exists(page));
  EXPECT_FALSE(fs::exists(folder / "figures"));
}

TEST_F(Report, ReplacesOnlyWhenTold) {
  const std::string run = train("run", {"--p", "3", "--steps", "20"});
  report({run});
  const std::string before = file_text(page);
  expect_refusal({"report", run, "-o", page}, 2, {page, "--overwrite"});
  fs::remove(page);
  expect_refusal({"report", run, "-o", page}, 2,
                 {"tables", "--overwrite"});  // the files beside it count, too
  report({run}, {"--overwrite"});
  EXPECT_EQ(file_text(page), before);
  const Outcome text = attmirror_command({"report", run, "--overwrite", "-o", page});
  EXPECT_TRUE(holds(text.out, page + " (")) << text.out;
  EXPECT_EQ(attmirror_command({"report", run, "--overwrite", "--quiet", "-o", page}).out, "");
}

TEST_F(Report, NeverReplacesWhatIsNoPage) {
  const std::string run = train("run", {"--p", "3", "--steps", "20"});
  const std::string weights = (fs::path(run) / "final.npz").string(), before = file_text(weights);
  expect_refusal({"report", run, "--overwrite", "-o", weights}, 2, {"is no page of attmirror"});
  expect_refusal({"report", run, "--overwrite", "-o", data}, 2, {"is no page of attmirror"});
  EXPECT_EQ(file_text(weights), before);
}

TEST_F(Report, PagesMayShareAFolder) {
  const std::string run = train("run", {"--p", "3", "--steps", "20"});
  report({run});
  const std::string other = (folder / "other.html").string();
  EXPECT_EQ(attmirror_command({"report", run, "--quiet", "-o", other}).code, 0);
  EXPECT_TRUE(fs::exists(folder / "other-figures"));
  EXPECT_TRUE(fs::exists(folder / "figures"));
}

}  // namespace
}  // namespace attmirror::test
