// Two ways of exchanging indices between the passive set P (x_k solves for g_k = 0) and the rest (x_k = 0).
//
// Block principal pivoting (Judice and Pires; Kim and Park): solve M_PP x_P = b_P, then exchange all indices with the
// wrong sign at once: x_k < 0 leaves, g_k < 0 enters. A handful of factorizations whatever the size, but nothing
// decreases, so it may cycle, and it needs M_PP regular.
//
// When the number of wrong signs stops falling, or M_PP is singular in a way that matters, a primal active-set method
// (Lawson and Hanson's, for a matrix of scalar products) takes over from the positive part of x: one index at a time, the
// objective falls at each step, hence no set comes twice and it ends. An index whose row depends on those of P brings a
// null vector v of M instead of a new dimension: with v_k = 1 and b^T v = -g_k > 0 the objective falls linearly along v,
// until some x_j reaches 0 and makes room for k, or for ever: then v is the proof of unboundedness.
#include "margin/nonnegative_qp.hpp"

#include "margin/cholesky.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attmirror {

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

// Rounds of block exchanges that may pass without fewer wrong signs than ever before.
constexpr int patience = 4;

// Where rounding of M x would exceed this part of b, x says nothing: some set of rows is as good as dependent.
constexpr double blurred = 1e-3;

// A residual of this many roundings shows that the factor is not that of a regular matrix.
constexpr double imprecise = 100;

// Rows this close to the span of the others (squared sine of the angle) are exchanged against one of them if possible:
// a set without such rows keeps ten digits.
constexpr double close_to_dependent = 1e-6;

// A wrong sign that cannot be mended counts from this part of the largest |b_k| on.
constexpr double negligible = 1e-11;

// A pivot below this, relative to its diagonal entry, is rounding of the scalar products: the row depends on the others.
double least_pivot(std::ptrdiff_t size) { return epsilon * (50 + 2 * static_cast<double>(size)); }

std::size_t at(std::ptrdiff_t k) { return static_cast<std::size_t>(k); }

}  // namespace

NonnegativeQp::NonnegativeQp(std::ptrdiff_t largest_size)
    : factor_(largest_size, largest_size),
      gradient_(at(largest_size)),
      solution_(at(largest_size)),
      rotations_(at(2 * largest_size)),
      lengths_(at(largest_size)),
      is_passive_(at(largest_size)),
      refused_(at(largest_size)) {
  passive_.reserve(at(largest_size));
}

QpResult NonnegativeQp::solve(ConstMatrixView M, std::span<const double> b,
                              std::span<const unsigned char> is_free, std::span<double> x,
                              int most_factorizations, ThreadPool* pool) {
  const Problem problem{M, b, is_free, x, pool};
  QpResult result;
  double sum = 0, length = 0;
  bound_ = 0;
  for (std::ptrdiff_t k = 0; k < problem.size(); ++k) {
    lengths_[at(k)] = std::sqrt(std::max(problem.at(k, k), 0.0));
    length = std::max(length, lengths_[at(k)]);
    bound_ = std::max(bound_, std::fabs(b[at(k)]));
    sum += std::fabs(problem.at(k, k)) + std::fabs(b[at(k)]) + std::fabs(x[at(k)]);
  }
  if (!std::isfinite(sum)) {
    std::fill(x.begin(), x.end(), 0.0);
    passive_.clear();
    last_factor_ = {};
    return result;
  }
  largest_size_ = blurred * bound_ / (epsilon * std::max(length, std::numeric_limits<double>::min()));
  switch (exchange_blocks(problem, result, most_factorizations)) {
    case Pivoting::solved:
      result.outcome = QpResult::Outcome::solved;
      break;
    case Pivoting::singular:
    case Pivoting::no_progress:
      result.outcome = exchange_one_by_one(problem, result);
      last_factor_ = {factor_.view().data, careful_.size(), careful_.size(), factor_.view().stride};
      break;
    case Pivoting::limit:
    case Pivoting::not_finite:
      break;
  }
  for (std::ptrdiff_t k = 0; k < problem.size(); ++k)
    if (!(problem.free(k) ? std::isfinite(x[at(k)]) : x[at(k)] >= 0)) x[at(k)] = 0;
  return result;
}

// g = M x - b from the lower triangle, each row read once, in order.
void NonnegativeQp::form_gradient(const Problem& problem) {
  size_ = 0;
  for (std::ptrdiff_t k = 0; k < problem.size(); ++k) {
    const double* row = problem.M.data + k * problem.M.stride;
    const double xk = problem.x[at(k)];
    const Eigen::Map<const Vector> left(row, k), x(problem.x.data(), k);
    gradient_[at(k)] = left.dot(x) + row[k] * xk - problem.b[at(k)];
    if (xk != 0) Eigen::Map<Vector>(gradient_.data(), k) += xk * left;
    size_ += lengths_[at(k)] * std::fabs(xk);
  }
  for (std::ptrdiff_t k = 0; k < problem.size(); ++k)
    size_ += 0 * gradient_[at(k)];  // NaN and infinity spread
}

