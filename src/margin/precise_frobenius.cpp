// The smallest W in the Frobenius norm (frobenius.cpp) where it is 1e7 and more in units of the data: the active-set
// method in double-double numbers, in which B B^T keeps its digits up to norms of 1e14 or so.
//
// Such numbers cost twenty times as much, so the method works on a set of constraints that grows: those in force
// under a guess, then those that the solution of these violates, and again. The norm grows with each round, so no set
// comes twice. W is rounded last; what that makes of the margins is the caller's business.
#include "base/numbers.hpp"
#include "margin/active_set_qp.hpp"
#include "margin/precise_constraints.hpp"
#include "margin/solver.hpp"

#include <algorithm>
#include <vector>

namespace attmirror {

namespace {

class PreciseFrobenius {
 public:
  PreciseFrobenius(const ScaledConstraints& constraints, const SolverLimits& limits)
      : constraints_(constraints),
        limits_(limits),
        B_(constraints),
        identity_(Matrix::Constant(constraints.rows(), constraints.cols(), 1)),
        in_set_(at(constraints.count())),
        lambda_(PreciseVector::Zero(constraints.count())),
        W_(PreciseMatrix::Zero(constraints.rows(), constraints.cols())) {}

  SolverAnswer solve(const SolverStart& start) {
    begin(start);
    for (;;) {
      if (limits_.out_of_time()) return end(Outcome::out_of_time);
      if (answer_.iterations >= limits_.iterations_left) return end(Outcome::out_of_iterations);
      if (std::ssize(set_) > PreciseConstraints::most_rows) return end(Outcome::stalled);
      ++answer_.iterations;
      switch (solve_set()) {
        case QpOutcome::solved:
          break;
        case QpOutcome::unbounded:
          W_.setZero();
          return end(bound() > limits_.max_norm ? Outcome::infeasible : Outcome::stalled);
        case QpOutcome::stalled:
          return end(Outcome::stalled);
      }
      if (!add_violated()) return end(Outcome::solved);
    }
  }

 private:
  // Those in force under the guess; without one, those that demand most.
  void begin(const SolverStart& start) {
    const auto c = constraints_.bounds();
    const double largest = *std::max_element(c.begin(), c.end());
    for (std::ptrdiff_t k = 0; k < constraints_.count(); ++k) {
      const double guess = start.has_multipliers() ? start.lambda[at(k)] : 0;
      if (constraints_.is_equality(k) || (guess > 0 && std::isfinite(guess))) {
        in_set_[at(k)] = 1;
        lambda_[k] = std::isfinite(guess) ? guess : 0;
      }
    }
    const auto chosen = std::count(in_set_.begin(), in_set_.end(), 1);
    if (chosen == 0 || chosen > PreciseConstraints::most_rows) {
      lambda_.setZero();
      std::ptrdiff_t taken = 0;
      for (std::ptrdiff_t k = 0; k < constraints_.count(); ++k) {
        const bool demands = c[at(k)] == largest && taken < most_at_once;
        in_set_[at(k)] = constraints_.is_equality(k) || demands;
        taken += demands ? 1 : 0;
      }
    }
    list();
  }

  void list() {
    set_.clear();
    for (std::ptrdiff_t k = 0; k < constraints_.count(); ++k)
      if (in_set_[at(k)]) set_.push_back(k);
  }

