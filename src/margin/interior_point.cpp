// Where the interior point method starts, and in which coordinates.
//
// Norms of singular values do not change when W is restricted to the span of the a's on the left and of the z's on the
// right, and can only fall: the problem is first written in orthonormal bases of the two spans. With fewer queries than
// dimensions this makes it smaller, and W of full rank.
#include "base/numbers.hpp"
#include "margin/norm_barrier.hpp"
#include "margin/predictor_corrector.hpp"
#include "margin/solver.hpp"
#include "mirror/spectral.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace attmirror {

namespace {

// Columns that span the rows of `vectors`, orthonormal.
Matrix span_of_rows(ConstMatrixView vectors) {
  Svd svd(vectors.rows, vectors.cols);
  svd.compute(vectors);
  return svd.right().eigen().topRows(svd.rank()).transpose();
}

// Starts from which Newton's method finds a smooth norm's curve: p = 2, and for sharp bends, where p - 1 is large or
// small, a rough answer for infinity or 1. Where that fails log(p - 1) goes from 0 to its place in strides, halved
// where one was too long.
class SmoothNorm {
 public:
  SmoothNorm(const ScaledConstraints& constraints, const Norm& norm, const SolverLimits& limits)
      : constraints_(constraints), norm_(norm), limits_(limits) {}

  SolverAnswer solve(const Matrix& W, const Vector& lambda) {
    const double place = std::log(norm_.p() - 1);
    SolverAnswer answer;
    if (std::fabs(place) > std::log(20.0)) {
      answer = try_norm(place < 0 ? 1 : infinity, std::max(limits_.tolerance, 0.01), W, lambda);
      if (answer.outcome == Outcome::solved)
        answer = try_norm(norm_.p(), limits_.tolerance, answer.W.view().eigen(), as_vector(answer.lambda));
    } else {
      answer = try_norm(norm_.p(), limits_.tolerance, W, lambda);
    }
    if (answer.outcome == Outcome::stalled) answer = stride(place, std::move(answer), W, lambda);
    answer.iterations = iterations_;
    return answer;
  }

 private:
  SolverAnswer stride(double place, SolverAnswer best, Matrix W, Vector lambda) {
    double here = 0, length = 0.5 * std::fabs(place);
    while (length > 0.05) {
      const bool last = std::fabs(place - here) <= 1.001 * length;
      const double next = last ? place : here + std::copysign(length, place);
      SolverAnswer answer = try_norm(last ? norm_.p() : 1 + std::exp(next),
                                     last ? limits_.tolerance : std::max(limits_.tolerance, 0.1), W, lambda);
      if (answer.outcome == Outcome::stalled) {
        length *= 0.5;
      } else if (last || answer.outcome != Outcome::solved) {
        return answer;
      } else {
        here = next;
        W = answer.W.view().eigen();
        lambda = as_vector(answer.lambda);
      }
    }
    return best;
  }
  SolverAnswer try_norm(double p, double tolerance, const Matrix& W, const Vector& lambda) {
    SolverLimits limits = limits_;
    limits.tolerance = tolerance;
    limits.iterations_left -= iterations_;
    SolverAnswer answer = predictor_corrector(constraints_, norm_.with_p(p), limits, W, lambda);
    iterations_ += answer.iterations;
    return answer;
  }
  static Vector as_vector(const AlignedVector& values) {
    return Eigen::Map<const Vector>(values.data(), static_cast<std::ptrdiff_t>(values.size()));
  }

  const ScaledConstraints& constraints_;
  Norm norm_;
  SolverLimits limits_;
  int iterations_ = 0;
};

SolverAnswer solve_in_full(const ScaledConstraints& constraints, const Norm& norm, const SolverLimits& limits,
                           const Matrix& W, const Vector& lambda) {
  if (norm.p() == 1 || std::isinf(norm.p())) return predictor_corrector(constraints, norm, limits, W, lambda);
  return SmoothNorm(constraints, norm, limits).solve(W, lambda);
}

// A norm of singular values does not see which bases its matrices are written in: the solution lies in those that the
// constraints span.
SolverAnswer solve_in_bases(const ScaledConstraints& constraints, const Norm& norm,
                            const SolverLimits& limits, const Matrix& W, const Vector& lambda) {
  const Matrix P = span_of_rows(constraints.left()), Q = span_of_rows(constraints.right());
  if (P.cols() == P.rows() && Q.cols() == Q.rows())
    return solve_in_full(constraints, norm, limits, W, lambda);
  SolverAnswer answer =
      solve_in_full(constraints.in_bases(P, Q), norm, limits, P.transpose() * W * Q, lambda);
  answer.W = PaddedMatrix(Matrix(P * answer.W.view().eigen() * Q.transpose()));
  return answer;
}

}  // namespace

SolverAnswer solve_interior_point(const ScaledConstraints& constraints, const Norm& norm,
                                  const SolverLimits& limits, const SolverStart& start) {
  const std::ptrdiff_t m = constraints.count();
  const Eigen::Map<const Vector> c(constraints.bounds().data(), m);
  if (m == 0 || c.cwiseAbs().maxCoeff() == 0) {
    SolverAnswer zero;
    zero.outcome = Outcome::solved;
    zero.W = PaddedMatrix(constraints.rows(), constraints.cols());
    zero.lambda.assign(static_cast<std::size_t>(m), 0.0);
    return zero;
  }
  const Vector lambda =
      start.has_multipliers() ? Vector(Eigen::Map<const Vector>(start.lambda.data(), m)) : c;
  Matrix W;
  if (start.has_weights())
    W = (constraints.equalities() > 0 ? 1 : 1.1) * start.W.view().eigen();
  else
    W = MarginOperator(constraints, limits.pool).adjoint(lambda);

  switch (norm.kind()) {
    case Norm::Kind::entrywise:
      return solve_in_full(constraints, norm, limits, W, lambda);
    case Norm::Kind::schatten:
      break;
  }
  return solve_in_bases(constraints, norm, limits, W, lambda);
}

}  // namespace attmirror
