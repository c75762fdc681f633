// Any run of a sweep can be repeated by `attmirror generate` and `attmirror train`: the commands that the plan writes
// down end at the same weights to the last bit, and at the same configuration.
#include "cli/command.hpp"
#include "data/npy.hpp"
#include <attmirror/descent/run_folder.hpp>
#include <attmirror/sweep/plan.hpp>

#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

using Json = nlohmann::json;

// Splits a command line as a shell does, as far as commands_of() quotes.
Words split(const std::string& line) {
  Words words{""};
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\'')
      quoted = !quoted;
    else if (line[i] == '\\' && !quoted)
      words.back() += line[++i];
    else if (line[i] == ' ' && !quoted)
      words.emplace_back();
    else
      words.back() += line[i];
  }
  return {words.begin() + 1, words.end()};  // without "attmirror"
}

const char* sweep = R"(
[train]
steps = 30
[[list]]
p = 1.75
normalized = true
eps = "paper"
jacobian = "safe"
init = "normal:1"
[[list]]
optimizer = "steepest"
norm = "schatten:1.5"
normalized = false
seed = 9
[[list]]
optimizer = "muon"
params = "KQ"
rank = 3
scaled = true
init_seed = "own"
[[list]]
optimizer = "adam"
eps = "paper"
loss = "exponential"
[[list]]
geometry = "entropy"
entropy_beta = 0.5
momentum = "ema:0.5"
schedule = "power:0.25"
[[list]]
generator = "multi-input"
params = "prompt"
key_weights = "key weights.npy"
seed = 4
[[list]]
generator = "joint"
train = "W,v"
optimizer = "gd"
normalized = true
[[list]]
generator = "relu"
dim = 6
head = "relu"
penalty = 0.01
[[list]]
query_from = "all"
min_tokens = 3
mask = "causal"
storage = "float32"
data_path = "stream"
optimizer = "sign"
)";

TEST(SweepRepeat, TheCommandsOfARunEndAtTheSameBits) {
  const TemporaryFolder folder;
  const std::vector<double> diagonal{1, 0, 0, 0, 1, 0, 0, 0, 0};
  save_npy(folder / "key weights.npy", Array({3, 3}, std::span(diagonal)));
  const SweepPlan plan = parse_sweep(sweep, "sweep.toml", folder.path());
  ASSERT_EQ(plan.runs.size(), 9u);
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    const PreparedRun prepared = plan.prepare(i);
    const DescentRun run = descend(*prepared.model, prepared.optimizer, prepared.descent);
    const std::string data = (folder / ("data" + std::to_string(i) + ".npz")).string();
    const std::string output = (folder / ("run" + std::to_string(i))).string();
    for (const std::string& command : commands_of(plan, i)) {
      Words words = split(command);
      for (std::string& word : words)
        if (word == "data.npz") word = data;
      if (words[0] == "train") words = words + Words{"-o", output, "--record", "none", "--keep", "metrics"};
      const Outcome outcome = attmirror_command(words);
      ASSERT_EQ(outcome.code, 0) << command << "\n" << outcome.err;
    }
    const SavedRun saved = load_run(output);
    EXPECT_EQ(fingerprint(saved.parameters), fingerprint(run.last())) << i;
    // The configurations differ in where the data lie, and in how they are made.
    Json ours = Json::parse(prepared.config), theirs = Json::parse(file_text(output + "/config.json"));
    EXPECT_TRUE(ours["data"].contains("generator"));
    ours["data"].erase("generator");
    ours["data"].erase("path");
    theirs["data"].erase("path");
    EXPECT_EQ(ours, theirs);
  }
}

}  // namespace
}  // namespace attmirror::test
