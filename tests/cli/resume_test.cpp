// The same bits, whatever happens on the way: other numbers of threads, Ctrl-C, kill -9, a full disk, more steps.
#include "cli/command.hpp"
#include "support/same_bits.hpp"
#include <attmirror/descent/run_folder.hpp>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <limits>
#include <random>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

using Json = nlohmann::json;
void expect_same_run(const std::string& a, const std::string& b) {
  for (const char* name : {"final.npz", "trace.npz", "metrics.jsonl"})
    EXPECT_TRUE(same_bytes(file_text(a + "/" + name), file_text(b + "/" + name)))
        << name << " of " << a << " and " << b;
}

// A run of a second or so. Records are dense, so that a kill falls between a record and a checkpoint.
class Resume : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const std::string data = small_data(folder);
  const std::string whole = (folder / "whole").string(), parts = (folder / "parts").string();
  static constexpr const char* steps = "800000";
  const Words words{"train", data,       "--p",       "3",       "--normalized",       "--steps",
                    steps,   "--record", "every:500", "--quiet", "--checkpoint-every", "0"};

  void run_whole() { ASSERT_EQ(attmirror_command(words + Words{"-o", whole}).code, 0); }
};

TEST(Threads, DoNotChangeABit) {
  const TemporaryFolder folder;
  const std::string data = (folder / "data.npz").string();
  ASSERT_EQ(
      attmirror_command({"generate", "--samples", "400", "--tokens", "32", "--dim", "48", "-o", data}).code,
      0);
  for (const char* params : {"W", "KQ"}) {
    for (const char* threads : {"1", "2", "8"}) {
      const std::string run = (folder / fmt::format("{}{}", params, threads)).string();
      const Outcome outcome =
          attmirror_command({"train", data, "--p", "1.75", "--normalized", "--params", params, "--steps",
                             "60", "--threads", threads, "-o", run, "--quiet"});
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      expect_same_run((folder / fmt::format("{}1", params)).string(), run);
    }
  }
}

TEST_F(Resume, AfterKillAtAnyMoment) {
  // Far more steps than it is left time for: a kill never comes too late.
  const auto train = [&](const std::string& run, std::int64_t count, const Words& more = {}) {
    return Words{"train",
                 data,
                 "--p",
                 "3",
                 "--normalized",
                 "--steps",
                 std::to_string(count),
                 "--record",
                 "every:500",
                 "--quiet",
                 "--checkpoint-every",
                 "0",
                 "-o",
                 run} +
           more;
  };
  std::mt19937 random(7);
  for (int kill = 0; kill < 6; ++kill) {
    FileChanges checkpoints(parts + "/checkpoint.npz");
    RunningCommand command(train(parts, 20'000'000, {"--resume"}));
    const int changes = std::uniform_int_distribution(kill == 0 ? 0 : 1, 3)(random);
    ASSERT_TRUE(command.wait_until([&] { return checkpoints.seen() >= changes; }));
    command.signal(SIGKILL);
    EXPECT_EQ(command.wait().code, 128 + SIGKILL);
  }
  // The last kill may have come in the middle of a line, or of a temporary file.
  std::ofstream(parts + "/metrics.jsonl", std::ios::app) << "{\"step\":12345,\"lo";
  std::ofstream(parts + "/.trace.npz.tmp-1-0") << "half";
  const std::int64_t count = load_checkpoint(parts + "/checkpoint.npz").step + 10'000;
  const Outcome last = attmirror_command(train(parts, count, {"--resume"}));
  EXPECT_EQ(last.code, 0) << last.err;
  ASSERT_EQ(attmirror_command(train(whole, count)).code, 0);
  expect_same_run(whole, parts);
  EXPECT_FALSE(std::filesystem::exists(parts + "/.trace.npz.tmp-1-0"));
}

