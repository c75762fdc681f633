// [record]: what is kept of each run.
#include "sweep/record_plan.hpp"

#include "support/files.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/sweep/plan.hpp>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

RecordPlan record(const std::string& text) {
  return parse_sweep("[record]\n" + text, "sweep.toml", ".").record;
}

TEST(SweepRecord, KeepsLittleByDefault) {
  const SweepPlan plan = parse_sweep("", "sweep.toml", ".");
  EXPECT_EQ(plan.record.schedule.to_string(), "none");
  EXPECT_TRUE(plan.record.curves.empty());
  EXPECT_TRUE(plan.record.margins.empty());
  EXPECT_TRUE(plan.record.solutions.empty());
  EXPECT_EQ(plan.record.saturated, 0.99);
  EXPECT_EQ(plan.record.rank_tolerance, 1e-3);
  EXPECT_FALSE(plan.record.keep_weights || plan.record.keep_solutions || plan.record.keep_path);
}

TEST(SweepRecord, HasAllThatIsAskedFor) {
  const RecordPlan plan = record(R"(
steps = [100, 0, 10]
curves = ["loss", "own.bregman", "l1.75.correlation", "best.bregman", "margin.nuclear", "margin.2"]
margins = [2, "nuclear", inf]
solutions = ["own", "1.75", 2, "inf", "nuclear", "spectral", "schatten:1.5",
             {name = "best", norm = 2, tokens = "optimal"}, {norm = "3", problem = "decoder"}]
saturated = 0
rank_tolerance = 1e-6
keep = ["weights", "solutions", "path"]
)");
  EXPECT_EQ(plan.schedule.to_string(), "0,10,100");
  EXPECT_EQ(plan.curves.size(), 6u);
  EXPECT_EQ(plan.margins, (std::vector{Norm::l(2), Norm::nuclear(), parse_norm("inf")}));
  std::vector<std::string> names;
  for (const SolutionPlan& solution : plan.solutions) names.push_back(solution.name);
  EXPECT_EQ(names, (std::vector<std::string>{"own", "l1.75", "l2", "linf", "nuclear", "spectral",
                                             "schatten1.5", "best", "l3"}));
  EXPECT_FALSE(plan.solutions[0].norm.has_value());
  EXPECT_EQ(plan.solutions[1].norm, Norm::l(1.75));
  EXPECT_EQ(plan.solutions[7].tokens, SolutionPlan::Tokens::optimal);
  EXPECT_EQ(plan.solutions[8].problem, SolutionPlan::Problem::decoder);
  EXPECT_EQ(plan.solutions[8].tokens, SolutionPlan::Tokens::selected);
  EXPECT_EQ(plan.saturated, 0);
  EXPECT_EQ(plan.rank_tolerance, 1e-6);
  EXPECT_TRUE(plan.keep_weights && plan.keep_solutions && plan.keep_path);
}

TEST(SweepRecord, OwnNormsAreThoseOfTheOptimizer) {
  const RecordPlan plan = record("solutions = [\"own\", 3]");
  EXPECT_EQ(norm_of(plan.solutions[0], sign_descent()), parse_norm("inf"));
  EXPECT_EQ(norm_of(plan.solutions[1], sign_descent()), Norm::l(3));
  EXPECT_EQ(norm_of(plan.solutions[1], AdaGrad{}), Norm::l(3));
  expect_bad_input({"solution own", "adagrad", "expected a norm"},
                   [&] { norm_of(plan.solutions[0], AdaGrad{}); });
}

TEST(SweepRecord, CurvesAndPathsAreLogSpacedUnlessToldOtherwise) {
  EXPECT_EQ(record("curves = [\"loss\"]").schedule.to_string(), "log:10");
  EXPECT_EQ(record("keep = [\"path\"]").schedule.to_string(), "log:10");
  EXPECT_EQ(record("keep = [\"weights\"]").schedule.to_string(), "none");
  EXPECT_EQ(record("curves = [\"loss\"]\nsteps = \"every:100\"").schedule.to_string(), "every:100");
  EXPECT_EQ(record("steps = \"none\"").schedule.to_string(), "none");
}

