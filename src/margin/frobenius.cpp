// The smallest W in the Frobenius norm, a quadratic problem:
//
//   min 1/2 |W|^2  subject to  B W >= c or = c        dual: min 1/2 lambda^T M lambda - c^T lambda,  lambda >= 0 or
//                                                                                                    free
//
// with M = B B^T the matrix of all scalar products <A_k, A_l> = (a_k^T a_l)(z_g^T z_g'), and W = B^T lambda. Its size
// is the number of constraints, whatever the size of W. A few sweeps of coordinate ascent guess which constraints are
// active, NonnegativeQp finds them exactly.
//
// M holds the squares of what B holds, so its solutions lose twice the digits. They are recovered in B: with the
// factor of M_PP (P the active set) as a preconditioner only, and residuals formed from W itself,
//
//   W <- W + B_P^T M_PP^-1 (c_P - B_P W)              margins are met to rounding of W, not of lambda (as large as
//                                                     |W|^2)
//   v_P <- v_P - M_PP^-1 B_P (B^T v)                  a null vector cancels to rounding of v (corrected seminormal
//                                                     equations)
//
// Where no W satisfies the constraints the dual is unbounded along v >= 0 with B^T v = 0 and c^T v > 0: the proof.
#include "base/numbers.hpp"
#include "margin/active_set_qp.hpp"
#include "margin/kept_numbers.hpp"
#include "margin/nonnegative_qp.hpp"
#include "margin/normal_matrix.hpp"
#include "margin/solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace attmirror {

namespace {

// Sweeps are cheap beside a factorization, and each wrong guess costs one.
constexpr int sweeps = 12;

// How far, in units of the largest bound, a margin is above its bound to be left alone by the later sweeps.
constexpr double far_inside = 0.2;

// Extended precision has no vector instructions.
constexpr std::ptrdiff_t largest_extended = 1500;

class FrobeniusSolver {
 public:
  FrobeniusSolver(const ScaledConstraints& constraints, const SolverLimits& limits)
      : constraints_(constraints),
        limits_(limits),
        count_(constraints.count()),
        products_(at(count_ * padded(count_))),
        M_{products_.data(), count_, count_, padded(count_)},
        qp_(count_),
        scratch_(constraints.make_scratch()),
        step_(constraints.rows(), constraints.cols()),
        margins_(at(count_)),
        full_(at(count_)),
        part_(at(count_)) {
    answer_.W = PaddedMatrix(constraints.rows(), constraints.cols());
    answer_.lambda.assign(at(count_), 0.0);
    is_free_.resize(at(count_));
    qp_.heed(limits.stop);
    for (std::ptrdiff_t k = 0; k < count_; ++k) is_free_[at(k)] = constraints.is_equality(k) ? 1 : 0;
  }

  SolverAnswer solve(const SolverStart& start) {
    const auto c = constraints_.bounds();
    if (std::all_of(c.begin(), c.end(), [](double bound) { return bound == 0; })) {
      answer_.outcome = Outcome::solved;  // W = 0
      return std::move(answer_);
    }
    if (limits_.out_of_time()) return end(Outcome::out_of_time);
    std::vector<std::ptrdiff_t> all(at(count_));
    std::iota(all.begin(), all.end(), std::ptrdiff_t{0});
    normal_matrix_identity(constraints_, all, M_, limits_.pool);
    if (start.has_multipliers())
      answer_.lambda = start.lambda;
    else
      ascend();

    const QpResult result = qp_.solve(M_, c, is_free_, answer_.lambda, limits_.iterations_left, limits_.pool);
    answer_.iterations = result.factorizations;
    // Multipliers that grew until rounding stopped them prove as much as a null vector.
    if (result.outcome == QpOutcome::stalled && proves_infeasibility()) return end(Outcome::infeasible);
    if (result.outcome == QpOutcome::unbounded && cancel()) return end(Outcome::infeasible);
    if (result.outcome != QpOutcome::unbounded && meet_margins()) return end(Outcome::solved);
    if (limits_.out_of_time()) return end(Outcome::out_of_time);
    if (result.outcome == QpOutcome::stalled && answer_.iterations >= limits_.iterations_left)
      return end(Outcome::out_of_iterations);
    if (result.outcome == QpOutcome::solved && is_rounding_of_weights()) return end(Outcome::stalled);
    if (count_ > largest_extended) return end(Outcome::stalled);
    return end(solve_extended());
  }

 private:
  SolverAnswer end(Outcome outcome) {
    answer_.outcome = outcome;
    return std::move(answer_);
  }

