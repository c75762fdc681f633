// attmirror train and compare with heads, masks and several queries; and what they refuse, leaving nothing behind.
#include "cli/command.hpp"
#include <attmirror/data/array.hpp>
#include <attmirror/data/npz.hpp>

#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

using Json = nlohmann::json;

class ModelOptions : public ::testing::Test {
 protected:
  std::string generate(const std::string& name, Words options) {
    const std::string path = (folder_ / name).string();
    options.insert(options.begin(), "generate");
    options.insert(options.end(), {"--quiet", "-o", path});
    const Outcome outcome = attmirror_command(options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return path;
  }

  Json train(const std::string& data, Words options) {
    options.insert(options.begin(), {"train", data, "--steps", "200", "--json"});
    const Outcome outcome = attmirror_command(options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.code == 0 ? Json::parse(outcome.out) : Json();
  }

  // Refused with exit code 2, and no folder is left, nor one above it.
  void refuse(const std::string& data, Words options, std::initializer_list<std::string_view> words) {
    const std::filesystem::path output = folder_ / "new";
    options.insert(options.begin(), {"train", data, "-o", (output / "run").string()});
    expect_refusal(options, 2, words);
    EXPECT_FALSE(std::filesystem::exists(output)) << *words.begin();
  }

  TemporaryFolder folder_;
};

TEST_F(ModelOptions, AreRecordedAndCompared) {
  const std::string data = generate("self.npz", {"--query-from", "all", "--samples", "3", "--tokens", "4"});
  const std::string run = (folder_ / "run").string();
  const Json result = train(
      data, {"--mask", "causal", "--scaled", "--penalty", "1e-9", "--head", "quadratic:0.01", "-o", run});
  ASSERT_EQ(result["selected"].size(), 3u);
  EXPECT_EQ(result["selected"][2].size(), 4u);
  EXPECT_EQ(result["selected"][2][0], 0);  // the first token sees itself only
  const Json config = Json::parse(file_text(run + "/config.json"));
  EXPECT_EQ(config["data"]["mask"], "causal");
  EXPECT_EQ(config["data"]["queries_each"], 4);
  EXPECT_EQ(config["model"]["head"], "quadratic:0.01");
  EXPECT_EQ(config["model"]["scaled"], true);
  EXPECT_EQ(config["model"]["penalty"], 1e-9);
  const NamedArrays final = load_npz(run + "/final.npz");
  EXPECT_EQ(final.at("selected").shape(), (Shape{3, 4}));

  // The weights against themselves, on their own tokens: everything is 1.
  NamedArrays svm{{"W", final.at("W")}, {"alpha", final.at("selected")}};
  save_npz(folder_ / "svm.npz", svm);
  const Outcome compared = attmirror_command({"compare", run, (folder_ / "svm.npz").string(), "--json"});
  ASSERT_EQ(compared.code, 0) << compared.err;
  const Json answer = Json::parse(compared.out);
  EXPECT_NEAR(answer["correlation"].get<double>(), 1, 1e-12);
  EXPECT_NEAR(answer["margin_ratio"].get<double>(), 1, 1e-12);
  EXPECT_EQ(answer["alpha"], result["selected"]);
  EXPECT_EQ(answer["same_tokens"], true);

  const auto expect_no_resume = [&](Words options, std::string_view word) {
    options.insert(options.begin(), {"train", data, "--steps", "300", "-o", run, "--resume"});
    expect_refusal(options, 2, {"cannot resume", word});
  };
  const Words rest{"--scaled", "--penalty", "1e-9", "--head", "quadratic:0.01"};
  expect_no_resume(rest, "data.mask is \"causal\" there and \"none\" here");
  expect_no_resume({"--mask", "causal", "--penalty", "1e-9", "--head", "quadratic:0.01"}, "model.scaled");
  expect_no_resume({"--mask", "causal", "--scaled", "--head", "quadratic:0.01"}, "model.penalty");
  expect_no_resume({"--mask", "causal", "--scaled", "--penalty", "1e-9"}, "model.head");
}

TEST_F(ModelOptions, ComparesInTheNormOfTheRun) {
  const std::string data = small_data(folder_);
  const std::string run = (folder_ / "sign").string();
  train(data, {"--optimizer", "sign", "-o", run});
  save_npz(folder_ / "svm.npz", {{"W", load_npz(run + "/final.npz").at("W")}});
  const Outcome compared =
      attmirror_command({"compare", run, (folder_ / "svm.npz").string(), "--json", "--quiet"});
  ASSERT_EQ(compared.code, 0) << compared.err;
  EXPECT_EQ(Json::parse(compared.out)["norm"], "inf");
  EXPECT_EQ(Json::parse(compared.out)["p"], 2.0);

  NamedArrays spoilt = load_npz(folder_ / "svm.npz");
  std::vector<double> W = spoilt.at("W").to_doubles();
  W[12] = NAN;
  spoilt.at("W") = Array({10, 10}, std::span<const double>(W));
  save_npz(folder_ / "nan.npz", spoilt);
  expect_refusal({"compare", run, (folder_ / "nan.npz").string()}, 2, {"nan.npz: W[1,2] is nan"});
  expect_refusal({"compare", run, (folder_ / "svm.npz").string(), "--p", "1e17", "--quiet"}, 2,
                 {"p is 1e+17"});
}

TEST_F(ModelOptions, AreRefusedBeforeAnythingIsWritten) {
  const std::string data = small_data(folder_);
  const std::string relu = generate("relu.npz", {"--kind", "relu"});
  refuse(data, {"--mask", "causal"}, {"mask is causal", "query_index"});
  refuse(data, {"--mask", "upper"}, {"mask is \"upper\": expected none or causal"});
  refuse(data, {"--head", "relu"}, {"no weights V"});
  refuse(data, {"--head", "cubic"}, {"head is \"cubic\""});
  refuse(relu, {}, {"choose the head relu"});
  refuse(relu, {"--head", "relu", "--train", "W,v"}, {"cannot train v: the head relu has none"});
  refuse(data, {"--penalty", "-1"}, {"penalty is -1"});
  refuse(data, {"--penalty", "nan"}, {"penalty is nan"});
  refuse(data, {"--penalty", "1", "--train", "v"}, {"only v is trained"});
  refuse(data, {"--schedule", "polyak", "--loss", "linear"}, {"polyak"});
  refuse(data, {"--params", "KQ", "--init", "zero"}, {"K and Q both start at 0"});
  refuse(data, {"--init-seed", "4"}, {"init-seed is given, but --init is zero"});
  refuse(data, {"--init", "file:" + data}, {"the file has no W, which is to be trained"});
  refuse(data, {"--momentum", ""}, {"momentum is \"\": expected"});
  refuse(data, {"--params", "prompt", "--key-weights", ""}, {"key-weights is \"\": expected FILE"});
  refuse(data, {"--train", ""}, {"train is \"\""});
  expect_refusal({"train", data, "-o", ""}, 2, {"output is \"\": expected FOLDER"});
  refuse(data, {"--scaled=0"}, {"scaled takes no value"});
  refuse(data, {"--normalized=-3"}, {"normalized takes no value"});
  refuse(data, {"--p", "2", "--p", "3"}, {"--p is given 2 times: expected once"});

  NamedArrays start{{"W", load_npz(data).at("Z")}};
  save_npz(folder_ / "start.npz", start);
  refuse(data, {"--init", "file:" + (folder_ / "start.npz").string()}, {"start.npz: W has shape (6, 10)"});
}

TEST_F(ModelOptions, KeyWeightsAndDataAreTwoFiles) {
  const std::string path = (folder_ / "g.npz").string();
  expect_refusal({"generate", "--kind", "loss-comparison", "-o", path, "--key-weights-output",
                  (folder_ / "." / "g.npz").string()},
                 2, {"key-weights-output", "the file of the data"});
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace attmirror::test