  // lambda_ and W_ for the constraints of the set.
  QpOutcome solve_set() {
    const std::ptrdiff_t size = std::ssize(set_);
    const PreciseMatrix M = B_.normal_matrix(set_, PaddedMatrix(identity_).view());
    std::vector<DoubleDouble> x;
    std::vector<double> b;
    std::vector<unsigned char> is_free;
    for (const std::ptrdiff_t k : set_) {
      x.push_back(lambda_[k]);
      b.push_back(constraints_.bounds()[at(k)]);
      is_free.push_back(constraints_.is_equality(k) ? 1 : 0);
    }
    const QpProblem<DoubleDouble> problem{M.data(), size, b, is_free, x};
    ActiveSetQp<DoubleDouble> qp(size);
    qp.heed(limits_.stop);
    if (!qp.begin(problem)) return QpOutcome::stalled;
    const QpOutcome outcome = qp.solve(problem);
    lambda_.setZero();
    for (std::ptrdiff_t i = 0; i < size; ++i) lambda_[set_[at(i)]] = x[at(i)];
    if (outcome == QpOutcome::unbounded) return outcome;
    // W by residuals from the constraints themselves, so that the squares in M cost no digits.
    W_ = B_.adjoint(lambda_);
    for (int round = 0; round < 2; ++round) {
      const PreciseVector margins = B_.forward(W_);
      std::vector<DoubleDouble> step;
      for (const std::ptrdiff_t i : qp.passive())
        step.push_back(DoubleDouble(b[at(i)]) - margins[set_[at(i)]]);
      qp.solve_passive(step.data());
      PreciseVector change = PreciseVector::Zero(lambda_.size());
      for (std::size_t i = 0; i < step.size(); ++i) change[set_[at(qp.passive()[i])]] = step[i];
      W_ += B_.adjoint(change);
      for (const std::ptrdiff_t k : set_) {
        lambda_[k] += change[k];
        if (!constraints_.is_equality(k)) lambda_[k] = std::max(lambda_[k], DoubleDouble(0));
      }
    }
    return outcome;
  }

  // The constraints that W violates most join the set. False: there are none.
  bool add_violated() {
    const PreciseVector margins = B_.forward(W_);
    const double size = rounded(W_).norm();
    std::vector<std::pair<double, std::ptrdiff_t>> violated;
    for (std::ptrdiff_t k = 0; k < constraints_.count(); ++k) {
      if (in_set_[at(k)]) continue;
      const double bound = constraints_.bounds()[at(k)];
      const auto missing = static_cast<double>(DoubleDouble(bound) - margins[k]);
      if (missing > std::max(1e-15 * bound, 1e-24 * size)) violated.emplace_back(-missing, k);
    }
    std::sort(violated.begin(), violated.end());
    if (std::ssize(violated) > most_at_once) violated.resize(at(most_at_once));
    for (const auto& [missing, k] : violated) in_set_[at(k)] = 1;
    list();
    return !violated.empty();
  }

  // c^T lambda / |B^T lambda| of lambda as it will be rounded.
  double bound() const {
    PreciseVector shown(lambda_.size());
    double gain = 0;
    for (std::ptrdiff_t k = 0; k < lambda_.size(); ++k) {
      shown[k] = lambda_[k].high();
      gain += constraints_.bounds()[at(k)] * lambda_[k].high();
    }
    const double length = rounded(B_.adjoint(shown)).norm();
    return length > 0 ? gain / length : gain > 0 ? infinity : 0;
  }

  SolverAnswer end(Outcome outcome) {
    answer_.outcome = outcome;
    answer_.W = PaddedMatrix(rounded(W_));
    for (std::ptrdiff_t k = 0; k < lambda_.size(); ++k) answer_.lambda.push_back(lambda_[k].high());
    return std::move(answer_);
  }

  static constexpr std::ptrdiff_t most_at_once = 30;

  const ScaledConstraints& constraints_;
  const SolverLimits& limits_;
  PreciseConstraints B_;
  Matrix identity_;
  std::vector<unsigned char> in_set_;
  std::vector<std::ptrdiff_t> set_;
  PreciseVector lambda_;
  PreciseMatrix W_;
  SolverAnswer answer_;
};

}  // namespace

SolverAnswer solve_frobenius_precisely(const ScaledConstraints& constraints, const SolverLimits& limits,
                                       const SolverStart& start) {
  return PreciseFrobenius(constraints, limits).solve(start);
}

}  // namespace attmirror
