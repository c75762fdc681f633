// The max-margin problem of an entrywise norm, every 1 < p < infinity except 2 (which needs no iteration):
//
//   min (1/p) ||W||_p^p   subject to  B W >= c  (= c at equalities)
//   KKT:  B^T lambda = psi'(W),  lambda >= 0 (free at equalities),  lambda_k = 0 where (B W)_k > c_k
//
// Only psi' is nonlinear. With a line w = offset + D u in its place, entry by entry (lp_linearization.hpp), what is left
// is a quadratic problem over the multipliers, M = B D B^T, right-hand side c - B offset, with the signs and the
// complementarity of the original one: nothing of the active set is guessed or smoothed. Its solution x gives
//
//   W' = offset + D o B^T x     satisfies every constraint exactly, whatever D was
//
// so W and lambda are separate results, each moved by an exact search on its own line (lp_line.hpp): the norm of a
// feasible W never grows, and lambda's lower bound keeps up. Near the solution an error delta of the line's point becomes
// delta^2 in W' and x, hence delta^4 in the gap: norm and bound are both stationary. (Deriving W from lambda alone
// would make it delta^2, and for large p lose everything: |U|^{1/(p-1)} knows no digits of a small W_ij.)
//
// Far from p = 2 the curve bends so much that Newton's domain is small. p goes there in stages, p - 1 (or its inverse)
// growing by a factor of at most 2.5, each solved to ten percent only.
//
// Rounding: for large p the entries that the norm does not feel have D some 1e12 times that of the others, and W' misses
// the constraints by 1e-16 of that. The cure is to move W onto its active constraints once more in a metric that is tame:
// lambda and the norm do not notice, since the move is as small as the miss.
#include "margin/cholesky.hpp"
#include "margin/lp_line.hpp"
#include "margin/lp_linearization.hpp"
#include "margin/nonnegative_qp.hpp"
#include "margin/normal_matrix.hpp"
#include "margin/solver.hpp"
#include "mirror/entries.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace attmirror {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double stage_factor = 2.5;   // from one p to the next
constexpr double stage_gap = 0.1;      // at which the next stage begins
constexpr int stage_iterations = 4;    // after which it begins anyway
constexpr double direct_gap = 0.3;     // a start this good needs no stages
constexpr double slope_bound = 0.01;   // times the gap: the limit of the slopes
constexpr double least_bound = 1e-14;  // of the slopes; grows where rounding of B D B^T shows
constexpr double tame = 1e-3;          // ratio of the slopes that a repair works with
constexpr double near_gap = 1e-5;      // below it steps are full: what a search sees is rounding
constexpr int patience = 10;           // iterations without progress
constexpr double hard_tolerance = 1e-13;

std::size_t at(std::ptrdiff_t k) { return static_cast<std::size_t>(k); }

auto flat(MatrixView m) { return Eigen::Map<Eigen::ArrayXd>(m.data, m.flat_size()); }
auto flat(ConstMatrixView m) { return Eigen::Map<const Eigen::ArrayXd>(m.data, m.flat_size()); }

class LpNewton {
 public:
  LpNewton(const ScaledConstraints& constraints, const SolverLimits& limits, const SolverStart& start);

  SolverAnswer solve(double p);

 private:
  enum class End { enough, stalled, infeasible, out_of_iterations, out_of_time };

  bool begin();  // from the start, or the Frobenius solution where it lacks something
  void judge();  // norm, dual, gap and the best W and lambda of this p
  void new_p(double p);
  enum class Goal { stage, end };
  End run(double target_gap, Goal goal);
  End step();
  void choose_candidates();
  bool add_violated();
  QpResult solve_quadratic();
  void repair();
  void retreat();

  const ScaledConstraints& constraints_;
  const SolverLimits& limits_;
  const SolverStart& start_;
  const std::ptrdiff_t count_;
  double largest_bound_ = 0;
  bool hard_ = false;     // some constraint is an equality or has the bound 0
  bool scalable_ = true;  // no equality with a bound other than 0: a multiple of W is feasible too
  int factorizations_ = 0;
  double least_bound_ = least_bound;

