// attmirror sweep: the same rows however they were computed, and nothing lost however it was stopped.
#include "cli/command.hpp"
#include "support/paths.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/base/table.hpp>
#include <attmirror/sweep/database.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

using Json = nlohmann::json;

const char* const small_sweep = R"(
[sweep]
name = "a small sweep"
[data]
generator = "sphere"
samples = 3
tokens = 4
dim = 5
[train]
normalized = true
init = "normal:1"
[grid]
seed = "1:10"
optimizer = ["md", "sign"]
[[zip]]
params = ["W", "KQ"]
steps = [400, 200]
[record]
steps = [0, 10, 100]
curves = ["loss", "own.bregman"]
margins = ["2"]
solutions = ["own", "nuclear"]
keep = ["weights"]
)";

class Sweep : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const std::string file = (folder / "sweep.toml").string(), db = (folder / "results.db").string();

  void SetUp() override { write(small_sweep); }
  void write(const std::string& text) const { std::ofstream(file) << text; }

  Outcome sweep(const Words& options) const { return attmirror_command(Words{"sweep", file} + options); }
  Json answer(const Words& options, int code = 0) const {
    const Outcome outcome = sweep(options + Words{"--json"});
    EXPECT_EQ(outcome.code, code) << outcome.err << outcome.out;
    return Json::parse(outcome.out);
  }
};

// What two databases must agree in: everything but times and who computed it.
std::vector<RunRow> comparable_rows(const std::string& path) {
  const SweepDatabase database(path);
  EXPECT_EQ(database.integrity(), "");
  std::vector<RunRow> rows = database.rows(SweepDatabase::Arrays::load);
  for (RunRow& row : rows) {
    row.seconds = 0;
    row.engine = row.finished = "";
  }
  return rows;
}

void expect_same_rows(const std::string& a, const std::string& b) {
  const std::vector<RunRow> left = comparable_rows(a), right = comparable_rows(b);
  ASSERT_EQ(left.size(), right.size());
  for (std::size_t i = 0; i < left.size(); ++i)
    EXPECT_EQ(left[i], right[i]) << "row " << i << ", key " << left[i].key;
}

