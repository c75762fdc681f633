// How a simpler solver misses feasible problems. Internal.
//
// Dual coordinate ascent for the Frobenius norm, max 1^T lambda - |sum lambda_k A_k|^2 / 2 over lambda >= 0: each
// multiplier in turn is set to its best value. It needs nothing but the Gram matrix and converges for every feasible
// problem, the more slowly the larger the solution is; with a limit on its sweeps, problems that are solvable with a
// large W look infeasible. Recomputed shares of feasible problems carry such a limit, and here it can be repeated.
#pragma once

#include <attmirror/margin/constraints.hpp>

#include <algorithm>
#include <cmath>

namespace attmirror {

// Whether every constraint of a problem with bounds of 1 is satisfied to `tolerance`, and every one with a multiplier
// active, after at most so many sweeps.
inline bool coordinate_ascent_arrives(const MarginConstraints& constraints, double tolerance,
                                      int max_sweeps) {
  const std::ptrdiff_t m = constraints.count();
  const Matrix left = constraints.left().eigen() * constraints.left().eigen().transpose(),
               right = constraints.right().eigen() * constraints.right().eigen().transpose();
  Matrix gram(m, m);  // <a_k z_g^T, a_l z_h^T>
  for (std::ptrdiff_t k = 0; k < m; ++k)
    for (std::ptrdiff_t l = 0; l < m; ++l)
      gram(k, l) = left(k, l) * right(constraints.group_of(k), constraints.group_of(l));
  Vector lambda = Vector::Zero(m), margins = Vector::Zero(m);
  for (int sweep = 0; sweep < max_sweeps; ++sweep) {
    double worst = 0;
    for (std::ptrdiff_t k = 0; k < m; ++k) {
      const double missing = 1 - margins[k];
      worst = std::max(worst, lambda[k] > 0 ? std::abs(missing) : missing);
      if (!(gram(k, k) > 0)) return false;  // two equal tokens
      const double change = std::max(-lambda[k], missing / gram(k, k));
      if (change == 0) continue;
      lambda[k] += change;
      margins += change * gram.row(k).transpose();
    }
    if (worst < tolerance) return true;
  }
  return false;
}

}  // namespace attmirror