  LpMap map_{2.0};
  LpLinearization line_;
  LpLineSearch search_;
  NonnegativeQp quadratic_;
  PaddedMatrix scratch_, M_, W_, U_, new_W_, new_U_, best_W_;
  AlignedVector lambda_, margins_, x_, new_margins_, offset_margins_, best_lambda_, b_, x_J_;
  std::vector<std::ptrdiff_t> J_;
  std::vector<unsigned char> in_J_, is_free_;
  double best_norm_ = infinity, best_dual_ = 0, gap_ = infinity, current_gap_ = infinity;
  double dual_step_ = 0;  // of the last step, 1: Newton's domain
  double excess_ = 0;     // by how much W must grow to satisfy the constraints: 1 + excess_
  double violation_ = 0;  // of the constraints that no multiple of W satisfies, relative to W
};

LpNewton::LpNewton(const ScaledConstraints& constraints, const SolverLimits& limits, const SolverStart& start)
    : constraints_(constraints),
      limits_(limits),
      start_(start),
      count_(constraints.count()),
      line_(constraints.rows(), constraints.cols()),
      search_(constraints.rows(), constraints.cols()),
      quadratic_(constraints.count()),
      scratch_(constraints.make_scratch()),
      M_(constraints.count(), constraints.count()),
      W_(constraints.rows(), constraints.cols()),
      U_(W_),
      new_W_(W_),
      new_U_(W_),
      best_W_(W_),
      lambda_(at(count_)),
      margins_(lambda_),
      x_(lambda_),
      new_margins_(lambda_),
      offset_margins_(lambda_),
      best_lambda_(lambda_),
      b_(lambda_),
      x_J_(lambda_),
      in_J_(at(count_)),
      is_free_(at(count_)) {
  J_.reserve(at(count_));
  for (std::ptrdiff_t k = 0; k < count_; ++k) {
    const double c = constraints.bounds()[at(k)];
    largest_bound_ = std::max(largest_bound_, std::fabs(c));
    if (constraints.is_equality(k) && c != 0) scalable_ = false;
    hard_ = hard_ || constraints.is_equality(k) || c == 0;
  }
}

bool LpNewton::begin() {
  const ConstMatrixView W = start_.W.view();
  const bool usable =
      start_.has_weights() && W.rows == constraints_.rows() && W.cols == constraints_.cols() &&
      std::ssize(start_.lambda) == count_ && std::isfinite(max_abs(W)) && max_abs(W) > 0 &&
      std::all_of(start_.lambda.begin(), start_.lambda.end(), [](double x) { return std::isfinite(x); }) &&
      std::any_of(start_.lambda.begin(), start_.lambda.end(), [](double x) { return x != 0; });
  if (usable) {
    W_ = start_.W;
    for (std::ptrdiff_t k = 0; k < count_; ++k) {
      const double value = start_.lambda[at(k)];
      lambda_[at(k)] = constraints_.is_equality(k) ? value : std::max(value, 0.0);
    }
  } else {
    // The Frobenius solution: lines w = u.
    J_.clear();
    for (std::ptrdiff_t k = 0; k < count_; ++k) {
      J_.push_back(k);
      is_free_[at(k)] = constraints_.is_equality(k) ? 1 : 0;
    }
    normal_matrix_identity(constraints_, J_, M_.view(), limits_.pool);
    const QpResult result = quadratic_.solve(M_.view(), constraints_.bounds(), is_free_, lambda_,
                                             limits_.iterations_left, limits_.pool);
    factorizations_ += result.factorizations;
    if (result.outcome == QpResult::Outcome::unbounded) return false;
    constraints_.adjoint(lambda_, scratch_, W_.view(), limits_.pool);
  }
  constraints_.forward(W_.view(), scratch_, margins_, limits_.pool);
  constraints_.adjoint(lambda_, scratch_, U_.view(), limits_.pool);
  return true;
}

void LpNewton::new_p(double p) {
  map_ = LpMap(p);
  best_norm_ = infinity;
  best_dual_ = 0;
  judge();
}

