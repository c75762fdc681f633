// What attmirror 0.1.0 wrote besides runs: datasets, databases of sweeps, paths, max-margin solutions, a reproduction.
#include "cli/old_files.hpp"
#include "support/same_bits.hpp"
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/path_folder.hpp>
#include <attmirror/papers/reproduce.hpp>
#include <attmirror/sweep/database.hpp>
#include <attmirror/sweep/plan.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Json old_answer(const Words& words, int code = 0) {
  const Outcome outcome = attmirror_command(words + Words{"--json"});
  EXPECT_EQ(outcome.code, code) << fmt::format("{}", fmt::join(words, " ")) << "\n" << outcome.err;
  return outcome.out.empty() ? Json() : Json::parse(outcome.out);
}

// What rows must agree in: everything but times, and who computed them where.
std::map<std::string, RunRow> old_rows(const fs::path& path) {
  const SweepDatabase database(path);
  EXPECT_EQ(database.integrity(), "");
  std::map<std::string, RunRow> rows;
  for (RunRow& row : database.rows(SweepDatabase::Arrays::load)) {
    row.seconds = 0;
    row.engine = row.finished = row.version = row.commit = "";
    row.config = without_origin(Json::parse(row.config)).dump();
    rows.emplace(row.key, std::move(row));
  }
  return rows;
}

void expect_equal_cells(const std::vector<Cell>& a, const std::vector<Cell>& b,
                        const std::vector<RowColumn>& columns) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i], b[i]) << columns[i].name;
}

void expect_equal_rows(const fs::path& old, const fs::path& ours) {
  const std::map<std::string, RunRow> there = old_rows(old), here = old_rows(ours);
  const SweepDatabase database(old);
  EXPECT_EQ(there.size(), here.size());
  for (const auto& [key, row] : there) {
    SCOPED_TRACE(fmt::format("run {}, key {}", row.run, key));
    const auto found = here.find(key);
    ASSERT_NE(found, here.end());
    expect_equal_cells(row.settings, found->second.settings, database.header().settings);
    expect_equal_cells(row.metrics, found->second.metrics, database.header().metrics);
    EXPECT_EQ(row.config, found->second.config);
    ASSERT_EQ(row.arrays.size(), found->second.arrays.size());
    for (std::size_t i = 0; i < row.arrays.size(); ++i)
      EXPECT_TRUE(same_bits(row.arrays[i].values, found->second.arrays[i].values)) << row.arrays[i].name;
    EXPECT_TRUE(
        same_bytes(attmirror::to_bytes(std::vector{row}), attmirror::to_bytes(std::vector{found->second})))
        << row.status << ": " << row.reason;
  }
}

