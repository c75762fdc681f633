// attmirror margin: answers with known numbers, proofs that others can check, and refusals.
#include "cli/command.hpp"
#include "data/npy.hpp"
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/npz.hpp>

#include <cmath>
#include <csignal>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

using Json = nlohmann::json;

// Two sequences with the same tokens and query that want different ones: no W can.
NamedArrays contradiction() {
  const std::vector<double> X{1, 0, 0, 1, 1, 0, 0, 1}, Z{1, 1, 1, 1}, Y{1, -1}, v{1, 0};
  return {{"X", Array({2, 2, 2}, X)}, {"Z", Array({2, 2}, Z)}, {"Y", Array(Y)}, {"v", Array(v)}};
}

class Margin : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const std::string data = small_data(folder), svm = (folder / "svm.npz").string(),
                    run = (folder / "run").string();

  Outcome margin(const Words& options) const { return attmirror_command(Words{"margin", data} + options); }
  Json answer(const Words& options, int code = 0) const {
    const Outcome outcome = margin(options + Words{"--json"});
    EXPECT_EQ(outcome.code, code) << outcome.err << outcome.out;
    return Json::parse(outcome.out);
  }
  void train(const Words& options) const {
    ASSERT_EQ(attmirror_command(Words{"train", data, "--normalized", "--quiet", "-o", run} + options).code,
              0);
  }
};

TEST_F(Margin, SolvesTheFirstPapersProblem) {
  const struct {
    const char* norm;
    double value;
  } published[] = {{"1.75", 3.45949206}, {"2", 2.66015691}, {"3", 1.41786895}};
  for (const auto& [norm, value] : published) {
    const Json json = answer({"--norm", norm});
    EXPECT_EQ(json["status"], "certified");
    EXPECT_EQ(json["kind"], norm);
    EXPECT_EQ(json["problem"], "attention");
    EXPECT_NEAR(json["norm"], value, 1e-6);
    EXPECT_LE(json["gap"], 1e-10);
    EXPECT_LE(json["dual"], json["norm"].get<double>() * (1 + 1e-14));
    EXPECT_EQ(json["alpha"], Json({3, 2, 6, 2, 6, 2}));
    EXPECT_EQ(json["constraints"], 42);
    EXPECT_EQ(json["locally_optimal"], true);
    EXPECT_GT(json["label_margin"], 0);
    EXPECT_GE(json["worst_margin"], 1 - 1e-12);
    EXPECT_FALSE(json["support"].empty());
    for (const Json& one : json["support"]) EXPECT_EQ(one.size(), 3u);
    EXPECT_TRUE(json["seconds"].is_number());
    EXPECT_TRUE(json["output"].is_null());
  }
  EXPECT_EQ(folder.names().size(), 1u);  // nothing is written without -o
}

TEST_F(Margin, SaysItInWords) {
  const Outcome text = margin({"--norm", "2", "--quiet"});  // no file: the text is the answer
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* word : {"certified", "norm", "lower bound", "gap", "Newton step", "hold with equality",
                           "sequence 0: token 3 over", "locally optimal   yes"})
    EXPECT_NE(text.out.find(word), std::string::npos) << word << "\n" << text.out;
  EXPECT_NE(margin({"-o", svm}).out.find("file              " + svm), std::string::npos);
  const Outcome quiet = margin({"--quiet", "-o", svm});
  EXPECT_EQ(quiet.out + quiet.err, "");
  EXPECT_EQ(quiet.code, 0);
}

