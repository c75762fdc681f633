// A primal-dual interior point method for every norm: Mehrotra's predictor and corrector.
//
//   B W - s = c,   s_k lambda_k = tau (inequalities),   W tied to U = B^T lambda by the norm (norm_barrier.hpp)
//
// The norm's linearization dW = D dU + w0 leaves one system for the multipliers,
//
//   (B D B^T + diag(s/lambda)) dlambda = c + s - B W - B w0 + (tau - s lambda)/lambda
//
// of the number of constraints, whatever the size of W. Constraints that repeat each other, or more active ones than
// unknowns, which stop an active-set method, are harmless here: the diagonal term separates them.
//
// Where W is 1e7 and more in units of the data (limits.precise) the system is formed and solved in double-double
// numbers, and dU = B^T dlambda before dlambda is rounded. W and lambda themselves stay doubles: their rounding, 1e-16
// ||W||, is what the gap can fall to.
#include "margin/predictor_corrector.hpp"

#include "base/numbers.hpp"
#include "margin/cholesky.hpp"
#include "margin/feasibility_polish.hpp"
#include "margin/norm_barrier.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace attmirror {

namespace {

class PredictorCorrector {
 public:
  PredictorCorrector(const ScaledConstraints& constraints, const Norm& norm, const SolverLimits& limits)
      : limits_(limits),
        norm_(norm),
        dual_norm_(norm.dual()),
        operator_(constraints, limits.pool,
                  limits.precise ? MarginOperator::Sums::precise : MarginOperator::Sums::in_doubles),
        precise_(constraints),
        barrier_(make_norm_barrier(norm)),
        m_(constraints.count()),
        c_(Eigen::Map<const Vector>(constraints.bounds().data(), m_)),
        row_sizes_(m_),
        is_equality_(m_),
        normal_(limits.precise ? 0 : m_, limits.precise ? 0 : m_) {
    for (std::ptrdiff_t k = 0; k < m_; ++k) {
      is_equality_[k] = constraints.is_equality(k);
      if (is_equality_[k] && c_[k] != 0) scalable_ = false;
      row_sizes_[k] = constraints.left().eigen().row(k).norm() *
                      constraints.right().eigen().row(constraints.group_of(k)).norm();
    }
    equalities_ = constraints.equalities();
  }

  SolverAnswer solve(const Matrix& W, const Vector& lambda) {
    SolverAnswer answer;
    best_W_ = W;
    best_lambda_ = lambda;
    if (limits_.precise && m_ > PreciseConstraints::most_rows) return answer_with(std::move(answer));
    if (!begin(W, lambda)) return answer_with(std::move(answer));
    int without_progress = 0;
    for (;;) {
      const double before = best_gap_;
      judge();
      without_progress = best_gap_ < 0.9 * before || !std::isfinite(best_gap_) ? 0 : without_progress + 1;
      answer.outcome = Outcome::solved;
      if (best_gap_ <= 0.1 * limits_.tolerance) break;
      answer.outcome = Outcome::infeasible;
      if (dual_value_ > limits_.max_norm) {
        best_lambda_ = lambda_;
        break;
      }
      answer.outcome = Outcome::out_of_iterations;
      if (answer.iterations >= limits_.iterations_left) break;
      answer.outcome = Outcome::out_of_time;
      if (limits_.out_of_time()) break;
      answer.outcome = Outcome::stalled;
      if (without_progress >= 12) break;
      ++answer.iterations;
      if (!step()) break;
    }
    if (answer.outcome != Outcome::infeasible && best_gap_ <= limits_.tolerance)
      answer.outcome = Outcome::solved;
    return answer_with(std::move(answer));
  }

 private:
  SolverAnswer answer_with(SolverAnswer answer) const {
    answer.W = PaddedMatrix(best_W_);
    answer.lambda.assign(best_lambda_.begin(), best_lambda_.end());
    return answer;
  }