TEST_F(Resume, AfterCtrlC) {
  run_whole();
  for (const int signal : {SIGINT, SIGTERM}) {
    RunningCommand command({"train", data, "--p", "3", "--normalized", "--steps", steps, "--record",
                            "every:500", "--json", "--resume", "-o", parts});
    // Signals are guarded before the folder is touched.
    const auto started = [&] {
      std::error_code error;
      return std::filesystem::file_size(parts + "/metrics.jsonl", error) > 0 && !error &&
             !std::filesystem::exists(parts + "/result.json");
    };
    ASSERT_TRUE(command.wait_until(started));
    command.signal(signal);
    const Outcome outcome = command.wait();
    EXPECT_EQ(outcome.code, 128 + signal) << outcome.err;
    EXPECT_EQ(Json::parse(outcome.out)["status"], "interrupted");
    EXPECT_NE(outcome.err.find("--resume continues from there"), std::string::npos) << outcome.err;
    EXPECT_EQ(load_run(parts).result->status, RunStatus::interrupted);
    EXPECT_EQ(load_checkpoint(parts + "/checkpoint.npz").step, Json::parse(outcome.out)["steps"]);
  }
  EXPECT_EQ(attmirror_command(words + Words{"-o", parts, "--resume"}).code, 0);
  expect_same_run(whole, parts);
}

TEST_F(Resume, WithMoreSteps) {
  const auto train = [&](const std::string& run, const char* count, const Words& more) {
    return attmirror_command(Words{"train", data, "--params", "KQ", "--init-seed", "3", "--record", "log:7",
                                   "-o", run, "--steps", count, "--quiet"} +
                             more);
  };
  ASSERT_EQ(train(whole, "5000", {}).code, 0);
  ASSERT_EQ(train(parts, "1234", {}).code, 0);
  ASSERT_EQ(train(parts, "3000", {"--resume"}).code, 0);
  const std::string at_3000 = file_text(parts + "/result.json");
  EXPECT_EQ(train(parts, "3000", {"--resume"}).code, 0);
  EXPECT_EQ(train(parts, "2000", {"--resume"}).code, 0);  // there already
  EXPECT_EQ(file_text(parts + "/result.json"), at_3000);
  ASSERT_EQ(train(parts, "5000", {"--resume", "--threads", "2"}).code, 0);
  expect_same_run(whole, parts);
}

TEST_F(Resume, BeforeTheFirstCheckpointStartsOver) {
  ASSERT_EQ(attmirror_command(words + Words{"-o", parts, "--resume"}).code, 0);  // no folder yet
  run_whole();
  expect_same_run(whole, parts);
  std::filesystem::remove(parts + "/result.json");
  std::filesystem::remove(parts + "/checkpoint.npz");
  ASSERT_EQ(attmirror_command(words + Words{"-o", parts, "--resume"}).code, 0);
  expect_same_run(whole, parts);
}

TEST_F(Resume, RefusesAnotherRun) {
  const Words base{"train", data, "--steps", "20", "--quiet", "-o", parts};
  ASSERT_EQ(attmirror_command(base).code, 0);
  const std::string before = file_text(parts + "/config.json");
  const auto refuse = [&](const Words& options, std::string_view field) {
    expect_refusal(base + Words{"--resume"} + options, 2, {"cannot resume", field});
  };
  refuse({"--p", "3"}, "optimizer.p is 2.0 there and 3.0 here");
  refuse({"--lr", "0.2"}, "optimizer.lr is 0.1 there and 0.2 here");
  refuse({"--normalized"}, "optimizer.normalized");
  refuse({"--optimizer", "gd"}, "optimizer.kind");
  refuse({"--eps", "paper"}, "optimizer.eps is");
  refuse({"--init", "normal"}, "init.kind");
  refuse({"--record", "none"}, "record is");
  refuse({"--keep", "metrics"}, "keep is");
  refuse({"--data-path", "stream"}, "gradient.path is");
  refuse({"--storage", "float32"}, "gradient.storage is");
  refuse({"--train", "W,v"}, "model.train");
  refuse({"--loss", "linear"}, "model.loss");
  refuse({"--params", "KQ"}, "model.params is \"W\" there and \"KQ\" here");
  const std::string other = (folder / "other.npz").string();
  ASSERT_EQ(attmirror_command({"generate", "--seed", "2", "-o", other}).code, 0);
  expect_refusal({"train", other, "--steps", "20", "-o", parts, "--resume"}, 2, {"data.fingerprint"});
  EXPECT_EQ(file_text(parts + "/config.json"), before);
  EXPECT_TRUE(std::filesystem::exists(parts + "/result.json"));
}

