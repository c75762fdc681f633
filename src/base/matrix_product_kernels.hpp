// The kernels of matrix_product.cpp, compiled once per instruction set.
#pragma once

#include <cstddef>

namespace attmirror {

namespace kernels {

inline constexpr std::ptrdiff_t product_depth = 256;  // terms of a sum between two visits of its entry of C
inline constexpr std::ptrdiff_t product_strip = 16;   // columns of B that are packed together
inline constexpr std::ptrdiff_t product_rows = 8;     // rows of A that are packed together

// `height` rows from the first on and `depth` of their columns, entry (i, k) at data[i row_step + k col_step].
struct RowsToPack {
  const double* data;
  std::ptrdiff_t row_step, col_step, height, depth;
};

// Sums of a block: `groups` groups of 8 rows times `strips` strips of 16 columns.
struct ProductBlock {
  const double* rows;    // group g: entry (h, k) at [(g depth + k) 8 + h]
  const double* strips;  // strip s: entry (k, j) at [(s depth + k) 16 + j]
  std::ptrdiff_t groups, strip_count, depth;
  double* C;  // of the first row and column
  std::ptrdiff_t stride;
  std::ptrdiff_t height, width;  // rows and columns that C has
  bool starts;                   // with zeros, instead of what C holds
};

struct ProductTable {
  void (*pack_rows)(const RowsToPack& from, double* to);
  // Copies `depth` rows of 16 numbers, `stride` apart, of which `width` are there; the others become zeros.
  void (*pack_strip)(const double* from, std::ptrdiff_t stride, std::ptrdiff_t width, std::ptrdiff_t depth,
                     double* to);
  void (*multiply)(const ProductBlock& block);
};

}  // namespace kernels

namespace isa_sse2 {
extern const kernels::ProductTable product_table;
}
namespace isa_avx2 {
extern const kernels::ProductTable product_table;
}
namespace isa_avx512 {
extern const kernels::ProductTable product_table;
}

}  // namespace attmirror