  // False where W or B^T lambda is 0 or not finite: there is no direction to begin with.
  bool begin(const Matrix& W, const Vector& lambda) {
    lambda_ = lambda;
    // Off the boundary: no multiplier starts far below the others.
    double sum = 0;
    for (std::ptrdiff_t k = 0; k < m_; ++k)
      if (!is_equality_[k]) sum += std::max(lambda_[k], 0.0);
    const double inequalities = static_cast<double>(m_ - equalities_);
    const double floor = sum > 0 ? 0.1 * sum / inequalities : 1;
    for (std::ptrdiff_t k = 0; k < m_; ++k)
      if (!is_equality_[k]) lambda_[k] = std::max(lambda_[k], floor);
    U_ = operator_.adjoint(lambda_);
    if (!(W.norm() > 0 && U_.norm() > 0 && W.allFinite() && U_.allFinite())) return false;
    lambda_ *= barrier_->begin(W, U_);
    U_ = operator_.adjoint(lambda_);
    margins_ = operator_.forward(barrier_->weights());
    s_ = (margins_ - c_).cwiseMax(0.1 * c_.cwiseAbs().maxCoeff());
    for (std::ptrdiff_t k = 0; k < m_; ++k)
      if (is_equality_[k]) s_[k] = 0;
    return true;
  }

  double products() const { return s_.dot(lambda_) + barrier_->products(); }
  double pairs() const { return static_cast<double>(m_ - equalities_ + barrier_->pairs()); }

  // The relative gap that a certificate would find here, up to rounding. W may be divided by its worst margin unless
  // there are equalities with a bound other than 0. What it then violates counts too, so that 2e-13 of it, well
  // within what a certificate allows, is about half of the gap that ends the loop.
  void judge() {
    const bool polish = equalities_ > 0;
    const Matrix W = polish ? polish_feasibility(barrier_->weights(), operator_) : barrier_->weights();
    const Vector margins = polish ? operator_.forward(W) : margins_;
    const double size = norm(W, norm_), dual_size = norm(U_, dual_norm_), length = W.norm();
    double worst = infinity, violation = 0;
    for (std::ptrdiff_t k = 0; k < m_; ++k) {
      const double scale = std::max(std::fabs(c_[k]), row_sizes_[k] * length);
      if (is_equality_[k])
        violation = std::max(violation, std::fabs(margins[k] - c_[k]) / scale);
      else if (c_[k] == 0)
        violation = std::max(violation, -margins[k] / scale);
      else
        worst = std::min(worst, margins[k] / c_[k]);
    }
    if (!scalable_ && worst < 1) violation = std::max(violation, 1 - worst);
    if (!scalable_ || std::isinf(worst)) worst = 1;
    dual_value_ = dual_size > 0 ? c_.dot(lambda_) / dual_size : 0;
    const double primal = worst > 0 ? size / worst : infinity;
    gap_ = std::isfinite(primal) && primal > 0
               ? std::fabs(primal - dual_value_) / primal + 0.05 * limits_.tolerance * violation / 2e-13
               : infinity;
    if (gap_ < best_gap_) {
      best_gap_ = gap_;
      best_W_ = W;
      best_lambda_ = lambda_;
    }
  }

  // The diagonal term of the system. An equality has no slack; it is given the term of an inequality with the
  // products' mean and the largest multiplier, without which equalities that determine each other near the end would
  // make the system singular. It delays them a little, and nothing else: the equations are linear, and the next step
  // sees what is left.
  double separation(std::ptrdiff_t k) const { return is_equality_[k] ? equality_term_ : s_[k] / lambda_[k]; }

  bool factorize() {
    equality_term_ = pairs() > 0 ? products() / pairs() / lambda_.cwiseAbs2().maxCoeff() : 0;
    if (limits_.precise) return factorize_precisely();
    for (double regularization = 1e-16; regularization < 1e-7; regularization *= 100) {
      barrier_->normal_matrix(operator_, normal_.view());
      for (std::ptrdiff_t k = 0; k < m_; ++k) {
        double& diagonal = normal_.view().data[k * normal_.view().stride + k];
        diagonal += separation(k);
        diagonal *= 1 + regularization;
        if (!std::isfinite(diagonal)) return false;
      }
      if (cholesky(normal_.view(), 1e-16, limits_.pool) == m_) return true;
    }
    return false;
  }

  bool factorize_precisely() {
    PreciseMatrix M = barrier_->precise_normal_matrix(precise_);
    for (std::ptrdiff_t k = 0; k < m_; ++k) {
      M(k, k) += separation(k);
      if (!isfinite(M(k, k))) return false;
    }
    factor_.emplace(M);
    return factor_->rank() == m_;
  }