  // Gauss-Seidel on M lambda = c, projected to lambda >= 0, from the lower triangle alone: what the entries right of
  // the diagonal add to a row was summed up in the sweep before, when the rows below were at hand.
  void ascend() {
    const auto& kernel = qp_kernels();
    AlignedVector &right = full_, &next = part_;
    const auto c = constraints_.bounds();
    const double largest = *std::max_element(c.begin(), c.end());
    std::vector<unsigned char> is_idle(at(count_), 0);
    std::fill(right.begin(), right.end(), 0.0);
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      // Far inside its bound after the first sweeps: it will hardly become active. A wrong guess is mended later.
      const double idle_from = sweep >= 2 ? far_inside * largest : std::numeric_limits<double>::infinity();
      kernel.sweep({M_.data, M_.stride, count_}, {c.data(), is_free_.data(), is_idle.data(), idle_from,
                                                  answer_.lambda.data(), right.data(), next.data()});
      std::swap(right, next);
    }
  }

  // part_ <- M_PP^-1 full_P, and the sum over P of part_ A_k.
  void form_step() {
    const auto passive = qp_.passive();
    for (std::size_t i = 0; i < passive.size(); ++i) part_[i] = full_[at(passive[i])];
    qp_.solve_passive(part_.data());
    std::fill(full_.begin(), full_.end(), 0.0);
    for (std::size_t i = 0; i < passive.size(); ++i) full_[at(passive[i])] = part_[i];
    constraints_.adjoint(full_, scratch_, step_.view(), limits_.pool);
  }

  // W = B^T lambda, corrected until its active margins are exact; then whether its gap is within the tolerance.
  bool meet_margins() {
    const auto c = constraints_.bounds();
    auto W = answer_.W.view().eigen();
    constraints_.adjoint(answer_.lambda, scratch_, answer_.W.view(), limits_.pool);
    double best = std::numeric_limits<double>::infinity();
    for (int round = 0;; ++round) {
      constraints_.forward(answer_.W.view(), scratch_, margins_, limits_.pool);
      const double norm = W.norm();
      double worst = 0;
      for (const std::ptrdiff_t k : qp_.passive()) {
        full_[at(k)] = c[at(k)] - margins_[at(k)] + safety(k, norm);
        worst = std::max(worst, std::fabs(full_[at(k)]));
      }
      if (!(worst < best / 2) || round == 4) break;
      best = worst;
      form_step();
      W += step_.view().eigen();
      for (std::ptrdiff_t k = 0; k < count_; ++k) {
        double& lambda = answer_.lambda[at(k)];
        lambda += full_[at(k)];
        if (!is_free_[at(k)]) lambda = std::max(lambda, 0.0);
      }
    }
    return gap() <= limits_.tolerance;
  }

  // Whether a gap is what the rounding of W to doubles leaves: the margins' error is that of |W|.
  bool is_rounding_of_weights() {
    return gap() <= 100 * std::numeric_limits<double>::epsilon() * answer_.W.view().eigen().norm();
  }

  // A bound far below the others drowns in the rounding of its margin, and W would have to be scaled up for its sake.
  // It is met from above instead, where that costs nothing: the norm grows by lambda_k per unit of the bound,
  // relative to |W|^2.
  double safety(std::ptrdiff_t k, double norm) const {
    if (is_free_[at(k)]) return 0;
    constexpr double epsilon = std::numeric_limits<double>::epsilon();
    const double rounding = 4 * epsilon * norm * std::sqrt(M_.data[k * (M_.stride + 1)]);
    return answer_.lambda[at(k)] * rounding < epsilon * norm * norm ? rounding : 0;
  }

  // c^T lambda / |B^T lambda|, no W has a smaller norm.
  double bound(double norm) const {
    const auto c = constraints_.bounds();
    const double sum = std::inner_product(c.begin(), c.end(), answer_.lambda.begin(), 0.0);
    return norm > 0 ? sum / norm : sum > 0 ? std::numeric_limits<double>::infinity() : 0;
  }

  // The relative gap between |W|, once W is scaled so that it meets the worst margin, and the dual bound.
  double gap() {
    const auto c = constraints_.bounds();
    constraints_.adjoint(answer_.lambda, scratch_, step_.view(), limits_.pool);
    const double dual = bound(step_.view().eigen().norm());
    const double norm = answer_.W.view().eigen().norm();
    double worst = 1;
    for (std::ptrdiff_t k = 0; k < count_; ++k) {
      const double margin = margins_[at(k)], bound = c[at(k)];
      const double rounding = 1e-12 * norm;  // each |A_k| is at least 1/4
      if (constraints_.is_equality(k) || bound == 0) {
        const double error = constraints_.is_equality(k) ? std::fabs(margin - bound) : -margin;
        if (!(error <= std::max(rounding, 1e-12 * std::fabs(bound))))
          return std::numeric_limits<double>::infinity();
      } else {
        worst = std::min(worst, margin / bound);
      }
    }
    if (!(worst > 0)) return std::numeric_limits<double>::infinity();
    return (norm / worst - dual) / (norm / worst);
  }

  bool proves_infeasibility() {
    constraints_.adjoint(answer_.lambda, scratch_, step_.view(), limits_.pool);
    return bound(step_.view().eigen().norm()) > limits_.max_norm;
  }

