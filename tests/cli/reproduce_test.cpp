// attmirror reproduce: lists, runs, writes the page, and goes on where it was stopped.
#include "cli/command.hpp"
#include <attmirror/papers/experiment.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Reproduce : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const std::string out = (folder / "out").string();

  Json answer(const Words& options, int code = 0) const {
    const Outcome outcome = attmirror_command(Words{"reproduce", "--json"} + options);
    EXPECT_EQ(outcome.code, code) << outcome.err;
    return Json::parse(outcome.out);
  }
};

TEST_F(Reproduce, ListNamesEveryExperiment) {
  const Outcome text = attmirror_command({"reproduce", "--list"});
  EXPECT_EQ(text.code, 0);
  const std::string words = std::regex_replace(text.out, std::regex("\\s+"), " ");  // lines are wrapped
  const Json json = answer({"--list"});
  std::size_t count = 0;
  for (const Experiment* experiment : experiments()) {
    const ExperimentInfo info = experiment->info();
    EXPECT_NE(text.out.find(info.id), std::string::npos) << info.id;
    EXPECT_NE(words.find(info.out_of_scope.empty() ? info.summary : info.out_of_scope), std::string::npos)
        << info.id;
    EXPECT_EQ(json.at("experiments").at(count++).at("id"), info.id);
  }
  EXPECT_GE(count, 12u);
}

TEST_F(Reproduce, BadInputIsOneSentence) {
  expect_refusal({"reproduce"}, 2, {"no experiment is given"});
  expect_refusal({"reproduce", "p2-loses"}, 2, {"unknown experiment p2-loses", "p2-losses"});
  expect_refusal({"reproduce", "p2-losses", "p2-losses"}, 2, {"p2-losses is given twice"});
  expect_refusal({"reproduce", "all", "p2-losses"}, 2, {"all is given together"});
  expect_refusal({"reproduce", "--list", "all"}, 2, {"--list is given together"});
  expect_refusal({"reproduce", "p2-losses", "--resume"}, 2, {"--resume is given without -o"});
  expect_refusal({"reproduce", "p2-losses", "--resume", "--overwrite", "-o", out}, 2, {"both --resume and"});
  expect_refusal({"reproduce", "p2-losses", "-o", "/dev/null/out"}, 3, {"/dev/null/out"});
  EXPECT_FALSE(fs::exists(out));
}

