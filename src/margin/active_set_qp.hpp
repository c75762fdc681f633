// The careful method for  min 1/2 x^T M x - b^T x,  x_k >= 0 or free,  M positive semidefinite (nonnegative_qp.hpp):
// a primal active-set method, Lawson and Hanson's for a matrix of scalar products.
//
// The passive set P holds the indices where x may differ from 0, with rows of M that are independent. From the
// minimizer over P the index k with the steepest wrong sign of g = M x - b enters, along the direction that keeps g_P
// = 0:
//
//   v_P = -M_PP^-1 M_Pk,  v_k = 1        slope b^T v = -g_k > 0,  curvature v^T M v = the pivot mu of k's row
//
// up to the minimizer along v, or until some x_j reaches 0 and leaves P. The objective falls at each step, so no set
// comes twice and it ends. Where row k depends on those of P the curvature is 0 and v a null vector: then some x_j
// must make room for k, or else the objective falls for ever and v is the proof of unboundedness.
//
// Rows that are nearly dependent make M_PP nearly singular, so k is exchanged against an x_j where that is possible,
// and a pivot counts as real only where x stays within what rounding of M x leaves of b.
//
// Real is double, or long double or DoubleDouble where M is that precise.
#pragma once

#include "margin/chosen_kernels.hpp"
#include "margin/double_double.hpp"
#include "margin/growing_cholesky.hpp"
#include "margin/kept_numbers.hpp"
#include <attmirror/base/matrix.hpp>
#include <attmirror/base/stop.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <Eigen/Core>

namespace attmirror {

template <class Real>
struct QpProblem {
  const Real* M;  // rows of `stride` numbers, lower triangle
  std::ptrdiff_t stride;
  std::span<const double> b;
  std::span<const unsigned char> is_free;  // nonzero where x_k is free; empty: nowhere
  std::span<Real> x;

  std::ptrdiff_t size() const { return static_cast<std::ptrdiff_t>(b.size()); }
  bool free(std::ptrdiff_t k) const { return !is_free.empty() && is_free[static_cast<std::size_t>(k)] != 0; }
  const Real* row(std::ptrdiff_t k) const { return M + k * stride; }
  Real at(std::ptrdiff_t k, std::ptrdiff_t l) const { return l <= k ? row(k)[l] : row(l)[k]; }
};

enum class QpOutcome {
  solved,
  unbounded,  // x is then a direction with x >= 0 (or free), M x = 0 up to rounding and b^T x > 0
  stalled,    // rounding or degeneracy; x is the best found
};

template <class Real>
class ActiveSetQp {
 public:
  using Numbers = std::vector<Real, CacheLineAllocator<Real>>;

  explicit ActiveSetQp(std::ptrdiff_t largest_size)
      : stride_(padded(largest_size)),
        factor_(at(largest_size * stride_)),
        gradient_(at(largest_size)),
        solution_(at(largest_size)),
        rotations_(at(2 * largest_size)),
        lengths_(at(largest_size)),
        is_passive_(at(largest_size)),
        refused_(at(largest_size)) {
    passive_.reserve(at(largest_size));
  }

  // solve() looks at it between its steps and then stalls.
  void heed(StopRequest stop) { stop_ = std::move(stop); }
  bool must_stop() const { return stop_.requested(); }

  // Looks at a problem for the first time. False: there is something that is not finite.
  bool begin(const QpProblem<Real>& problem) {
    Real sum = 0, length = 0;
    bound_ = 0;
    for (std::ptrdiff_t k = 0; k < problem.size(); ++k) {
      const Real diagonal = problem.row(k)[k];
      lengths_[at(k)] = real::sqrt(std::max(diagonal, Real(0)));
      length = std::max(length, lengths_[at(k)]);
      bound_ = std::max(bound_, Real(real::fabs(problem.b[at(k)])));
      sum += real::fabs(diagonal) + real::fabs(problem.b[at(k)]) + real::fabs(problem.x[at(k)]);
    }
    largest_size_ = blurred * bound_ / (epsilon * std::max(length, std::numeric_limits<Real>::min()));
    passive_.clear();
    return real::isfinite(sum);
  }

  // Starts from the positive part of x, which must be finite.
  QpOutcome solve(const QpProblem<Real>& problem);

  // After solve(): v <- M_PP^-1 v for numbers in the order of passive().
  void solve_passive(Real* v) const { L_.solve(v); }

  // What block pivoting (nonnegative_qp.cpp) shares.