  // Turns the null vector into a proof: B^T v = 0 up to rounding of v. Whether it proves enough.
  bool cancel() {
    auto& v = answer_.lambda;
    const auto U = answer_.W.view();
    AlignedVector best = v;
    double highest = 0;
    for (int round = 0; round < 5; ++round) {
      constraints_.adjoint(v, scratch_, U, limits_.pool);
      const double proved = bound(U.eigen().norm());
      if (!(proved > 2 * highest)) break;
      highest = proved;
      best = v;
      constraints_.forward(U, scratch_, full_, limits_.pool);
      form_step();
      for (std::ptrdiff_t k = 0; k < count_; ++k) {
        v[at(k)] -= full_[at(k)];
        if (!is_free_[at(k)]) v[at(k)] = std::max(v[at(k)], 0.0);
      }
    }
    v = best;
    U.eigen().setZero();
    return highest > limits_.max_norm;
  }

  // The same in extended precision, for norms up to 1e7 or so: M has the digits there that squaring takes away. Slow,
  // but such problems are rare. Beyond that: precise_frobenius.cpp.
  Outcome solve_extended() {
    using Real = long double;
    using Block = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const Block a = constraints_.left().eigen().cast<Real>(), z = constraints_.right().eigen().cast<Real>();
    const std::ptrdiff_t stride = padded(count_);
    ActiveSetQp<Real>::Numbers M(at(count_ * stride)), lambda(at(count_));
    const Block scalar_products = z * z.transpose();
    for (std::ptrdiff_t k = 0; k < count_; ++k)
      for (std::ptrdiff_t l = 0; l <= k; ++l)
        M[at(k * stride + l)] =
            a.row(k).dot(a.row(l)) * scalar_products(constraints_.group_of(k), constraints_.group_of(l));
    std::copy(answer_.lambda.begin(), answer_.lambda.end(), lambda.begin());
    const QpProblem<Real> problem{M.data(), stride, constraints_.bounds(), is_free_, lambda};
    ActiveSetQp<Real> qp(count_);
    qp.heed(limits_.stop);
    if (!qp.begin(problem)) return Outcome::stalled;
    ++answer_.iterations;
    const QpOutcome outcome = qp.solve(problem);

    // W = B^T lambda, corrected as above, and rounded last.
    const auto adjoint = [&](const Eigen::Matrix<Real, Eigen::Dynamic, 1>& weights) {
      Block sums = Block::Zero(constraints_.groups(), constraints_.rows());
      for (std::ptrdiff_t k = 0; k < count_; ++k) sums.row(constraints_.group_of(k)) += weights[k] * a.row(k);
      return Block(sums.transpose() * z);
    };
    Eigen::Matrix<Real, Eigen::Dynamic, 1> weights = Eigen::Map<decltype(weights)>(lambda.data(), count_);
    Block W = adjoint(weights);
    for (int round = 0; outcome == QpOutcome::solved && round < 2; ++round) {
      ActiveSetQp<Real>::Numbers step;
      for (const std::ptrdiff_t k : qp.passive())
        step.push_back(constraints_.bounds()[at(k)] -
                       a.row(k).dot(W * z.row(constraints_.group_of(k)).transpose()));
      qp.solve_passive(step.data());
      weights.setZero();
      for (std::size_t i = 0; i < step.size(); ++i) weights[qp.passive()[i]] = step[i];
      W += adjoint(weights);
      for (std::ptrdiff_t k = 0; k < count_; ++k)
        lambda[at(k)] =
            is_free_[at(k)] ? lambda[at(k)] + weights[k] : std::max(lambda[at(k)] + weights[k], Real(0));
    }
    answer_.W.view().eigen() = W.cast<double>();
    std::copy(lambda.begin(), lambda.end(), answer_.lambda.begin());
    if (outcome == QpOutcome::unbounded) {
      answer_.W.view().eigen().setZero();
      return proves_infeasibility() ? Outcome::infeasible : Outcome::stalled;
    }
    constraints_.forward(answer_.W.view(), scratch_, margins_, limits_.pool);
    return gap() <= limits_.tolerance ? Outcome::solved : Outcome::stalled;
  }

  const ScaledConstraints& constraints_;
  const SolverLimits& limits_;
  std::ptrdiff_t count_;
  KeptNumbers products_;
  MatrixView M_;
  NonnegativeQp qp_;
  PaddedMatrix scratch_, step_;
  AlignedVector margins_, full_, part_;
  std::vector<unsigned char> is_free_;
  SolverAnswer answer_;
};

}  // namespace

SolverAnswer solve_frobenius(const ScaledConstraints& constraints, const SolverLimits& limits,
                             const SolverStart& start) {
  return FrobeniusSolver(constraints, limits).solve(start);
}

}  // namespace attmirror
