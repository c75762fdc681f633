// The two passes over the tokens of one query, X u and X^T c, for the kernels that are compiled once per instruction
// set and stream their data; each for one or two vectors at a time.
//
// The first pass reads from memory, the second finds the tokens in the second-level cache. Both go along the rows as
// they lie in memory, one row after the other, which is what the hardware that fetches ahead is made for: reading
// four rows side by side takes twice as long. The order of every sum is fixed by the shapes alone.
#pragma once

#include "attention/matrix_kernels.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

// x . u[k] for one row, before the lanes are added up. Four sums along the row hide the latency of the multiply-add;
// the rows are not mixed (see above).
template <int Vectors, class Token>
[[gnu::always_inline]] inline void stream_row(const Token* x, const double* const (&u)[Vectors],
                                              std::ptrdiff_t stride, Partial (&result)[Vectors]) {
  Wide sum[Vectors][4] = {};
  std::ptrdiff_t j = 0;
  for (; j + 4 * lanes<Wide> <= stride; j += 4 * lanes<Wide>)
    for (int c = 0; c < 4; ++c) {
      const Wide token = load<Wide>(x + j + c * lanes<Wide>);
      for (int k = 0; k < Vectors; ++k)
        sum[k][c] = mul_add(token, load<Wide>(u[k] + j + c * lanes<Wide>), sum[k][c]);
    }
  for (; j + lanes<Wide> <= stride; j += lanes<Wide>) {
    const Wide token = load<Wide>(x + j);
    for (int k = 0; k < Vectors; ++k) sum[k][0] = mul_add(token, load<Wide>(u[k] + j), sum[k][0]);
  }
  for (int k = 0; k < Vectors; ++k) {
    const Wide total = (sum[k][0] + sum[k][1]) + (sum[k][2] + sum[k][3]);
#if defined(ATTMIRROR_ISA_avx512)
    result[k] = low_half(total) + high_half(total);
    if (j < stride) result[k] = mul_add(load<Narrow>(x + j), load<Narrow>(u[k] + j), result[k]);
#else
    result[k] = total;
#endif
  }
}

// The first pass: out[k][t] = x_t . u[k] for `rows` consecutive rows. The hardware does not fetch ahead across the
// borders of pages, so each row asks for one line a page further on.
template <int Vectors, class Token>
void first_pass(const Token* x, const double* const (&u)[Vectors], double* const (&out)[Vectors],
                std::ptrdiff_t stride, std::ptrdiff_t rows) {
  constexpr std::ptrdiff_t page_bytes = 4096;
  const auto row_sums = [&](std::ptrdiff_t t, Partial(&sums)[Vectors]) __attribute__((always_inline)) {
    const Token* row = x + t * stride;
    __builtin_prefetch(reinterpret_cast<const char*>(row) + page_bytes, 0, 2);
    stream_row(row, u, stride, sums);
  };
  std::ptrdiff_t t = 0;
  for (; t + 4 <= rows; t += 4) {
    Partial sums[4][Vectors];
    for (int r = 0; r < 4; ++r) row_sums(t + r, sums[r]);
    for (int k = 0; k < Vectors; ++k) store_sums(out[k] + t, sums[0][k], sums[1][k], sums[2][k], sums[3][k]);
  }
  for (; t < rows; ++t) {
    Partial sums[Vectors];
    row_sums(t, sums);
    for (int k = 0; k < Vectors; ++k) out[k][t] = reduce_pairs(sums[k]);
  }
}

// out[k][j..] = sum_t weights[k][t] x_t[j..] for Cols vectors of the type V.
template <class V, int Cols, int Vectors, class Token>
[[gnu::always_inline]] inline void combine_columns(const Token* x, const double* const (&weights)[Vectors],
                                                   double* const (&out)[Vectors], std::ptrdiff_t stride,
                                                   std::ptrdiff_t rows, std::ptrdiff_t j) {
  V sum[Vectors][Cols] = {};
  for (std::ptrdiff_t t = 0; t < rows; ++t) {
    const Token* row = x + t * stride + j;
    V weight[Vectors];
    for (int k = 0; k < Vectors; ++k) weight[k] = broadcast<V>(weights[k][t]);
    for (int c = 0; c < Cols; ++c) {
      const V token = load<V>(row + c * lanes<V>);
      for (int k = 0; k < Vectors; ++k) sum[k][c] = mul_add(weight[k], token, sum[k][c]);
    }
  }
  for (int k = 0; k < Vectors; ++k)
    for (int c = 0; c < Cols; ++c) store(out[k] + j + c * lanes<V>, sum[k][c]);
}

// The second pass: out[k] = sum_t weights[k][t] x_t. As many columns at a time as there are registers for.
template <int Vectors, class Token>
void second_pass(const Token* x, const double* const (&weights)[Vectors], double* const (&out)[Vectors],
                 std::ptrdiff_t stride, std::ptrdiff_t rows) {
#if defined(ATTMIRROR_ISA_avx512)
  constexpr int widest = 16 / Vectors;
#else
  constexpr int widest = 8 / Vectors;
#endif
  constexpr std::ptrdiff_t wide = widest * lanes<Wide>, middle = 4 * lanes<Wide>;
  std::ptrdiff_t j = 0;
  for (; j + wide <= stride; j += wide) combine_columns<Wide, widest>(x, weights, out, stride, rows, j);
  for (; j + middle <= stride; j += middle) combine_columns<Wide, 4>(x, weights, out, stride, rows, j);
  for (; j + lanes<Wide> <= stride; j += lanes<Wide>)
    combine_columns<Wide, 1>(x, weights, out, stride, rows, j);
  for (; j < stride; j += lanes<Narrow>) combine_columns<Narrow, 1>(x, weights, out, stride, rows, j);
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