TEST_F(Margin, HasOtherNorms) {
  const Json nuclear = answer({"--norm", "nuclear"});
  EXPECT_NEAR(nuclear["norm"], 4.635479, 2e-6);
  EXPECT_LE(nuclear["gap"], 1e-8);
  EXPECT_EQ(nuclear["singular_values"].size(), 10u);
  EXPECT_GE(nuclear["dual_multiplicity"], 1);
  const double one = answer({"--norm", "1"})["norm"], two = answer({"--norm", "2"})["norm"],
               infinite = answer({"--norm", "inf"})["norm"],
               spectral = answer({"--norm", "spectral"})["norm"];
  EXPECT_GT(one, two);
  EXPECT_GT(two, infinite);
  EXPECT_GT(two, spectral);
  const Json schatten = answer({"--norm", "schatten:1.5"});
  EXPECT_EQ(schatten["kind"], "schatten:1.5");
  EXPECT_LT(schatten["norm"], nuclear["norm"]);
  EXPECT_GT(schatten["norm"], two);
  EXPECT_EQ(answer({"--norm", "nuclear", "--rank", "10"})["status"], "certified");
  const Json low = answer({"--norm", "nuclear", "--rank", "1"}, 1);
  EXPECT_EQ(low["status"], "stopped");
  EXPECT_NEAR(low["dual"], nuclear["dual"], 1e-6);
  EXPECT_TRUE(low.contains("reason"));
}

TEST_F(Margin, WritesWhatCompareReads) {
  train({"--p", "3", "--steps", "20000"});
  EXPECT_EQ(answer({"--select", "run:" + run, "-o", svm})["kind"], "3");  // the norm of the run's geometry
  const Outcome compared = attmirror_command({"compare", run, svm, "--json"});
  ASSERT_EQ(compared.code, 0) << compared.err;
  const Json json = Json::parse(compared.out);
  EXPECT_EQ(json["alpha_from"], "svm");
  EXPECT_EQ(json["same_tokens"], true);
  EXPECT_LT(json["directional_bregman"], 0.02);
  EXPECT_LE(json["margin_ratio"], 1 + 1e-9);
  const NamedArrays arrays = load_npz(svm);
  EXPECT_EQ(arrays.at("W").shape(), (Shape{10, 10}));
  EXPECT_EQ(arrays.at("lambda").shape(), (Shape{42}));
  EXPECT_EQ(arrays.at("constraints").shape(), (Shape{42, 3}));
  EXPECT_EQ(arrays.at("alpha").to_int64(), (std::vector<std::int64_t>{3, 2, 6, 2, 6, 2}));
}

// No norm is AdaGrad's own: which one is meant must be said, and comparisons say what they take instead.
TEST_F(Margin, AsksForTheNormWhereTheRunHasNone) {
  ASSERT_EQ(attmirror_command({"train", data, "--optimizer", "adagrad", "--lr", "1", "--steps", "3000",
                               "--quiet", "-o", run})
                .code,
            0);
  expect_refusal({"margin", data, "--select", "run:" + run}, 2,
                 {"norm is not given", "adagrad", "give --norm"});
  EXPECT_EQ(answer({"--select", "run:" + run, "--norm", "2", "-o", svm})["status"], "certified");
  const Outcome compared = attmirror_command({"compare", run, svm, "--json"});
  ASSERT_EQ(compared.code, 0) << compared.err;
  EXPECT_NE(compared.err.find("no norm whose margin adagrad maximizes"), std::string::npos) << compared.err;
  EXPECT_EQ(Json::parse(compared.out)["norm"], "2");
  EXPECT_EQ(attmirror_command({"compare", run, svm, "--json", "--p", "2"}).err, "");
}

TEST_F(Margin, FollowsThePromptOfARun) {
  train({"--params", "prompt", "--steps", "3000"});
  const Json json = answer({"--select", "run:" + run, "-o", svm});
  EXPECT_EQ(json["problem"], "prompt");
  EXPECT_EQ(json["kind"], "2");
  EXPECT_EQ(load_npz(svm).at("p").shape(), (Shape{10}));
  const Outcome compared = attmirror_command({"compare", run, svm, "--json"});
  ASSERT_EQ(compared.code, 0) << compared.err;
  EXPECT_GT(Json::parse(compared.out)["correlation"], 0.9);
  EXPECT_EQ(answer({"--check", svm})["status"], "certified");
  expect_refusal({"margin", data, "--select", "run:" + run, "--problem", "general"}, 2, {"prompt"});
}