  // Solves the system by conjugate gradients on the operators themselves, the factor being a preconditioner as good as
  // rounding lets it be: mostly nothing is left to do.
  Vector solve_system(const Vector& rhs) {
    const auto precondition = [&](Vector x) {
      cholesky_solve(normal_.view(), m_, x.data());
      return x;
    };
    const auto multiply = [&](const Vector& x) {
      Vector result = operator_.forward(barrier_->apply(operator_.adjoint(x)));
      for (std::ptrdiff_t k = 0; k < m_; ++k) result[k] += separation(k) * x[k];
      return result;
    };
    Vector x = precondition(rhs);
    Vector residual = rhs - multiply(x);
    Vector best = x;
    double least = residual.norm(), rho = 0;
    Vector direction = Vector::Zero(m_);
    for (int round = 0; round < 5 && residual.norm() > 1e-14 * rhs.norm(); ++round) {
      const Vector z = precondition(residual);
      const double next_rho = residual.dot(z);
      if (!(next_rho > 0)) break;
      direction = z + (round == 0 ? 0 : next_rho / rho) * direction;
      rho = next_rho;
      const Vector image = multiply(direction);
      const double curvature = direction.dot(image);
      if (!(curvature > 0)) break;
      x += (rho / curvature) * direction;
      residual = rhs - multiply(x);
      if (!(residual.norm() < 0.5 * least)) {
        if (residual.norm() < least) best = x;
        break;
      }
      least = residual.norm();
      best = x;
    }
    return best;
  }

  // One direction for all unknowns.
  void direct(double target, NormBarrier::Order order) {
    Vector r = Vector::Zero(m_);  // (tau - s lambda - neglected)/lambda
    for (std::ptrdiff_t k = 0; k < m_; ++k)
      if (!is_equality_[k]) {
        const double neglected = order == NormBarrier::Order::corrector ? ds_[k] * dlambda_[k] : 0;
        r[k] = (target - neglected) / lambda_[k] - s_[k];
      }
    const Vector missing = c_ + s_ - margins_;
    const Matrix offset = barrier_->offset(target, order);
    const Vector right = missing + r - operator_.forward(offset);
    const Matrix& dW = barrier_->direct(limits_.precise ? direct_precisely(right) : direct_plainly(right));
    ds_ = operator_.forward(dW) - missing;
    for (std::ptrdiff_t k = 0; k < m_; ++k)
      if (is_equality_[k]) ds_[k] = 0;
  }

  // dlambda for the right-hand side of the system, and dU.
  Matrix direct_plainly(const Vector& right) {
    dlambda_ = solve_system(right);
    return operator_.adjoint(dlambda_);
  }
  Matrix direct_precisely(const Vector& right) {
    const PreciseVector solution = factor_->solve(right.cast<DoubleDouble>());
    dlambda_ = rounded(solution);
    return rounded(precise_.adjoint(solution));
  }

  StepLength longest_step() const {
    StepLength step = barrier_->longest_step();
    for (std::ptrdiff_t k = 0; k < m_; ++k) {
      if (is_equality_[k]) continue;
      if (ds_[k] < 0) step.primal = std::min(step.primal, -s_[k] / ds_[k]);
      if (dlambda_[k] < 0) step.dual = std::min(step.dual, -lambda_[k] / dlambda_[k]);
    }
    return step;
  }

  double products_after(StepLength step) const {
    return (s_ + step.primal * ds_).dot(lambda_ + step.dual * dlambda_) + barrier_->products_after(step);
  }

  static StepLength shortened(StepLength step) {
    const double fraction = 0.9 + 0.09 * std::min({step.primal, step.dual, 1.0});
    return {std::min(1.0, fraction * step.primal), std::min(1.0, fraction * step.dual)};
  }

  // How far the linear equations and the norm's curve are from being met, relative.
  double residual() const { return (c_ + s_ - margins_).norm() / c_.norm() + barrier_->residual(); }

