// The quadratic problem inside every active-set Newton step, with a dense matrix:
//
//   min 1/2 x^T M x - b^T x   subject to  x_k >= 0, or x_k free        M symmetric positive semidefinite
//
//   KKT: with g = M x - b,  g_k = 0 where x_k > 0 or free,  g_k >= 0 where x_k = 0
//
// The multipliers of a max-margin problem with a quadratic objective are its solution (M = B D B^T, free where the
// constraint is an equality).
#pragma once

#include "margin/cholesky.hpp"
#include "margin/growing_cholesky.hpp"
#include <attmirror/base/aligned.hpp>
#include <attmirror/base/thread_pool.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace attmirror {

struct QpResult {
  enum class Outcome {
    solved,
    unbounded,  // x is then a direction with x >= 0 (or free), M x = 0 up to rounding and b^T x > 0
    stalled,    // rounding or degeneracy; x is the best found
  } outcome = Outcome::stalled;
  int factorizations = 0;
};

// Keeps its memory: a Newton method calls it once an iteration with much the same active set.
class NonnegativeQp {
 public:
  // For problems of at most this size.
  explicit NonnegativeQp(std::ptrdiff_t largest_size);

  // `M` is size x size, lower triangle. `x` holds a start on entry (its positive entries guess the active set; zeros are
  // fine) and the solution on return. `is_free` has a nonzero entry where x_k is free; empty: nowhere. M is not changed.
  QpResult solve(ConstMatrixView M, std::span<const double> b, std::span<const unsigned char> is_free,
                 std::span<double> x, int most_factorizations, ThreadPool* pool = nullptr);

  // After solve(): the indices with x_k > 0 or free that it ended with (without those whose rows depend on them; after
  // `unbounded` without the one that completed the null vector), and v <- M_PP^-1 v for numbers in their order.
  std::span<const std::ptrdiff_t> passive() const { return passive_; }
  void solve_passive(double* v) const { cholesky_solve(last_factor_, last_factor_.rows, v); }

 private:
  struct Problem {
    ConstMatrixView M;
    std::span<const double> b;
    std::span<const unsigned char> is_free;
    std::span<double> x;
    ThreadPool* pool;

    std::ptrdiff_t size() const { return static_cast<std::ptrdiff_t>(b.size()); }
    bool free(std::ptrdiff_t k) const {
      return !is_free.empty() && is_free[static_cast<std::size_t>(k)] != 0;
    }
    double at(std::ptrdiff_t k, std::ptrdiff_t l) const { return M.data[k * M.stride + l]; }  // l <= k
    double operator()(std::ptrdiff_t k, std::ptrdiff_t l) const { return l <= k ? at(k, l) : at(l, k); }
  };
  enum class Pivoting { solved, singular, no_progress, limit, not_finite };

  Pivoting exchange_blocks(const Problem& problem, QpResult& result, int most_factorizations);
  QpResult::Outcome exchange_one_by_one(const Problem& problem, QpResult& result);
  void form_gradient(const Problem& problem);
  bool grow(const Problem& problem, std::ptrdiff_t k, double pivot);
  void shrink(std::ptrdiff_t position);
  double move_to_minimizer(const Problem& problem);
  double excess(const Problem& problem, std::ptrdiff_t k) const;
  double residual(const Problem& problem) const;

  PaddedMatrix factor_;
  ConstMatrixView last_factor_;
  GrowingCholesky careful_;                                  // in the memory of factor_
  AlignedVector gradient_, solution_, rotations_, lengths_;  // lengths_: square roots of the diagonal
  double size_ = 0;          // sum_k lengths_k |x_k|: rounding of (M x)_l is within epsilon size_ lengths_l
  double bound_ = 0;         // the largest |b_k|
  double largest_size_ = 0;  // beyond it rounding hides b
  std::vector<std::ptrdiff_t> passive_;
  std::vector<unsigned char> is_passive_, refused_;
};

}  // namespace attmirror
