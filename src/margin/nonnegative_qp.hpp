// The quadratic problem inside every active-set Newton step, with a dense matrix:
//
//   min 1/2 x^T M x - b^T x   subject to  x_k >= 0, or x_k free        M symmetric positive semidefinite
//
//   KKT: with g = M x - b,  g_k = 0 where x_k > 0 or free,  g_k >= 0 where x_k = 0
//
// The multipliers of a max-margin problem with a quadratic objective are its solution (M = B D B^T, free where the
// constraint is an equality).
#pragma once

#include "margin/active_set_qp.hpp"
#include "margin/bordered_factor.hpp"
#include "margin/cholesky.hpp"
#include <attmirror/base/matrix.hpp>
#include <attmirror/base/thread_pool.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace attmirror {

struct QpResult {
  using Outcome = QpOutcome;
  Outcome outcome = Outcome::stalled;
  int factorizations = 0;
};

// Keeps its memory: a Newton method calls it once an iteration with much the same active set.
class NonnegativeQp {
 public:
  // Whether solve_passive() is called: then solve() ends with a factorization of its own for the last set.
  enum class Factor { of_the_solution, not_needed };

  // For problems of at most this size.
  explicit NonnegativeQp(std::ptrdiff_t largest_size, Factor factor = Factor::of_the_solution);

  // solve() looks at it between factorizations and exchanges, and then stalls.
  void heed(const StopRequest& stop) { careful_.heed(stop); }

  // `M` is size x size, lower triangle. `x` holds a start on entry (its positive entries guess the active set;
  // zeros are fine) and the solution on return. `is_free` has a nonzero entry where x_k is free; empty: nowhere. M
  // is not changed.
  QpResult solve(ConstMatrixView M, std::span<const double> b, std::span<const unsigned char> is_free,
                 std::span<double> x, int most_factorizations, ThreadPool* pool = nullptr);

  // After solve(): the indices with x_k > 0 or free that it ended with (without those whose rows depend on them; after
  // `unbounded` without the one that completed the null vector), and v <- M_PP^-1 v for numbers in their order.
  std::span<const std::ptrdiff_t> passive() const { return careful_.passive(); }
  void solve_passive(double* v) const { cholesky_solve(last_factor_, last_factor_.rows, v); }

 private:
  enum class Pivoting { solved, singular, no_progress, limit, not_finite };
  Pivoting exchange_blocks(const QpProblem<double>& problem, QpResult& result, int most_factorizations,
                           ThreadPool* pool);

  Factor factor_;
  ActiveSetQp<double> careful_;
  BorderedFactor bordered_;
  std::vector<std::ptrdiff_t> factored_;  // the indices of the last factorization
  ConstMatrixView last_factor_;
};

}  // namespace attmirror
