// Small matrix products on arrays of vectors, one run per lane, for the kernels that are compiled once per
// instruction set.
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

template <int number>
struct Constant {
  static constexpr int value = number;
};

// Calls body(Constant<k>{}) for k < Count: a loop that is unrolled for certain, so that arrays indexed by k stay
// in registers.
template <int Count, int k = 0, class Body>
[[gnu::always_inline]] inline void unrolled(Body body) {
  if constexpr (k < Count) {
    body(Constant<k>{});
    unrolled<Count, k + 1>(body);
  }
}

// The partial sums of a single run's scalar products and sums over tokens.
inline constexpr int partial_sums = lanes<Wide>;

// Their sum in the order of reduce_add(), halves folded onto each other, where sum(k) gives partial sum k: a
// function, so that none of them waits in memory.
template <class V, int First = 0, int Step = 1, class Sum>
[[gnu::always_inline]] inline V fold(Sum sum) {
  if constexpr (Step == partial_sums)
    return sum(Constant<First>{});
  else
    return fold<V, First, 2 * Step>(sum) + fold<V, First + Step, 2 * Step>(sum);
}

// sum_t add(t, sum so far) over t < count in partial sums by t mod partial_sums. The first term of each is add(t, 0).
template <class V, class Add>
[[gnu::always_inline]] inline V sum_in_parts(std::ptrdiff_t count, Add add) {
  return fold<V>([&](auto k) {
    V sum{};
    for (std::ptrdiff_t t = k.value; t < count; t += partial_sums) sum = add(t, sum);
    return sum;
  });
}

// The left factor of a product: entry (r, c) is number r * row + c * depth of the array.
struct Left {
  const double* entries;
  std::ptrdiff_t row, depth;
};

// What is done with an entry of a product, at the place where it is stored: nothing, unless somebody wants more.
struct NothingElse {
  template <class V>
  [[gnu::always_inline]] void operator()(const double*, V) const {}
};

// C[r,k] = sum_c A[r,c] B[c,k] for a tile that stays in registers.
template <class V, int Rows, int Cols, class Also = NothingElse>
[[gnu::always_inline]] inline void product_tile(const Left& A, const double* B, std::ptrdiff_t b_row,
                                                double* C, std::ptrdiff_t c_row, std::ptrdiff_t depth,
                                                Also also = {}) {
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
    for (int k = 0; k < Cols; ++k) {
      put(C, r * c_row + k, sum[r][k]);
      also(C + (r * c_row + k) * lanes<V>, sum[r][k]);
    }
}

#if defined(ATTMIRROR_ISA_avx512)
inline constexpr int lane_tile_rows = 4;
#else
inline constexpr int lane_tile_rows = 2;
#endif

template <class V, int Cols, class Also>
[[gnu::always_inline]] inline void product_columns(const Left& A, const double* B, std::ptrdiff_t b_row,
                                                   double* C, std::ptrdiff_t c_row, std::ptrdiff_t rows,
                                                   std::ptrdiff_t depth, Also also) {
  std::ptrdiff_t r = 0;
  const auto from = [&](std::ptrdiff_t row) {
    return Left{A.entries + row * A.row * lanes<V>, A.row, A.depth};
  };
  for (; r + lane_tile_rows <= rows; r += lane_tile_rows)
    product_tile<V, lane_tile_rows, Cols>(from(r), B, b_row, C + r * c_row * lanes<V>, c_row, depth, also);
  for (; r + 2 <= rows; r += 2)
    product_tile<V, 2, Cols>(from(r), B, b_row, C + r * c_row * lanes<V>, c_row, depth, also);
  if (r < rows) product_tile<V, 1, Cols>(from(r), B, b_row, C + r * c_row * lanes<V>, c_row, depth, also);
}

// C = A B: A (rows, depth), B (depth, cols) with rows b_row apart, C (rows, cols) with rows c_row apart.
template <class V, class Also = NothingElse>
void product(const Left& A, const double* B, std::ptrdiff_t b_row, double* C, std::ptrdiff_t c_row,
             std::ptrdiff_t rows, std::ptrdiff_t cols, std::ptrdiff_t depth, Also also = {}) {
  std::ptrdiff_t k = 0;
  for (; k + 4 <= cols; k += 4)
    product_columns<V, 4>(A, B + k * lanes<V>, b_row, C + k * lanes<V>, c_row, rows, depth, also);
  for (; k + 2 <= cols; k += 2)
    product_columns<V, 2>(A, B + k * lanes<V>, b_row, C + k * lanes<V>, c_row, rows, depth, also);
  if (k < cols) product_columns<V, 1>(A, B + k * lanes<V>, b_row, C + k * lanes<V>, c_row, rows, depth, also);
}

// ---- rows of any length, and of the papers' few
// ---------------------------------------------------------------------
//
// The two passes over the tokens are most of a step's loads. Rows of at most twelve entries have loops of their own, in
// which the number of entries is a constant and a row's sums never leave the registers.
inline constexpr int longest_short_row = 12;