TEST(SweepRecord, EqualTextsMeanEqualRecords) {
  const auto text = [](const std::string& file) { return parse_sweep(file, "s", ".").record_text; };
  EXPECT_EQ(text(""), text("[record]\nsaturated = 0.99\nsteps = \"none\"\n[train]\np = 3\n"));
  EXPECT_EQ(text("[record]\nmargins = [\"frobenius\"]\n"), text("[record]\nmargins = [2.0]\n"));
  EXPECT_EQ(text("[record]\nsolutions = [2]\n"),
            text("[record]\nsolutions = [{norm = \"2\", name = \"l2\"}]\n"));
  EXPECT_NE(text("[record]\nsolutions = [2]\n"),
            text("[record]\nsolutions = [{norm = 2, tokens = \"optimal\"}]\n"));
  EXPECT_EQ(text("[record]\nkeep = [\"path\", \"weights\"]\n"),
            text("[record]\nkeep = [\"weights\", \"path\"]\n"));
}

TEST(SweepRecord, Refusals) {
  const struct {
    const char *text, *message;
  } refusals[] = {
      {"step = \"log\"", "has no key \"step\"; did you mean \"steps\"?"},
      {"steps = \"often\"\ncurves = [\"loss\"]",
       "steps: record is \"often\": expected none, every:K, log, log:PER_DECADE or a list of steps such as "
       "0,10,100"},
      {"steps = 3\ncurves = [\"loss\"]", "steps: 3 is neither a list of steps nor a text such as \"log\""},
      {"steps = [-1]\ncurves = [\"loss\"]", "steps: -1 is not a step: expected 0 or more"},
      {"steps = []\ncurves = [\"loss\"]", "steps: the list is empty: expected steps, or \"none\""},
      {"steps = \"log\"", "steps: given, but neither curves nor the path are requested"},
      {"steps = \"none\"\ncurves = [\"loss\"]", "steps: \"none\", but curves or the path are requested"},
      {"curves = \"loss\"", "curves: \"loss\" is not a list"},
      {"curves = [3]", "curves: 3 is not a text"},
      {"curves = [\"loss\", \"loss\"]", "curves: \"loss\" is given twice"},
      {"curves = [\"l2.bregman\"]\nmargins = [3]",
       "curves: \"l2.bregman\": expected one of loss, max_softmax, norm, margin.3; others need a solution or "
       "a margin "
       "of that name"},
      {"margins = [\"two\"]",
       "margins: norm is \"two\": expected a number from 1 to inf, frobenius, nuclear, spectral or "
       "schatten:P"},
      {"margins = [true]", "margins: true is not a norm"},
      {"margins = [2, \"frobenius\"]", "margins: the norm 2 is given twice"},
      {"saturated = 1.5", "saturated: 1.5 is not from 0 to 1"},
      {"saturated = \"a\"", "saturated: \"a\" is not a number"},
      {"rank_tolerance = nan", "rank_tolerance: nan is not from 0 to 1"},
      {"keep = [\"all\"]", "keep: \"all\": expected weights, solutions or path"},
      {"keep = [\"solutions\"]", "keep: \"solutions\" is given, but no solutions are requested"},
      {"solutions = [\"hexagonal\"]",
       "solutions: norm is \"hexagonal\": expected a number from 1 to inf, frobenius, nuclear, spectral or "
       "schatten:P"},
      {"solutions = [2, {norm = 2, tokens = \"optimal\"}]",
       "solutions: the name \"l2\" is given twice: give one of the solutions another name"},
      {"solutions = [{name = \"a b\", norm = 2}]",
       "solutions: name \"a b\": expected at most 64 letters, digits, dots and underscores"},
      {"solutions = [{name = \"\", norm = 2}]", "solutions: a name is empty"},
      {"solutions = [{name = \"margin\", norm = 2}]",
       "solutions: name \"margin\" is taken: expected another"},
      {"solutions = [{name = \"a\"}]", "solutions: a solution has no norm: expected \"own\" or a norm"},
      {"solutions = [{norm = 2, tokens = \"best\"}]",
       "solutions: tokens is \"best\": expected selected or optimal"},
      {"solutions = [{norm = 2, problem = \"dual\"}]",
       "solutions: problem is \"dual\": expected attention or decoder"},
      {"solutions = [{norm = 2, problm = \"decoder\"}]",
       "solutions: a solution has no \"problm\"; did you mean \"problem\"?"},
      {"solutions = [{norm = 2, name = 3}]", "solutions: name is 3: expected a text"},
  };
  for (const auto& [text, message] : refusals) {
    try {
      record(text);
      ADD_FAILURE() << "not refused: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), std::string("sweep.toml: [record] ") + message) << text;
    }
  }
}

}  // namespace
}  // namespace attmirror::test
