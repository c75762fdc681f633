// Schatten norms, 1 < p < infinity, where W is 1e7 and more in units of the data.
//
// The interior point method follows the curve u = w^{p-1} by steps of W's singular values, whose second-order terms,
// |W| times the square of a step, drown margins of 1. Here every W satisfies the constraints: Newton steps of
//
//   min (1/p) ||W||_p^p  subject to  B W >= c or = c
//
// with the second derivative's inverse D at W, in the basis of its singular vectors, are quadratic problems whose
// solution is W' = offset + D B^T x with offset = W - D psi'(W), feasible whatever D was; x, from double-double
// numbers, is lambda. W goes towards W' as far as its norm falls (as in lp_newton.cpp for norms of entries).
#include "base/numbers.hpp"
#include "margin/active_set_qp.hpp"
#include "margin/norm_barrier.hpp"
#include "margin/precise_constraints.hpp"
#include "margin/solver.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace attmirror {

namespace {

// Slopes differ by at most this from that of the largest singular value, which changes the speed only.
constexpr double steepest_slope = 1e10;
constexpr int schatten_patience = 15;

class PreciseSchatten {
 public:
  PreciseSchatten(const ScaledConstraints& constraints, const Norm& norm, const SolverLimits& limits)
      : constraints_(constraints), norm_(norm), limits_(limits), B_(constraints) {}

  SolverAnswer solve(const SolverStart& start) {
    W_ = start.W.view().eigen();
    lambda_ = Eigen::Map<const Vector>(start.lambda.data(), constraints_.count());
    best_lambda_ = lambda_;
    double best_gap = judge();
    for (int without_progress = 0; without_progress < schatten_patience; ++without_progress) {
      if (best_gap <= 0.1 * limits_.tolerance) return end(Outcome::solved);
      if (dual_ > limits_.max_norm) return end(Outcome::infeasible);
      if (limits_.out_of_time()) return end(Outcome::out_of_time);
      if (answer_.iterations >= limits_.iterations_left) return end(Outcome::out_of_iterations);
      ++answer_.iterations;
      if (!step()) break;
      const double gap = judge();
      if (gap < 0.9 * best_gap) without_progress = -1;
      best_gap = std::min(best_gap, gap);
    }
    return end(best_gap <= limits_.tolerance ? Outcome::solved : Outcome::stalled);
  }

 private:
  // The relative gap between W and the best bound so far.
  double judge() {
    const double size = norm(rounded(B_.adjoint(lambda_.cast<DoubleDouble>())), norm_.dual());
    const double gain = Eigen::Map<const Vector>(constraints_.bounds().data(), lambda_.size()).dot(lambda_);
    const double bound = size > 0 ? gain / size : 0;
    if (bound > dual_) {
      dual_ = bound;
      best_lambda_ = lambda_;
    }
    const double length = norm(W_, norm_);
    return (length - dual_) / length;
  }

  // D X = P (alpha o X~ + beta o X~^T) Q^T with X~ = P^T X Q, for W in units of its largest singular value.
  struct Curvature {
    FullSvd svd;
    Matrix alpha, beta;

    Matrix apply(const Matrix& X) const {
      const std::ptrdiff_t both = beta.rows();
      const Matrix turned = svd.P.transpose() * X * svd.Q;
      Matrix result = alpha.cwiseProduct(turned);
      result.topLeftCorner(both, both) += beta.cwiseProduct(turned.topLeftCorner(both, both).transpose());
      return svd.P * result * svd.Q.transpose();
    }
  };

