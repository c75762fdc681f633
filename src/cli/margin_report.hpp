// What `attmirror margin` answers, as JSON and in words.
#pragma once

#include "base/json.hpp"
#include "cli/margin_plan.hpp"
#include <attmirror/margin/constraints.hpp>
#include <attmirror/margin/max_margin.hpp>

#include <string>

namespace attmirror::cli {

struct MarginAnswer {
  Json json;
  std::string text;
  std::string negative{};    // one sentence where the answer is no; "" where it is yes
  bool written = false;      // to the output that was asked for
  bool interrupted = false;  // by a signal
};

// One solved problem, with what its constraints are called. `word` is the plan's, or decoder where a relaxed problem
// did not get beyond it.
struct SolvedMargin {
  ProblemWord word = ProblemWord::attention;
  MarginProblem problem;
  MarginConstraints constraints;
  MarginSolution solution;
};
MarginAnswer describe(const MarginPlan& plan, const SolvedMargin& solved);

// A Gen-SVM: the direction's numbers at the top, the finite part's under "finite".
struct SolvedGeneral {
  MarginConstraints direction, finite;
  GeneralSolution solution;
  double correlation = 0;  // of W_fin + R W_dir with the run's W; NaN where one of them is 0 or not finite
};
MarginAnswer describe(const MarginPlan& plan, const SolvedGeneral& solved);

// A stored solution under the verifier's eye.
struct CheckedMargin {
  MarginConstraints constraints;
  Certificate certificate;
  Matrix W;          // as checked; empty where the file has none
  Vector lambda;     // in the order of the constraints
  double scale = 1;  // W of the file was divided by it
};
// `finite` is the second half of a Gen-SVM, or null.
MarginAnswer describe(const MarginPlan& plan, const CheckedMargin& checked, const CheckedMargin* finite,
                      double seconds);

}  // namespace attmirror::cli
