// What the tests of the solvers share: limits, and judging an answer by the verifier, which knows nothing of them.
#pragma once

#include "margin/solver.hpp"
#include <attmirror/margin/certificate.hpp>

#include <algorithm>
#include <chrono>
#include <limits>

namespace attmirror::test {

inline SolverLimits generous_limits(double tolerance, ThreadPool* pool = nullptr) {
  return {.tolerance = tolerance,
          .max_norm = 1e10,
          .iterations_left = 1000,
          .deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5),
          .pool = pool};
}

// The certificate of W and lambda in the units of the original problem, W scaled so that its worst margin is 1.
inline Certificate judge(const MarginConstraints& constraints, const ScaledConstraints& scaled,
                         const Norm& norm, const SolverAnswer& answer) {
  const Matrix W = scaled.unscale_weights(answer.W.view());
  const Vector lambda = scaled.unscale_multipliers(answer.lambda);
  const double worst = certify(constraints, norm, W, lambda).worst_margin;
  return certify(constraints, norm, worst > 0 && worst < 1 ? Matrix(W / worst) : W, lambda);
}

}  // namespace attmirror::test
