// The boundary of the kernels of Cholesky factorization, compiled once per instruction set. Row-major, lower triangles.
#pragma once

#include <cstddef>

namespace attmirror::kernels {

constexpr std::ptrdiff_t cholesky_strip = 16;      // rows that are solved for together
constexpr std::ptrdiff_t cholesky_panel = 128;     // columns that are eliminated together in a large matrix
constexpr std::ptrdiff_t cholesky_smallest = 256;  // up to this size, factor() does it all

// The rows below a factored diagonal block of cholesky_panel columns.
struct CholeskyPanel {
  double* first;           // row 0, column 0 of the rows below, within the matrix
  std::ptrdiff_t stride;   // of the matrix
  std::ptrdiff_t rows;     // below
  const double* diagonal;  // the factor of the diagonal block, copied: rows of `diagonal_stride` numbers
  std::ptrdiff_t diagonal_stride;
  const double* inverse_pivots;
  double* strips;    // the rows below in strips, ceil(rows / 16) of cholesky_panel * 16 numbers
  double* trailing;  // row 0, column 0 of what is left to factor, within the matrix
};

struct CholeskyTable {
  // Factors `size` <= cholesky_smallest rows in place; a pivot must be above its entry of `least`. Returns how many
  // rows are done. The row after them holds its part of the factor in the columns before the diagonal.
  std::ptrdiff_t (*factor)(double* m, std::ptrdiff_t stride, std::ptrdiff_t size, const double* least);
  // Rows 16 s to 16 s + 15 below the diagonal block become rows of the factor, in the matrix and in strip s.
  void (*solve_panel)(const CholeskyPanel& panel, std::ptrdiff_t s);
  // Subtracts the panel's products from strips [row_begin, row_end) times [col_begin, col_end) of the trailing matrix,
  // on and below its diagonal.
  void (*update)(const CholeskyPanel& panel, std::ptrdiff_t row_begin, std::ptrdiff_t row_end,
                 std::ptrdiff_t col_begin, std::ptrdiff_t col_end);
  // x <- L^-1 x and x <- L^-T x
  void (*solve_lower)(const double* factor, std::ptrdiff_t stride, std::ptrdiff_t size, double* x);
  void (*solve_upper)(const double* factor, std::ptrdiff_t stride, std::ptrdiff_t size, double* x);
};

}  // namespace attmirror::kernels

namespace attmirror {
namespace isa_sse2 {
extern const kernels::CholeskyTable cholesky_table;
}
namespace isa_avx2 {
extern const kernels::CholeskyTable cholesky_table;
}
namespace isa_avx512 {
extern const kernels::CholeskyTable cholesky_table;
}
}  // namespace attmirror
