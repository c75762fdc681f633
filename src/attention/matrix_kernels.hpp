// Small matrix products over padded rows, for the kernels that are compiled once per instruction set.
//
// All of them walk along rows in whole vectors (Wide, then one Narrow if the stride is not a multiple of
// Wide) and keep a tile of the result in registers. The order of every sum is fixed by the shapes alone.
#pragma once

#include "base/register_tiles.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

// C[i,:] (+)= sum_c A[i,c] B[c,:] for a tile of Rows rows and Cols vectors. With `Transposed`, A is read as
// A[c,i]: the sum of outer products. `C` is overwritten or added to.
enum class Into { overwrite, add };

template <class V, int Rows, int Cols, bool Transposed, Into into, class Number, class Ahead>
[[gnu::always_inline]] inline void product_tile(const double* A, std::ptrdiff_t lda, const Number* B,
                                                std::ptrdiff_t ldb, double* C, std::ptrdiff_t ldc,
                                                std::ptrdiff_t depth, Ahead& ahead) {
  Tile<V, Rows, Cols> tile;
  if constexpr (into == Into::add)
    tile.read(C, ldc);
  else
    tile.clear();
  tile.add_products([=](int r, std::ptrdiff_t c) { return Transposed ? A[c * lda + r] : A[r * lda + c]; }, B,
                    ldb, depth, ahead);
  tile.write(C, ldc);
}

template <class V, int Cols, bool Transposed, Into into, class Ahead>
[[gnu::always_inline]] inline void product_columns(const double* A, std::ptrdiff_t lda, const double* B,
                                                   std::ptrdiff_t ldb, double* C, std::ptrdiff_t ldc,
                                                   std::ptrdiff_t rows, std::ptrdiff_t depth, Ahead& ahead) {
  const std::ptrdiff_t step = Transposed ? 1 : lda;
  std::ptrdiff_t i = 0;
  for (; i + tile_rows <= rows; i += tile_rows)
    product_tile<V, tile_rows, Cols, Transposed, into>(A + i * step, lda, B, ldb, C + i * ldc, ldc, depth,
                                                       ahead);
  for (; i + 4 <= rows; i += 4)
    product_tile<V, 4, Cols, Transposed, into>(A + i * step, lda, B, ldb, C + i * ldc, ldc, depth, ahead);
  for (; i + 2 <= rows; i += 2)
    product_tile<V, 2, Cols, Transposed, into>(A + i * step, lda, B, ldb, C + i * ldc, ldc, depth, ahead);
  if (i < rows)
    product_tile<V, 1, Cols, Transposed, into>(A + i * step, lda, B, ldb, C + i * ldc, ldc, depth, ahead);
}

template <bool Transposed, Into into, class Ahead>
inline void product(const double* A, std::ptrdiff_t lda, const double* B, double* C, std::ptrdiff_t stride,
                    std::ptrdiff_t rows, std::ptrdiff_t depth, Ahead& ahead) {
  std::ptrdiff_t j = 0;
  for (; j + 2 * lanes<Wide> <= stride; j += 2 * lanes<Wide>)
    product_columns<Wide, 2, Transposed, into>(A, lda, B + j, stride, C + j, stride, rows, depth, ahead);
  if (j + lanes<Wide> <= stride) {
    product_columns<Wide, 1, Transposed, into>(A, lda, B + j, stride, C + j, stride, rows, depth, ahead);
    j += lanes<Wide>;
  }
  for (; j < stride; j += lanes<Narrow>)
    product_columns<Narrow, 1, Transposed, into>(A, lda, B + j, stride, C + j, stride, rows, depth, ahead);
}

// C = A B: A (rows, depth) with row length lda, B (depth, stride), C (rows, stride).
template <class Ahead>
inline void multiply(const double* A, std::ptrdiff_t lda, const double* B, double* C, std::ptrdiff_t stride,
                     std::ptrdiff_t rows, std::ptrdiff_t depth, Ahead& ahead) {
  product<false, Into::overwrite>(A, lda, B, C, stride, rows, depth, ahead);
}

// C += A^T B: A (depth, rows) with row length lda, B (depth, stride), C (rows, stride).
template <class Ahead>
inline void add_outer_products(const double* A, std::ptrdiff_t lda, const double* B, double* C,
                               std::ptrdiff_t stride, std::ptrdiff_t rows, std::ptrdiff_t depth,
                               Ahead& ahead) {
  product<true, Into::add>(A, lda, B, C, stride, rows, depth, ahead);
}