TEST_F(Resume, RefusesADamagedCheckpoint) {
  ASSERT_EQ(attmirror_command({"train", data, "--steps", "20", "--quiet", "-o", parts}).code, 0);
  const std::string checkpoint = parts + "/checkpoint.npz";
  std::filesystem::resize_file(checkpoint, std::filesystem::file_size(checkpoint) / 2);
  expect_refusal({"train", data, "--steps", "40", "-o", parts, "--resume"}, 2, {"checkpoint.npz"});
  std::filesystem::copy_file(data, checkpoint, std::filesystem::copy_options::overwrite_existing);
  expect_refusal({"train", data, "--steps", "40", "-o", parts, "--resume"}, 2,
                 {"checkpoint.npz", "not an attmirror checkpoint"});
}

// A checkpoint that reads well but belongs to something else is refused before a file of the run is touched.
TEST_F(Resume, RefusesAForeignCheckpointAndLeavesTheRunAlone) {
  const Words train{"train", data, "--quiet", "-o", parts};
  ASSERT_EQ(attmirror_command(train + Words{"--steps", "20"}).code, 0);
  const std::string result = file_text(parts + "/result.json"), metrics = file_text(parts + "/metrics.jsonl");
  const Checkpoint own = load_checkpoint(parts + "/checkpoint.npz");
  Checkpoint other_data = own, broken = own, beyond = own;
  other_data.data_fingerprint ^= 1;
  broken.weights.W(0, 0) = std::numeric_limits<double>::quiet_NaN();
  beyond.step = 1'000'000;
  for (const auto& [checkpoint, word] :
       {std::pair{other_data, "another dataset"}, {broken, "W[0,0] is nan"}, {beyond, "at step 1000000"}}) {
    save_checkpoint(parts + "/checkpoint.npz", checkpoint);
    expect_refusal(train + Words{"--steps", "40", "--resume"}, 2, {word});
    EXPECT_EQ(file_text(parts + "/result.json"), result);
    EXPECT_EQ(file_text(parts + "/metrics.jsonl"), metrics);
  }
}

TEST_F(Resume, OneProcessAtATime) {
  RunningCommand command({"train", data, "--normalized", "--steps", "1e12", "-o", parts, "--quiet"});
  ASSERT_TRUE(command.wait_until([&] { return std::filesystem::exists(parts + "/metrics.jsonl"); }));
  expect_refusal({"train", data, "--normalized", "--steps", "1e12", "-o", parts, "--resume"}, 3,
                 {"is in use"});
  command.signal(SIGKILL);
  command.wait();
  EXPECT_EQ(attmirror_command({"train", data, "--steps", "5", "-o", parts, "--overwrite", "--quiet"}).code,
            0);
}

TEST_F(Resume, AfterAFullDisk) {
  run_whole();
  const Outcome full = attmirror_command(words + Words{"-o", parts}, {.file_size_limit = 30'000});
  EXPECT_EQ(full.code, 3);
  EXPECT_NE(full.err.find("cannot write"), std::string::npos) << full.err;
  EXPECT_FALSE(std::filesystem::exists(parts + "/result.json"));
  for (const auto& entry : std::filesystem::directory_iterator(parts))
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
  EXPECT_EQ(attmirror_command(words + Words{"-o", parts, "--resume"}).code, 0);
  expect_same_run(whole, parts);
}

}  // namespace
}  // namespace attmirror::test
