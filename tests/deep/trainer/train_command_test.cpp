// attmirror deep train as users run it.
#include "base/atomic_file.hpp"
#include "cli/command.hpp"
#include "deep/trainer/toy_texts.hpp"
#include "support/paths.hpp"
#include <attmirror/deep/token_set.hpp>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// A folder with the toy language and a configuration of it.
class ToyRun {
 public:
  explicit ToyRun(const std::string& more = "") {
    save_token_set(folder_ / "train.safetensors", trainer_tests::toy_texts(400, 1));
    save_token_set(folder_ / "test.safetensors", trainer_tests::toy_texts(60, 2));
    std::ofstream(folder_ / "toy.toml")
        << "[data]\ntrain = \"train.safetensors\"\ntest = \"test.safetensors\"\n"
           "length = 12\n[model]\nwidth = 32\nblocks = 2\nheads = 2\n"
           "[optimizer]\nlr = 3e-3\nmomentum = 0.5\n"
           "[train]\nepochs = 6\nbatch = 8\nthreads = 1\nstop_train_accuracy = 2.0\n"
        << more;
  }
  Words train(const std::string& run, const Words& more = {}) const {
    return Words{"deep", "train", (folder_ / "toy.toml").string(), "-o", path(run).string()} + more;
  }
  fs::path path(const std::string& name) const { return folder_ / name; }

  std::vector<json> rows(const std::string& run) const {
    std::vector<json> rows;
    std::istringstream lines(read_text_file(path(run) / "metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      rows.push_back(json::parse(line));
      for (const char* key : {"seconds", "epoch_seconds", "tokens_per_second"}) rows.back().erase(key);
    }
    return rows;
  }

 private:
  TemporaryFolder folder_;
};

TEST(DeepTrain, WritesARunAndItsAnswer) {
  const ToyRun toy;
  const Outcome outcome = attmirror_command(toy.train("run", {"--json", "--set", "train.epochs=2"}));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json answer = json::parse(outcome.out);
  EXPECT_EQ(answer["status"], "completed");
  ASSERT_EQ(answer["trials"].size(), 1u);
  EXPECT_EQ(answer["trials"][0]["epochs"], 2);
  EXPECT_GE(answer["trials"][0]["best_test_accuracy"].get<double>(),
            answer["trials"][0]["test_accuracy"].get<double>());
  EXPECT_GT(answer["seconds"].get<double>(), 0);
  EXPECT_EQ(answer["run"], toy.path("run").string());
  EXPECT_EQ(json::parse(read_text_file(toy.path("run") / "results.json")), answer);
  EXPECT_EQ(toy.rows("run").size(), 2u);
  EXPECT_NE(outcome.err.find("epoch 2"), std::string::npos);
  const json config = json::parse(read_text_file(toy.path("run") / "config.json"));
  EXPECT_EQ(config["train"]["epochs"], 2);
  EXPECT_EQ(config["data"]["train"], toy.path("train.safetensors").string());

  expect_refusal(toy.train("run"), 2, {"already holds a run"});
  expect_refusal(toy.train("run", {"--resume"}), 2, {"train.epochs was 2 and is 6"});
  expect_refusal(toy.train("run", {"--resume", "--overwrite"}), 2, {"--resume and --overwrite"});
  const Words one_epoch{"--quiet", "--set", "train.epochs=1"};
  EXPECT_EQ(attmirror_command(toy.train("run", Words{"--overwrite"} + one_epoch)).code, 0);
  EXPECT_EQ(toy.rows("run").size(), 1u);
  // Its name in version 0.1.0, which help keeps to itself.
  EXPECT_EQ(attmirror_command(toy.train("run", Words{"--force"} + one_epoch)).code, 0);
  const std::string help = attmirror_command({"deep", "train", "--help"}).out;
  EXPECT_NE(help.find("--overwrite"), std::string::npos);
  EXPECT_EQ(help.find("--force"), std::string::npos);
}

TEST(DeepTrain, MistakesAreSentences) {
  const ToyRun toy;
  expect_refusal({"deep", "train", "nowhere.toml", "-o", "x"}, 2, {"nowhere.toml"});
  expect_refusal(toy.train("run", {"--set", "optimizer.q=3"}), 2, {"optimizer.q is 3", "no such key"});
  expect_refusal(toy.train("run", {"--set", "data.train=nowhere.tsv"}), 2, {"data.vocabulary is missing"});
  expect_refusal(toy.train("run", {"--set", "data.train=nowhere.safetensors"}), 2,
                 {"data.train", "nowhere.safetensors"});
}

TEST(DeepTrain, DivergenceEverywhereIsExitCode1) {
  const ToyRun toy;
  const Outcome outcome =
      attmirror_command(toy.train("run", {"--json", "--set", "optimizer.lr=1e6", "--set", "train.trials=2"}));
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const json answer = json::parse(outcome.out);
  EXPECT_EQ(answer["status"], "diverged");
  EXPECT_EQ(answer["trials"][1]["status"], "diverged");
}

TEST(DeepTrain, TimeLimitIsExitCode0) {
  const ToyRun toy;
  const Outcome outcome = attmirror_command(toy.train("run", {"--json", "--set", "train.max_seconds=0.001"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out)["status"], "time limit");
  EXPECT_NE(outcome.err.find("time limit (train.max_seconds) reached"), std::string::npos);
  EXPECT_NE(outcome.err.find("--resume"), std::string::npos);
}

TEST(DeepTrain, AfterKill9ItHasTheSameBits) {
  const ToyRun toy;
  const Words two_epochs{"--quiet", "--set", "train.epochs=2"};
  ASSERT_EQ(attmirror_command(toy.train("whole", two_epochs)).code, 0);
  // A checkpoint after every step, so that most kills meet one being written.
  const Words always = two_epochs + Words{"--set", "train.checkpoint_seconds=0"};
  int killed = 0;
  for (int round = 0; round < 5; ++round) {
    FileChanges checkpoints(toy.path("killed") / "checkpoint.safetensors");
    RunningCommand command(toy.train("killed", always + Words{"--resume"}));
    if (!command.wait_until([&] { return checkpoints.seen() >= 1 + 3 * round; })) break;
    command.signal(SIGKILL);
    killed += command.wait().code == 128 + SIGKILL ? 1 : 0;
  }
  EXPECT_GE(killed, 1);
  ASSERT_EQ(attmirror_command(toy.train("killed", always + Words{"--resume"})).code, 0);
  EXPECT_EQ(read_file(toy.path("killed") / "final.safetensors"),
            read_file(toy.path("whole") / "final.safetensors"));
  EXPECT_EQ(toy.rows("killed"), toy.rows("whole"));
  for (const auto& entry : fs::directory_iterator(toy.path("killed")))
    EXPECT_EQ(entry.path().filename().string().find(".tmp-"), std::string::npos) << entry.path();
}

TEST(DeepTrain, SignalsLeaveACheckpoint) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const ToyRun toy;
    RunningCommand command(toy.train("run", {"--set", "train.epochs=100000"}));
    ASSERT_TRUE(command.wait_until([&] {
      std::error_code ignored;
      return fs::exists(toy.path("run") / "metrics.jsonl") &&
             fs::file_size(toy.path("run") / "metrics.jsonl", ignored) > 0;
    }));
    command.signal(signal);
    const Outcome outcome = command.wait();
    EXPECT_EQ(outcome.code, 128 + signal) << outcome.err;
    EXPECT_NE(outcome.err.find("--resume"), std::string::npos);
    EXPECT_TRUE(fs::exists(toy.path("run") / "checkpoint.safetensors"));
  }
}