TEST_F(Margin, TakesKeysAndQueriesForTheNuclearNorm) {
  train({"--params", "KQ", "--steps", "500"});
  EXPECT_EQ(answer({"--select", "run:" + run})["kind"], "nuclear");
  EXPECT_EQ(answer({"--select", "run:" + run, "--norm", "2"})["kind"], "2");
}

TEST_F(Margin, SelectsTokensInEveryWay) {
  const Json listed = answer({"--select", "0,3,2,1,4,7", "--norm", "3", "-o", svm});
  EXPECT_EQ(listed["alpha"], Json({0, 3, 2, 1, 4, 7}));
  save_npy(folder / "alpha.npy", Array(std::vector<std::int64_t>{0, 3, 2, 1, 4, 7}));
  for (const std::string& file : {svm, (folder / "alpha.npy").string()})
    EXPECT_NEAR(answer({"--select", "file:" + file, "--norm", "3"})["norm"], listed["norm"], 1e-9) << file;
  EXPECT_EQ(answer({"--select", "global"})["alpha"], Json({3, 2, 6, 2, 6, 2}));
}

TEST_F(Margin, StartsFromAnotherAnswer) {
  const Json cold = answer({"--norm", "1.5", "-o", svm});
  const Json warm = answer({"--norm", "1.5", "--start", svm});
  EXPECT_EQ(warm["status"], "certified");
  EXPECT_NEAR(warm["norm"], cold["norm"], 1e-9);
  EXPECT_EQ(answer({"--norm", "1.4", "--start", svm})["status"], "certified");
  EXPECT_EQ(answer({"--select", "0,3,2,1,4,7", "--start", svm})["status"], "certified");
  EXPECT_EQ(answer({"--problem", "decoder", "--start", svm})["status"], "certified");
}

TEST_F(Margin, ChecksTheAnswersOfOthers) {
  ASSERT_EQ(margin({"--norm", "1.75", "-o", svm}).code, 0);
  const Json good = answer({"--check", svm});
  EXPECT_EQ(good["status"], "certified");
  EXPECT_EQ(good["kind"], "1.75");
  EXPECT_LE(good["gap"], 1e-10);
  EXPECT_FALSE(good["support"].empty());

  NamedArrays arrays = load_npz(svm);
  std::vector<double> W = arrays.at("W").to_doubles();
  for (double& w : W)
    w *= 2;  // twice a solution: its worst margin is divided out, unless it is taken as it is
  arrays["W"] = Array({10, 10}, W);
  save_npz(svm, arrays);
  const Json doubled = answer({"--check", svm});
  EXPECT_EQ(doubled["status"], "certified");
  EXPECT_NEAR(doubled["divided_by"], 2, 1e-9);
  EXPECT_EQ(answer({"--check", svm, "--as-is"}, 1)["status"], "refused");

  W[3] += 0.05;
  arrays["W"] = Array({10, 10}, W);
  save_npz(svm, arrays);
  const Json bent = answer({"--check", svm}, 1);
  EXPECT_EQ(bent["status"], "refused");
  EXPECT_GT(bent["gap"], 1e-6);

  // Without names and in a file of someone else, with all that matters given.
  ASSERT_EQ(margin({"--norm", "3", "-o", svm}).code, 0);
  arrays = load_npz(svm);
  save_npz(svm, {{"W", arrays.at("W")}, {"lambda", arrays.at("lambda")}});
  EXPECT_EQ(answer({"--check", svm, "--norm", "3"})["status"], "certified");
  EXPECT_EQ(answer({"--check", svm, "--norm", "2"}, 1)["status"], "refused");
  const Outcome text = margin({"--check", svm, "--norm", "2"});
  EXPECT_NE(text.out.find("refused: the gap is"), std::string::npos) << text.out;
  save_npz(svm, {{"W", arrays.at("W")}});
  expect_refusal({"margin", data, "--check", svm}, 2, {"missing array lambda"});
}

