// attmirror compare: two runs side by side, ratios explained, and solutions that are not unique.
#include "cli/command.hpp"
#include <attmirror/data/npz.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

using Json = nlohmann::json;

class CompareRuns : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const std::string data = small_data(folder), first = path("first"), second = path("second"),
                    svm = path("svm.npz");

  std::string path(const char* name) const { return (folder / name).string(); }
  static void ok(const Words& words) {
    const Outcome outcome = attmirror_command(words);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  void train(const std::string& run, const Words& options) const {
    ok(Words{"train", data, "--quiet", "--overwrite", "-o", run} + options);
  }
  static Json json(const Words& words) {
    const Outcome outcome = attmirror_command(words + Words{"--json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out);
  }
  static std::string text(const Words& words) {
    const Outcome outcome = attmirror_command(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }
};

TEST_F(CompareRuns, ListsWhereTheSelectionsDiffer) {
  train(first, {"--normalized", "--p", "2", "--steps", "2000"});
  train(second, {"--normalized", "--p", "3", "--steps", "3", "--init", "normal:1", "--init-seed", "5"});
  const Json result = json({"compare", first, second});
  EXPECT_EQ(result["kind"], "runs");
  EXPECT_LT(std::abs(result["correlation"].get<double>()), 1);
  const Json &a = result["runs"][0], &b = result["runs"][1];
  EXPECT_EQ(a["selected"], Json::parse(file_text(first + "/result.json"))["selected"]);
  EXPECT_EQ(a["margins"].size(), 2U);
  EXPECT_EQ(a["norm"], "2");
  EXPECT_EQ(b["norm"], "3");
  EXPECT_EQ(a["scores"].size(), 6U);
  EXPECT_EQ(a["support_status"], "certified");
  EXPECT_GT(a["support"].size(), 0U);
  std::size_t expected = 0;
  for (std::size_t i = 0; i < 6; ++i) expected += a["selected"][i] != b["selected"][i] ? 1 : 0;
  ASSERT_GT(expected, 0U) << "the test wants runs that differ";
  ASSERT_EQ(result["differences"].size(), expected);
  EXPECT_EQ(result["agreeing_tokens"], 6 - expected);
  EXPECT_EQ(result["same_tokens"], false);
  const Json& one = result["differences"][0];
  const auto i = one["sequence"].get<std::size_t>();
  EXPECT_EQ(one["selected"], (Json{a["selected"][i], b["selected"][i]}));
  EXPECT_EQ(one["scores"], (Json{a["scores"][i], b["scores"][i]}));
  const std::string screen = text({"compare", first, second});
  for (const char* word : {"margin, norm 2", "margin, norm 3", "cosine of the weights", "support tokens",
                           " differ\n", "  sequence ", "(score "})
    EXPECT_NE(screen.find(word), std::string::npos) << word << " is not in:\n" << screen;
}

TEST_F(CompareRuns, ARunEqualsItself) {
  train(first, {"--normalized", "--steps", "500"});
  const Json result = json({"compare", first, first});
  EXPECT_NEAR(result["correlation"], 1, 1e-14);
  EXPECT_EQ(result["same_tokens"], true);
  EXPECT_EQ(result["differences"].size(), 0U);
  EXPECT_EQ(result["runs"][0]["margins"].size(), 1U);
  EXPECT_EQ(result["shared_support"], result["runs"][0]["support"].size());
  EXPECT_NE(text({"compare", first, first}).find("the same, all 6"), std::string::npos);
  // K Q^T has the shape of W; margins in another norm.
  train(second, {"--normalized", "--steps", "50", "--params", "KQ"});
  EXPECT_EQ(json({"compare", first, second, "--p", "4"})["runs"][1]["margins"].size(), 1U);
}

TEST_F(CompareRuns, Refuses) {
  train(first, {"--steps", "20"});
  const std::string other = path("other.npz");
  ok({"generate", "--seed", "2", "-o", other});
  ok({"train", other, "--quiet", "--steps", "20", "-o", second});
  expect_refusal({"compare", first, second}, 2,
                 {"runs on different data", "data.npz", "other.npz", "expected the same"});
  train(second, {"--steps", "20", "--params", "prompt"});
  expect_refusal({"compare", first, second}, 2, {"trains W", "trains p", "weights of the same shape"});
  expect_refusal({"compare", first, first, "--trace"}, 2, {"--trace is given with two runs"});
  expect_refusal({"compare", first, folder.path().string()}, 2, {"is not a run folder"});
  expect_refusal({"compare", first, first, "--p", "0.5"}, 2, {"p is 0.5"});
}

// The norm of a ratio is named; above 1 and below 0 are explained.
TEST_F(CompareRuns, ExplainsTheMarginRatio) {
  train(first, {"--normalized", "--p", "3", "--steps", "5000"});
  ok({"margin", data, "--select", "run:" + first, "--norm", "1.2", "--quiet", "-o", svm});
  const Json above = json({"compare", first, svm});
  ASSERT_GT(above["margin_ratio"], 1.0);
  EXPECT_EQ(above["svm_norm"], "1.2");
  const std::string screen = text({"compare", first, svm});
  for (const char* word : {"margin ratio, norm 3", "The margin ratio is above 1: in the norm 3",
                           "because it was solved for the norm 1.2"})
    EXPECT_NE(screen.find(word), std::string::npos) << word << " is not in:\n" << screen;
  EXPECT_EQ(above["remarks"].size(), 1U);

  std::string tokens;
  for (const Json& token : above["selected"]) tokens += std::to_string(token.get<int>() == 0 ? 1 : 0) + ",";
  tokens.pop_back();
  ok({"margin", data, "--select", tokens, "--norm", "3", "--quiet", "-o", svm});
  EXPECT_LT(json({"compare", first, svm})["margin_ratio"], 0);
  const std::string below = text({"compare", first, svm});
  for (const char* word : {"The margin ratio is below 0: the run prefers another token", "selects token",
                           "; that of the svm is "})
    EXPECT_NE(below.find(word), std::string::npos) << word << " is not in:\n" << below;
  EXPECT_EQ(json({"compare", first, svm})["differences"].size(), 6U);
}

// Norms with several solutions: the distance from all of them, or none.
TEST_F(CompareRuns, SaysWhereSolutionsAreNotUnique) {
  for (const auto& [optimizer, norm] : {std::pair{"sign", "inf"}, std::pair{"coordinate", "1"}}) {
    train(first, {"--optimizer", optimizer, "--steps", "3000", "--lr", "0.01"});
    ok({"margin", data, "--select", "run:" + first, "--norm", norm, "--quiet", "-o", svm});
    const Json result = json({"compare", first, svm, "--trace"});
    EXPECT_EQ(result["unique"], false);
    EXPECT_TRUE(result["directional_bregman"].is_null());
    EXPECT_TRUE(result["correlation"].is_null());
    ASSERT_TRUE(result["distance"].is_number()) << norm;
    EXPECT_GE(result["distance"], 0.0);
    EXPECT_LT(result["distance"], 1.0);
    EXPECT_TRUE(result["trace"][0]["distance"].is_null());  // weights of 0
    EXPECT_GT(result["trace"][1]["distance"], result["distance"]);
    const std::string screen = text({"compare", first, svm});
    EXPECT_NE(screen.find(std::string("distance, norm ") + norm), std::string::npos) << screen;
    EXPECT_NE(screen.find("need not be unique"), std::string::npos) << screen;
    EXPECT_EQ(screen.find("correlation"), std::string::npos) << screen;
  }
  train(first, {"--optimizer", "spectral", "--steps", "500", "--lr", "0.05"});
  ok({"margin", data, "--select", "run:" + first, "--norm", "spectral", "--quiet", "-o", svm});
  const Json spectral = json({"compare", first, svm});
  EXPECT_TRUE(spectral["distance"].is_null() && spectral["correlation"].is_null());
  EXPECT_TRUE(spectral["margin_ratio"].is_number());
  EXPECT_NE(text({"compare", first, svm}).find("are not unique, so no distance"), std::string::npos);
  train(first, {"--normalized", "--steps", "500", "--params", "KQ"});
  ok({"margin", data, "--select", "run:" + first, "--norm", "nuclear", "--quiet", "-o", svm});
  EXPECT_NE(text({"compare", first, svm}).find("unique for most data, not for all"), std::string::npos);
}

}  // namespace
}  // namespace attmirror::test
