#include "margin/feasibility_polish.hpp"

#include "margin/cholesky.hpp"
#include "margin/normal_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace attmirror {

Matrix polish_feasibility(Matrix W, MarginOperator& B) {
  // Beyond `most` it is not rounding, below `least` nothing can be gained. The largest bounds are about 1.
  constexpr double most = 1e-7, least = 1e-16;
  const ScaledConstraints& constraints = B.constraints();
  const std::ptrdiff_t m = constraints.count();
  std::vector<unsigned char> is_met(static_cast<std::size_t>(m));
  for (int round = 0; round < 4; ++round) {
    const Vector missing = Eigen::Map<const Vector>(constraints.bounds().data(), m) - B.forward(W);
    double worst = 0;
    std::vector<std::ptrdiff_t> J;
    for (std::ptrdiff_t k = 0; k < m; ++k) {
      unsigned char& met = is_met[static_cast<std::size_t>(k)];
      if (constraints.is_equality(k) || missing[k] > 0) met = 1;
      if (!met) continue;
      J.push_back(k);
      worst = std::max(worst, std::fabs(missing[k]));
    }
    if (J.empty() || worst < least || !(worst < most)) break;
    const auto size = static_cast<std::ptrdiff_t>(J.size());
    PaddedMatrix factor(size, size);
    normal_matrix_identity(constraints, J, factor.view(), B.pool());
    // Constraints may depend on each other: a little more on the diagonal, which the repetition makes up for.
    for (std::ptrdiff_t i = 0; i < size; ++i) factor.view().eigen()(i, i) *= 1 + 1e-13;
    if (cholesky(factor.view(), 0, B.pool()) != size) break;
    Vector right(size), weights = Vector::Zero(m);
    for (std::ptrdiff_t i = 0; i < size; ++i) right[i] = missing[J[static_cast<std::size_t>(i)]];
    cholesky_solve(factor.view(), size, right.data());
    for (std::ptrdiff_t i = 0; i < size; ++i) weights[J[static_cast<std::size_t>(i)]] = right[i];
    W += B.adjoint(weights);
  }
  return W;
}

}  // namespace attmirror
