// The max-margin problem of an entrywise norm, every 1 < p < infinity except 2 (which needs no iteration):
//
//   min (1/p) ||W||_p^p   subject to  B W >= c  (= c at equalities)
//   KKT:  B^T lambda = psi'(W),  lambda >= 0 (free at equalities),  lambda_k = 0 where (B W)_k > c_k
//
// Only psi' is nonlinear. With a line w = offset + D u in its place, entry by entry (lp_linearization.hpp), what is
// left is a quadratic problem over the multipliers, M = B D B^T, right-hand side c - B offset, with the signs and the
// complementarity of the original one: nothing of the active set is guessed or smoothed. Its solution x gives
//
//   W' = offset + D o B^T x     satisfies every constraint exactly, whatever D was
//
// so W and lambda are separate results, each moved by an exact search on its own line (lp_line.hpp): the norm of a
// feasible W never grows, and lambda's lower bound keeps up. Near the solution an error delta of the line's point
// becomes delta^2 in W' and x, hence delta^4 in the gap: norm and bound are both stationary. (Deriving W from lambda
// alone would make it delta^2, and for large p lose everything: |U|^{1/(p-1)} knows no digits of a small W_ij.)
//
// Far from p = 2 the curve bends so much that Newton's domain is small. p goes there in stages, p - 1 (or its inverse)
// growing by a factor of at most 2.5, each solved to ten percent only.
//
// Rounding: for large p the entries that the norm does not feel have D some 1e12 times that of the others, and W'
// misses the constraints by 1e-16 of that. The cure is to move W onto its active constraints once more in a metric
// that is tame: lambda and the norm do not notice, since the move is as small as the miss.
//
// Where W is 1e7 and more in units of the data, B D B^T has no digits left in doubles. Then (limits.precise) it is
// formed and solved in double-double numbers, and W' = offset + D o B^T x before x is rounded.
#include "base/numbers.hpp"
#include "margin/cholesky.hpp"
#include "margin/kept_numbers.hpp"
#include "margin/lp_line.hpp"
#include "margin/lp_linearization.hpp"
#include "margin/lp_pair.hpp"
#include "margin/nonnegative_qp.hpp"
#include "margin/normal_matrix.hpp"
#include "margin/precise_constraints.hpp"
#include "margin/solver.hpp"
#include "mirror/entries.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace attmirror {

namespace {

constexpr double stage_factor = 2.5;   // from one p to the next
constexpr double stage_gap = 0.1;      // at which the next stage begins
constexpr int stage_iterations = 4;    // after which it begins anyway
constexpr double direct_gap = 0.3;     // a start this good needs no stages
constexpr double slope_bound = 0.01;   // times the gap: the limit of the slopes
constexpr double least_bound = 1e-14;  // of the slopes; grows where rounding of B D B^T shows
constexpr double tame = 1e-3;          // ratio of the slopes that a repair works with
constexpr double near_gap = 1e-5;      // below it steps are full: what a search sees is rounding
constexpr int newton_patience = 10;    // iterations without progress

auto flat(MatrixView m) { return Eigen::Map<Eigen::ArrayXd>(m.data, m.flat_size()); }
auto flat(ConstMatrixView m) { return Eigen::Map<const Eigen::ArrayXd>(m.data, m.flat_size()); }

class LpNewton {
 public:
  LpNewton(const ScaledConstraints& constraints, const SolverLimits& limits, const SolverStart& start);

  SolverAnswer solve(double p);

 private:
  enum class End { enough, stalled, infeasible, out_of_iterations, out_of_time };

  bool begin();  // from the start, or the Frobenius solution where it lacks something
  void new_p(double p);
  enum class Goal { stage, end };
  End run(double target_gap, Goal goal);
  End step();
  void choose_candidates();
  bool add_violated();
  QpResult solve_quadratic();
  QpResult solve_quadratic_precisely();
  void repair();
  void repair_precisely();
  void retreat();
  void forward(ConstMatrixView W, AlignedVector& margins);
  void adjoint(const AlignedVector& lambda, MatrixView out);
  MatrixView products(std::ptrdiff_t size) { return {products_.data(), size, size, padded(size)}; }

  const ScaledConstraints& constraints_;
  const SolverLimits& limits_;
  const SolverStart& start_;
  const std::ptrdiff_t count_;
  int factorizations_ = 0;
  double least_bound_ = least_bound;