TEST_F(Margin, NamesTokensInConflict) {
  const std::string path = (folder / "conflict.npz").string();
  save_npz(path, contradiction());
  const Outcome text = attmirror_command({"margin", path, "--norm", "1.5"});
  EXPECT_EQ(text.code, 1);
  for (const char* word : {"infeasible", "sequence 0: token 0 over 1", "sequence 1: token 1 over 0"})
    EXPECT_NE(text.out.find(word), std::string::npos) << text.out;
  const Outcome outcome = attmirror_command({"margin", path, "--norm", "1.5", "--json", "-o", svm});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.err.find("in conflict are sequence 0: token 0 over 1"), std::string::npos) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["status"], "infeasible");
  EXPECT_EQ(json["conflict"], Json::parse("[[0,0,1],[1,0,0]]"));
  EXPECT_TRUE(json["norm"].is_null() && json["gap"].is_null());
  EXPECT_EQ(json["label_margin"], 0.0);

  // The proof is in the file, and holds; there is nothing to compare with.
  EXPECT_FALSE(load_npz(svm).contains("W"));
  const Outcome checked = attmirror_command({"margin", path, "--check", svm, "--json"});
  EXPECT_EQ(checked.code, 1);
  EXPECT_EQ(Json::parse(checked.out)["status"], "infeasible");
  ASSERT_EQ(attmirror_command({"train", path, "--steps", "10", "--quiet", "-o", run}).code, 0);
  expect_refusal({"compare", run, svm}, 2, {"infeasible"});
}

TEST_F(Margin, StopsWhenToldTo) {
  const Outcome outcome = margin({"--norm", "1.1", "--max-iterations", "1", "--json", "-o", svm});
  EXPECT_EQ(outcome.code, 1);
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["status"], "stopped");
  EXPECT_TRUE(json.contains("reason"));
  EXPECT_NE(outcome.err.find("stopped with a gap"), std::string::npos) << outcome.err;
  EXPECT_TRUE(load_npz(svm).contains("lambda"));
}

TEST_F(Margin, SolvesTheOtherProblems) {
  EXPECT_EQ(answer({"--problem", "decoder", "-o", svm})["status"], "certified");
  EXPECT_EQ(load_npz(svm).at("v").shape(), (Shape{10}));
  EXPECT_EQ(answer({"--check", svm})["problem"], "decoder");

  // P2's joint data: in the slack case the third sequence is no support vector, and its bound relaxes.
  const std::string joint = (folder / "joint.npz").string();
  for (const bool slack : {false, true}) {
    ASSERT_EQ(attmirror_command({"generate", "--kind", "joint-prompt", "--label-margin",
                                 slack ? "slack" : "tight", "-o", joint, "--quiet"})
                  .code,
              0);
    const auto norm = [&](const char* problem) {
      const Outcome outcome = attmirror_command(
          {"margin", joint, "--problem", problem, "--select", "1,1,1", "--json", "-o", svm});
      EXPECT_EQ(outcome.code, 0) << outcome.err << outcome.out;
      return Json::parse(outcome.out)["norm"].get<double>();
    };
    const double full = norm("prompt"), relaxed = norm("relaxed");
    // By hand: p = (4/3, 1/3) where the bounds are all 1, and without the third one's (1.25, 0.25) becomes (1, 0).
    EXPECT_NEAR(full, slack ? std::hypot(1.25, 0.25) : std::hypot(4.0, 1.0) / 3, 1e-9);
    EXPECT_NEAR(relaxed, slack ? 1 : full, 1e-9);
    EXPECT_EQ(attmirror_command({"margin", joint, "--check", svm, "--problem", "relaxed"}).code, 0);
  }
}