  // False where no step can be made.
  bool step() {
    rescale();
    if (!barrier_->linearize() || !factorize()) return false;
    const double mu = pairs() > 0 ? products() / pairs() : 0;
    direct(0, NormBarrier::Order::predictor);
    if (pairs() > 0) {
      StepLength all = longest_step();
      all = {std::min(all.primal, 1.0), std::min(all.dual, 1.0)};
      if (barrier_->is_curve()) all.primal = all.dual = std::min(all.primal, all.dual);
      const double shorter = std::min(all.primal, all.dual);
      const double left = std::clamp(products_after(all) / products(), 0.0, 1.0);
      const double centering = std::pow(left, std::max(1.0, 3 * shorter * shorter));
      // A curve's equations are never met exactly: products that run ahead of them only bring rounding to the fore.
      const double behind =
          barrier_->is_curve() ? 0.01 * residual() * std::fabs(c_.dot(lambda_)) / pairs() : 0;
      direct(std::max(std::min(centering, 0.9) * mu, std::min(behind, mu)), NormBarrier::Order::corrector);
    }
    StepLength step = shortened(longest_step());
    if (pairs() > 0 && std::min(step.primal, step.dual) < 0.1) {
      // A pair that is far smaller than the others is in the way: first all go to the same product.
      direct(mu, NormBarrier::Order::predictor);
      step = shortened(longest_step());
    }
    if (barrier_->is_curve()) return follow(std::min(step.primal, step.dual));
    if (!(std::max(step.primal, step.dual) > 1e-10)) return false;
    return advance(step);
  }

  bool advance(StepLength step) {
    s_ += step.primal * ds_;
    lambda_ += step.dual * dlambda_;
    U_ = operator_.adjoint(lambda_);
    barrier_->advance(step, U_);
    margins_ = operator_.forward(barrier_->weights());
    return lambda_.allFinite() && barrier_->weights().allFinite();
  }

  void rescale() {
    // What the gap would be by the products alone; the softening of the curve, which this sets, has a share in the gap.
    const double by_products = residual() + s_.dot(lambda_) / std::fabs(c_.dot(lambda_));
    const double factor = barrier_->rescale(std::min({gap_, by_products, 1.0}));
    if (factor == 1) return;
    lambda_ *= factor;
    U_ = operator_.adjoint(lambda_);
    margins_ = operator_.forward(barrier_->weights());
  }

  // Tangent steps along a curve: shorter ones where the equations would be violated more than before, beyond what the
  // products of the pairs allow.
  bool follow(double length) {
    const auto residual = [&] { return (c_ + s_ - margins_).norm() / c_.norm() + barrier_->residual(); };
    const double before = residual();
    const Vector s = s_, lambda = lambda_;
    const Matrix U = U_;
    for (int attempt = 0; attempt < 30; ++attempt, length *= 0.5) {
      const bool finite = advance({length, length});
      const double after = residual(), slack = s_.dot(lambda_) / std::fabs(c_.dot(lambda_));
      if (finite && after <= std::max((1 - 0.01 * length) * before, 0.3 * slack)) return true;
      if (finite && after < 1e-12) return true;
      barrier_->back();
      s_ = s;
      lambda_ = lambda;
      U_ = U;
      margins_ = operator_.forward(barrier_->weights());
    }
    return false;
  }

  SolverLimits limits_;
  Norm norm_, dual_norm_;
  MarginOperator operator_;
  PreciseConstraints precise_;
  std::optional<PreciseFactor> factor_;  // of the system, in double-double numbers
  std::unique_ptr<NormBarrier> barrier_;
  std::ptrdiff_t m_, equalities_ = 0;
  Vector c_, row_sizes_;  // row_sizes: |a_k|_2 |z_g|_2
  bool scalable_ = true;
  double equality_term_ = 0;
  Eigen::Array<bool, Eigen::Dynamic, 1> is_equality_;
  PaddedMatrix normal_;
  Vector lambda_, s_, dlambda_, ds_, margins_;
  Matrix U_;
  double gap_ = infinity, best_gap_ = infinity, dual_value_ = 0;
  Matrix best_W_;
  Vector best_lambda_;
};

}  // namespace

SolverAnswer predictor_corrector(const ScaledConstraints& constraints, const Norm& norm,
                                 const SolverLimits& limits, const Matrix& W, const Vector& lambda) {
  return PredictorCorrector(constraints, norm, limits).solve(W, lambda);
}

}  // namespace attmirror
