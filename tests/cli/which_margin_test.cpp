// attmirror which-margin: a table of optimizers or runs, a page, and sentences where there can be none.
#include "cli/command.hpp"

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

using Json = nlohmann::json;

class WhichMarginCommandTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const std::string data = small_data(folder), page = (folder / "page.html").string();

  Json answer(const Words& options, int code = 0) const {
    const Outcome outcome = attmirror_command(Words{"which-margin", data} + options + Words{"--json"});
    EXPECT_EQ(outcome.code, code) << outcome.err << outcome.out;
    return Json::parse(outcome.out);
  }
  std::string trained(const char* name, const Words& options) const {
    const std::string run = (folder / name).string();
    const Outcome outcome = attmirror_command(Words{"train", data, "-o", run, "--quiet"} + options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return run;
  }
};

TEST_F(WhichMarginCommandTest, PrintsATableWithItsConclusion) {
  const Outcome outcome = attmirror_command(
      {"which-margin", data, "--optimizers", "gd,sign", "--norms", "2,inf", "--steps", "5000"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* words :
       {"l2", "linf", "gd", "sign", "* the norm", "all certified", "gd maximizes the l2 margin (0.9"})
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << "\n" << outcome.out;
}

TEST_F(WhichMarginCommandTest, JsonHasEveryCellWithItsCertificate) {
  const Json json = answer({"--optimizers", "md,gd", "--p", "1.5", "--steps", "3000"});
  EXPECT_EQ(json["status"], "done");
  // The default norms, and the one that theory predicts for md:1.5.
  EXPECT_EQ(json["norms"], (Json{"1", "1.1", "1.5", "1.75", "2", "3", "inf", "nuclear", "spectral"}));
  ASSERT_EQ(json["rows"].size(), 2u);
  const Json& row = json["rows"][0];
  EXPECT_EQ(row["name"], "md:1.5");
  EXPECT_EQ(row["predicted"], "1.5");
  EXPECT_EQ(row["largest"], "1.5");
  EXPECT_EQ(row["shares"].size(), 9u);
  for (const Json& certificate : row["certificates"]) EXPECT_EQ(certificate, "certified");
  EXPECT_EQ(json["uncertified"], 0);
}

TEST_F(WhichMarginCommandTest, RunsAreMeasuredAsTheyAre) {
  const std::string gd = trained("gd", {"--optimizer", "gd", "--normalized", "--steps", "5000"});
  const std::string kq =
      trained("kq", {"--optimizer", "gd", "--params", "KQ", "--normalized", "--steps", "5000"});
  const Json json = answer({gd, kq + "/", "--norms", "2,nuclear"});
  ASSERT_EQ(json["rows"].size(), 2u);
  EXPECT_EQ(json["rows"][0]["name"], "gd");
  EXPECT_EQ(json["rows"][0]["predicted"], "2");
  EXPECT_GT(json["rows"][0]["shares"][0], 0.98);
  EXPECT_EQ(json["rows"][1]["name"], "kq");
  EXPECT_EQ(json["rows"][1]["predicted"], "nuclear");
  // The same number as compare's, against the solution of its own tokens.
  const std::string svm = (folder / "svm.npz").string();
  attmirror_command({"margin", data, "--select", "run:" + gd, "-o", svm});
  const Json compared = Json::parse(attmirror_command({"compare", gd, svm, "--json"}).out);
  EXPECT_NEAR(json["rows"][0]["shares"][0].get<double>(), compared["margin_ratio"].get<double>(), 1e-8);
  // With both, optimizers come after the runs.
  const Json both = answer({gd, "--optimizers", "sign", "--steps", "500", "--norms", "2"});
  ASSERT_EQ(both["rows"].size(), 2u);
  EXPECT_EQ(both["rows"][1]["name"], "sign");
}

TEST_F(WhichMarginCommandTest, ShortRunsAreMarked) {
  const Json json = answer({"--optimizers", "gd", "--norms", "2", "--steps", "10"});
  EXPECT_EQ(json["rows"][0]["state"], "unsaturated");
  const Outcome outcome =
      attmirror_command({"which-margin", data, "--optimizers", "gd", "--norms", "2", "--steps", "10"});
  EXPECT_NE(outcome.out.find("gd !"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("train longer"), std::string::npos) << outcome.out;
}

TEST_F(WhichMarginCommandTest, WritesAPageThatOpensWithTheConclusion) {
  const Words words{"--optimizers", "gd,sign", "--norms", "2,inf", "--steps", "3000"};
  const Json json = answer(words + Words{"-o", page});
  const std::string html = file_text(page), conclusion = json["conclusion"];
  EXPECT_NE(html.find("<p class=\"conclusion\">Gradient descent maximizes the ℓ2 margin"), std::string::npos)
      << conclusion;
  EXPECT_NE(file_text(folder / "page-figures" / "which-margin.svg").find("<svg"), std::string::npos);
  expect_refusal(Words{"which-margin", data, "-o", page}, 2, {"page.html already exists", "--overwrite"});
  answer(words + Words{"-o", page, "--overwrite"});
  const Json in_folder = answer(words + Words{"-o", (folder / "out").string()});
  EXPECT_EQ(in_folder["output"], (folder / "out" / "report.html").string());
}

TEST_F(WhichMarginCommandTest, RefusesWhatCannotBe) {
  const Words start{"which-margin", data};
  expect_refusal({"which-margin"}, 2, {"data is required"});
  expect_refusal({"which-margin", (folder / "no.npz").string()}, 2, {"no.npz", "No such file"});
  expect_refusal(start + Words{"--optimizers", "gd,sgn"}, 2,
                 {"unknown optimizer \"sgn\"", "did you mean \"sign\""});
  expect_refusal(start + Words{"--norms", "2,spectrl"}, 2, {"spectrl", "did you mean \"spectral\""});
  expect_refusal(start + Words{"--steps", "0"}, 2, {"steps is 0"});
  expect_refusal(start + Words{"--optimizers", "gd", "--p", "2"}, 2,
                 {"--p is given, but no optimizer takes it"});
  const std::string run = trained("run", {"--steps", "5"});
  expect_refusal(start + Words{run, "--steps", "7"}, 2, {"--steps is given, but nothing is trained"});
  expect_refusal(start + Words{(folder / "nowhere").string()}, 2, {"nowhere"});
  const std::string other = (folder / "other.npz").string();
  attmirror_command({"generate", "--seed", "2", "-o", other});
  expect_refusal({"which-margin", other, run}, 2, {"other.npz"});
  const std::string start_only = trained("zero", {"--steps", "0"});
  expect_refusal(start + Words{start_only}, 2, {"zero", "have no direction"});
}

}  // namespace
}  // namespace attmirror::test