// By how much index k has the wrong sign of g beyond rounding, in the units of lengths_.
double NonnegativeQp::excess(const Problem& problem, std::ptrdiff_t k) const {
  const double g = gradient_[at(k)], length = lengths_[at(k)];
  const double wrong = problem.free(k) ? std::fabs(g) : -g;
  // |(M x)_k| <= sum_l |M_kl| |x_l| <= lengths_k sum_l lengths_l |x_l| is what cancels in g_k.
  const double allowed = 2 * epsilon * (size_ * length + std::fabs(problem.b[at(k)]));
  if (wrong <= allowed) return 0;
  return (wrong - allowed) / std::max(length, std::numeric_limits<double>::min());
}

// The largest |g_k| of the passive set, in units of what rounding makes of it.
double NonnegativeQp::residual(const Problem& problem) const {
  double worst = 0;
  for (const std::ptrdiff_t k : passive_)
    worst = std::max(worst, std::fabs(gradient_[at(k)]) /
                                (epsilon * (size_ * lengths_[at(k)] + std::fabs(problem.b[at(k)]))));
  return worst;
}

NonnegativeQp::Pivoting NonnegativeQp::exchange_blocks(const Problem& problem, QpResult& result,
                                                       int most_factorizations) {
  const std::ptrdiff_t size = problem.size();
  const auto x = problem.x;
  bool guessed = false;
  for (std::ptrdiff_t k = 0; k < size; ++k) {
    is_passive_[at(k)] = problem.free(k) || x[at(k)] > 0;
    guessed = guessed || x[at(k)] > 0;
  }
  if (!guessed)
    for (std::ptrdiff_t k = 0; k < size; ++k) is_passive_[at(k)] = problem.free(k) || problem.b[at(k)] > 0;

  std::ptrdiff_t fewest = size + 1;
  int rounds_left = patience;
  for (;;) {
    passive_.clear();
    for (std::ptrdiff_t k = 0; k < size; ++k)
      if (is_passive_[at(k)]) passive_.push_back(k);

    // Factor M_PP; rows that depend on earlier ones leave P.
    MatrixView factor{factor_.view().data, 0, 0, 0};
    bool singular = false;
    for (std::ptrdiff_t done = 0;;) {
      if (result.factorizations >= most_factorizations) {
        passive_.clear();
        last_factor_ = {};
        return Pivoting::limit;
      }
      ++result.factorizations;
      const auto count = static_cast<std::ptrdiff_t>(passive_.size());
      factor = {factor_.view().data, count, count, padded(count)};
      for (std::ptrdiff_t i = 0; i < count; ++i) {
        const double* from = problem.M.data + passive_[at(i)] * problem.M.stride;
        double* to = factor.data + i * factor.stride;
        for (std::ptrdiff_t l = 0; l <= i; ++l) to[l] = from[passive_[at(l)]];
      }
      done = cholesky(factor, least_pivot(count), problem.pool);
      if (done == count) break;
      is_passive_[at(passive_[at(done)])] = 0;
      passive_.erase(passive_.begin() + done);
      // One at a time costs a factorization each: few of them are worth it, many are the other method's business.
      if (singular && count > 8) return Pivoting::singular;
      singular = true;
    }
    const auto count = static_cast<std::ptrdiff_t>(passive_.size());
    last_factor_ = factor;
    for (std::ptrdiff_t i = 0; i < count; ++i) solution_[at(i)] = problem.b[at(passive_[at(i)])];
    cholesky_solve(factor, count, solution_.data());
    std::fill(x.begin(), x.end(), 0.0);
    for (std::ptrdiff_t i = 0; i < count; ++i) x[at(passive_[at(i)])] = solution_[at(i)];
    form_gradient(problem);

    const auto is_wrong = [&](std::ptrdiff_t k) {
      return is_passive_[at(k)] ? !problem.free(k) && !(x[at(k)] >= 0) : excess(problem, k) > 0;
    };
    std::ptrdiff_t wrong = 0;
    for (std::ptrdiff_t k = 0; k < size; ++k) wrong += is_wrong(k) ? 1 : 0;

    // Right signs: two steps of iterative refinement, which also show whether the signs were a matter of rounding.
    for (int step = 0; wrong == 0 && step < 2; ++step) {
      for (std::ptrdiff_t i = 0; i < count; ++i) solution_[at(i)] = gradient_[at(passive_[at(i)])];
      cholesky_solve(factor, count, solution_.data());
      for (std::ptrdiff_t i = 0; i < count; ++i) {
        const std::ptrdiff_t k = passive_[at(i)];
        x[at(k)] -= solution_[at(i)];
      }
      form_gradient(problem);
      for (std::ptrdiff_t k = 0; k < size; ++k) wrong += is_wrong(k) ? 1 : 0;
    }
    if (!std::isfinite(size_)) return Pivoting::not_finite;
    if (size_ > largest_size_) return Pivoting::singular;
    if (wrong == 0) return residual(problem) < imprecise ? Pivoting::solved : Pivoting::singular;

    if (wrong < fewest) {
      fewest = wrong;
      rounds_left = patience;
    } else if (--rounds_left == 0) {
      return Pivoting::no_progress;
    }
    bool again = false;  // a row that depends on the others wants to enter
    for (std::ptrdiff_t k = 0; k < size; ++k)
      if (is_wrong(k)) {
        again = again || (singular && !is_passive_[at(k)]);
        is_passive_[at(k)] = !is_passive_[at(k)];
      }
    if (again) return Pivoting::singular;
  }
}