// Of all keys in their order (FNV-1a).
std::string hash_of_keys(const SweepPlan& plan) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const RunSettings& run : plan.runs)
    for (const char c : run.key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

TEST(OldData, AreMadeAgainByTheSameOptions) {
  const OldFiles files;
  for (OldCommand& command : files.commands({"data"})) {
    SCOPED_TRACE(command.name);
    const fs::path old = files.data(fs::path(command.name).filename().string());
    const std::string ours = files.fresh(old.filename().string());
    const std::string key_weights = files.fresh("key_weights.npy");
    const auto option = std::ranges::find(command.words, "--key-weights-output");
    const bool has_key_weights = option != command.words.end();
    if (has_key_weights) *(option + 1) = key_weights;
    const Json made = old_answer(command.words + Words{"-o", ours});
    expect_same_arrays(old, ours);
    EXPECT_EQ(made["fingerprint"], old_answer({"info", old.string()})["fingerprint"]);
    if (!has_key_weights) continue;
    EXPECT_TRUE(same_bytes(file_text(files.data("key_weights.npy")), file_text(key_weights)));
  }
}

TEST(OldSweeps, AreExtendedByTheNewRunsAlone) {
  const OldFiles files;
  for (const std::string name : {"kinds", "file"}) {
    SCOPED_TRACE(name);
    const std::string database = files.copy(name + "_half.db");
    const fs::path whole = files / (name + "_whole.db");
    const auto before = static_cast<std::int64_t>(old_rows(database).size());
    const auto all = static_cast<std::int64_t>(old_rows(whole).size());
    ASSERT_LT(before, all);
    // As it was, there is nothing to do.
    const Words resume{"-o", database, "--resume"};
    EXPECT_EQ(old_answer(Words{"sweep", files.sweep(name + "_half.toml").string()} + resume)["computed"], 0);
    const Json answer = old_answer(Words{"sweep", files.sweep(name + "_whole.toml").string()} + resume);
    EXPECT_EQ(answer["computed"], all - before);
    EXPECT_EQ(answer["rows"], all);
    expect_equal_rows(whole, database);
    EXPECT_EQ(SweepDatabase(database).header(), SweepDatabase(whole).header());
  }
}

TEST(OldSweeps, AreMadeAgainByTheSameFile) {
  const OldFiles files;
  for (const std::string name : {"kinds_whole", "file_whole"}) {
    SCOPED_TRACE(name);
    const std::string ours = files.fresh(name + ".db");
    old_answer({"sweep", files.sweep(name + ".toml").string(), "-o", ours});
    expect_equal_rows(files / (name + ".db"), ours);
  }
}

TEST(OldSweeps, AreDescribedAndExported) {
  const OldFiles files;
  const std::string database = files.copy("kinds_whole.db");
  const Json info = old_answer({"info", database});
  EXPECT_EQ(info["kind"], "sweep");
  EXPECT_EQ(info["rows"], old_rows(database).size());
  EXPECT_EQ(info["file"], file_text(files.sweep("kinds_whole.toml")));
  const Json summary =
      old_answer({"sweep", database, "--summary", "--by", "optimizer", "--metrics", "own.bregman"});
  EXPECT_FALSE(summary["summary"].empty());
  old_answer({"sweep", database, "--export", "npz", "-o", files.fresh("rows.npz")});
  old_answer({"report", database, "-o", files.fresh("report.html")});
}

// Keys decide which runs a database has already.
TEST(OldSweeps, HaveTheirKeys) {
  const OldFiles files;
  std::set<std::string> listed;
  std::istringstream list(file_text(fixture("files-0.1.0/keys.txt")));
  for (std::string line; std::getline(list, line);) listed.insert(line);
  const fs::path folder = files.sweep("");
  std::size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    const SweepPlan plan = load_sweep(entry.path());
    const std::string line = fmt::format("{} {} {}", fs::relative(entry.path(), folder).string(),
                                         plan.runs.size(), hash_of_keys(plan));
    EXPECT_TRUE(listed.contains(line)) << line << " is not in keys.txt";
    ++count;
  }
  EXPECT_EQ(count, listed.size());
}

TEST(OldPaths, AreReadAndMadeAgain) {
  const OldFiles files;
  for (const OldCommand& command : files.commands({"paths"})) {
    SCOPED_TRACE(command.name);
    const fs::path old = files / command.name, ours = files.fresh(command.name);
    const Json config = read_json(old / "config.json");
    const std::vector<PathPoint> points = load_path(old);
    ASSERT_EQ(points.size(), config["radii"].size());
    for (std::size_t i = 0; i < points.size(); ++i) EXPECT_EQ(points[i].radius, config["radii"][i]);
    const Outcome made = attmirror_command(command.words + Words{"--quiet", "-o", ours.string()});
    EXPECT_LE(made.code, 1) << made.err;
    expect_same_arrays(old / "path.npz", ours / "path.npz");
    EXPECT_TRUE(same_bytes(file_text(old / "metrics.jsonl"), file_text(ours / "metrics.jsonl")));
    EXPECT_EQ(without_origin(config), without_origin(read_json(ours / "config.json")));
    // A path in the folder is known as one.
    const Outcome again =
        attmirror_command(command.words + Words{"--quiet", "--overwrite", "-o", files.copy(command.name)});
    EXPECT_LE(again.code, 1) << again.err;
  }
}

