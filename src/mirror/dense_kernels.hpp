// The boundary of the kernels of dense algebra on padded rows, compiled once per instruction set. All sizes are
// multiples of four (see base/aligned.hpp).
#pragma once

#include <cstddef>

namespace attmirror::kernels {

// <a, a>, <b, b>, <a, b>
struct PairProducts {
  double aa = 0, bb = 0, ab = 0;
};

// out = shift add + factor * rows: the rows of `out` are combinations of those of `rows`, row by row.
struct RowCombination {
  const double* factor;  // count x inner
  std::ptrdiff_t factor_stride;
  const double* rows;  // inner x size
  std::ptrdiff_t rows_stride;
  double shift;
  const double* add;  // count x size; may be `out`, or null for none
  std::ptrdiff_t add_stride;
  double* out;  // count x size; neither `factor` nor `rows`
  std::ptrdiff_t out_stride;
  std::ptrdiff_t count, inner, size;
};

struct DenseTable {
  double (*dot)(const double* a, const double* b, std::ptrdiff_t size);
  PairProducts (*products)(const double* a, const double* b, std::ptrdiff_t size);
  // (a, b) <- (c a - s b, s a + c b)
  void (*rotate)(double* a, double* b, std::ptrdiff_t size, double c, double s);
  // y <- y + scale x
  void (*add_scaled)(double scale, const double* x, double* y, std::ptrdiff_t size);
  void (*combine)(const RowCombination& task);
};

}  // namespace attmirror::kernels

namespace attmirror {
namespace isa_sse2 {
extern const kernels::DenseTable dense_table;
}
namespace isa_avx2 {
extern const kernels::DenseTable dense_table;
}
namespace isa_avx512 {
extern const kernels::DenseTable dense_table;
}
}  // namespace attmirror