  LpMap map_{2.0};
  LpPair pair_;
  LpLinearization line_;
  LpLineSearch search_;
  NonnegativeQp quadratic_;
  PaddedMatrix scratch_, new_W_, new_U_;
  KeptNumbers products_;
  AlignedVector x_, new_margins_, offset_margins_, b_, x_J_;
  AlignedVector guess_;  // the last x_ that solved a quadratic problem; empty: none
  std::vector<std::ptrdiff_t> J_;
  std::vector<unsigned char> in_J_, is_free_;
  double dual_step_ = 0;  // of the last step, 1: Newton's domain
  PreciseConstraints precise_;
  PreciseVector precise_x_;  // x_ before it was rounded
};

LpNewton::LpNewton(const ScaledConstraints& constraints, const SolverLimits& limits, const SolverStart& start)
    : constraints_(constraints),
      limits_(limits),
      start_(start),
      count_(constraints.count()),
      pair_(constraints),
      line_(constraints.rows(), constraints.cols()),
      search_(constraints.rows(), constraints.cols()),
      quadratic_(constraints.count(), NonnegativeQp::Factor::not_needed),
      scratch_(constraints.make_scratch()),
      new_W_(constraints.rows(), constraints.cols()),
      new_U_(new_W_),
      products_(at(count_ * padded(count_))),
      x_(at(count_)),
      new_margins_(x_),
      offset_margins_(x_),
      b_(x_),
      x_J_(x_),
      in_J_(at(count_)),
      is_free_(at(count_)),
      precise_(constraints) {
  J_.reserve(at(count_));
  quadratic_.heed(limits.stop);
}

void LpNewton::forward(ConstMatrixView W, AlignedVector& margins) {
  if (!limits_.precise) return constraints_.forward(W, scratch_, margins, limits_.pool);
  const PreciseVector exact = precise_.forward(precise(W));
  for (std::ptrdiff_t k = 0; k < count_; ++k) margins[at(k)] = exact[k].high();
}

void LpNewton::adjoint(const AlignedVector& lambda, MatrixView out) {
  if (!limits_.precise) return constraints_.adjoint(lambda, scratch_, out, limits_.pool);
  out.eigen() = rounded(precise_.adjoint(precise(lambda)));
}

bool LpNewton::begin() {
  const ConstMatrixView W = start_.W.view();
  const bool usable =
      start_.has_weights() && W.rows == constraints_.rows() && W.cols == constraints_.cols() &&
      std::ssize(start_.lambda) == count_ && std::isfinite(max_abs(W)) && max_abs(W) > 0 &&
      std::all_of(start_.lambda.begin(), start_.lambda.end(), [](double x) { return std::isfinite(x); }) &&
      std::any_of(start_.lambda.begin(), start_.lambda.end(), [](double x) { return x != 0; });
  if (!usable && limits_.precise) return false;
  if (usable) {
    pair_.W = start_.W;
    for (std::ptrdiff_t k = 0; k < count_; ++k) {
      const double value = start_.lambda[at(k)];
      pair_.lambda[at(k)] = constraints_.is_equality(k) ? value : std::max(value, 0.0);
    }
  } else {
    // The Frobenius solution: lines w = u.
    J_.clear();
    for (std::ptrdiff_t k = 0; k < count_; ++k) {
      J_.push_back(k);
      is_free_[at(k)] = constraints_.is_equality(k) ? 1 : 0;
    }
    const MatrixView M = products(count_);
    normal_matrix_identity(constraints_, J_, M, limits_.pool);
    const QpResult result = quadratic_.solve(M, constraints_.bounds(), is_free_, pair_.lambda,
                                             limits_.iterations_left, limits_.pool);
    factorizations_ += result.factorizations;
    if (result.outcome == QpResult::Outcome::unbounded) return false;
    constraints_.adjoint(pair_.lambda, scratch_, pair_.W.view(), limits_.pool);
  }
  forward(pair_.W.view(), pair_.margins);
  adjoint(pair_.lambda, pair_.U.view());
  return true;
}

void LpNewton::new_p(double p) {
  map_ = LpMap(p);
  least_bound_ = least_bound;
  pair_.forget_best();
  pair_.judge(map_);
}

// The constraints that the next step may meet: those in force, and those whose margin is near the bound as steps go.
void LpNewton::choose_candidates() {
  const double reach =
      0.6 * std::sqrt(std::min(std::max(pair_.current_gap, 1e-8), 1.0)) * (1 + std::max(pair_.excess, 0.0));
  J_.clear();
  for (std::ptrdiff_t k = 0; k < count_; ++k) {
    const double bound = constraints_.bounds()[at(k)];
    const bool near = !(pair_.margins[at(k)] - bound > reach * std::max(bound, 0.5 * pair_.largest_bound));
    in_J_[at(k)] = near || constraints_.is_equality(k) || pair_.lambda[at(k)] != 0;
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
  if (limits_.precise) return solve_quadratic_precisely();
  const MatrixView M = products(size);
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
  if (result.outcome == QpResult::Outcome::solved)
    guess_ = x_;
  else
    guess_.clear();
  return result;
}

QpResult LpNewton::solve_quadratic_precisely() {
  const auto size = std::ssize(J_);
  QpResult result;
  result.factorizations = 1;
  ++factorizations_;
  if (size > PreciseConstraints::most_rows) return result;
  const PreciseMatrix M = precise_.normal_matrix(J_, line_.slopes());
  std::vector<DoubleDouble> x(at(size));
  for (std::ptrdiff_t i = 0; i < size; ++i) {
    const std::ptrdiff_t k = J_[at(i)];
    b_[at(i)] = constraints_.bounds()[at(k)] / line_.unit() - offset_margins_[at(k)];
    x[at(i)] = x_[at(k)];
    is_free_[at(i)] = constraints_.is_equality(k) ? 1 : 0;
  }
  const QpProblem<DoubleDouble> problem{M.data(), size, std::span<const double>(b_).first(at(size)),
                                        std::span<const unsigned char>(is_free_).first(at(size)), x};
  ActiveSetQp<DoubleDouble> qp(size);
  qp.heed(limits_.stop);
  if (qp.begin(problem)) result.outcome = qp.solve(problem);
  std::fill(x_.begin(), x_.end(), 0.0);
  precise_x_ = PreciseVector::Zero(count_);
  for (std::ptrdiff_t i = 0; i < size; ++i) {
    precise_x_[J_[at(i)]] = x[at(i)];
    x_[at(J_[at(i)])] = x[at(i)].high();
  }
  guess_.clear();
  if (result.outcome == QpResult::Outcome::solved) guess_ = x_;
  return result;
}

LpNewton::End LpNewton::step() {
  const auto c = Eigen::Map<const Eigen::ArrayXd>(constraints_.bounds().data(), count_);
  Eigen::Map<Eigen::ArrayXd> lambda(pair_.lambda.data(), count_), x(x_.data(), count_);
  Eigen::Map<Eigen::ArrayXd> margins(pair_.margins.data(), count_), new_margins(new_margins_.data(), count_);
  // For p < 2 the bound keeps alive the many entries that the solution leaves at 0: together they must not weigh much.
  const double entries = static_cast<double>(constraints_.rows() * constraints_.cols());
  const double share = map_.p() < 2 ? std::min(slope_bound, 1 / entries) : slope_bound;
  const double bound = std::max(least_bound_, share * std::min(std::max(pair_.current_gap, 0.0), 0.1));
  const double unit = line_.form(map_, pair_.W.view(), pair_.U.view(), (c * lambda).sum(), bound);
  if (!(unit > 0)) return End::stalled;
  lambda *= line_.multiplier_scale();
  forward(line_.offset(), offset_margins_);

  choose_candidates();
  // The guess of those in force: as the last quadratic problem had them. A lambda between two of its solutions has what
  // was in force at either.
  x_ = guess_.empty() ? pair_.lambda : guess_;
  for (int round = 0;; ++round) {
    const QpResult result = solve_quadratic();
    if (!x.isFinite().all()) return End::stalled;
    adjoint(x_, new_U_.view());
    if (result.outcome == QpResult::Outcome::unbounded) {
      // B^T x = 0 although c^T x > 0: no W satisfies the constraints with x > 0.
      const double dual = (c * x).sum() / map_.dual_norm(new_U_.view());
      if (!(dual > limits_.max_norm)) return End::stalled;
      pair_.best_lambda = x_;
      return End::infeasible;
    }
    if (limits_.precise) {
      if (result.outcome != QpResult::Outcome::solved) return End::stalled;
      new_W_.view().eigen() = rounded(precise_.adjoint(precise_x_));
      flat(new_W_.view()) = flat(line_.offset()) + flat(line_.slopes()) * flat(new_W_.view());
    } else {
      flat(new_W_.view()) = flat(line_.offset()) + flat(line_.slopes()) * flat(new_U_.view());
    }
    forward(new_W_.view(), new_margins_);
    if (factorizations_ >= limits_.iterations_left) return End::out_of_iterations;
    if (round == 4 || !add_violated()) break;
  }

  // W: from one feasible point to another, in units of the line.
  new_margins *= unit;
  flat(new_W_.view()) -= flat(line_.weights());
  const bool searches = map_.p() > 2 && pair_.gap > near_gap && std::isfinite(pair_.excess) &&
                        pair_.violation <= hard_tolerance;
  const double t =
      searches ? search_.minimize(map_, LpSide::primal, line_.weights(), new_W_.view(), {}) : 1.0;
  flat(pair_.W.view()) = unit * (flat(line_.weights()) + t * flat(new_W_.view()));
  margins += t * (new_margins - margins);

  // lambda: for p > 2 the solution itself, which knows the constraints in force; its bound may fall in between.
  double s = 1;
  if (map_.p() < 2) {
    x -= lambda;
    flat(new_U_.view()) -= flat(line_.dual());
    s = search_.minimize(map_, LpSide::dual, line_.dual(), new_U_.view(),
                         {(c * lambda).sum(), (c * x).sum()});
    for (std::ptrdiff_t k = 0; k < count_; ++k) {
      const double value = pair_.lambda[at(k)] + s * x_[at(k)];
      pair_.lambda[at(k)] = constraints_.is_equality(k) ? value : std::max(value, 0.0);
    }
    adjoint(pair_.lambda, pair_.U.view());
  } else {
    lambda = x;
    flat(pair_.U.view()) = flat(new_U_.view());
  }
  dual_step_ = s;
  pair_.judge(map_);
  if (!(pair_.excess <= 0.3 * pair_.gap) || pair_.violation > hard_tolerance) repair();
  return End::enough;
}

// W moves onto the constraints in force and those it violates, by D B^T y with slopes that differ by 1e3 at most.
void LpNewton::repair() {
  const double largest = max_abs(line_.slopes());
  auto D = flat(new_U_.view());
  if (!(line_.unit() > 0))
    fill_entries(new_U_.view(), 1.0);  // no step so far
  else if (map_.p() < 2)
    D = flat(line_.slopes()).max(tame * largest);
  else
    D = flat(line_.slopes()).min(flat(line_.slopes()).minCoeff() / tame);
  J_.clear();
  for (std::ptrdiff_t k = 0; k < count_; ++k)
    if (constraints_.is_equality(k) || pair_.lambda[at(k)] > 0 ||
        pair_.margins[at(k)] < constraints_.bounds()[at(k)])
      J_.push_back(k);
  const auto size = std::ssize(J_);
  if (size == 0 || factorizations_ >= limits_.iterations_left) return;
  if (limits_.precise) return repair_precisely();
  const MatrixView M = products(size);
  normal_matrix(constraints_, J_, new_U_.view(), M, limits_.pool);
  for (std::ptrdiff_t i = 0; i < size; ++i) M.data[i * M.stride + i] *= 1 + 1e-14 * static_cast<double>(size);
  ++factorizations_;
  if (cholesky(M, 0, limits_.pool) != size) return;
  const double hair = 8 * std::numeric_limits<double>::epsilon() * max_abs(pair_.W.view()) *
                      std::sqrt(static_cast<double>(constraints_.rows() * constraints_.cols()));
  for (int round = 0; round < 2; ++round) {
    for (std::ptrdiff_t i = 0; i < size; ++i) {
      const std::ptrdiff_t k = J_[at(i)];
      // A hair inside, where no multiple of W could help against rounding.
      const bool exact = constraints_.is_equality(k) || (pair_.scalable && constraints_.bounds()[at(k)] > 0);
      x_J_[at(i)] = constraints_.bounds()[at(k)] - pair_.margins[at(k)] + (exact ? 0 : hair);
    }
    cholesky_solve(M, size, x_J_.data());
    std::fill(x_.begin(), x_.end(), 0.0);
    for (std::ptrdiff_t i = 0; i < size; ++i) x_[at(J_[at(i)])] = x_J_[at(i)];
    constraints_.adjoint(x_, scratch_, new_W_.view(), limits_.pool);
    flat(pair_.W.view()) += D * flat(new_W_.view());
    constraints_.forward(pair_.W.view(), scratch_, pair_.margins, limits_.pool);
  }
  pair_.judge(map_);
}

// The same, for J_ and the slopes in new_U_.
void LpNewton::repair_precisely() {
  const auto size = std::ssize(J_);
  if (size > PreciseConstraints::most_rows) return;
  ++factorizations_;
  const PreciseFactor factor(precise_.normal_matrix(J_, new_U_.view()));
  PreciseVector missing(size), change = PreciseVector::Zero(count_);
  for (std::ptrdiff_t i = 0; i < size; ++i)
    missing[i] = constraints_.bounds()[at(J_[at(i)])] - pair_.margins[at(J_[at(i)])];
  const PreciseVector y = factor.solve(missing);
  for (std::ptrdiff_t i = 0; i < size; ++i) change[J_[at(i)]] = y[i];
  new_W_.view().eigen() = rounded(precise_.adjoint(change));
  flat(pair_.W.view()) += flat(new_U_.view()) * flat(new_W_.view());
  forward(pair_.W.view(), pair_.margins);
  pair_.judge(map_);
}

// Rounding has the better of a step: back to the best, with slopes that differ less.
void LpNewton::retreat() {
  least_bound_ = std::min(100 * least_bound_, 1e-6);
  pair_.return_to_best();
  forward(pair_.W.view(), pair_.margins);
  adjoint(pair_.lambda, pair_.U.view());
  pair_.judge(map_);
}

// Steps until pair_.current_gap (a stage) or pair_.gap (the end) is small enough. A stage takes at least one: near p
// = 1 its norm hardly differs from the last one's, but where lambda must go does.
LpNewton::End LpNewton::run(double target_gap, Goal goal) {
  double best = pair_.gap;
  for (int i = 0, without_progress = 0;; ++i) {
    if (goal == Goal::stage
            ? i > 0 && ((pair_.current_gap <= target_gap && dual_step_ >= 0.5) || i == stage_iterations)
            : pair_.gap <= target_gap)
      return End::enough;
    if (factorizations_ >= limits_.iterations_left) return End::out_of_iterations;
    if (limits_.out_of_time()) return End::out_of_time;
    const End end = step();
    if (end != End::enough && end != End::stalled) return end;
    if (pair_.best_dual > limits_.max_norm) return End::infeasible;
    without_progress = pair_.gap < 0.9 * best ? 0 : without_progress + 1;  // not: from infinite to infinite
    best = std::min(best, pair_.gap);
    if (without_progress >= newton_patience) return End::stalled;
    if (end == End::stalled || (without_progress > 0 && pair_.gap <= near_gap)) retreat();
  }
}

SolverAnswer LpNewton::solve(double p) {
  SolverAnswer answer;
  const auto finish = [&](Outcome outcome) {
    answer.outcome = outcome;
    answer.iterations = factorizations_;
    return answer;
  };
  if (pair_.largest_bound == 0) {
    answer.W = pair_.W;  // 0 satisfies everything
    answer.lambda = pair_.lambda;
    return finish(Outcome::solved);
  }
  if (!begin()) {
    answer.W = pair_.W;
    answer.lambda = pair_.lambda;
    return finish(limits_.precise ? Outcome::stalled : Outcome::infeasible);
  }
  const double target = limits_.tolerance / 20;
  End end = End::enough;
  new_p(p);
  if (!(pair_.gap <= direct_gap)) {
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
  if (!std::isfinite(pair_.best_norm)) pair_.best_W = pair_.W;
  // What no multiple of W would repair is repaired to the last digit.
  if (pair_.hard && end == End::enough) {
    retreat();
    if (pair_.violation > 0) repair();
    pair_.best_W = pair_.W;
  }
  if (pair_.best_dual == 0 && end != End::infeasible) pair_.best_lambda = pair_.lambda;
  answer.W = pair_.best_W;
  answer.lambda = pair_.best_lambda;
  if (end == End::infeasible) return finish(Outcome::infeasible);
  if (pair_.gap <= limits_.tolerance) return finish(Outcome::solved);
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