TEST(OldSolutions, AreReadCheckedAndMadeAgain) {
  const OldFiles files;
  for (const OldCommand& command : files.commands({"svm"})) {
    SCOPED_TRACE(command.name);
    const fs::path old = files / command.name;
    const std::string ours = files.fresh(fs::path(command.name).filename().string());
    const Outcome made = attmirror_command(command.words + Words{"--quiet", "-o", ours});
    EXPECT_LE(made.code, 1) << made.err;
    expect_same_arrays(old, ours);
    const NamedArrays arrays = load_npz(old);
    const auto word = [&](const char* name) { return to_text(arrays.at(name).bytes()); };
    EXPECT_EQ(made.code, word("status") == "certified" ? 0 : 1);
    if (word("status") != "certified" || word("problem") == "general") continue;
    Words check{"margin", command.words[1], "--check", old.string()};
    if (command.name == "svm/causal.npz") check = check + Words{"--mask", "causal"};
    const Json answer = old_answer(check);
    EXPECT_EQ(answer["status"], "certified");
    EXPECT_EQ(answer["kind"], word("kind"));
    EXPECT_EQ(answer["problem"], word("problem"));
  }
}

TEST(OldNextToken, IsDescribed) {
  const OldFiles files;
  for (const OldCommand& command : files.commands({"next-token"})) {
    SCOPED_TRACE(command.name);
    const fs::path folder = files / (command.name + "/half");
    const Json answer = old_answer({"info", folder.string()});
    EXPECT_EQ(answer["kind"], "next-token");
    EXPECT_EQ(answer["config"], read_json(folder / "config.json"));
    EXPECT_EQ(answer["result"], read_json(folder / "result.json"));
    EXPECT_FALSE(answer["stages"].empty());
  }
}

TEST(OldReproductions, AreReadAndShown) {
  const OldFiles files;
  const std::string text = file_text(files / "reproduction/results/p2-losses.json");
  Json again = Json::parse(to_json(parse_report(text)));
  // Which reproductions of 0.1.0 did not say.
  for (const char* key : {"conclusion", "details", "sample"}) again.erase(key);
  for (Json& finding : again["findings"]) finding.erase("resolution");
  EXPECT_EQ(again, Json::parse(text));
  ASSERT_EQ(load_reports(files / "reproduction").size(), 1U);
  const Json answer =
      old_answer({"report", (files / "reproduction").string(), "-o", files.fresh("report.html")});
  EXPECT_EQ(answer["sources"][0]["kind"], "reproduction");
}

// Without LibTorch; tests/deep resumes them.
TEST(OldTrainings, AreReadAndShown) {
  const TemporaryFolder folder;
  unpack_old("deep.tar.xz", folder.path());
  Words report{"report", "-o", (folder / "report.html").string()};
  for (const std::string name : {"md", "muon", "adamw", "sign"})
    for (const char* part : {"half", "whole"}) {
      SCOPED_TRACE(name + "/" + part);
      const fs::path run = folder / name / part;
      const Json answer = old_answer({"info", run.string()}), results = read_json(run / "results.json");
      EXPECT_EQ(answer["kind"], "training");
      EXPECT_EQ(answer["status"], results["status"]);
      EXPECT_EQ(answer["config"]["optimizer.name"], name);
      ASSERT_EQ(answer["trials"].size(), results["trials"].size());
      for (std::size_t i = 0; i < answer["trials"].size(); ++i)
        for (const char* number : {"epochs", "train_loss", "train_accuracy", "best_test_accuracy"})
          EXPECT_EQ(answer["trials"][i][number], results["trials"][i][number]) << number;
      report.push_back(run.string());
    }
  old_answer(report);
}

}  // namespace
}  // namespace attmirror::test