// W counts with the multiple that satisfies the constraints.
void LpNewton::judge() {
  const auto c = constraints_.bounds();
  double scale = 1, violation = 0;
  for (std::ptrdiff_t k = 0; k < count_; ++k) {
    const double margin = margins_[at(k)], bound = c[at(k)];
    if (constraints_.is_equality(k))
      violation = std::max(violation, std::fabs(margin - bound));
    else if (bound == 0 || !scalable_)
      violation = std::max(violation, bound - margin);
    else if (!(margin * scale >= bound))
      scale = margin > 0 ? bound / margin : infinity;
  }
  const double size = max_abs(W_.view());
  excess_ = scale - 1;
  violation_ = size > 0 && std::isfinite(size) ? violation / (size * std::max(1.0, scale)) : infinity;
  double bound_product = 0;
  for (std::ptrdiff_t k = 0; k < count_; ++k) bound_product += c[at(k)] * lambda_[at(k)];
  const double dual_norm = map_.dual_norm(U_.view());
  const double norm = violation_ <= 10 * hard_tolerance ? scale * map_.norm(W_.view()) : infinity;
  const double dual = dual_norm > 0 ? bound_product / dual_norm : 0;
  if (norm < best_norm_) {
    best_norm_ = norm;
    best_W_ = W_;
  }
  if (dual > best_dual_) {
    best_dual_ = dual;
    best_lambda_ = lambda_;
  }
  gap_ = std::isfinite(best_norm_) ? (best_norm_ - best_dual_) / best_norm_ : infinity;
  current_gap_ = std::isfinite(norm) ? std::max((norm - dual) / norm, gap_) : infinity;
}

// The constraints that the next step may meet: those in force, and those whose margin is near the bound as steps go.
void LpNewton::choose_candidates() {
  const double reach =
      4 * std::sqrt(std::min(std::max(current_gap_, 1e-8), 1.0)) * (1 + std::max(excess_, 0.0));
  J_.clear();
  for (std::ptrdiff_t k = 0; k < count_; ++k) {
    const double bound = constraints_.bounds()[at(k)];
    const bool near = !(margins_[at(k)] - bound > reach * std::max(bound, 0.5 * largest_bound_));
    in_J_[at(k)] = near || constraints_.is_equality(k) || lambda_[at(k)] != 0;
    if (in_J_[at(k)]) J_.push_back(k);
  }
}

// Those that the step would violate join; false if there are none.
bool LpNewton::add_violated() {
  bool any = false;
  J_.clear();
  for (std::ptrdiff_t k = 0; k < count_; ++k) {
    const double bound = constraints_.bounds()[at(k)] / line_.unit();
    if (!in_J_[at(k)] && new_margins_[at(k)] < bound) {
      in_J_[at(k)] = 1;
      any = true;
    }
    if (in_J_[at(k)]) J_.push_back(k);
  }
  return any;
}

// x_ for the constraints in J_, from x_ as the guess of those in force.
QpResult LpNewton::solve_quadratic() {
  const auto size = std::ssize(J_);
  const MatrixView M{M_.view().data, size, size, padded(size)};
  normal_matrix(constraints_, J_, line_.slopes(), M, limits_.pool);
  for (std::ptrdiff_t i = 0; i < size; ++i) {
    const std::ptrdiff_t k = J_[at(i)];
    b_[at(i)] = constraints_.bounds()[at(k)] / line_.unit() - offset_margins_[at(k)];
    x_J_[at(i)] = x_[at(k)];
    is_free_[at(i)] = constraints_.is_equality(k) ? 1 : 0;
  }
  const auto used = at(size);
  const QpResult result =
      quadratic_.solve(M, std::span(b_).first(used),
                       constraints_.equalities() > 0 ? std::span<const unsigned char>(is_free_).first(used)
                                                     : std::span<const unsigned char>(),
                       std::span(x_J_).first(used), limits_.iterations_left - factorizations_, limits_.pool);
  factorizations_ += result.factorizations;
  std::fill(x_.begin(), x_.end(), 0.0);
  for (std::ptrdiff_t i = 0; i < size; ++i) x_[at(J_[at(i)])] = x_J_[at(i)];
  return result;
}

