// attmirror study: one line instead of a sweep file and four commands, with the same rows.
#include "base/atomic_file.hpp"
#include "cli/command.hpp"
#include <attmirror/sweep/database.hpp>

#include <csignal>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

using Json = nlohmann::json;

class StudyCommandTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const std::string data = (folder / "own data.npz").string(), out = (folder / "study").string();
  const Words words{"study",   data, "--optimizers", "md,gd,sign", "--p", "1.5,3",
                    "--seeds", "3",  "--steps",      "1500",       "-o",  out};

  void SetUp() override {
    const Outcome made = attmirror_command(
        {"generate", "--samples", "4", "--tokens", "6", "--min-tokens", "3", "--dim", "6", "-o", data});
    ASSERT_EQ(made.code, 0) << made.err;
  }
  static std::vector<RunRow> rows_of(const std::filesystem::path& path) {
    std::vector<RunRow> rows = SweepDatabase(path).rows(SweepDatabase::Arrays::load);
    for (RunRow& row : rows) {
      row.seconds = 0;
      row.engine = row.finished = "";
    }
    return rows;
  }
};

TEST_F(StudyCommandTest, IsTheSweepThatItsFileDescribes) {
  const Outcome outcome = attmirror_command(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::filesystem::path study = out;
  const std::string again = (folder / "again.db").string();
  const Outcome swept = attmirror_command({"sweep", (study / "sweep.toml").string(), "-o", again, "--quiet"});
  ASSERT_EQ(swept.code, 0) << swept.err;
  const std::vector<RunRow> ours = rows_of(study / "results.db"), theirs = rows_of(again);
  ASSERT_EQ(ours.size(), 12u);  // md twice, gd and sign once, three starts each
  EXPECT_EQ(ours, theirs);
}

TEST_F(StudyCommandTest, SaysWhatCameOut) {
  const Outcome outcome = attmirror_command(words);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::string first, line;
  std::getline(lines, first);
  EXPECT_NE(first.find("optimizers maximize the margin in their own norms"), std::string::npos) << first;
  bool in_table = false;
  for (int rows = 0; std::getline(lines, line);) {
    in_table = in_table || line.starts_with("optimizer");
    if (in_table && rows++ < 6) {
      EXPECT_LE(line.size(), 80u) << line;
    }
  }
  EXPECT_TRUE(in_table) << outcome.out;
  const std::string page = file_text(std::filesystem::path(out) / "report.html");
  EXPECT_NE(page.find("maximize the margin in their own norms"), std::string::npos);
  EXPECT_NE(page.find("attmirror sweep"), std::string::npos);
  // Nothing is left to compute; the answer is the same.
  const Outcome resumed = attmirror_command(words + Words{"--resume", "--json"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const Json json = Json::parse(resumed.out);
  EXPECT_EQ(json["computed"], 0);
  EXPECT_EQ(json["runs"], 12);
  EXPECT_EQ(json["conclusion"], first);
  ASSERT_EQ(json["groups"].size(), 4u);
  EXPECT_EQ(json["groups"][1]["optimizer"], "md:3");
  EXPECT_EQ(json["groups"][2]["optimizer"], "gd");
}

TEST_F(StudyCommandTest, GoesOnAfterAKillAndWithMoreSeeds) {
  Words longer = words;
  longer[9] = "200000";  // steps: long enough to be caught
  {
    RunningCommand running(longer + Words{"--threads", "1", "--quiet"});
    const std::filesystem::path database = std::filesystem::path(out) / "results.db";
    ASSERT_TRUE(
        running.wait_until([&] { return running.catches(SIGINT) && std::filesystem::exists(database); }));
    running.signal(SIGINT);
    const Outcome stopped = running.wait();
    EXPECT_EQ(stopped.code, 130) << stopped.err;
    EXPECT_NE(stopped.err.find("--resume"), std::string::npos) << stopped.err;
  }
  expect_refusal(words, 2, {"is there already", "--resume", "--overwrite"});
  ASSERT_EQ(attmirror_command(words + Words{"--overwrite", "--quiet"}).code, 0);
  Words more = words;
  more[7] = "5";
  const Outcome resumed = attmirror_command(more + Words{"--resume", "--json"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_EQ(Json::parse(resumed.out)["computed"], 8);
  // Fewer would leave rows behind that are not of this study.
  expect_refusal(words + Words{"--resume"}, 2, {"results.db", "8 runs that are not those of this command"});
}

TEST_F(StudyCommandTest, DryRunPrintsTheFileAndWritesNothing) {
  const Outcome outcome = attmirror_command(words + Words{"--dry-run"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* text : {"runs       12", "[[zip]]", "init_seed = \"1:3\"", "\"../own data.npz\""})
    EXPECT_NE(outcome.out.find(text), std::string::npos) << text << "\n" << outcome.out;
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(StudyCommandTest, RefusesWhatCannotBe) {
  const Words start{"study", data, "-o", out};
  expect_refusal({"study", data}, 2, {"--output is required"});
  expect_refusal({"study", "-o", out}, 2, {"data is required"});
  expect_refusal({"study", (folder / "no.npz").string(), "-o", out}, 2, {"no.npz", "No such file"});
  expect_refusal(start + Words{"--optimizers", "md,adagrd"}, 2, {"\"adagrd\"", "did you mean \"adagrad\""});
  expect_refusal(start + Words{"--optimizers", "adagrad"}, 2, {"predicts no norm"});
  expect_refusal(start + Words{"--p", "0.5"}, 2, {"\"md:0.5\"", "--p is 0.5"});
  expect_refusal(start + Words{"--p", "1.5,x"}, 2, {"p is \"x\"", "a number"});
  expect_refusal(start + Words{"--seeds", "0"}, 2, {"seeds is 0"});
  expect_refusal(start + Words{"--resume", "--overwrite"}, 2, {"both --resume and --overwrite"});
  EXPECT_FALSE(std::filesystem::exists(out));
  // A sweep file of the user's own is never replaced.
  std::filesystem::create_directories(out);
  write_file_atomically(std::filesystem::path(out) / "sweep.toml", std::string_view("[grid]\n"));
  expect_refusal(start + Words{"--overwrite"}, 2, {"sweep.toml", "not written by attmirror study"});
  EXPECT_EQ(file_text(std::filesystem::path(out) / "sweep.toml"), "[grid]\n");
}

}  // namespace
}  // namespace attmirror::test