// What relaxes is the problem of what was trained with v: that of W for a run of W and v.
TEST_F(Margin, RelaxesTheProblemThatTheRunTrained) {
  const std::string joint = (folder / "joint.npz").string();
  ASSERT_EQ(attmirror_command(
                {"generate", "--kind", "joint-prompt", "--label-margin", "slack", "-o", joint, "--quiet"})
                .code,
            0);
  const Outcome trained =
      attmirror_command({"train", joint, "--train", "W,v", "--optimizer", "gd", "--normalized", "--lr", "0.1",
                         "--steps", "20000", "--init", "normal:1", "--init-seed", "3", "-o", run, "--quiet"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Outcome outcome = attmirror_command(
      {"margin", joint, "--problem", "relaxed", "--select", "run:" + run, "--json", "-o", svm});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["decoder_norm"], "2");
  EXPECT_EQ(json["alpha"], Json({1, 1, 1}));
  // By hand: of the tokens (1, 1), -(1, -1), (0.5, 1.5) on the side of their label, the third has a margin of 1.5
  // under v = (0, 1).
  EXPECT_EQ(json["bounds"], Json({1.0, 1.0, 0.0}));
  EXPECT_EQ(load_npz(svm).at("W").shape(), (Shape{2, 2}));
  EXPECT_EQ(attmirror_command({"margin", joint, "--check", svm}).code, 0);
  // Training goes to the relaxed solution, and stays away from that with all bounds 1.
  const auto correlation = [&](const std::string& file) {
    return Json::parse(attmirror_command({"compare", run, file, "--json"}).out)["correlation"].get<double>();
  };
  const std::string full = (folder / "full.npz").string();
  ASSERT_EQ(attmirror_command({"margin", joint, "--select", "run:" + run, "-o", full}).code, 0);
  EXPECT_GT(correlation(svm), 0.9999);
  EXPECT_LT(correlation(full), correlation(svm) - 0.001);
  // The margin of the third sequence counts in the ratio, although the relaxed problem does not ask for it.
  const Outcome compared = attmirror_command({"compare", run, svm});
  EXPECT_NE(compared.out.find("above 1"), std::string::npos) << compared.out;
  EXPECT_NE(compared.out.find("it is that of a relaxed problem"), std::string::npos) << compared.out;

  const std::string fixed = (folder / "fixed-run").string();
  ASSERT_EQ(attmirror_command({"train", data, "--lr", "0.1", "--steps", "10", "-o", fixed, "--quiet"}).code,
            0);
  expect_refusal({"margin", data, "--problem", "relaxed", "--select", "run:" + fixed}, 2,
                 {"the run has a fixed v, and constraints relax only where v is trained"});
  expect_refusal({"margin", joint, "--problem", "relaxed", "--select", "run:" + run, "--key-weights", joint},
                 2, {"key-weights is given, but problem is relaxed of a run without a prompt"});
}

TEST_F(Margin, TakesTheBoundsOfConstraints) {
  const std::string joint = (folder / "joint.npz").string();
  ASSERT_EQ(attmirror_command(
                {"generate", "--kind", "joint-prompt", "--label-margin", "slack", "-o", joint, "--quiet"})
                .code,
            0);
  const auto norm = [&](const char* bounds) {
    const Outcome outcome = attmirror_command({"margin", joint, "--problem", "prompt", "--select", "1,1,1",
                                               "--bounds", bounds, "--json", "-o", svm});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(outcome.out)["norm"].get<double>();
  };
  // By hand, as above: p = (1, 0) with the third bound relaxed, 3 times that for 3 times the bounds, 0 for none.
  EXPECT_NEAR(norm("0,0,0"), 0, 1e-12);
  EXPECT_NEAR(norm("1,1,1"), std::hypot(1.25, 0.25), 1e-9);
  EXPECT_NEAR(norm("3,3,0"), 3, 1e-9);
  const auto check = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"margin", joint, "--check", svm});
    return attmirror_command(more);
  };
  EXPECT_EQ(check({"--bounds", "3,3,0"}).code, 0);
  // It calls itself relaxed, but is not what the decoder SVM relaxes.
  const Outcome other = check({});
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(
      other.err.find("the bound of sequence 0, query 0, token 0 is 3: expected 1; give the file's with"),
      std::string::npos)
      << other.err;

  expect_refusal({"margin", joint, "--select", "1,1,1", "--bounds", "1,0"}, 2,
                 {"bounds has 2 numbers: expected 3, one per query"});
  expect_refusal({"margin", joint, "--select", "1,1,1", "--bounds", "1,0,-1"}, 2,
                 {"bounds[2] is -1: expected a finite number of at least 0"});
  expect_refusal({"margin", joint, "--select", "1,1,1", "--bounds", "1,,1"}, 2,
                 {"bounds is \"1,,1\": expected file:BOUNDS.npy or numbers such as 1,0,1"});
  expect_refusal({"margin", joint, "--select", "1,1,1", "--bounds", "1,0,1", "--problem", "relaxed"}, 2,
                 {"bounds is given, but problem is relaxed: expected attention or prompt"});
}