TEST_F(Reproduce, TheSummaryHasOneLinePerExperiment) {
  const Outcome all = attmirror_command({"reproduce", "p2-losses", "p2-lemma", "--quick"});
  const Outcome summary =
      attmirror_command({"reproduce", "p2-losses", "p2-lemma", "p2-vit", "--quick", "--summary"});
  EXPECT_EQ(summary.code, all.code);
  EXPECT_GT(std::ranges::count(all.out, '\n'), 40);
  EXPECT_LT(std::ranges::count(summary.out, '\n'), 10) << summary.out;
  std::istringstream lines(summary.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  for (const char* word : {"p2-losses", "p2-lemma", "numbers compared"})
    EXPECT_NE(summary.out.find(word), std::string::npos) << summary.out;
  // What differs is named: two optimizers do not do what theory says of them.
  const Outcome differs = attmirror_command({"reproduce", "which-margin", "--quick", "--summary"});
  EXPECT_EQ(differs.code, 1);
  EXPECT_NE(differs.out.find("These differ"), std::string::npos) << differs.out;
  EXPECT_NE(differs.out.find("  which-margin: "), std::string::npos) << differs.out;
  expect_refusal({"reproduce", "--list", "--summary"}, 2, {"--list is given together"});
}

TEST_F(Reproduce, RecordsHaveNoQuickVersion) {
  const Outcome made = attmirror_command({"reproduce", "p2-losses", "--quick"});
  const Outcome read = attmirror_command({"reproduce", "p1-imdb", "--quick"});
  EXPECT_NE(made.out.find("smoke tests"), std::string::npos) << made.out;
  EXPECT_EQ(read.out.find("smoke tests"), std::string::npos) << read.out;
  // Nor where their results are read from a folder.
  attmirror_command({"reproduce", "p1-imdb", "--quick", "-o", out});
  const Outcome again = attmirror_command({"reproduce", "p1-imdb", "--quick", "-o", out, "--resume"});
  EXPECT_NE(again.out.find("numbers compared"), std::string::npos) << again.out;
  EXPECT_EQ(again.out.find("smoke tests"), std::string::npos) << again.out;
}

TEST_F(Reproduce, PrintsAndWritesThePage) {
  const Outcome outcome = attmirror_command({"reproduce", "p2-losses", "p2-vit", "--quick", "-o", out});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  // p2-vit reads records, which have a conclusion in a quick call, too.
  for (const char* words :
       {"linear loss, C = 10: offset p[1]", "1.1513", "reproduced", "P2's claim", "0 differ", "report.html"})
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words;
  const std::string page = file_text(fs::path(out) / "report.html");
  for (const char* command :
       {"attmirror reproduce p2-losses --quick -o out/", "attmirror reproduce p2-vit -o out/"})
    EXPECT_NE(page.find(command), std::string::npos) << command;
  for (const char* name : {"results/p2-losses.json", "figures/p2-losses-offsets.svg",
                           "tables/p2-losses-findings.csv", "tables/p2-losses-findings.tex"})
    EXPECT_TRUE(fs::exists(fs::path(out) / name)) << name;
}

TEST_F(Reproduce, JsonHasEachNumberWithItsVerdict) {
  const Json json = answer({"p2-losses", "--quick"});
  EXPECT_EQ(json.at("status"), "done");
  EXPECT_EQ(json.at("differs"), 0);
  EXPECT_TRUE(json.at("report").is_null());
  const Json& finding = json.at("experiments").at(0).at("findings").at(0);
  EXPECT_EQ(finding.at("verdict"), "reproduced");
  EXPECT_TRUE(finding.at("ours").is_number());
  EXPECT_TRUE(finding.at("published").is_number());
}

TEST_F(Reproduce, AddsToAFolderAndDoesNotRepeat) {
  EXPECT_FALSE(answer({"p2-losses", "--quick", "-o", out}).at("experiments").at(0).at("from_folder"));
  const Json second = answer({"p2-losses", "p2-joint", "--quick", "-o", out, "--resume"});
  EXPECT_TRUE(second.at("experiments").at(0).at("from_folder"));
  EXPECT_FALSE(second.at("experiments").at(1).at("from_folder"));
  const Json third = answer({"p2-joint", "--quick", "-o", out, "--overwrite"});
  EXPECT_FALSE(third.at("experiments").at(0).at("from_folder"));
  // The page has what the folder has.
  EXPECT_NE(file_text(fs::path(out) / "report.html").find("p2-losses"), std::string::npos);
}

TEST_F(Reproduce, KilledInTheMiddleGoesOn) {
  const Words words{"reproduce", "p1-setting-b", "p1-setting-a", "-o", out, "--quiet"};
  const fs::path first = fs::path(out) / "results" / "p1-setting-b.json";
  for (const int signal : {SIGKILL, SIGINT}) {
    RunningCommand command(words);
    ASSERT_TRUE(command.wait_until([&] { return fs::exists(first); }));
    command.signal(signal);
    const int code = command.wait().code;
    EXPECT_TRUE(code == 128 + signal || code == 0) << code;  // a fast machine may have been done
    EXPECT_TRUE(fs::exists(first));
  }
  const Json json = answer({"p1-setting-b", "p2-joint", "-o", out});
  EXPECT_TRUE(json.at("experiments").at(0).at("from_folder"));
  EXPECT_EQ(json.at("experiments").at(1).at("outcome"), "done");
}

TEST_F(Reproduce, DoesNotWriteIntoTheFoldersOfOthers) {
  const std::string own = (folder / "own").string();
  fs::create_directory(own);
  std::ofstream(fs::path(own) / "report.html") << "mine";
  expect_refusal({"reproduce", "p2-losses", "--quick", "-o", own}, 2, {"holds other things"});
  EXPECT_EQ(file_text(fs::path(own) / "report.html"), "mine");
  expect_refusal({"reproduce", "p2-losses", "--quick", "-o", (fs::path(own) / "report.html").string()}, 2,
                 {"is a file: expected a folder"});
}

TEST_F(Reproduce, AFullDiskIsSaid) {
  const Outcome outcome =
      attmirror_command({"reproduce", "p2-losses", "--quick", "-o", out}, {.file_size_limit = 4096});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("cannot write"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(fs::path(out) / "report.html"));
  EXPECT_FALSE(fs::exists(fs::path(out) / "results" / "p2-losses.json"));
}

}  // namespace
}  // namespace attmirror::test
