// attmirror compare, against numbers that are known beforehand.
#include "cli/command.hpp"
#include "support/paths.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/run_folder.hpp>
#include <attmirror/mirror/direction.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

using Json = nlohmann::json;

class Compare : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const std::string data = small_data(folder), run = (folder / "run").string(),
                    svm = (folder / "svm.npz").string();

  void train(const Words& options) {
    Words words{"train", data, "--normalized", "--quiet", "--overwrite", "-o", run};
    words.insert(words.end(), options.begin(), options.end());
    ASSERT_EQ(attmirror_command(words).code, 0);
  }
  Json compare(const Words& options = {}) {
    Words words{"compare", run, svm, "--json"};
    words.insert(words.end(), options.begin(), options.end());
    const Outcome outcome = attmirror_command(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
};

// The max-margin solution of the reference, for the tokens that this run selects: training goes there.
TEST_F(Compare, ApproachesTheReferenceSolution) {
  const NamedArrays golden = load_npz(fixture("golden_local.npz"));
  const std::vector<double> all = golden.at("p3_svm_W").to_doubles();
  const std::vector<std::int64_t> alpha{3, 2, 6, 2, 6, 2};
  save_npz(svm, {{"W", Array({10, 10}, std::span(all).first(100))}, {"alpha", Array(alpha)}});
  train({"--p", "3", "--steps", "20000"});
  const Json result = compare({"--trace"});
  EXPECT_EQ(result["p"], 3.0);
  EXPECT_EQ(result["step"], 20000);
  EXPECT_LT(result["directional_bregman"], 0.02);
  EXPECT_GT(result["correlation"], 0.95);
  EXPECT_GT(result["margin_ratio"], 0.8);
  EXPECT_LE(result["margin_ratio"], 1 + 1e-6);
  EXPECT_EQ(result["same_tokens"], true);
  const Json& trace = result["trace"];
  EXPECT_TRUE(trace.front()["correlation"].is_null());  // it starts at 0, which has no direction
  EXPECT_GT(trace[2]["directional_bregman"], result["directional_bregman"]);
  EXPECT_EQ(trace.back()["directional_bregman"], result["directional_bregman"]);
  const Outcome text = attmirror_command({"compare", run, svm});
  for (const char* word : {"Bregman, p = 3", "margin ratio, norm 3", "the same"})
    EXPECT_NE(text.out.find(word), std::string::npos) << text.out;
}

// The run's own weights, scaled to margin 1, are a solution at distance 0.
TEST_F(Compare, IsExactForTheRunItself) {
  for (const char* params : {"W", "KQ"}) {
    train({"--p", "1.75", "--steps", "3000", "--params", params});
    const SavedRun saved = load_run(run);
    const Dataset dataset = load_dataset(data);
    const Matrix W = combined_weights(saved.parameters);
    const Matrix scaled = W / selection_margin(dataset, saved.result->selected, W);
    save_npz(svm, {{"W", Array({10, 10}, std::span(scaled.data(), 100))},
                   {"alpha", Array(std::span<const std::int64_t>(saved.result->selected.tokens))}});
    const Json result = compare();
    EXPECT_EQ(result["p"], 1.75);
    EXPECT_NEAR(result["directional_bregman"], 0, 1e-14);
    EXPECT_NEAR(result["correlation"], 1, 1e-14);
    EXPECT_NEAR(result["margin_ratio"], 1, 1e-13);
    EXPECT_EQ(compare({"--p", "4"})["p"], 4.0);
  }
}

TEST_F(Compare, ComparesPrompts) {
  train({"--params", "prompt", "--steps", "2000"});
  const SavedRun saved = load_run(run);
  const Vector twice = 2 * saved.parameters.p;
  save_npz(svm, {{"p", Array(std::span(twice.data(), 10))}});
  const Outcome outcome = attmirror_command({"compare", run, svm, "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("has no alpha"), std::string::npos) << outcome.err;
  const Json result = Json::parse(outcome.out);
  EXPECT_NEAR(result["correlation"], 1, 1e-14);
  EXPECT_EQ(result["alpha_from"], "run");
  EXPECT_NEAR(result["margin_ratio"], 1, 1e-14);  // the size of neither matters
  EXPECT_NEAR(result["directional_bregman"], 0, 1e-14);
}

TEST_F(Compare, Refuses) {
  save_npz(svm, {{"W", Array({10, 10}, std::vector<double>(100, 1.0))}});
  expect_refusal({"compare", run, svm}, 2, {"is not a run folder"});
  train({"--steps", "0"});
  expect_refusal({"compare", run, svm, "--quiet"}, 2, {"are 0: they have no direction"});
  train({"--steps", "10", "--keep", "metrics"});
  expect_refusal({"compare", run, svm, "--p", "0.5"}, 2, {"p is 0.5"});
  expect_refusal({"compare", run, svm, "--trace", "--quiet"}, 2, {"kept metrics only"});
  expect_refusal({"compare", run, data}, 2, {"missing array W"});
  save_npz(svm, {{"W", Array({5, 20}, std::vector<double>(100, 1.0))}});
  expect_refusal({"compare", run, svm}, 2, {"W has shape (5, 20): expected (10, 10)"});
  const std::vector<std::int64_t> alpha{0, 0, 0, 0, 0, 8};
  save_npz(svm, {{"W", Array({10, 10}, std::vector<double>(100, 1.0))}, {"alpha", Array(alpha)}});
  expect_refusal({"compare", run, svm}, 2, {"alpha", "8"});
}

TEST_F(Compare, FindsDataThatMoved) {
  save_npz(svm, {{"W", Array({10, 10}, std::vector<double>(100, 1.0))}});
  train({"--steps", "10"});
  const std::string moved = (folder / "moved.npz").string(), other = (folder / "other.npz").string();
  std::filesystem::rename(data, moved);
  expect_refusal({"compare", run, svm}, 2, {"data.npz: No such file", "--data"});
  EXPECT_EQ(attmirror_command({"compare", run, svm, "--data", moved}).code, 0);
  ASSERT_EQ(attmirror_command({"generate", "--seed", "2", "-o", other}).code, 0);
  expect_refusal({"compare", run, svm, "--data", other}, 2, {"is not the dataset of the run", "fingerprint"});
}

}  // namespace
}  // namespace attmirror::test