TEST_F(Margin, SolvesTheGeneralProblemOfARun) {
  const std::string relu = (folder / "orthonormal.npz").string();
  ASSERT_EQ(attmirror_command({"generate", "--kind", "orthonormal", "--quiet", "-o", relu}).code, 0);
  ASSERT_EQ(attmirror_command({"train", relu, "--head", "quadratic:0.5", "--loss", "linear", "--normalized",
                               "--lr", "0.01", "--steps", "3000", "--quiet", "-o", run})
                .code,
            0);
  const Outcome outcome = attmirror_command(
      {"margin", relu, "--problem", "general", "--select", "run:" + run, "--json", "-o", svm});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["problem"], "general");
  EXPECT_LE(json["gap"], 1e-10);
  EXPECT_LE(json["finite"]["gap"], 1e-10);
  EXPECT_GT(json["correlation"], 0.9);
  EXPECT_EQ(json["kept"].size(), 3u);
  const NamedArrays arrays = load_npz(svm);
  for (const char* name : {"W", "W_fin", "lambda", "lambda_fin", "R", "kept"})
    EXPECT_TRUE(arrays.contains(name)) << name;
  EXPECT_EQ(attmirror_command({"margin", relu, "--select", "run:" + run, "--check", svm}).code, 0);
  expect_refusal({"margin", relu, "--problem", "general"}, 2, {"--select run:RUN"});
}

TEST_F(Margin, SeesCausalMasksAndSeveralQueries) {
  const std::string causal = (folder / "causal.npz").string();
  ASSERT_EQ(attmirror_command({"generate", "--samples", "2", "--tokens", "4", "--dim", "9", "--query-from",
                               "all", "--quiet", "-o", causal})
                .code,
            0);
  const Outcome outcome = attmirror_command({"margin", causal, "--mask", "causal", "--json", "-o", svm});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["constraints"], 2 * (0 + 1 + 2 + 3));
  EXPECT_EQ(json["alpha"].size(), 2u);
  EXPECT_EQ(json["alpha"][0].size(), 4u);
  EXPECT_EQ(json["alpha"][0][0], 0);  // the first token sees itself alone
  EXPECT_EQ(load_npz(svm).at("alpha").shape(), (Shape{2, 4}));
  expect_refusal({"margin", data, "--mask", "causal"}, 2, {"mask is causal"});
}

TEST_F(Margin, LeavesNothingBehindAfterCtrlC) {
  const std::string large = (folder / "large.npz").string();
  ASSERT_EQ(attmirror_command(
                {"generate", "--samples", "300", "--tokens", "16", "--dim", "48", "--quiet", "-o", large})
                .code,
            0);
  for (const int signal : {SIGINT, SIGTERM}) {
    RunningCommand command(
        {"margin", large, "--norm", "nuclear", "--json", "-o", svm});  // many seconds of work
    ASSERT_TRUE(command.wait_until([&] { return command.catches(signal) && command.cpu_seconds() > 0.2; }));
    command.signal(signal);
    const Outcome outcome = command.wait();
    EXPECT_EQ(outcome.code, 128 + signal);
    EXPECT_EQ(Json::parse(outcome.out)["status"], "interrupted");
    EXPECT_EQ(Json::parse(outcome.out)["reason"], "interrupted");
    EXPECT_EQ(
        outcome.err,
        fmt::format("attmirror: interrupted before the solution was certified; {} is not written\n", svm));
    EXPECT_EQ(folder.names().size(), 2u);
  }
}

