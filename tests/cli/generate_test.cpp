// The kinds of data that the command makes, and the options that belong to each.
#include "cli/command.hpp"
#include "data/npy.hpp"
#include <attmirror/data/array.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/generators.hpp>

#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

using Json = nlohmann::json;

// What the command makes of these options, and what it says of it.
class GenerateKind : public ::testing::Test {
 protected:
  Json expect_made(std::vector<std::string> options, const Dataset& expected) {
    const std::string path = (folder_ / "data.npz").string();
    options.insert(options.begin(), "generate");
    options.insert(options.end(), {"--json", "-o", path});
    const Outcome outcome = attmirror_command(options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    if (outcome.code != 0) return {};
    EXPECT_EQ(load_dataset(path).fingerprint(), expected.fingerprint());
    Json json = Json::parse(outcome.out);
    EXPECT_EQ(json["samples"], expected.samples());
    EXPECT_EQ(json["total_queries"], expected.total_queries());
    EXPECT_EQ(json["dim"], expected.dim());
    return json;
  }

  TemporaryFolder folder_;
};

TEST_F(GenerateKind, SphereWithSeveralQueriesAndSelfAttention) {
  expect_made({"--queries", "3"}, generate(SphereData{.queries = 3}));
  expect_made({"--query-from", "first"},
              generate(SphereData{.query_from = SphereData::QueryFrom::first_token}));
  expect_made({"--query-from", "last"},
              generate(SphereData{.query_from = SphereData::QueryFrom::last_token}));
  expect_made({"--query-from", "all", "--min-tokens", "2"},
              generate(SphereData{.min_tokens = 2, .query_from = SphereData::QueryFrom::all_tokens}));
  expect_made({"--query-from", "draw"}, generate(SphereData{}));
}

TEST_F(GenerateKind, PromptData) {
  expect_made({"--kind", "single-input"}, generate(SingleInputData{}));
  expect_made({"--kind", "single-input", "--scores", "unequal"},
              generate(SingleInputData{SingleInputData::Scores::unequal}));
  EXPECT_EQ(expect_made({"--kind", "multi-input"}, generate(MultiInputData{}))["seed"], 0);
  expect_made({"--kind", "multi-input", "--seed", "5"}, generate(MultiInputData{.seed = 5}));
  EXPECT_TRUE(expect_made({"--kind", "joint-prompt"}, generate(JointPromptData{}))["seed"].is_null());
  expect_made({"--kind", "joint-prompt", "--label-margin", "slack"},
              generate(JointPromptData{JointPromptData::LabelMargin::slack}));
  expect_made({"--kind", "loss-comparison", "--score", "2.5"}, generate(LossComparisonData{.score = 2.5}));
}

TEST_F(GenerateKind, FiguresAndHeads) {
  EXPECT_EQ(expect_made({"--kind", "visualization1"}, generate(Visualization1Data{}))["seed"], 1);
  EXPECT_EQ(expect_made({"--kind", "visualization2"}, generate(Visualization2Data{}))["seed"], 3);
  expect_made({"--kind", "visualization2", "--seed", "8"}, generate(Visualization2Data{.seed = 8}));
  expect_made({"--kind", "relu"}, generate(ReluHeadData{}));
  expect_made({"--kind", "relu", "--dim", "6", "--seed", "2", "--samples", "4", "--tokens", "5"},
              generate(ReluHeadData{.samples = 4, .tokens = 5, .dim = 6, .seed = 2}));
  expect_made({"--kind", "orthonormal", "--dim", "7"}, generate(OrthonormalData{.dim = 7}));
}

TEST_F(GenerateKind, KeyWeightsGoToAFileOfTheirOwn) {
  const std::string data = (folder_ / "data.npz").string(), keys = (folder_ / "keys.npy").string();
  const Outcome made = attmirror_command(
      {"generate", "--kind", "multi-input", "-o", data, "--key-weights-output", keys, "--json"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(Json::parse(made.out)["key_weights_output"], keys);
  EXPECT_EQ(to_matrix(load_npy(keys), "keys"), score_blind_key_weights());

  // As P2 trains: the norm after 199 steps is 19.75.
  const Outcome run =
      attmirror_command({"train", data, "--params", "prompt", "--key-weights", keys, "--normalized", "--eps",
                         "paper", "--eps-value", "1e-12", "--steps", "199", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NEAR(Json::parse(run.out)["norm"].get<double>(), 19.75, 0.0051);
  expect_refusal({"generate", "--kind", "multi-input", "-o", data, "--key-weights-output", data}, 2,
                 {"key-weights-output is", "another"});
}

TEST_F(GenerateKind, RefusesOptionsOfOtherKinds) {
  const std::string path = (folder_ / "data.npz").string();
  const auto refuses = [&](std::vector<std::string> options, std::initializer_list<std::string_view> words) {
    options.insert(options.begin(), {"generate", "-o", path});
    expect_refusal(options, 2, words);
  };
  refuses({"--kind", "multi-input", "--dim", "4"},
          {"--dim is given, but the multi-input data take --seed only"});
  refuses({"--kind", "joint", "--seed", "4"}, {"--seed is given, but the joint data have fixed sizes"});
  refuses({"--kind", "joint-prompt", "--key-weights-output", "A.npy"},
          {"--key-weights-output", "joint-prompt"});
  refuses({"--kind", "relu", "--queries", "2"}, {"--queries", "relu"});
  refuses({"--score", "2"}, {"--score is given", "sphere"});
  refuses({"--kind", "loss-comparison", "--score", "0"},
          {"score is 0: expected a finite number greater than 0"});
  refuses({"--kind", "loss-comparison", "--score", "nan"}, {"score is nan"});
  refuses({"--kind", "loss-comparison", "--score", "equal"}, {"score is \"equal\": expected a number"});
  refuses({"--kind", "single-input", "--scores", "2"}, {"scores is \"2\": expected equal or unequal"});
  refuses({"--kind", "joint-prompt", "--label-margin", "loose"},
          {"label-margin is \"loose\"", "tight or slack"});
  refuses({"--query-from", "middle"}, {"query-from is \"middle\": expected draw, first, last or all"});
  refuses({"--query-from", "last", "--queries", "2"}, {"queries is 2"});
  refuses({"--kind", "orthonormal", "--tokens", "5"}, {"tokens is 5: expected at most 4"});
  refuses({"--kind", "cube"}, {"kind is \"cube\": expected sphere, joint, single-input"});
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(GenerateKind, HelpNamesEveryKind) {
  const std::string help = attmirror_command({"generate", "--help"}).out;
  for (const char* kind : {"sphere", "joint", "single-input", "multi-input", "joint-prompt",
                           "loss-comparison", "visualization1", "visualization2", "relu", "orthonormal"})
    EXPECT_NE(help.find(std::string("\n  ") + kind + " "), std::string::npos) << kind << " in " << help;
}

}  // namespace
}  // namespace attmirror::test
