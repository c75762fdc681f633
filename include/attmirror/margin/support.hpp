// What a max-margin solution says about the tokens: which of them determine it, and whether training can end there.
//
//   support tokens    those whose constraint is active, a_k^T W z = c_k
//   locally optimal   a selection alpha whose support tokens all have a lower score than the selected one: training
//                     that
//                     starts near the solution's direction converges to it (P1, P3). Tokens far away may be better.
//   label margin      min_j Y_j v^T x_alpha, how well the selected tokens are classified
//
// "Active" needs a tolerance: an answer with a relative gap eps may leave a slack of eps / (share of the
// constraint in sum c_k lambda_k) at a constraint that would be active at the optimum, so at a gap of 1e-10
// the default finds all whose share is above 1e-5. By the same relation, a constraint with a considerable
// lambda is always found; lambda adds nothing.
#pragma once

#include <attmirror/data/dataset.hpp>
#include <attmirror/data/selection.hpp>
#include <attmirror/margin/constraints.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace attmirror {

// Slack of an active constraint, relative to its bound (to sum_ij |a_i| |W_ij| |z_j| if the bound is 0).
constexpr double support_tolerance = 1e-5;

// The constraints that hold with equality at W, ascending; equalities always do. Throws Error (bad input) if
// W has another shape or the tolerance is not a number >= 0.
std::vector<std::ptrdiff_t> support(const MarginConstraints& constraints, const Matrix& W,
                                    double tolerance = support_tolerance);

// The constraints that a proof of infeasibility rests on, ascending: those with lambda_k |a_k| |z_g| above 1e-9
// of the largest (|lambda_k| for equalities); or, if some demand more than 0 from a row of zeros, only those.
std::vector<std::ptrdiff_t> conflict(const MarginConstraints& constraints, const Vector& lambda);

// One vector per query: the score Y_j v^T x_t of each token of its sequence. Throws Error (bad input) where v does
// not fit.
std::vector<Vector> linear_scores(const Dataset& data, const Vector& v);

// Whether each selected token has a better score than its support tokens.
struct LocalOptimality {
  bool holds = true;
  // The smallest score of a selected token minus that of a support token; infinity if there are no support tokens.
  double least_advantage = 0;
  std::optional<ConstraintOrigin> worst{};  // the support token where that is
};

// For the selection alpha in an attention or prompt SVM of `data`, whose constraints these are. `scores` has
// one vector per query, one entry per token of its sequence. A tie is not locally optimal. Throws Error (bad
// input) naming what does not fit, or a score of a support or selected token that is NaN.
LocalOptimality local_optimality(const Dataset& data, const Selection& tokens,
                                 const MarginConstraints& constraints,
                                 std::span<const std::ptrdiff_t> support, const std::vector<Vector>& scores);

// How far each selected token is on the side of its label.
struct LabelMargins {
  Vector values;        // Y_j v^T x_alpha of each query
  double smallest = 0;  // the label margin of v
};

// The label margins of selected tokens under a decoder v.
LabelMargins label_margins(const Dataset& data, const Selection& tokens, const Vector& v);

}  // namespace attmirror