// Tokens that all but contradict each other: the norm is 1e8 in units of the data.
TEST_F(Margin, SolvesThinTriangles) {
  const std::string thin = (folder / "thin.npz").string();
  const std::vector<double> X{1, 0, 0, 0, 1e-8, 0, -1, 0, 0}, Z{1, 0, 0}, Y{1};
  save_npz(thin, {{"X", Array({1, 3, 3}, X)}, {"Z", Array({1, 3}, Z)}, {"Y", Array(Y)}});
  for (const char* norm : {"2", "1.5", "3", "1", "inf", "nuclear"}) {
    const Outcome outcome =
        attmirror_command({"margin", thin, "--select", "1", "--norm", norm, "--json", "-o", svm});
    EXPECT_EQ(outcome.code, 0) << norm << outcome.out;
    const Json json = Json::parse(outcome.out);
    EXPECT_EQ(json["status"], "certified") << norm;
    EXPECT_LE(std::fabs(json["gap"].get<double>()), 1e-11) << norm;
    EXPECT_EQ(json["support"].size(), 2u) << norm;
    EXPECT_NEAR(to_matrix(load_npz(svm).at("W"), "W")(1, 0) / 1e8, 1, 1e-11) << norm;
    EXPECT_EQ(attmirror_command({"margin", thin, "--check", svm}).code, 0) << norm;
  }
}

// Weights that violate a constraint support nothing.
TEST_F(Margin, ShowsNoSupportOfWhatFailed) {
  const std::string random = (folder / "random.npz").string();
  ASSERT_EQ(attmirror_command({"generate", "--samples", "3", "--tokens", "4", "--dim", "2", "--seed", "5",
                               "--quiet", "-o", random})
                .code,
            0);
  const Words words{"margin", random, "--select", "0,1,2", "--norm", "1.2", "--max-seconds", "1e-9"};
  const Json json = Json::parse(attmirror_command(words + Words{"--json"}).out);
  ASSERT_EQ(json["status"], "stopped") << json;
  EXPECT_EQ(json["support"], Json::array()) << json;
  const Outcome text = attmirror_command(words);
  EXPECT_EQ(text.code, 1);
  EXPECT_EQ(text.out.find("hold with equality"), std::string::npos) << text.out;
}

TEST_F(Margin, HasTheSameBitsForAnyThreads) {
  ASSERT_EQ(margin({"--norm", "1.75", "-o", svm}).code, 0);
  const std::string one = file_text(svm);
  ASSERT_EQ(margin({"--norm", "1.75", "--threads", "3", "-o", svm}).code, 0);
  EXPECT_EQ(file_text(svm), one);
}

TEST_F(Margin, RefusesBadOptions) {
  const auto refuse = [&](const Words& options, std::initializer_list<std::string_view> words) {
    expect_refusal(Words{"margin", data, "-o", svm} + options, 2, words);
  };
  refuse({"--norm", "0.5"}, {"0.5"});
  refuse({"--norm", "kernel"}, {"kernel"});
  refuse({"--tol", "0"}, {"tol is 0"});
  refuse({"--tol", "nan"}, {"tol is nan"});
  refuse({"--max-norm", "-1"}, {"-1"});
  refuse({"--max-iterations", "0"}, {"max-iterations is 0"});
  refuse({"--max-seconds", "0"}, {"is 0"});
  refuse({"--method", "simplex"}, {"simplex"});
  refuse({"--method", "active-set", "--norm", "nuclear"}, {"active-set"});
  refuse({"--generation", "maybe"}, {"generation is \"maybe\""});
  refuse({"--rank", "-1"}, {"rank is -1"});
  refuse({"--rank", "2"}, {"nuclear"});
  refuse({"--problem", "knapsack"}, {"problem is \"knapsack\""});
  refuse({"--mask", "none", "--select", "run:" + run}, {"mask is given with a run"});
  refuse({"--keep-threshold", "0.1"}, {"keep-threshold", "general"});
  refuse({"--key-weights", data}, {"key-weights is given, but problem is attention"});
  refuse({"--as-is"}, {"--check"});
  refuse({"--check", svm}, {"--output is given with --check"});
  expect_refusal({"margin", data, "-o", (folder / "." / "data.npz").string()}, 2, {"the input itself"});
  EXPECT_NO_THROW(load_dataset(data));  // it is still the dataset
  EXPECT_EQ(folder.names().size(), 1u);
}

