// attmirror attractors: a table, JSON with every certificate, and sentences where there can be none.
#include "cli/command.hpp"
#include <attmirror/data/dataset.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

using Json = nlohmann::json;

class AttractorsCommandTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const std::string data = (folder / "example.npz").string();

  void SetUp() override { save(3); }

  // The example of docs/attractors.md; with another `height`, sequence 1 pulls in another direction.
  void save(double height, bool with_decoder = true) const {
    DatasetArrays arrays;
    arrays.tokens.resize(6, 2);
    arrays.tokens << 1, 0, 0, 1, 0, -1, 0, height, 2, 0, 2, -1;
    arrays.lengths = {3, 3};
    arrays.queries.resize(2, 2);
    arrays.queries << 1, 0, 1, 0;
    arrays.labels = {1, -1};
    if (with_decoder) arrays.decoder = Vector::Unit(2, 0);
    save_dataset(data, Dataset(arrays));
  }
  Json answer(const Words& options, int code = 0) const {
    const Outcome outcome = attmirror_command(Words{"attractors", data} + options + Words{"--json"});
    EXPECT_EQ(outcome.code, code) << outcome.err << outcome.out;
    return Json::parse(outcome.out);
  }
};

TEST_F(AttractorsCommandTest, PrintsATableWithItsConclusion) {
  const Outcome outcome = attmirror_command({"attractors", data, "--params", "prompt", "--starts", "200"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* words :
       {"whole      0 0     all", "partial    0 1     0", "All 4 choices of tokens were examined",
        "Of 200 random starts", "stays there for 2 of 2", "Sequences 0 and 1 compete (cosine -0.981)",
        "Training can end on wrong tokens: there is 1 partial attractor"})
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
}

TEST_F(AttractorsCommandTest, JsonHasEveryCertificate) {
  for (const char* params : {"prompt", "W", "KQ"}) {
    const Json json = answer({"--params", params, "--starts", "100"});
    EXPECT_EQ(json["status"], "done");
    EXPECT_EQ(json["params"], params);
    EXPECT_EQ(json["norm"], params == std::string("KQ") ? "nuclear" : "2");
    EXPECT_EQ(json["complete"], true);
    ASSERT_EQ(json["attractors"].size(), 2u);
    const Json& partial = json["attractors"][1];
    EXPECT_EQ(partial["kind"], "partial");
    EXPECT_EQ(partial["tokens"], (Json{0, 1}));
    EXPECT_EQ(partial["held"], Json::array({0}));
    EXPECT_EQ(partial["certified"], true);
    EXPECT_EQ(partial["locally_optimal"], false);
    EXPECT_NEAR(partial["norm"].get<double>(), 1, 1e-7);
    EXPECT_NEAR(partial["W"][0][0].get<double>(), 1, 1e-5);
    EXPECT_EQ(partial["deficits"][0]["query"], 1);
    EXPECT_NEAR(partial["deficits"][0]["size"].get<double>(), 2, 1e-5);
    EXPECT_EQ(partial["confirmed"], true);
    EXPECT_EQ(partial["flow"]["stayed"], true);
    EXPECT_EQ(json["attractors"][0]["starts"].get<int>() + partial["starts"].get<int>(), 100);
    EXPECT_EQ(json["global_condition"]["holds"], false);
  }
}

TEST_F(AttractorsCommandTest, OptionsLeavePartsOut) {
  const Json json = answer({"--starts", "0", "--no-confirm", "--p", "1.5"});
  EXPECT_EQ(json["norm"], "1.5");
  EXPECT_FALSE(json["attractors"][0].contains("starts"));
  EXPECT_FALSE(json["attractors"][0].contains("flow"));
  const Json searched = answer({"--starts", "0", "--no-confirm", "--max-candidates", "0"});
  EXPECT_EQ(searched["complete"], false);
  EXPECT_EQ(searched["attractors"].size(), 2u);
}

TEST_F(AttractorsCommandTest, WritesAPageThatOpensWithTheConclusion) {
  const std::string page = (folder / "page.html").string();
  const Json json = answer({"--starts", "50", "--no-confirm", "-o", page});
  const std::string html = file_text(page), conclusion = json["conclusion"];
  EXPECT_NE(html.find("Where can training end?"), std::string::npos);
  EXPECT_LT(html.find("Training can end on wrong tokens"), html.find("<svg"));
  EXPECT_NE(html.find("better token"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder / "page-figures" / "starts.svg"));
  const Outcome again = attmirror_command({"attractors", data, "-o", page});
  EXPECT_EQ(again.code, 2) << again.out;
  EXPECT_EQ(
      attmirror_command({"attractors", data, "--starts", "0", "--no-confirm", "-o", page, "--overwrite"})
          .code,
      0);
}

TEST_F(AttractorsCommandTest, WhatCannotBeIsSaid) {
  const auto refused = [&](const Words& options, const std::string& message) {
    const Outcome outcome = attmirror_command(Words{"attractors", data} + options);
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    EXPECT_NE(outcome.err.find(message), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  };
  refused({"--p", "1"}, "--p is 1: expected a finite number greater than 1");
  refused({"--params", "KQ", "--p", "3"}, "--p is 3: expected 2 for K, Q");
  refused({"--starts", "-1"}, "--starts is -1");
  refused({"--start-std", "-2"}, "--start-std is -2");
  refused({"--max-candidates", "-1"}, "--max-candidates is -1");
  refused({"--rank", "1"}, "only KQ has a rank");
  refused({"--params", "Q"}, "--params is \"Q\"");
  refused({"--key-weights", "no.npy"}, "only a prompt has them");
  save(3, false);
  refused({}, "decoder");
}

}  // namespace
}  // namespace attmirror::test
