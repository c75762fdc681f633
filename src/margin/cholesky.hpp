// Cholesky factorization of the dense symmetric systems of the Newton steps, in place, row-major, lower triangle.
#pragma once

#include <attmirror/base/matrix.hpp>
#include <attmirror/base/thread_pool.hpp>

#include <cstddef>

namespace attmirror {

// Replaces the lower triangle of `m` (square) by L with L L^T = m. Returns the number of rows done: all of them, or
// the index of the first pivot that is not above `least_pivot` times the row's original diagonal entry (then the rows
// before it hold the factor of the leading block, and the row itself its part of the factor before the diagonal). The
// upper triangle has no influence; it may be overwritten. Rows are padded. A pool spreads large ones over its
// threads, with the same bits.
std::ptrdiff_t cholesky(MatrixView m, double least_pivot, ThreadPool* pool = nullptr);

// x <- L^-T L^-1 x for the leading `size` rows of the factor.
void cholesky_solve(ConstMatrixView factor, std::ptrdiff_t size, double* x);
// Its two halves, x <- L^-1 x and x <- L^-T x.
void cholesky_solve_lower(ConstMatrixView factor, std::ptrdiff_t size, double* x);
void cholesky_solve_upper(ConstMatrixView factor, std::ptrdiff_t size, double* x);

}  // namespace attmirror