TEST_F(Margin, RefusesBadTokens) {
  const auto refuse = [&](const std::string& select, std::initializer_list<std::string_view> words) {
    expect_refusal({"margin", data, "-o", svm, "--select", select}, 2, words);
  };
  refuse("0,3,2,1,4,8", {"selected[5] is 8: expected 0 to 7"});
  refuse("0,3,2", {"has 3 tokens: expected 6"});
  refuse("0,3,,2", {"select is \"0,3,,2\""});
  refuse("-1,3,2,1,4,7", {"select is"});
  refuse("best", {"select is \"best\": expected global"});
  refuse("run:" + run, {"is not a run folder"});
  refuse("file:" + (folder / "none.npy").string(), {"No such file"});
  refuse("file:" + data, {"missing array alpha"});
  save_npy(folder / "alpha.npy", Array(std::vector<std::int64_t>{}));
  refuse("file:" + (folder / "alpha.npy").string(), {"(0,)", "expected (6,)"});
  save_npy(folder / "alpha.npy", Array({2, 3}, std::vector<std::int64_t>(6, 0)));
  refuse("file:" + (folder / "alpha.npy").string(), {"(2, 3)", "expected (6,)"});
  save_npy(folder / "alpha.npy", Array(std::vector<double>{0, 0, 0, 0, 0, 1.5}));
  refuse("file:" + (folder / "alpha.npy").string(), {"1.5"});
  std::filesystem::remove(folder / "alpha.npy");
  EXPECT_EQ(folder.names().size(), 1u);
}

TEST_F(Margin, RepeatsForTiming) {
  const Json once = Json::parse(attmirror_command({"margin", data, "--json"}).out);
  const Json often = Json::parse(attmirror_command({"margin", data, "--repeat", "5", "--json"}).out);
  EXPECT_EQ(often.at("norm"), once.at("norm"));
  EXPECT_GT(often.at("seconds"), 0.0);
  expect_refusal({"margin", data, "--repeat", "0"}, 2, {"repeat is 0: expected 1 or more"});
}

TEST_F(Margin, RefusesBadFiles) {
  const std::string path = (folder / "bad.npz").string();
  NamedArrays arrays = load_npz(data);
  arrays.erase("v");
  save_npz(path, arrays);
  expect_refusal({"margin", path, "-o", svm}, 2, {"no decoder v", "--select"});
  EXPECT_EQ(attmirror_command({"margin", path, "--select", "0,3,2,1,4,7", "--quiet", "-o", svm}).code, 0);
  std::filesystem::remove(svm);
  std::vector<double> X = arrays.at("X").to_doubles();
  X[17] = std::numeric_limits<double>::quiet_NaN();
  arrays["X"] = Array({6, 8, 10}, X);
  save_npz(path, arrays);
  expect_refusal({"margin", path, "-o", svm}, 2, {"X[0,1,7] is nan"});
  expect_refusal({"margin", (folder / "none.npz").string()}, 2, {"No such file"});
  expect_refusal({"margin", data, "--check", path}, 2, {"missing array W"});
  expect_refusal({"margin", data, "--start", (folder / "none.npz").string()}, 2, {"No such file"});
  expect_refusal({"margin", data, "-o", (folder / "no/such/svm.npz").string()}, 3, {"cannot write"});
  save_npy(folder / "A.npy", Array({2, 2}, std::vector<double>(4, 1.0)));
  expect_refusal(
      {"margin", data, "--problem", "prompt", "--key-weights", (folder / "A.npy").string(), "-o", svm}, 2,
      {"(2, 2)", "(10, 10)"});
  EXPECT_FALSE(std::filesystem::exists(svm));
  ASSERT_EQ(attmirror_command({"generate", "--seed", "2", "-o", path}).code, 0);
  train({"--steps", "10"});
  expect_refusal({"margin", path, "--select", "run:" + run}, 2, {"is not the dataset of the run"});
}

}  // namespace
}  // namespace attmirror::test
