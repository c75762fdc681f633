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

 private:
  PaddedMatrix factor_;
  AlignedVector gradient_, solution_;
  std::vector<std::ptrdiff_t> passive_;
};

}  // namespace attmirror