LpNewton::End LpNewton::step() {
  const auto c = Eigen::Map<const Eigen::ArrayXd>(constraints_.bounds().data(), count_);
  Eigen::Map<Eigen::ArrayXd> lambda(lambda_.data(), count_), x(x_.data(), count_);
  Eigen::Map<Eigen::ArrayXd> margins(margins_.data(), count_), new_margins(new_margins_.data(), count_);
  // For p < 2 the bound keeps alive the many entries that the solution leaves at 0: together they must not weigh much.
  const double entries = static_cast<double>(constraints_.rows() * constraints_.cols());
  const double share = map_.p() < 2 ? std::min(slope_bound, 1 / entries) : slope_bound;
  const double bound = std::max(least_bound_, share * std::min(std::max(current_gap_, 0.0), 0.1));
  const double unit = line_.form(map_, W_.view(), U_.view(), (c * lambda).sum(), bound);
  if (!(unit > 0)) return End::stalled;
  lambda *= line_.multiplier_scale();
  constraints_.forward(line_.offset(), scratch_, offset_margins_, limits_.pool);

  choose_candidates();
  x = lambda;
  for (int round = 0;; ++round) {
    const QpResult result = solve_quadratic();
    if (!x.isFinite().all()) return End::stalled;
    constraints_.adjoint(x_, scratch_, new_U_.view(), limits_.pool);
    if (result.outcome == QpResult::Outcome::unbounded) {
      // B^T x = 0 although c^T x > 0: no W satisfies the constraints with x > 0.
      const double dual = (c * x).sum() / map_.dual_norm(new_U_.view());
      if (!(dual > limits_.max_norm)) return End::stalled;
      best_lambda_ = x_;
      return End::infeasible;
    }
    flat(new_W_.view()) = flat(line_.offset()) + flat(line_.slopes()) * flat(new_U_.view());
    constraints_.forward(new_W_.view(), scratch_, new_margins_, limits_.pool);
    if (factorizations_ >= limits_.iterations_left) return End::out_of_iterations;
    if (round == 4 || !add_violated()) break;
  }

  // W: from one feasible point to another, in units of the line.
  new_margins *= unit;
  flat(new_W_.view()) -= flat(line_.weights());
  const bool searches =
      map_.p() > 2 && gap_ > near_gap && std::isfinite(excess_) && violation_ <= hard_tolerance;
  const double t =
      searches ? search_.minimize(map_, LpSide::primal, line_.weights(), new_W_.view(), {}) : 1.0;
  flat(W_.view()) = unit * (flat(line_.weights()) + t * flat(new_W_.view()));
  margins += t * (new_margins - margins);

  // lambda: for p > 2 the solution itself, which knows the constraints in force; its bound may fall in between.
  double s = 1;
  if (map_.p() < 2) {
    x -= lambda;
    flat(new_U_.view()) -= flat(line_.dual());
    s = search_.minimize(map_, LpSide::dual, line_.dual(), new_U_.view(),
                         {(c * lambda).sum(), (c * x).sum()});
    for (std::ptrdiff_t k = 0; k < count_; ++k) {
      const double value = lambda_[at(k)] + s * x_[at(k)];
      lambda_[at(k)] = constraints_.is_equality(k) ? value : std::max(value, 0.0);
    }
    constraints_.adjoint(lambda_, scratch_, U_.view(), limits_.pool);
  } else {
    lambda = x;
    flat(U_.view()) = flat(new_U_.view());
  }
  dual_step_ = s;
  judge();
  if (!(excess_ <= 0.3 * gap_) || violation_ > hard_tolerance) repair();
  return End::enough;
}

// W moves onto the constraints in force and those it violates, by D B^T y with slopes that differ by 1e3 at most.
void LpNewton::repair() {
  const double largest = max_abs(line_.slopes());
  auto D = flat(new_U_.view());
  if (map_.p() < 2)
    D = flat(line_.slopes()).max(tame * largest);
  else
    D = flat(line_.slopes()).min(flat(line_.slopes()).minCoeff() / tame);
  J_.clear();
  for (std::ptrdiff_t k = 0; k < count_; ++k)
    if (constraints_.is_equality(k) || lambda_[at(k)] > 0 || margins_[at(k)] < constraints_.bounds()[at(k)])
      J_.push_back(k);
  const auto size = std::ssize(J_);
  if (size == 0 || factorizations_ >= limits_.iterations_left) return;
  const MatrixView M{M_.view().data, size, size, padded(size)};
  normal_matrix(constraints_, J_, new_U_.view(), M, limits_.pool);
  for (std::ptrdiff_t i = 0; i < size; ++i) M.data[i * M.stride + i] *= 1 + 1e-14 * static_cast<double>(size);
  ++factorizations_;
  if (cholesky(M, 0, limits_.pool) != size) return;
  for (int round = 0; round < 2; ++round) {
    for (std::ptrdiff_t i = 0; i < size; ++i) {
      const std::ptrdiff_t k = J_[at(i)];
      x_J_[at(i)] = constraints_.bounds()[at(k)] - margins_[at(k)];
    }
    cholesky_solve(M, size, x_J_.data());
    std::fill(x_.begin(), x_.end(), 0.0);
    for (std::ptrdiff_t i = 0; i < size; ++i) x_[at(J_[at(i)])] = x_J_[at(i)];
    constraints_.adjoint(x_, scratch_, new_W_.view(), limits_.pool);
    flat(W_.view()) += D * flat(new_W_.view());
    constraints_.forward(W_.view(), scratch_, margins_, limits_.pool);
  }
  judge();
}