TEST(DeepTrain, TwoProcessesHaveTheLossesOfOne) {
  if (mpirun_path().empty()) GTEST_SKIP() << "there is no mpirun, or this build has no gloo";
  const ToyRun toy;
  ASSERT_EQ(attmirror_command(toy.train("one", {"--quiet"})).code, 0);
  const auto together = [&](const std::string& run, const std::string& more) {
    const std::string command = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " +
                                mpirun_path().string() + " --oversubscribe -n 2 " + command_path().string() +
                                " deep train " + toy.path("toy.toml").string() + " --json -o " +
                                toy.path(run).string() + " " + more + " > " + toy.path("out.txt").string() +
                                " 2> " + toy.path("err.txt").string();
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  ASSERT_EQ(together("two", ""), 0) << read_text_file(toy.path("err.txt"));
  EXPECT_EQ(json::parse(read_text_file(toy.path("out.txt")))["status"], "completed");  // one process answers
  const auto one = toy.rows("one"), two = toy.rows("two");
  ASSERT_EQ(one.size(), two.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    for (const char* key : {"train_loss", "test_loss"}) {
      const double a = one[i][key].get<double>(), b = two[i][key].get<double>();
      EXPECT_NEAR(a, b, 1e-5 * a) << key << " " << i;
    }
    EXPECT_EQ(one[i]["step"], two[i]["step"]);
  }
  // A pause that all agree on, and a resume by both.
  ASSERT_EQ(together("parts", "--set train.max_seconds=0.05"), 0) << read_text_file(toy.path("err.txt"));
  EXPECT_EQ(json::parse(read_text_file(toy.path("out.txt")))["status"], "time limit");
  ASSERT_EQ(together("parts", "--resume"), 0) << read_text_file(toy.path("err.txt"));
  EXPECT_EQ(toy.rows("parts"), two);
  // What one cannot do ends both.
  EXPECT_EQ(together("two", ""), 2);
  EXPECT_NE(read_text_file(toy.path("err.txt")).find("already holds a run"), std::string::npos);
}

// SST-2, shortened: a few hundred steps are far better than guessing (50.9 % of dev are positive).
TEST(DeepTrain, LearnsSst2) {
  const SharedFile train("data/sst2/train.tsv"), dev("data/sst2/dev.tsv"),
      vocabulary("tokenizer/bert-base-uncased-vocab.txt");
  for (const SharedFile& file : {train, dev, vocabulary})
    if (file.is_absent()) GTEST_SKIP() << file.absence();
  const TemporaryFolder folder;
  const Outcome outcome = attmirror_command(
      {"deep", "train", (source_folder() / "examples/deep/sst2.toml").string(), "-o",
       (folder / "run").string(), "--json", "--quiet", "--set", "data.train=" + train.path().string(),
       "--set", "data.test=" + dev.path().string(), "--set", "data.vocabulary=" + vocabulary.path().string(),
       "--set", "train.epochs=1", "--set", "data.limit=30000", "--set", "optimizer.schedule=constant"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_GT(json::parse(outcome.out)["trials"][0]["test_accuracy"].get<double>(), 0.6);
}

}  // namespace
}  // namespace attmirror::test
