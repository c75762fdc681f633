// What the tests of the solvers share: limits, and judging an answer by the verifier, which knows nothing of them.
#pragma once

#include "margin/solver.hpp"
#include <attmirror/margin/certificate.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
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

// An answer in the scale of the problem, W divided by its worst margin, as the caller of a solver does.
struct Solved {
  SolverAnswer answer;
  Matrix W;
  Vector lambda;
  Certificate certificate;
};

inline Solved in_units_of(const MarginConstraints& problem, const Norm& norm, const ScaledConstraints& scaled,
                          const SolverAnswer& answer) {
  Solved result{
      answer, scaled.unscale_weights(answer.W.view()), scaled.unscale_multipliers(answer.lambda), {}};
  const Certificate raw = certify(problem, norm, result.W, result.lambda);
  bool scalable = true;
  for (std::ptrdiff_t k = 0; k < problem.count(); ++k)
    scalable = scalable && !(problem.is_equality(k) && problem.bounds()[static_cast<std::size_t>(k)] != 0);
  if (scalable && raw.worst_margin > 0 && std::isfinite(raw.worst_margin)) result.W /= raw.worst_margin;
  result.certificate = certify(problem, norm, result.W, result.lambda);
  return result;
}

}  // namespace attmirror::test
