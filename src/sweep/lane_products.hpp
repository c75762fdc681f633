// Small matrix products on arrays of vectors, one run per lane, for the kernels that are compiled once per instruction
// set.
//
// A single run's kernels (attention/matrix_kernels.hpp) add up each entry of a product one factor after the other, and
// each scalar product in as many partial sums as the widest vector has lanes, which they then add in pairs. Both orders
// are repeated here, partial sum by partial sum, so that a lane has the bits of a single run. The number of partial
// sums belongs to the instruction set; it has nothing to do with V, the vector of runs.
#pragma once

#include "base/simd.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

// Entry e of an array of vectors.
template <class V>
[[gnu::always_inline]] inline V at(const double* array, std::ptrdiff_t e) {
  return load<V>(array + e * lanes<V>);
}
template <class V>
[[gnu::always_inline]] inline void put(double* array, std::ptrdiff_t e, V value) {
  store(array + e * lanes<V>, value);
}

// The partial sums of a single run's scalar products and sums over tokens.
inline constexpr int partial_sums = lanes<Wide>;

// Their sum in the order of reduce_add(): halves are folded onto each other.
template <class V, int Count>
[[gnu::always_inline]] inline V fold(V (&sums)[Count]) {
  for (int half = Count / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) sums[k] = sums[k] + sums[k + half];
  return sums[0];
}

// Calls body(t, k) for t = 0 .. count - 1 with k = t mod Count, a constant after unrolling.
template <int Count, class Body>
[[gnu::always_inline]] inline void for_partial_sums(std::ptrdiff_t count, Body body) {
  std::ptrdiff_t t = 0;
  for (; t + Count <= count; t += Count)
    for (int k = 0; k < Count; ++k) body(t + k, k);
  for (int k = 0; k < Count; ++k)
    if (t + k < count) body(t + k, k);
}

// The left factor of a product: entry (r, c) is number r * row + c * depth of the array.
struct Left {
  const double* entries;
  std::ptrdiff_t row, depth;
};

// C[r,k] = sum_c A[r,c] B[c,k] for a tile that stays in registers.
template <class V, int Rows, int Cols>
[[gnu::always_inline]] inline void product_tile(const Left& A, const double* B, std::ptrdiff_t b_row,
                                                double* C, std::ptrdiff_t c_row, std::ptrdiff_t depth) {
  V sum[Rows][Cols] = {};
  for (std::ptrdiff_t c = 0; c < depth; ++c) {
    V b[Cols];
    for (int k = 0; k < Cols; ++k) b[k] = at<V>(B, c * b_row + k);
    for (int r = 0; r < Rows; ++r) {
      const V a = at<V>(A.entries, r * A.row + c * A.depth);
      for (int k = 0; k < Cols; ++k) sum[r][k] = mul_add(a, b[k], sum[r][k]);
    }
  }
  for (int r = 0; r < Rows; ++r)
    for (int k = 0; k < Cols; ++k) put(C, r * c_row + k, sum[r][k]);
}

#if defined(ATTMIRROR_ISA_avx512)
inline constexpr int lane_tile_rows = 4;
#else
inline constexpr int lane_tile_rows = 2;
#endif

template <class V, int Cols>
[[gnu::always_inline]] inline void product_columns(const Left& A, const double* B, std::ptrdiff_t b_row,
                                                   double* C, std::ptrdiff_t c_row, std::ptrdiff_t rows,
                                                   std::ptrdiff_t depth) {
  std::ptrdiff_t r = 0;
  const auto from = [&](std::ptrdiff_t row) {
    return Left{A.entries + row * A.row * lanes<V>, A.row, A.depth};
  };
  for (; r + lane_tile_rows <= rows; r += lane_tile_rows)
    product_tile<V, lane_tile_rows, Cols>(from(r), B, b_row, C + r * c_row * lanes<V>, c_row, depth);
  for (; r + 2 <= rows; r += 2)
    product_tile<V, 2, Cols>(from(r), B, b_row, C + r * c_row * lanes<V>, c_row, depth);
  if (r < rows) product_tile<V, 1, Cols>(from(r), B, b_row, C + r * c_row * lanes<V>, c_row, depth);
}

// C = A B: A (rows, depth), B (depth, cols) with rows b_row apart, C (rows, cols) with rows c_row apart.
template <class V>
void product(const Left& A, const double* B, std::ptrdiff_t b_row, double* C, std::ptrdiff_t c_row,
             std::ptrdiff_t rows, std::ptrdiff_t cols, std::ptrdiff_t depth) {
  std::ptrdiff_t k = 0;
  for (; k + 4 <= cols; k += 4)
    product_columns<V, 4>(A, B + k * lanes<V>, b_row, C + k * lanes<V>, c_row, rows, depth);
  for (; k + 2 <= cols; k += 2)
    product_columns<V, 2>(A, B + k * lanes<V>, b_row, C + k * lanes<V>, c_row, rows, depth);
  if (k < cols) product_columns<V, 1>(A, B + k * lanes<V>, b_row, C + k * lanes<V>, c_row, rows, depth);
}

// out = sum_t weights[t] x_t: x (rows, dim). Eight columns side by side hide the latency of the multiply-add.
template <class V>
void combine_rows(const double* x, const double* weights, double* out, std::ptrdiff_t dim,
                  std::ptrdiff_t rows) {
  const Left A{weights, 0, 1};
  std::ptrdiff_t k = 0;
  for (; k + 8 <= dim; k += 8) product_tile<V, 1, 8>(A, x + k * lanes<V>, dim, out + k * lanes<V>, dim, rows);
  for (; k + 2 <= dim; k += 2) product_tile<V, 1, 2>(A, x + k * lanes<V>, dim, out + k * lanes<V>, dim, rows);
  if (k < dim) product_tile<V, 1, 1>(A, x + k * lanes<V>, dim, out + k * lanes<V>, dim, rows);
}

// x . u in the order of partial_dot() and reduce_pairs(): as many partial sums as a Wide has lanes; on AVX-512 these
// are folded once, before what is left of a row (a multiple of four) joins.
template <class V>
[[gnu::always_inline]] inline V row_dot(const double* x, const double* u, std::ptrdiff_t dim) {
  V sums[partial_sums] = {};
#if defined(ATTMIRROR_ISA_avx512)
  const std::ptrdiff_t folded = (dim + 3) / 8 * 8;  // up to here whole Wide vectors reach
  for_partial_sums<8>(folded < dim ? folded : dim,
                      [&](std::ptrdiff_t j, int k) { sums[k] = mul_add(at<V>(x, j), at<V>(u, j), sums[k]); });
  for (int k = 0; k < 4; ++k) sums[k] = sums[k] + sums[k + 4];
  for (int k = 0; k < 4; ++k)
    if (folded + k < dim) sums[k] = mul_add(at<V>(x, folded + k), at<V>(u, folded + k), sums[k]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
#else
  for_partial_sums<partial_sums>(
      dim, [&](std::ptrdiff_t j, int k) { sums[k] = mul_add(at<V>(x, j), at<V>(u, j), sums[k]); });
  for (int k = 0; k < partial_sums; k += 2) sums[k] = sums[k] + sums[k + 1];
  if constexpr (partial_sums == 4) sums[0] = sums[0] + sums[2];
  return sums[0];
#endif
}

// out[t] = x_t . u for x (rows, dim)
template <class V>
void row_dots(const double* x, const double* u, double* out, std::ptrdiff_t dim, std::ptrdiff_t rows) {
  for (std::ptrdiff_t t = 0; t < rows; ++t) put(out, t, row_dot<V>(x + t * dim * lanes<V>, u, dim));
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