// Rounding has the better of a step: back to the best, with slopes that differ less.
void LpNewton::retreat() {
  least_bound_ = std::min(100 * least_bound_, 1e-6);
  if (std::isfinite(best_norm_)) W_ = best_W_;
  if (best_dual_ > 0) lambda_ = best_lambda_;
  constraints_.forward(W_.view(), scratch_, margins_, limits_.pool);
  constraints_.adjoint(lambda_, scratch_, U_.view(), limits_.pool);
  judge();
}

// Steps until current_gap_ (a stage) or gap_ (the end) is small enough. A stage takes at least one: near p = 1 its norm
// hardly differs from the last one's, but where lambda must go does.
LpNewton::End LpNewton::run(double target_gap, Goal goal) {
  double best = gap_;
  for (int i = 0, without_progress = 0;; ++i) {
    if (goal == Goal::stage
            ? i > 0 && ((current_gap_ <= target_gap && dual_step_ >= 0.5) || i == stage_iterations)
            : gap_ <= target_gap)
      return End::enough;
    if (factorizations_ >= limits_.iterations_left) return End::out_of_iterations;
    if (limits_.out_of_time()) return End::out_of_time;
    const End end = step();
    if (end != End::enough && end != End::stalled) return end;
    if (best_dual_ > limits_.max_norm) return End::infeasible;
    without_progress = gap_ <= 0.9 * best ? 0 : without_progress + 1;
    best = std::min(best, gap_);
    if (without_progress >= patience) return End::stalled;
    if (end == End::stalled || (without_progress > 0 && gap_ <= near_gap)) retreat();
  }
}

SolverAnswer LpNewton::solve(double p) {
  SolverAnswer answer;
  const auto finish = [&](Outcome outcome) {
    answer.outcome = outcome;
    answer.iterations = factorizations_;
    return answer;
  };
  if (largest_bound_ == 0) {
    answer.W = W_;  // 0 satisfies everything
    answer.lambda = lambda_;
    return finish(Outcome::solved);
  }
  if (!begin()) {
    answer.W = W_;
    answer.lambda = lambda_;
    return finish(Outcome::infeasible);
  }
  const double target = limits_.tolerance / 100;
  End end = End::enough;
  new_p(p);
  if (!(gap_ <= direct_gap)) {
    const double exponent = p > 2 ? p - 1 : 1 / (p - 1);
    const double stages = std::ceil(std::log(exponent) / std::log(stage_factor) - 1e-9);
    for (double i = 1; i < stages && (end == End::enough || end == End::stalled); ++i) {
      const double e = std::pow(exponent, i / stages);
      new_p(p > 2 ? 1 + e : 1 + 1 / e);
      end = run(stage_gap, Goal::stage);
    }
    if (end != End::infeasible) new_p(p);
  }
  if (end == End::enough || end == End::stalled) end = run(target, Goal::end);
  if (!std::isfinite(best_norm_)) best_W_ = W_;
  // What no multiple of W would mend is mended to the last digit.
  if (hard_ && end == End::enough) {
    retreat();
    if (violation_ > 0) repair();
    best_W_ = W_;
  }
  if (best_dual_ == 0 && end != End::infeasible) best_lambda_ = lambda_;
  answer.W = best_W_;
  answer.lambda = best_lambda_;
  if (end == End::infeasible) return finish(Outcome::infeasible);
  if (gap_ <= limits_.tolerance) return finish(Outcome::solved);
  if (end == End::out_of_iterations) return finish(Outcome::out_of_iterations);
  if (end == End::out_of_time) return finish(Outcome::out_of_time);
  return finish(Outcome::stalled);
}

}  // namespace

SolverAnswer solve_lp(const ScaledConstraints& constraints, const Norm& norm, const SolverLimits& limits,
                      const SolverStart& start) {
  return LpNewton(constraints, limits, start).solve(norm.p());
}

}  // namespace attmirror