// The inner product of one row with u, before its lanes are added up: four partial sums (two on SSE2), so
// that the lanes of four rows can be added together.
#if defined(ATTMIRROR_ISA_sse2)
using Partial = F64x2;
#else
using Partial = F64x4;
#endif

template <class Number>
[[gnu::always_inline]] inline Partial partial_dot(const Number* x, const double* u, std::ptrdiff_t stride) {
  Wide sum{};
  std::ptrdiff_t j = 0;
  for (; j + lanes<Wide> <= stride; j += lanes<Wide>)
    sum = mul_add(load<Wide>(x + j), load<Wide>(u + j), sum);
#if defined(ATTMIRROR_ISA_avx512)
  Partial folded = low_half(sum) + high_half(sum);
  if (j < stride) folded = mul_add(load<Narrow>(x + j), load<Narrow>(u + j), folded);
  return folded;
#else
  return sum;
#endif
}

// The lane sums of four vectors, each added in the order of reduce_pairs.
#if defined(ATTMIRROR_ISA_sse2)
[[gnu::always_inline]] inline double reduce_pairs(F64x2 v) { return v[0] + v[1]; }
[[gnu::always_inline]] inline void store_sums(double* out, F64x2 a, F64x2 b, F64x2 c, F64x2 d) {
  store(out, __builtin_shufflevector(a, b, 0, 2) + __builtin_shufflevector(a, b, 1, 3));
  store(out + 2, __builtin_shufflevector(c, d, 0, 2) + __builtin_shufflevector(c, d, 1, 3));
}
#else
[[gnu::always_inline]] inline double reduce_pairs(F64x4 v) { return (v[0] + v[1]) + (v[2] + v[3]); }
[[gnu::always_inline]] inline void store_sums(double* out, F64x4 a, F64x4 b, F64x4 c, F64x4 d) {
  const F64x4 ab = __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7);
  const F64x4 cd = __builtin_shufflevector(c, d, 0, 4, 2, 6) + __builtin_shufflevector(c, d, 1, 5, 3, 7);
  store(out, __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
}
#endif

// out[t] = x_t . u for `rows` consecutive rows.
template <class Number>
inline void row_dots(const Number* x, const double* u, double* out, std::ptrdiff_t stride,
                     std::ptrdiff_t rows) {
  std::ptrdiff_t t = 0;
  for (; t + 4 <= rows; t += 4) {
    const Number* row = x + t * stride;
    store_sums(out + t, partial_dot(row, u, stride), partial_dot(row + stride, u, stride),
               partial_dot(row + 2 * stride, u, stride), partial_dot(row + 3 * stride, u, stride));
  }
  for (; t < rows; ++t) out[t] = reduce_pairs(partial_dot(x + t * stride, u, stride));
}

// C[i,:] = (b_0 . a_i, b_1 . a_i, ...), C = A B^T: A (rows, stride), B (columns, stride), C (rows, ldc). A few rows
// of B stay in the cache while all of A goes by.
inline void multiply_by_transposed(const double* A, const double* B, double* C, std::ptrdiff_t ldc,
                                   std::ptrdiff_t stride, std::ptrdiff_t rows, std::ptrdiff_t columns) {
  for (std::ptrdiff_t k = 0; k < columns; k += 8)
    for (std::ptrdiff_t i = 0; i < rows; ++i)
      row_dots(B + k * stride, A + i * stride, C + i * ldc + k, stride, columns - k < 8 ? columns - k : 8);
}

// out (+)= sum_t weights[t] x_t. One row of the result at a time: four vectors side by side hide the latency
// of the multiply-add.
template <Into into, class Number>
inline void combine_rows(const Number* x, const double* weights, double* out, std::ptrdiff_t stride,
                         std::ptrdiff_t rows) {
  NoReadAhead none;
  std::ptrdiff_t j = 0;
  for (; j + 4 * lanes<Wide> <= stride; j += 4 * lanes<Wide>)
    product_tile<Wide, 1, 4, false, into>(weights, 0, x + j, stride, out + j, stride, rows, none);
  for (; j + lanes<Wide> <= stride; j += lanes<Wide>)
    product_tile<Wide, 1, 1, false, into>(weights, 0, x + j, stride, out + j, stride, rows, none);
  for (; j < stride; j += lanes<Narrow>)
    product_tile<Narrow, 1, 1, false, into>(weights, 0, x + j, stride, out + j, stride, rows, none);
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