TEST_F(Sweep, DryRunCountsAndWritesNothing) {
  const Json json = answer({"--dry-run", "-o", db});
  EXPECT_EQ(json["status"], "planned");
  EXPECT_EQ(json["runs"], 40);
  EXPECT_EQ(json["missing"], 40);
  EXPECT_EQ(json["steps"], 20 * 400 + 20 * 200);
  EXPECT_GT(json["estimated_seconds"], 0);
  EXPECT_FALSE(std::filesystem::exists(db));
  const Outcome text = sweep({"--dry-run"});
  EXPECT_NE(text.out.find("runs       40"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("seed, optimizer, params, steps"), std::string::npos) << text.out;
}

TEST_F(Sweep, WritesARowPerRun) {
  const Json json = answer({"-o", db});
  EXPECT_EQ(json["status"], "done");
  EXPECT_EQ(json["runs"], 40);
  EXPECT_EQ(json["computed"], 40);
  EXPECT_EQ(json["rows"], 40);
  // One file: nothing of the write-ahead log is left.
  EXPECT_FALSE(std::filesystem::exists(db + "-wal"));
  EXPECT_FALSE(std::filesystem::exists(db + "-shm"));
  const SweepDatabase database(db);
  EXPECT_EQ(database.header().name, "a small sweep");
  const std::vector<RunRow> rows = database.rows(SweepDatabase::Arrays::load);
  ASSERT_EQ(rows.size(), 40u);
  for (const RunRow& row : rows) {
    EXPECT_EQ(row.version, version());
    EXPECT_FALSE(row.isa.empty());
    EXPECT_TRUE(Json::parse(row.config).contains("optimizer")) << row.config;
    EXPECT_EQ(row.status == "ok", row.reason.empty());
    EXPECT_EQ(row.metrics.size(), database.header().metrics.size());
    const auto curve = std::ranges::find(row.arrays, "own.bregman", &RowArray::name);
    ASSERT_NE(curve, row.arrays.end());
    EXPECT_EQ(curve->values.size(), 4u);  // 0, 10, 100 and the last
  }
}

TEST_F(Sweep, SameBitsForAnyNumberOfThreadsAndForEitherEngine) {
  const std::string two = (folder / "two.db").string(), eight = (folder / "eight.db").string(),
                    single = (folder / "single.db").string();
  ASSERT_EQ(sweep({"-o", db, "--threads", "1"}).code, 0);
  ASSERT_EQ(sweep({"-o", two, "--threads", "2"}).code, 0);
  ASSERT_EQ(sweep({"-o", eight, "--threads", "8"}).code, 0);
  ASSERT_EQ(sweep({"-o", single, "--engine", "single"}).code, 0);
  expect_same_rows(db, two);
  expect_same_rows(db, eight);
  expect_same_rows(db, single);
}

bool has_mpi() {
  return std::ranges::count(components(), "mpi") > 0 && std::system("mpirun --version > /dev/null 2>&1") == 0;
}

int mpirun(int ranks, const std::string& arguments, const std::filesystem::path& log) {
  const std::string line = fmt::format(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n {} {} {} > {} "
      "2>&1 < /dev/null",
      ranks, command_path().string(), arguments, log.string());
  const int status = std::system(line.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Sweep, SameBitsForAnyNumberOfRanks) {
  if (!has_mpi()) GTEST_SKIP() << "MPI is not there";
  ASSERT_EQ(sweep({"-o", db}).code, 0);
  for (const int ranks : {1, 2, 4}) {
    const std::string other = (folder / fmt::format("ranks{}.db", ranks)).string();
    ASSERT_EQ(mpirun(ranks, fmt::format("sweep {} -o {}", file, other), folder / "log"), 0)
        << file_text(folder / "log");
    expect_same_rows(db, other);
  }
}

TEST_F(Sweep, RefusalsReachEveryRank) {
  if (!has_mpi()) GTEST_SKIP() << "MPI is not there";
  write("[grid]\np = [0.9]\n");
  EXPECT_EQ(mpirun(3, fmt::format("sweep {} -o {}", file, db), folder / "log"), 2);
  const std::string log = file_text(folder / "log");
  EXPECT_NE(log.find("axis \"p\": 0.9: expected a finite number greater than 1"), std::string::npos) << log;
  EXPECT_EQ(log.find("axis \"p\": 0.9: expected a finite number greater than 1"),
            log.rfind("axis \"p\": 0.9: expected a finite number greater than 1"))
      << "said once: " << log;
}

TEST_F(Sweep, ResumesWhatIsMissing) {
  const std::string whole = (folder / "whole.db").string();
  ASSERT_EQ(sweep({"-o", whole}).code, 0);
  // Half of the seeds first: the others join the same database, in another grouping.
  std::string half = small_sweep;
  half.replace(half.find("1:10"), 4, "3:7");
  write(half);
  EXPECT_EQ(answer({"-o", db})["computed"], 20);
  write(small_sweep);
  const Json dry = answer({"-o", db, "--resume", "--dry-run"});
  EXPECT_EQ(dry["missing"], 20);
  const Json json = answer({"-o", db, "--resume"});
  EXPECT_EQ(json["computed"], 20);
  EXPECT_EQ(json["rows"], 40);
  EXPECT_EQ(answer({"-o", db, "--resume"})["computed"], 0);
  std::vector<RunRow> left = comparable_rows(db), right = comparable_rows(whole);
  for (std::vector<RunRow>* rows : {&left, &right}) {
    for (RunRow& row : *rows) row.run = 0;  // the number in the sweep of that time
    std::ranges::sort(*rows, {}, &RunRow::key);
  }
  EXPECT_EQ(left, right);
}

TEST_F(Sweep, RefusesToReplaceUnasked) {
  ASSERT_EQ(sweep({"-o", db}).code, 0);
  expect_refusal({"sweep", file, "-o", db}, 2, {"results.db", "--resume", "--overwrite"});
  EXPECT_EQ(comparable_rows(db).size(), 40u);
  EXPECT_EQ(answer({"-o", db, "--overwrite"})["computed"], 40);
  std::string other = small_sweep;
  other.replace(other.find("[\"own\", \"nuclear\"]"), 18, "[\"own\"]");
  write(other);
  expect_refusal({"sweep", file, "-o", db, "--resume"}, 2, {"results.db", "[record]", "solutions"});
  EXPECT_EQ(comparable_rows(db).size(), 40u);
}

// A sweep long enough to be killed in the middle.
std::string long_sweep() {
  std::string text = small_sweep;
  text.replace(text.find("1:10"), 4, "1:40");
  text.replace(text.find("[400, 200]"), 10, "[4000, 3000]");
  return text;
}

TEST_F(Sweep, SurvivesKillsAtRandomMoments) {
  write(long_sweep());
  const std::string whole = (folder / "whole.db").string();
  ASSERT_EQ(sweep({"-o", whole}).code, 0);
  std::mt19937 random(7);
  std::int64_t rows_seen = 0;  // what was there once stays
  int killed = 0;
  for (int attempt = 0; attempt < 50; ++attempt) {
    FileChanges log(db + "-wal");  // SQLite's log grows with each batch
    RunningCommand command({"sweep", file, "-o", db, "--resume", "--quiet"});
    const int changes = std::uniform_int_distribution(0, 4)(random);
    command.wait_until([&] { return log.seen() >= changes; });
    command.signal(SIGKILL);
    killed += command.wait().code == 128 + SIGKILL ? 1 : 0;
    std::error_code ignored;
    if (std::filesystem::exists(db, ignored) && std::filesystem::file_size(db) > 0) {
      try {
        const SweepDatabase database(db);
        ASSERT_EQ(database.integrity(), "") << "after " << attempt << " kills";
      } catch (const Error& error) {
        // Killed while the tables were made: SQLite has rolled them back, and nothing was ever in them.
        ASSERT_NE(std::string(error.what()).find("is empty"), std::string::npos) << error.what();
        ASSERT_EQ(rows_seen, 0) << "after " << attempt << " kills";
        continue;
      }
      const std::int64_t rows = SweepDatabase(db).count();
      ASSERT_GE(rows, rows_seen) << "after " << attempt << " kills";
      rows_seen = rows;
    }
  }
  EXPECT_GE(killed, 5);
  ASSERT_EQ(sweep({"-o", db, "--resume"}).code, 0);
  expect_same_rows(db, whole);
}

TEST_F(Sweep, InterruptKeepsWhatIsComputed) {
  std::string text = long_sweep();
  text.replace(text.find("[4000, 3000]"), 12, "[400000, 300000]");
  write(text);
  RunningCommand command({"sweep", file, "-o", db});
  // Signals are guarded before the file is made.
  ASSERT_TRUE(command.wait_until([&] { return std::filesystem::exists(db + "-wal"); }));
  command.signal(SIGINT);
  const Outcome outcome = command.wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_NE(outcome.err.find("--resume"), std::string::npos) << outcome.err;
  const SweepDatabase database(db);
  EXPECT_EQ(database.integrity(), "");
}

TEST_F(Sweep, FullDiskIsASentenceAndCanBeResumed) {
  write(long_sweep());
  const std::string whole = (folder / "whole.db").string();
  ASSERT_EQ(sweep({"-o", whole}).code, 0);
  const Outcome full = attmirror_command({"sweep", file, "-o", db}, {.file_size_limit = 200'000});
  EXPECT_EQ(full.code, 3) << full.err;
  EXPECT_NE(full.err.find("results.db"), std::string::npos) << full.err;
  EXPECT_EQ(std::ranges::count(full.err, '\n'), 1) << full.err;
  EXPECT_EQ(SweepDatabase(db).integrity(), "");
  ASSERT_EQ(sweep({"-o", db, "--resume"}).code, 0);
  expect_same_rows(db, whole);
}

TEST_F(Sweep, TwoWritersDoNotMeet) {
  write(long_sweep());
  RunningCommand first({"sweep", file, "-o", db, "--quiet"});
  ASSERT_TRUE(first.wait_until([&] {
    std::error_code ignored;
    return std::filesystem::exists(db + "-wal", ignored);
  }));
  const Outcome second = sweep({"-o", db, "--resume"});
  if (!first.ended()) {
    EXPECT_EQ(second.code, 3) << second.err;
    EXPECT_NE(second.err.find("another process"), std::string::npos) << second.err;
  }
  EXPECT_EQ(first.wait().code, 0);
  EXPECT_EQ(comparable_rows(db).size(), 160u);
}

TEST_F(Sweep, RunsThatCannotBeMadeAreRows) {
  std::ofstream(folder / "damaged.npz") << "not a dataset";
  write(R"(
[data]
file = "damaged.npz"
[grid]
p = [1.5, 2.0]
)");
  const Json json = answer({"-o", db}, 1);
  EXPECT_EQ(json["by_status"]["error"], 2);
  for (const RunRow& row : SweepDatabase(db).rows()) {
    EXPECT_EQ(row.status, "error");
    EXPECT_NE(row.reason.find("damaged.npz"), std::string::npos) << row.reason;
  }
}

TEST_F(Sweep, RunsThatCouldNotBeMadeAreTriedAgain) {
  const std::string data = (folder / "later.npz").string();
  std::ofstream(data) << "not yet a dataset";
  write("[data]\nfile = \"later.npz\"\n[train]\nsteps = 10\n[grid]\np = [1.5, 2.0]\n");
  EXPECT_EQ(answer({"-o", db}, 1)["by_status"]["error"], 2);
  EXPECT_EQ(answer({"-o", db, "--resume"}, 1)["computed"], 2);
  std::filesystem::remove(data);
  ASSERT_EQ(attmirror_command({"generate", "-o", data, "--quiet"}).code, 0);
  EXPECT_EQ(answer({"-o", db, "--resume"})["computed"], 2);
  for (const RunRow& row : SweepDatabase(db).rows()) EXPECT_NE(row.status, "error");
  // The same path with other data: old and new rows would not belong together.
  std::filesystem::remove(data);
  ASSERT_EQ(attmirror_command({"generate", "--seed", "2", "-o", data, "--quiet"}).code, 0);
  write("[data]\nfile = \"later.npz\"\n[train]\nsteps = 10\n[grid]\np = [1.5, 2.0, 3.0]\n");
  expect_refusal({"sweep", file, "-o", db, "--resume"}, 2, {"results.db", "later.npz", "changed"});
  EXPECT_EQ(SweepDatabase(db).count(), 2);
}

TEST_F(Sweep, NoticesThatItsFileIsGone) {
  std::string text = long_sweep();
  text.replace(text.find("[4000, 3000]"), 12, "[40000, 30000]");
  write(text);
  RunningCommand command({"sweep", file, "-o", db, "--quiet"});
  ASSERT_TRUE(command.wait_until([&] {
    std::error_code ignored;
    return std::filesystem::exists(db + "-wal", ignored);
  }));
  std::filesystem::remove(db);
  const Outcome outcome = command.wait();
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_NE(outcome.err.find("removed"), std::string::npos) << outcome.err;
}

TEST_F(Sweep, RowsOfAnOlderFileAreNamedAndKeptApart) {
  write("[train]\nsteps = 10\nlr = 0.1\n[grid]\nseed = \"1:5\"\n");
  EXPECT_EQ(answer({"-o", db})["rows"], 5);
  write("[train]\nsteps = 10\nlr = 5\n[grid]\nseed = \"1:5\"\n");
  const Outcome again = sweep({"-o", db, "--resume"});
  EXPECT_EQ(again.code, 0);
  EXPECT_NE(again.err.find("5 of the rows"), std::string::npos) << again.err;
  const Outcome summary = attmirror_command({"sweep", db, "--summary", "--metrics", "final_loss", "--json"});
  const Json rows = Json::parse(summary.out)["summary"];
  ASSERT_EQ(rows.size(), 2u) << rows;
  EXPECT_EQ(rows[0]["lr"], 0.1);
  EXPECT_EQ(rows[1]["lr"], 5);
  EXPECT_TRUE(rows[0]["count"].is_number_integer()) << rows;
}

TEST_F(Sweep, FailedRunsSayWhy) {
  write(R"(
[data]
samples = 10
tokens = 5
dim = 2
[train]
optimizer = "gd"
normalized = true
steps = 200
[grid]
seed = "1:20"
[[list]]
lr = 0.1
[[list]]
lr = 1e300
normalized = false
[record]
solutions = [{name = "best", norm = "2", tokens = "optimal"}]
)");
  const Json json = answer({"-o", db});
  EXPECT_GT(json["by_status"].value("unsaturated", 0) + json["by_status"].value("infeasible", 0), 0) << json;
  EXPECT_EQ(json["rows"], 40);
  for (const RunRow& row : SweepDatabase(db).rows())
    EXPECT_EQ(row.reason.empty(), row.status == "ok") << row.status;
}

TEST_F(Sweep, LooksAtADatabase) {
  ASSERT_EQ(sweep({"-o", db}).code, 0);
  const Outcome summary =
      attmirror_command({"sweep", db, "--summary", "--by", "optimizer", "--metrics", "final_loss"});
  EXPECT_EQ(summary.code, 0) << summary.err;
  EXPECT_NE(summary.out.find("sign"), std::string::npos) << summary.out;
  EXPECT_NE(summary.out.find(" ± "), std::string::npos) << summary.out;
  EXPECT_EQ(summary.out.find("q0.5"), std::string::npos) << summary.out;
  // All metrics of all groups fit into 80 columns, and the full table is folded.
  ::unsetenv("COLUMNS");
  for (const Words& more : {Words{}, Words{"--full", "--by", "optimizer,p"}}) {
    const Outcome all = attmirror_command(Words{"sweep", db, "--summary"} + more);
    EXPECT_EQ(all.code, 0) << all.err;
    std::istringstream lines(all.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80u) << line;
    EXPECT_EQ(all.out.find("q0.5") != std::string::npos, !more.empty()) << all.out;
  }
  expect_refusal({"sweep", db, "--full", "--export", "csv"}, 2, {"--full is given without --summary"});
  const Outcome csv = attmirror_command({"sweep", db, "--export", "csv", "--quiet"});
  EXPECT_EQ(csv.code, 0) << csv.err;
  const std::string text = file_text(folder / "results.csv");
  EXPECT_EQ(std::ranges::count(text, '\n'), 41) << text.substr(0, 500);
  EXPECT_EQ(attmirror_command({"sweep", db, "--export", "npz", "-o", (folder / "x.npz").string()}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "x.npz"));
  expect_refusal({"sweep", db}, 2, {"results.db", "--summary"});
  expect_refusal({"sweep", db, "--resume", "--summary"}, 2, {"results.db"});
  expect_refusal({"sweep", db, "--summary", "--by", "optimiser"}, 2, {"optimiser", "optimizer"});
  expect_refusal({"sweep", db, "--export", "xlsx"}, 2, {"xlsx", "csv"});
  std::filesystem::create_symlink(db, folder / "link.db");
  expect_refusal({"sweep", db, "--export", "csv", "-o", db}, 2, {"results.db", "itself"});
  expect_refusal({"sweep", db, "--export", "npz", "-o", (folder / "link.db").string()}, 2, {"itself"});
  EXPECT_EQ(comparable_rows(db).size(), 40u);
}

TEST_F(Sweep, RefusesNonsense) {
  expect_refusal({"sweep", file}, 2, {"-o"});
  expect_refusal({"sweep", "nowhere.toml", "-o", db}, 2, {"nowhere.toml"});
  expect_refusal({"sweep", file, "-o", (folder / "no" / "x.db").string()}, 3, {"x.db"});
  expect_refusal({"sweep", file, "-o", db, "--resume", "--overwrite"}, 2, {"--resume", "--overwrite"});
  expect_refusal({"sweep", file, "-o", db, "--engine", "gpu"}, 2, {"gpu"});
  write("[grid]\np = [0.9]\n");
  expect_refusal({"sweep", file, "-o", db}, 2,
                 {"sweep.toml", "axis \"p\": 0.9: expected a finite number greater than 1"});
  std::string deep = "[a";
  for (int i = 0; i < 20'000; ++i) deep += ".a";
  write(deep + "]\nx = 1\n");
  expect_refusal({"sweep", file, "-o", db}, 2, {"sweep.toml", "line 1", "parts"});
  write("[grid\n");
  expect_refusal({"sweep", file, "-o", db}, 2, {"sweep.toml", "line 1"});
  EXPECT_FALSE(std::filesystem::exists(db));
  std::ofstream(db)
      << "no database at all, but a text of some length, longer than a hundred bytes, so that nobody can "
         "take it for an empty file";
  write(small_sweep);
  expect_refusal({"sweep", file, "-o", db, "--overwrite"}, 2, {"results.db"});
  expect_refusal({"sweep", file, "-o", db, "--resume"}, 2, {"results.db"});
}

}  // namespace
}  // namespace attmirror::test
