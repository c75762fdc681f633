// Which assumptions of the papers' theorems a dataset satisfies.
//
// P2 and P3 prove where gradient descent ends under assumptions on the data. Each has a version here that can be
// decided on data, written below; the papers may word theirs differently, so a check is one of our version and not a
// statement about a theorem. For the selected tokens alpha (by default the best ones), scores gamma_t = Y v^T x_t and
// all queries:
//
//   unique best        gamma_alpha > gamma_t                                  for every other token t
//   equal scores       gamma_t = gamma_tau                                    for all other tokens t, tau (P2; P3, B.2)
//   separable          (x_alpha - x_t)^T W z >= 1                             has a solution: certified or refuted
//   all support        (x_alpha - x_t)^T W_mm z = 1                           for every other token t (P3, B.1)
//   initial gradient   (x_alpha - x_t)^T (-grad L(W_0)) z > 0                 for every t: the first step separates
//   label margin       mixing a token into a support vector of the decoder SVM lowers the label margin (P2, joint)
//   step size          lr <= 1/L                                              attention/smoothness.hpp
//
//   const TheoryReport report = check_theory(data, {.lr = 0.1});
//   report.at(Assumption::separable).status == AssumptionStatus::holds;
#pragma once

#include <attmirror/attention/attention.hpp>
#include <attmirror/base/table.hpp>
#include <attmirror/data/selection.hpp>
#include <attmirror/margin/max_margin.hpp>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// What is assumed; the top of this file says what each word means.
enum class Assumption {
  unique_best,
  equal_scores,
  separable,
  all_support,
  initial_gradient,
  label_margin,
  step_size,
};
// All of them, in order.
inline constexpr std::array all_assumptions{
    Assumption::unique_best,      Assumption::equal_scores, Assumption::separable, Assumption::all_support,
    Assumption::initial_gradient, Assumption::label_margin, Assumption::step_size};
std::string_view to_string(Assumption assumption);  // "unique best", ...
// The version that is checked, in one sentence.
std::string_view meaning(Assumption assumption);

// What a check found.
enum class AssumptionStatus {
  holds,
  fails,
  open,            // neither was proved
  not_applicable,  // `detail` says why: no decoder, no step size, ...
};
std::string_view to_string(AssumptionStatus status);  // "holds", "fails", "open", "does not apply"

// One assumption on one dataset.
struct AssumptionCheck {
  Assumption what = Assumption::unique_best;
  AssumptionStatus status = AssumptionStatus::not_applicable;
  // The number that decides; NaN where there is none.
  //   unique best        the least lead of a selected token, gamma_alpha - max gamma_t: above 0
  //   equal scores       the largest spread of the other tokens' scores: 0
  //   separable          the margin 1 / |W_mm|; 0 if there is none
  //   all support        the share of the other tokens that are support tokens: 1
  //   initial gradient   the margin of -grad L(W_0), relative to the largest that any weights of its norm have: above 0
  //   label margin       the least lead 1 - Y v_mm^T x_t over the other tokens of support vectors: above 0
  //   step size          1/L
  double value = 0;
  std::string detail{};  // a sentence: where the value is attained, what was proved
};

// For which model the assumptions are checked.
struct TheoryOptions {
  std::optional<Selection> tokens{};        // alpha; empty: the best tokens, which need a decoder
  Parameterization parameterization = W{};  // for (K, Q) the max-margin problem is that of the nuclear norm
  Loss loss = Logistic{};
  std::optional<Parameters> start{};  // of descent; empty: W = 0, p = 0. K and Q = 0 never move
  std::optional<double> lr{};         // of plain gradient descent; empty: nothing to compare with 1/L
  // Scores count as equal if they differ by at most this much of the largest |score|.
  double score_tolerance = 1e-9;
  bool joint = true;  // check the label margin, too, which takes the longest
  MarginOptions margin{};

  // Throws Error (bad input) for an lr or a tolerance out of range.
  void validate() const;
};

// The assumptions, and what was computed on the way.
struct TheoryReport {
  Selection tokens;
  Norm norm = Norm::frobenius();
  std::vector<AssumptionCheck> checks;  // one for each of all_assumptions, in order
  MarginSolution svm;                   // for the tokens, in this norm
  MarginSolution decoder;               // the decoder SVM of the tokens, in the Euclidean norm
  std::optional<double> lipschitz{};    // L, where there is one

  const AssumptionCheck& at(Assumption what) const { return checks[static_cast<std::size_t>(what)]; }
  bool holds(Assumption what) const { return at(what).status == AssumptionStatus::holds; }
};

// Throws Error (bad input) if the data have no decoder and no tokens are given, or if something does not fit the data.
TheoryReport check_theory(const Dataset& data, const TheoryOptions& options = {});

// assumption | holds | value | detail
Table theory_table(const TheoryReport& report);

}  // namespace attmirror