// Adds k to the passive set if its pivot is above `pivot`; if not, careful_.next_row() is L^-1 M_Pk.
bool NonnegativeQp::grow(const Problem& problem, std::ptrdiff_t k, double pivot) {
  double* row = careful_.next_row();
  for (std::size_t i = 0; i < passive_.size(); ++i) row[i] = problem(k, passive_[i]);
  if (!(careful_.append(problem.at(k, k)) > pivot)) return false;
  careful_.accept();
  passive_.push_back(k);
  is_passive_[at(k)] = 1;
  return true;
}

void NonnegativeQp::shrink(std::ptrdiff_t position) {
  const std::ptrdiff_t k = passive_[at(position)];
  is_passive_[at(k)] = 0;
  careful_.remove(position);
  passive_.erase(passive_.begin() + position);
}

// From a feasible x that is zero outside P to the minimizer over a subset of P: towards the solution of M_PP x_P = b_P,
// as far as x >= 0 allows; what reaches 0 leaves P, and again. Returns how far it
// went, relative to the size of x.
double NonnegativeQp::move_to_minimizer(const Problem& problem) {
  for (double way = 0;;) {
    const auto count = static_cast<std::ptrdiff_t>(passive_.size());
    for (std::ptrdiff_t i = 0; i < count; ++i) solution_[at(i)] = problem.b[at(passive_[at(i)])];
    careful_.solve(solution_.data());
    double step = 1;
    std::ptrdiff_t blocking = -1;
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const std::ptrdiff_t k = passive_[at(i)];
      const double from = problem.x[at(k)], to = solution_[at(i)];
      if (problem.free(k) || to > 0) continue;
      const double reach = from > 0 ? from / (from - to) : 0;
      if (blocking < 0 || reach < step) {
        step = std::min(reach, 1.0);
        blocking = i;
      }
    }
    double size = 0;
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const std::ptrdiff_t k = passive_[at(i)];
      const double before = problem.x[at(k)];
      double after = blocking < 0 ? solution_[at(i)] : before + step * (solution_[at(i)] - before);
      if (!problem.free(k)) after = std::max(after, 0.0);
      way += lengths_[at(k)] * std::fabs(after - before);
      size += lengths_[at(k)] * std::fabs(after);
      problem.x[at(k)] = after;
    }
    if (blocking < 0) return way > 0 ? way / size : 0;
    problem.x[at(passive_[at(blocking)])] = 0;
    shrink(blocking);
  }
}