  Curvature curvature(const Matrix& w) const {
    const double p = norm_.p();
    Curvature result{full_svd(w), Matrix(w.rows(), w.cols()), {}};
    const Vector& s = result.svd.values;
    const std::ptrdiff_t both = s.size();
    const auto image = [&](double x) { return std::pow(x, p - 1); };
    const auto inverse = [&](double slope) {
      return 1 / std::clamp(slope, (p - 1) / steepest_slope, (p - 1) * steepest_slope);
    };
    const auto difference = [&](double x, double y) {
      if (std::fabs(x - y) <= 1e-6 * std::max(x, y)) return (p - 1) * std::pow(0.5 * (x + y), p - 2);
      return (image(x) - image(y)) / (x - y);
    };
    const auto sum = [&](double x, double y) {
      return x + y > 0 ? (image(x) + image(y)) / (x + y) : p > 2 ? 0 : infinity;
    };
    result.beta = Matrix::Zero(both, both);
    for (std::ptrdiff_t i = 0; i < w.rows(); ++i)
      for (std::ptrdiff_t j = 0; j < w.cols(); ++j) {
        if (i >= both || j >= both) {
          result.alpha(i, j) = inverse(sum(s[std::min(i, j)], 0));
          continue;
        }
        const double with = inverse(difference(s[i], s[j])), against = inverse(sum(s[i], s[j]));
        result.alpha(i, j) = 0.5 * (with + against);
        result.beta(i, j) = 0.5 * (with - against);
      }
    return result;
  }

  // False where no step is possible.
  bool step() {
    const double unit = norm(W_, Norm::spectral());
    if (!(unit > 0) || !std::isfinite(unit)) return false;
    const Matrix w = W_ / unit;
    const Curvature D = curvature(w);
    if (!D.alpha.allFinite() || !D.beta.allFinite()) return false;
    const std::ptrdiff_t both = D.svd.values.size();
    const Matrix gradient = D.svd.P.leftCols(both) *
                            D.svd.values.array().pow(norm_.p() - 1).matrix().asDiagonal() *
                            D.svd.Q.leftCols(both).transpose();
    const Matrix offset = w - D.apply(gradient);
    const PreciseVector margins = B_.forward(offset.cast<DoubleDouble>());
    const std::ptrdiff_t count = constraints_.count();
    std::vector<double> b;
    std::vector<unsigned char> is_free;
    std::vector<DoubleDouble> x;
    for (std::ptrdiff_t k = 0; k < count; ++k) {
      b.push_back(constraints_.bounds()[at(k)] / unit - margins[k].high());
      is_free.push_back(constraints_.is_equality(k) ? 1 : 0);
      x.push_back(lambda_[k]);
    }
    const PreciseMatrix M = B_.spectral_normal_matrix(D.svd.P, D.svd.Q, D.alpha, D.beta);
    const QpProblem<DoubleDouble> problem{M.data(), count, b, is_free, x};
    ActiveSetQp<DoubleDouble> qp(count);
    qp.heed(limits_.stop);
    if (!qp.begin(problem) || qp.solve(problem) != QpOutcome::solved) return false;
    PreciseVector solution(count);
    for (std::ptrdiff_t k = 0; k < count; ++k) solution[k] = x[at(k)];
    lambda_ = rounded(solution);
    search(w, offset + D.apply(rounded(B_.adjoint(solution))) - w, unit);
    return lambda_.allFinite();
  }

  // From w along the direction: the norm is convex, so the shortest of ever shorter steps.
  void search(const Matrix& w, const Matrix& direction, double unit) {
    double best = 0, least = norm(w, norm_);
    for (double t = 1; t > 1e-6; t *= 0.6) {
      const double length = norm(Matrix(w + t * direction), norm_);
      if (length < least) {
        least = length;
        best = t;
      } else if (best > 0) {
        break;
      }
    }
    if (best > 0) W_ = unit * (w + best * direction);
  }

  SolverAnswer end(Outcome outcome) {
    answer_.outcome = outcome;
    answer_.W = PaddedMatrix(W_);
    answer_.lambda.assign(best_lambda_.begin(), best_lambda_.end());
    return std::move(answer_);
  }

  const ScaledConstraints& constraints_;
  Norm norm_;
  const SolverLimits& limits_;
  PreciseConstraints B_;
  Matrix W_;
  Vector lambda_, best_lambda_;
  double dual_ = 0;
  SolverAnswer answer_;
};

}  // namespace

SolverAnswer solve_schatten_precisely(const ScaledConstraints& constraints, const Norm& norm,
                                      const SolverLimits& limits, const SolverStart& start) {
  return PreciseSchatten(constraints, norm, limits).solve(start);
}

}  // namespace attmirror