  // g = M x - b from the lower triangle, each row read once, in order.
  void form_gradient(const QpProblem<Real>& problem) {
    multiply(problem);
    size_ = 0;
    for (std::ptrdiff_t k = 0; k < problem.size(); ++k) {
      gradient_[at(k)] -= problem.b[at(k)];
      size_ +=
          lengths_[at(k)] * real::fabs(problem.x[at(k)]) + 0 * gradient_[at(k)];  // NaN and infinity spread
    }
  }
  Real gradient(std::ptrdiff_t k) const { return gradient_[at(k)]; }
  std::span<const Real> gradients() const { return gradient_; }

  // By how much index k has the wrong sign of g beyond rounding, in units of lengths_.
  Real excess(const QpProblem<Real>& problem, std::ptrdiff_t k) const {
    const Real g = gradient_[at(k)], wrong = problem.free(k) ? real::fabs(g) : -g;
    const Real allowed = 2 * rounding(problem, k);
    return wrong <= allowed ? 0
                            : (wrong - allowed) / std::max(lengths_[at(k)], std::numeric_limits<Real>::min());
  }

  // Whether g is 0 on P up to rounding. If not, the factor is not that of a regular matrix.
  bool precise(const QpProblem<Real>& problem) const {
    return std::all_of(passive_.begin(), passive_.end(), [&](std::ptrdiff_t k) {
      return real::fabs(gradient_[at(k)]) <= 100 * rounding(problem, k);
    });
  }
  bool finite() const { return real::isfinite(size_); }
  bool blurs() const { return size_ > largest_size_; }

  // A pivot below this, relative to its diagonal entry, is rounding of the scalar products.
  static Real least_pivot(std::ptrdiff_t size) { return epsilon * (50 + 2 * static_cast<Real>(size)); }

  // P and L with L L^T = M_PP; the memory is there for block pivoting too, with strides of its own.
  std::vector<std::ptrdiff_t>& passive() { return passive_; }
  const std::vector<std::ptrdiff_t>& passive() const { return passive_; }
  std::vector<unsigned char>& is_passive() { return is_passive_; }
  Real* factor() { return factor_.data(); }
  std::ptrdiff_t stride() const { return stride_; }
  Numbers& workspace() { return solution_; }

 private:
  using Column = Eigen::Matrix<Real, Eigen::Dynamic, 1>;

  static constexpr Real epsilon = std::numeric_limits<Real>::epsilon();
  // Where rounding of M x would exceed this part of b, x says nothing: some set of rows is as good as dependent.
  static constexpr Real blurred = 1e-3;
  // Rows this close to the span of the others (squared sine of the angle) are exchanged against one of them
  // if possible.
  static constexpr Real close_to_dependent = 1e-6;
  // A wrong sign that cannot be mended counts from this part of the largest |b_k| on.
  static constexpr Real negligible = 1e-11;
  // The same for a row that depends on P and differs from it by no more than rounding of M x and b.
  static constexpr Real repeated = 1e-6;

  static std::size_t at(std::ptrdiff_t k) { return static_cast<std::size_t>(k); }

  // |(M x)_k| <= sum_l |M_kl| |x_l| <= lengths_k sum_l lengths_l |x_l| is what cancels in g_k.
  Real rounding(const QpProblem<Real>& problem, std::ptrdiff_t k) const {
    return epsilon * (size_ * lengths_[at(k)] + real::fabs(problem.b[at(k)]));
  }

  // gradient_ <- M x
  void multiply(const QpProblem<Real>& problem) {
    if constexpr (std::is_same_v<Real, double>) {
      qp_kernels().product({problem.M, problem.stride, problem.size()}, problem.x.data(), gradient_.data());
      return;
    }
    for (std::ptrdiff_t k = 0; k < problem.size(); ++k) {
      const Real* row = problem.row(k);
      const Real xk = problem.x[at(k)];
      const Eigen::Map<const Column> left(row, k), x(problem.x.data(), k);
      gradient_[at(k)] = left.dot(x) + row[k] * xk;
      if (xk != 0) Eigen::Map<Column>(gradient_.data(), k) += xk * left;
    }
  }

  bool grow(const QpProblem<Real>& problem, std::ptrdiff_t k, Real pivot);
  void shrink(std::ptrdiff_t position);
  Real move_to_minimizer(const QpProblem<Real>& problem);
  void refine(const QpProblem<Real>& problem);
  void forget_refusals() { std::fill(refused_.begin(), refused_.end(), static_cast<unsigned char>(0)); }

