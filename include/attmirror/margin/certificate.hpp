// The proof that an answer is right, rechecked from the raw data by code that shares nothing with the solvers.
//
// Weak duality: for every W that satisfies the constraints and every lambda (>= 0 at inequalities, free at equalities)
//
//   c^T lambda <= sum_k lambda_k <A_k, W> = <sum_k lambda_k A_k, W> <= ||sum_k lambda_k A_k||_* ||W||
//
// so ||W|| >= dual := c^T lambda / ||sum_k lambda_k A_k||_*, with ||.||_* the dual norm. If a W attains it up to
//
//   gap := (||W|| - dual) / ||W||
//
// no feasible W has a norm below (1 - gap) times its own. Nothing here depends on how W and lambda were found. The same
// bound without any W proves infeasibility: no W of norm below `dual` satisfies the constraints.
//
// Rounding never helps. Sums are formed in long double (64 bits on x86, with a range that products of doubles cannot
// leave), and their possible error counts against the answer: `dual` divides by the dual norm plus the largest error
// that sum lambda_k A_k can have, so a proof of infeasibility holds even where the sum cancels. Where W is so large
// that more than 1e-14 of a bound is in doubt, margins are formed with twice the digits, and what is then in doubt
// counts as violated; likewise the sum, where more than 1e-13 of its norm is in doubt. What remains is the rounding
// of the norms themselves, a few 1e-16 (times min(rows, cols) for singular values), on the safe side in `dual`.
#pragma once

#include <attmirror/margin/constraints.hpp>
#include <attmirror/margin/problems.hpp>
#include <attmirror/mirror/norm.hpp>

#include <cmath>
#include <cstddef>

namespace attmirror {

// How far W may be from satisfying a constraint, relative to its bound (if the bound is 0, and for equalities,
// relative to sum_ij |a_i| |W_ij| |z_j| if that is larger: the size of what cancels in the product).
constexpr double feasibility_tolerance = 1e-12;

// What is proved about W and lambda: a lower bound, the gap, the worst violation.
struct Certificate {
  double norm = 0;  // ||W||; NaN if there is no W
  // Lower bound on the norm of every feasible W, >= 0, from lambda clipped to >= 0; may be infinite.
  double dual = 0;
  double gap = 0;  // (norm - dual) / norm; 0 if both are 0, NaN if there is no W or it is not finite
  // dual in units of the data: divided by max_k |c_k| / ||a_k z_g^T||_*, the norm that the hardest constraint
  // alone demands. Independent of the scale of the data and of each constraint.
  double scaled_dual = 0;
  // Minimum over inequalities with c > 0 of <A_k, W> / c_k; infinity if there are none.
  double worst_margin = 0;
  // Largest relative violation of any constraint as feasibility_tolerance defines it, >= 0.
  double worst_violation = 0;
  std::ptrdiff_t worst_constraint = -1;  // where that is; -1: no constraint is violated

  bool feasible() const { return worst_violation <= feasibility_tolerance; }
  // A gap far below 0 is no better than one above: W is feasible only up to a tolerance, and lambda says that
  // no exact solution is as small.
  bool certifies(double tolerance) const { return feasible() && std::fabs(gap) <= tolerance; }
  bool proves_norm_above(double scaled_bound) const { return scaled_dual > scaled_bound; }
};

// W may be empty (0 x 0) to check lambda alone. Entries that are not finite prove nothing: in W they make
// norm and gap NaN and the violation infinite, in lambda they make dual and gap NaN. Throws Error (bad input)
// if shapes do not fit.
Certificate certify(const MarginConstraints& constraints, const Norm& norm, const Matrix& W,
                    const Vector& lambda);

// The same from the dataset itself: each constraint is formed again from tokens, queries and labels.
Certificate certify(const Dataset& data, const MarginProblem& problem, const Norm& norm, const Matrix& W,
                    const Vector& lambda);

}  // namespace attmirror