// x . u in the order of partial_dot() and reduce_pairs(): as many partial sums as a Wide has lanes; on AVX-512 these
// are folded once, before what is left of a row (a multiple of four) joins.
template <class V>
[[gnu::always_inline]] inline V row_dot(const double* x, const double* u, std::ptrdiff_t dim) {
  const auto add = [&](std::ptrdiff_t first, std::ptrdiff_t end, V sum) {
    for (std::ptrdiff_t j = first; j < end; j += partial_sums) sum = mul_add(at<V>(x, j), at<V>(u, j), sum);
    return sum;
  };
#if defined(ATTMIRROR_ISA_avx512)
  const std::ptrdiff_t folded = (dim + 3) / 8 * 8;  // up to here whole Wide vectors reach
  const std::ptrdiff_t end = folded < dim ? folded : dim;
  const auto sum = [&](std::ptrdiff_t k) {
    return add(folded + k, dim, add(k, end, V{}) + add(k + 4, end, V{}));
  };
#else
  const auto sum = [&](std::ptrdiff_t k) { return add(k, dim, V{}); };
#endif
  if constexpr (partial_sums == 2)
    return sum(0) + sum(1);
  else
    return (sum(0) + sum(1)) + (sum(2) + sum(3));
}

// The same for `Tokens` short rows at once, so that each entry of u is loaded once for all.
template <class V, int Dim, int Tokens>
[[gnu::always_inline]] inline void dots_tile(const double* x, const double* u, double* out) {
#if defined(ATTMIRROR_ISA_avx512)
  constexpr int folded = (Dim + 3) / 8 * 8, sum_count = 4;
  V sums[Tokens][sum_count] = {};
  unrolled<sum_count>([&](auto constant) {
    constexpr int k = constant.value;
    unrolled<Tokens>([&](auto token) {
      constexpr int row = token.value * Dim;
      V& sum = sums[token.value][k];
      if constexpr (folded > 0 && k < Dim) sum = at<V>(x, row + k) * at<V>(u, k);
      if constexpr (folded > 0 && k + 4 < Dim) sum = sum + at<V>(x, row + k + 4) * at<V>(u, k + 4);
      if constexpr (folded + k < Dim) sum = mul_add(at<V>(x, row + folded + k), at<V>(u, folded + k), sum);
    });
  });
#else
  constexpr int sum_count = partial_sums;
  V sums[Tokens][sum_count] = {};
  unrolled<Dim>([&](auto column) {
    constexpr int j = column.value;
    unrolled<Tokens>([&](auto token) {
      V& sum = sums[token.value][j % sum_count];
      sum = mul_add(at<V>(x, token.value * Dim + j), at<V>(u, j), sum);
    });
  });
#endif
  unrolled<Tokens>([&](auto token) {
    const auto& own = sums[token.value];
    V sum = own[0] + own[1];
    if constexpr (sum_count == 4) sum = sum + (own[2] + own[3]);
    put(out, token.value, sum);
  });
}

// As many as there are registers for.
#if defined(ATTMIRROR_ISA_avx512)
inline constexpr int dots_at_once = 4, most_columns = 12;
#else
inline constexpr int dots_at_once = 2, most_columns = 8;
#endif

// out[t] = x_t . u for x (rows, dim)
template <class V, int Dim>
void row_dots(const double* x, const double* u, double* out, std::ptrdiff_t dim, std::ptrdiff_t rows) {
  std::ptrdiff_t t = 0;
  if constexpr (Dim > 0)
    for (; t + dots_at_once <= rows; t += dots_at_once)
      dots_tile<V, Dim, dots_at_once>(x + t * Dim * lanes<V>, u, out + t * lanes<V>);
  for (; t < rows; ++t) put(out, t, row_dot<V>(x + t * dim * lanes<V>, u, dim));
}

// out = sum_t weights[t] x_t: x (rows, dim). Several columns side by side hide the latency of the multiply-add.
template <class V, int Dim>
void combine_rows(const double* x, const double* weights, double* out, std::ptrdiff_t dim,
                  std::ptrdiff_t rows) {
  const Left A{weights, 0, 1};
  if constexpr (Dim > 0 && Dim <= most_columns) {
    product_tile<V, 1, Dim>(A, x, Dim, out, Dim, rows);
  } else {
    std::ptrdiff_t k = 0;
    for (; k + 8 <= dim; k += 8)
      product_tile<V, 1, 8>(A, x + k * lanes<V>, dim, out + k * lanes<V>, dim, rows);
    for (; k + 2 <= dim; k += 2)
      product_tile<V, 1, 2>(A, x + k * lanes<V>, dim, out + k * lanes<V>, dim, rows);
    if (k < dim) product_tile<V, 1, 1>(A, x + k * lanes<V>, dim, out + k * lanes<V>, dim, rows);
  }
}

// Both for rows of one length: `dim` is still theirs to give, as any length above the short ones shares an entry.
struct RowKernels {
  void (*row_dots)(const double* x, const double* u, double* out, std::ptrdiff_t dim, std::ptrdiff_t rows);
  void (*combine_rows)(const double* x, const double* weights, double* out, std::ptrdiff_t dim,
                       std::ptrdiff_t rows);
};

template <class V, int Dim>
constexpr RowKernels rows_of_length{row_dots<V, Dim>, combine_rows<V, Dim>};

template <class V>
constexpr RowKernels rows_by_length[longest_short_row + 1]{
    rows_of_length<V, 0>, rows_of_length<V, 1>, rows_of_length<V, 2>,  rows_of_length<V, 3>,
    rows_of_length<V, 4>, rows_of_length<V, 5>, rows_of_length<V, 6>,  rows_of_length<V, 7>,
    rows_of_length<V, 8>, rows_of_length<V, 9>, rows_of_length<V, 10>, rows_of_length<V, 11>,
    rows_of_length<V, 12>};

template <class V>
[[gnu::always_inline]] inline const RowKernels& row_kernels(std::ptrdiff_t dim) {
  return rows_by_length<V>[dim <= longest_short_row ? dim : 0];
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