  std::ptrdiff_t stride_;
  std::conditional_t<std::is_same_v<Real, double>, KeptNumbers, UnwrittenNumbers<Real>> factor_;
  GrowingCholesky<Real> L_;  // in factor_
  Numbers gradient_, solution_, rotations_;
  Numbers lengths_;        // square roots of the diagonal
  Real size_ = 0;          // sum_k lengths_k |x_k|
  Real bound_ = 0;         // the largest |b_k|
  Real largest_size_ = 0;  // beyond it rounding hides b
  std::vector<std::ptrdiff_t> passive_;
  std::vector<unsigned char> is_passive_;
  StopRequest stop_;
  std::vector<unsigned char> refused_;  // 1: left again without progress, 2: repeats what P says
};

// Adds k to P if its pivot is above `pivot`; if not, L_.next_row() is L^-1 M_Pk.
template <class Real>
bool ActiveSetQp<Real>::grow(const QpProblem<Real>& problem, std::ptrdiff_t k, Real pivot) {
  Real* row = L_.next_row();
  for (std::size_t i = 0; i < passive_.size(); ++i) row[i] = problem.at(k, passive_[i]);
  if (!(L_.append(problem.row(k)[k]) > pivot)) return false;
  L_.accept();
  passive_.push_back(k);
  is_passive_[at(k)] = 1;
  return true;
}

template <class Real>
void ActiveSetQp<Real>::shrink(std::ptrdiff_t position) {
  is_passive_[at(passive_[at(position)])] = 0;
  L_.remove(position);
  passive_.erase(passive_.begin() + position);
}

// From a feasible x that is zero outside P to the minimizer over a subset of P: towards the solution of M_PP x_P = b_P,
// as far as x >= 0 allows; what reaches 0 leaves P, and again. Returns how far it went, relative to the size of x.
template <class Real>
Real ActiveSetQp<Real>::move_to_minimizer(const QpProblem<Real>& problem) {
  for (Real way = 0;;) {
    const auto count = static_cast<std::ptrdiff_t>(passive_.size());
    for (std::ptrdiff_t i = 0; i < count; ++i) solution_[at(i)] = problem.b[at(passive_[at(i)])];
    L_.solve(solution_.data());
    Real step = 1;
    std::ptrdiff_t blocking = -1;
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const Real from = problem.x[at(passive_[at(i)])], to = solution_[at(i)];
      if (problem.free(passive_[at(i)]) || to > 0) continue;
      const Real reach = from > 0 ? from / (from - to) : 0;
      if (blocking < 0 || reach < step) {
        step = std::min(reach, Real(1));
        blocking = i;
      }
    }
    Real size = 0;
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const std::ptrdiff_t k = passive_[at(i)];
      const Real before = problem.x[at(k)];
      Real after = blocking < 0 ? solution_[at(i)] : before + step * (solution_[at(i)] - before);
      if (!problem.free(k)) after = std::max(after, Real(0));
      way += lengths_[at(k)] * real::fabs(after - before);
      size += lengths_[at(k)] * real::fabs(after);
      problem.x[at(k)] = after;
    }
    if (blocking < 0) return way > 0 ? way / size : 0;
    problem.x[at(passive_[at(blocking)])] = 0;
    shrink(blocking);
  }
}

// One step of iterative refinement: the factor has been rotated many times.
template <class Real>
void ActiveSetQp<Real>::refine(const QpProblem<Real>& problem) {
  form_gradient(problem);
  for (std::size_t i = 0; i < passive_.size(); ++i) solution_[i] = gradient_[at(passive_[i])];
  L_.solve(solution_.data());
  for (std::size_t i = 0; i < passive_.size(); ++i) {
    Real& value = problem.x[at(passive_[i])];
    value -= solution_[i];
    if (!problem.free(passive_[i])) value = std::max(value, Real(0));
  }
  form_gradient(problem);
}

