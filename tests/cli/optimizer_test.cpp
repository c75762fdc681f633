// attmirror train --optimizer: each method by name, what it records, how it resumes, and what it refuses.
#include "cli/command.hpp"
#include "support/same_bits.hpp"
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/checkpoint.hpp>
#include <attmirror/descent/run_folder.hpp>

#include <csignal>

#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

using Json = nlohmann::json;
struct Method {
  Words words;
  std::string kind, geometry;  // as result.json says
};

std::vector<Method> methods() {
  return {
      {{"--p", "1.75", "--normalized", "--momentum", "ema", "--schedule", "power:0.25"}, "md", "1.75"},
      {{"--geometry", "schatten", "--p", "1.5", "--normalized"}, "md", "schatten:1.5"},
      {{"--geometry", "entropy", "--entropy-beta", "0.5", "--momentum", "heavy-ball:0.5"}, "md", "1"},
      {{"--optimizer", "gd", "--momentum", "heavy-ball"}, "gd", "2"},
      {{"--optimizer", "gd", "--schedule", "polyak:0.6"}, "gd", "2"},
      {{"--optimizer", "steepest", "--norm", "1.5"}, "steepest", "1.5"},
      {{"--optimizer", "steepest", "--norm", "nuclear", "--unnormalized", "--schedule", "polyak:0.6"},
       "steepest",
       "nuclear"},
      {{"--optimizer", "sign"}, "sign", "inf"},
      {{"--optimizer", "coordinate", "--normalized"}, "coordinate", "1"},
      {{"--optimizer", "spectral", "--orthogonalization", "newton-schulz"}, "spectral", "spectral"},
      {{"--optimizer", "signum", "--momentum", "ema:0.8"}, "signum", "inf"},
      {{"--optimizer", "muon"}, "muon", "spectral"},
      {{"--optimizer", "adam", "--lr", "0.02", "--beta1", "0.8", "--beta2", "0.95"}, "adam", "inf"},
      {{"--optimizer", "adam", "--eps", "paper"}, "adam", "inf"},
  };
}

std::string text(const Words& words) {
  std::string result;
  for (const std::string& word : words) result += word + " ";
  return result;
}

TEST(OptimizerOption, TrainsByEachMethodAndResumesWithTheSameBits) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder);
  const std::string whole = (folder / "whole").string(), parts = (folder / "parts").string();
  for (const Method& method : methods()) {
    const auto train = [&](const std::string& run, const char* steps, const Words& more) {
      return attmirror_command(Words{"train", data, "--train", "W,v", "--json", "-o", run, "--steps", steps} +
                               method.words + more);
    };
    const Outcome outcome = train(whole, "400", {"--overwrite"});
    ASSERT_EQ(outcome.code, 0) << text(method.words) << outcome.err;
    const Json result = Json::parse(outcome.out);
    EXPECT_EQ(result["status"], "completed") << text(method.words);
    EXPECT_EQ(result["optimizer"], method.kind) << text(method.words);
    EXPECT_EQ(result["geometry"], method.geometry) << text(method.words);
    EXPECT_EQ(result["normalized"].is_null(), method.kind == "adam");
    EXPECT_GT(result["norm"], 0.01) << text(method.words);
    ASSERT_EQ(train(parts, "123", {"--overwrite"}).code, 0);
    ASSERT_EQ(train(parts, "400", {"--resume"}).code, 0);
    for (const char* name : {"final.npz", "trace.npz", "metrics.jsonl"})
      EXPECT_TRUE(same_bytes(file_text(whole + "/" + name), file_text(parts + "/" + name)))
          << text(method.words) << name;
    EXPECT_EQ(attmirror_command({"info", parts}).code, 0);
  }
}

TEST(OptimizerOption, ResumesAfterAKill) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder);
  const std::string whole = (folder / "whole").string(), parts = (folder / "parts").string();
  for (const char* optimizer : {"signum", "adam", "muon"}) {
    const auto train = [&](const std::string& run, std::int64_t steps, const Words& more) {
      return Words{"train",
                   data,
                   "--optimizer",
                   optimizer,
                   "--steps",
                   std::to_string(steps),
                   "--record",
                   "log",
                   "--quiet",
                   "--checkpoint-every",
                   "0",
                   "-o",
                   run} +
             more;
    };
    std::filesystem::remove_all(parts);
    for (const int count : {1, 2}) {
      FileChanges checkpoints(parts + "/checkpoint.npz");
      RunningCommand command(train(parts, 1'000'000'000, {"--resume"}));  // it cannot end before it is killed
      ASSERT_TRUE(command.wait_until([&] { return checkpoints.seen() >= count; }));
      command.signal(SIGKILL);
      EXPECT_EQ(command.wait().code, 128 + SIGKILL);
    }
    const std::int64_t steps = load_checkpoint(parts + "/checkpoint.npz").step + 10'000;
    const Outcome last = attmirror_command(train(parts, steps, {"--resume"}));
    EXPECT_EQ(last.code, 0) << last.err;
    ASSERT_EQ(attmirror_command(train(whole, steps, {"--overwrite"})).code, 0);
    for (const char* name : {"final.npz", "trace.npz", "metrics.jsonl"})
      EXPECT_TRUE(same_bytes(file_text(whole + "/" + name), file_text(parts + "/" + name)))
          << optimizer << ", " << name;
  }
}

TEST(OptimizerOption, NamesAreShortForSteepestDescent) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder);
  const auto config = [&](const Words& words) {
    const std::string run = (folder / "run").string();
    const Outcome outcome =
        attmirror_command(Words{"train", data, "--steps", "5", "--quiet", "--overwrite", "-o", run} + words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(file_text(run + "/config.json"))["optimizer"];
  };
  const Words steepest{"--optimizer", "steepest"};
  EXPECT_EQ(config({"--optimizer", "sign"}), config(steepest + Words{"--norm", "inf"}));
  EXPECT_EQ(config({"--optimizer", "coordinate"}), config(steepest + Words{"--norm", "1"}));
  EXPECT_EQ(config({"--optimizer", "spectral"}), config(steepest + Words{"--norm", "spectral"}));
  EXPECT_EQ(config({"--optimizer", "signum"}),
            config(steepest + Words{"--norm", "inf", "--momentum", "ema"}));
  EXPECT_EQ(config({"--optimizer", "muon"}),
            config(steepest + Words{"--norm", "spectral", "--momentum", "ema:0.95", "--orthogonalization",
                                    "newton-schulz"}));
  const Json adam = config({"--optimizer", "adam", "--eps", "paper"});
  EXPECT_EQ(adam["eps_value"], 1e-8);
  EXPECT_EQ(adam["jacobian"], "textbook");
}