QpResult::Outcome NonnegativeQp::exchange_one_by_one(const Problem& problem, QpResult& result) {
  const std::ptrdiff_t size = problem.size();
  const auto x = problem.x;
  ++result.factorizations;
  careful_ = GrowingCholesky(factor_.view(), rotations_);
  passive_.clear();
  std::fill(is_passive_.begin(), is_passive_.end(), static_cast<unsigned char>(0));
  std::fill(refused_.begin(), refused_.end(), static_cast<unsigned char>(0));
  for (std::ptrdiff_t k = 0; k < size; ++k)
    if (!((problem.free(k) || x[at(k)] > 0) && grow(problem, k, close_to_dependent))) x[at(k)] = 0;

  // Each set comes at most once; in practice a few steps per index. The limit is against rounding.
  std::ptrdiff_t entered = -1;
  for (std::ptrdiff_t steps = 20 * size + 100; steps > 0; --steps) {
    if (move_to_minimizer(problem) > 1e-10)
      std::fill(refused_.begin(), refused_.end(), static_cast<unsigned char>(0));
    if (entered >= 0 && !is_passive_[at(entered)]) refused_[at(entered)] = 1;
    entered = -1;
    form_gradient(problem);
    // One step of refinement: the factor has been rotated many times.
    const auto count = static_cast<std::ptrdiff_t>(passive_.size());
    for (std::ptrdiff_t i = 0; i < count; ++i) solution_[at(i)] = gradient_[at(passive_[at(i)])];
    careful_.solve(solution_.data());
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const std::ptrdiff_t k = passive_[at(i)];
      const double refined = x[at(k)] - solution_[at(i)];
      x[at(k)] = problem.free(k) ? refined : std::max(refined, 0.0);
    }
    form_gradient(problem);
    if (!std::isfinite(size_)) return QpResult::Outcome::stalled;

    // The index that enters: the steepest. Those refused have just left again without any progress.
    std::ptrdiff_t entering = -1;
    double steepest = 0, unresolved = 0;
    for (std::ptrdiff_t k = 0; k < size; ++k)
      if (!is_passive_[at(k)]) {
        const double e = excess(problem, k);
        if (refused_[at(k)]) {
          unresolved = std::max(unresolved, e * lengths_[at(k)]);
        } else if (e > steepest) {
          steepest = e;
          entering = k;
        }
      }
    if (entering < 0)
      return unresolved <= negligible * bound_ && residual(problem) < imprecise ? QpResult::Outcome::solved
                                                                                : QpResult::Outcome::stalled;

    // Along v_P = -M_PP^-1 M_Pk, v_k = 1 (all times -1 for a free k with g_k > 0) the gradient stays 0 on P.
    const double slope = std::fabs(gradient_[at(entering)]), sign = gradient_[at(entering)] < 0 ? 1 : -1;
    if (grow(problem, entering, close_to_dependent)) {
      entered = entering;
      continue;
    }
    const double curvature = careful_.pivot();
    std::copy_n(careful_.next_row(), count, solution_.data());
    careful_.solve_transposed(solution_.data());
    double length = lengths_[at(entering)], pull = sign * problem.b[at(entering)];
    double pulls = std::fabs(pull);
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const std::ptrdiff_t k = passive_[at(i)];
      const double v = solution_[at(i)] *= -sign;
      length += lengths_[at(k)] * std::fabs(v);
      pull += problem.b[at(k)] * v;
      pulls += std::fabs(problem.b[at(k)] * v);
    }
    double step = std::numeric_limits<double>::infinity();
    std::ptrdiff_t blocking = -1;
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const std::ptrdiff_t k = passive_[at(i)];
      const double v = solution_[at(i)];
      if (problem.free(k) || v >= 0) continue;
      const double reach = x[at(k)] / -v;
      const bool is_rounding = reach * length > largest_size_ && lengths_[at(k)] * -v < 1e-12 * length;
      if (reach < step && !is_rounding) {
        step = reach;
        blocking = i;
      }
    }
    const bool regular = curvature > least_pivot(count + 1) * problem.at(entering, entering) &&
                         slope / curvature * length < largest_size_;
    if (regular && !(step * curvature < slope)) {
      // The minimizer along v comes before any x_j = 0: a direction of small but real curvature.
      careful_.accept();
      passive_.push_back(entering);
      is_passive_[at(entering)] = 1;
      entered = entering;
      continue;
    }
    // b^T v = slope is nothing where it is within rounding: then the row repeats what P says already.
    if (slope <= 8 * epsilon * (size_ * length + pulls)) {
      refused_[at(entering)] = 1;
      continue;
    }
    if (blocking < 0) {
      if (!(pull > slope / 2)) {  // the parts do not add up: rounding
        refused_[at(entering)] = 1;
        continue;
      }
      std::fill(x.begin(), x.end(), 0.0);
      for (std::ptrdiff_t i = 0; i < count; ++i) {
        const std::ptrdiff_t k = passive_[at(i)];
        x[at(k)] = problem.free(k) ? solution_[at(i)] : std::max(solution_[at(i)], 0.0);
      }
      x[at(entering)] = sign;
      return QpResult::Outcome::unbounded;
    }
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      double& value = x[at(passive_[at(i)])];
      value += step * solution_[at(i)];
      if (!problem.free(passive_[at(i)])) value = std::max(value, 0.0);
    }
    const std::ptrdiff_t leaving = passive_[at(blocking)];
    x[at(leaving)] = 0;
    shrink(blocking);
    if (step > 0) std::fill(refused_.begin(), refused_.end(), static_cast<unsigned char>(0));
    if (grow(problem, entering, least_pivot(count))) {
      x[at(entering)] = sign * step;
      if (step == 0) refused_[at(leaving)] = 1;
    } else {
      refused_[at(entering)] = 1;
    }
  }
  return QpResult::Outcome::stalled;
}

}  // namespace attmirror