template <class Real>
QpOutcome ActiveSetQp<Real>::solve(const QpProblem<Real>& problem) {
  const std::ptrdiff_t size = problem.size();
  const auto x = problem.x;
  L_ = GrowingCholesky<Real>(factor_.data(), stride_, rotations_);
  passive_.clear();
  std::fill(is_passive_.begin(), is_passive_.end(), static_cast<unsigned char>(0));
  forget_refusals();
  for (std::ptrdiff_t k = 0; k < size; ++k)
    if (!((problem.free(k) || x[at(k)] > 0) && grow(problem, k, close_to_dependent))) x[at(k)] = 0;

  // Each set comes at most once; in practice a few steps per index. The limit is against rounding.
  std::ptrdiff_t entered = -1;
  bool changed = true;  // P, in the step before
  for (std::ptrdiff_t steps = 20 * size + 100; steps > 0 && !must_stop(); --steps) {
    if (changed) {
      if (move_to_minimizer(problem) > Real(1e-10)) forget_refusals();
      if (entered >= 0 && !is_passive_[at(entered)]) refused_[at(entered)] = 1;
      entered = -1;
      refine(problem);
      if (!finite()) return QpOutcome::stalled;
    }
    changed = false;

    // The index that enters: the steepest. Those refused have just left again without any progress.
    std::ptrdiff_t entering = -1;
    Real steepest = 0, unresolved = 0;
    for (std::ptrdiff_t k = 0; k < size; ++k) {
      if (is_passive_[at(k)]) continue;
      const Real wrong = excess(problem, k);
      if (refused_[at(k)] == 2) continue;
      if (refused_[at(k)] == 1) {
        unresolved = std::max(unresolved, wrong * lengths_[at(k)]);
      } else if (wrong > steepest) {
        steepest = wrong;
        entering = k;
      }
    }
    if (entering < 0) {
      const bool good = unresolved <= negligible * bound_ && precise(problem) && !blurs();
      return good ? QpOutcome::solved : QpOutcome::stalled;
    }
    const Real slope = real::fabs(gradient_[at(entering)]);
    const Real sign = gradient_[at(entering)] < 0 ? 1 : -1;  // -1 only for a free index
    if (grow(problem, entering, close_to_dependent)) {
      entered = entering;
      changed = true;
      continue;
    }

    const auto count = static_cast<std::ptrdiff_t>(passive_.size());
    const Real curvature = L_.pivot();
    std::copy_n(L_.next_row(), count, solution_.data());
    L_.solve_transposed(solution_.data());  // v_P, up to its sign
    Real length = lengths_[at(entering)], pull = sign * problem.b[at(entering)], pulls = real::fabs(pull);
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const std::ptrdiff_t k = passive_[at(i)];
      const Real v = solution_[at(i)] *= -sign;
      length += lengths_[at(k)] * real::fabs(v);
      pull += problem.b[at(k)] * v;
      pulls += real::fabs(problem.b[at(k)] * v);
    }
    Real step = std::numeric_limits<Real>::infinity();
    std::ptrdiff_t blocking = -1;
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      const std::ptrdiff_t k = passive_[at(i)];
      const Real v = solution_[at(i)];
      if (problem.free(k) || v >= 0) continue;
      const Real reach = x[at(k)] / -v;
      const bool is_rounding =
          reach * length > largest_size_ && lengths_[at(k)] * -v < 4e6 * epsilon * length;
      if (reach < step && !is_rounding) {
        step = reach;
        blocking = i;
      }
    }
    const bool regular = curvature > least_pivot(count + 1) * problem.row(entering)[entering] &&
                         slope / curvature * length < largest_size_;
    if (regular && !(step * curvature < slope)) {
      // The minimizer along v comes before any x_j = 0: a direction of small but real curvature.
      L_.accept();
      passive_.push_back(entering);
      is_passive_[at(entering)] = 1;
      entered = entering;
      changed = true;
      continue;
    }
    // A slope within rounding: the row repeats what P says already.
    if (slope <= std::min(8 * epsilon * (size_ * length + pulls), repeated * bound_)) {
      refused_[at(entering)] = 2;
      continue;
    }
    if (blocking < 0 && !(pull > slope / 2)) {  // its parts do not add up
      refused_[at(entering)] = 1;
      continue;
    }
    if (blocking < 0) {
      std::fill(x.begin(), x.end(), Real(0));
      for (std::ptrdiff_t i = 0; i < count; ++i)
        x[at(passive_[at(i)])] =
            problem.free(passive_[at(i)]) ? solution_[at(i)] : std::max(solution_[at(i)], Real(0));
      x[at(entering)] = sign;
      return QpOutcome::unbounded;
    }
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      Real& value = x[at(passive_[at(i)])];
      value += step * solution_[at(i)];
      if (!problem.free(passive_[at(i)])) value = std::max(value, Real(0));
    }
    changed = true;
    const std::ptrdiff_t leaving = passive_[at(blocking)];
    x[at(leaving)] = 0;
    shrink(blocking);
    if (step > 0) forget_refusals();
    if (grow(problem, entering, least_pivot(count))) {
      x[at(entering)] = sign * step;
      if (step == 0) refused_[at(leaving)] = 1;
    } else {
      refused_[at(entering)] = 1;
    }
  }
  return QpOutcome::stalled;
}

}  // namespace attmirror