TEST(OptimizerOption, RefusesWhatMakesNoSense) {
  const TemporaryFolder folder;
  const std::string data = small_data(folder);
  const auto refuse = [&](const Words& options, std::initializer_list<std::string_view> words) {
    expect_refusal(Words{"train", data} + options, 2, words);
  };
  const auto with = [](const char* optimizer, const Words& more) {
    return Words{"--optimizer", optimizer} + more;
  };
  refuse({"--optimizer", "sgd"},
         {"optimizer is \"sgd\"", "md, gd, steepest, sign, coordinate, spectral, signum, muon, adam"});
  for (const char* optimizer : {"adam", "sign", "coordinate", "spectral", "signum", "muon"})
    refuse(with(optimizer, {"--p", "3"}), {"p is given", optimizer, "--norm"});
  refuse(with("steepest", {"--p", "3", "--norm", "3"}), {"p is given", "--norm"});
  refuse(with("gd", {"--p", "3"}), {"p of gradient descent"});
  refuse(with("steepest", {}), {"norm is missing", "schatten:P"});
  refuse(with("steepest", {"--norm", "0.5"}), {"0.5"});
  refuse(with("steepest", {"--norm", "max"}), {"max"});
  refuse({"--norm", "1"}, {"norm is given", "md", "only steepest"});
  refuse(with("sign", {"--norm", "1"}), {"norm is given", "sign", "only steepest"});
  refuse({"--geometry", "l2"}, {"geometry is \"l2\"", "lp, schatten or entropy"});
  refuse(with("gd", {"--geometry", "schatten"}), {"geometry is given", "only md"});
  refuse({"--entropy-beta", "2"}, {"entropy-beta is given", "geometry is lp"});
  refuse(with("adam", {"--entropy-beta", "2"}), {"entropy-beta is given", "only md"});
  refuse({"--geometry", "entropy", "--p", "3"}, {"p is given", "--entropy-beta"});
  refuse({"--geometry", "entropy", "--entropy-beta", "0"}, {"beta is 0"});
  refuse({"--geometry", "schatten", "--p", "1"}, {"p is 1:"});
  refuse({"--geometry", "schatten", "--powers", "general"}, {"powers is given", "schatten"});
  refuse(with("muon", {"--powers", "general"}), {"powers is given", "only md"});
  refuse(with("adam", {"--momentum", "ema"}), {"momentum is given", "--beta1"});
  refuse({"--momentum", "nesterov"}, {"momentum is \"nesterov\"", "heavy-ball:BETA"});
  refuse({"--momentum", "ema:1.5"}, {"beta is 1.5"});
  refuse(with("signum", {"--momentum", "none"}), {"--optimizer sign"});
  refuse(with("muon", {"--momentum", "none"}), {"--optimizer spectral"});
  refuse({"--beta1", "0.5"}, {"beta1 is given", "only adam"});
  refuse(with("sign", {"--beta2", "0.5"}), {"beta2 is given", "only adam"});
  refuse(with("adam", {"--beta2", "1"}), {"beta2 is 1:"});
  refuse(with("adam", {"--normalized"}), {"normalized is true"});
  refuse(with("adam", {"--unnormalized"}), {"normalized is false"});
  refuse(with("sign", {"--unnormalized"}), {"normalized is false", "steepest"});
  refuse(with("gd", {"--unnormalized"}), {"unnormalized is given", "gd"});
  refuse(with("steepest", {"--norm", "2", "--normalized", "--unnormalized"}),
         {"both --normalized and --unnormalized"});
  refuse(with("gd", {"--eps", "paper", "--eps-value", "1"}), {"eps-value is given", "not normalized"});
  refuse({"--orthogonalization", "exact"}, {"orthogonalization is given", "muon"});
  refuse(with("muon", {"--orthogonalization", "qr"}), {"qr"});
  refuse(with("steepest", {"--norm", "1", "--orthogonalization", "newton-schulz"}),
         {"orthogonalization is given", "norm is 1"});
  refuse({"--schedule", "cosine"}, {"schedule is \"cosine\"", "power:EXPONENT"});
  refuse({"--schedule", "polyak", "--normalized"}, {"polyak", "normalized"});
  refuse({"--schedule", "polyak", "--p", "3"}, {"polyak", "p = 3"});
  refuse({"--schedule", "polyak", "--momentum", "ema"}, {"polyak", "momentum"});
  refuse(with("sign", {"--schedule", "polyak"}), {"polyak", "normalized"});
  refuse(with("adam", {"--schedule", "polyak"}), {"polyak", "Adam"});
  refuse(with("gd", {"--schedule", "polyak", "--loss", "linear"}), {"polyak", "linear loss"});
  refuse(with("adam", {"--eps-value", "1e-6"}), {"eps is exact"});
}

}  // namespace
}  // namespace attmirror::test
