// The boundary of the l_p kernels, which are compiled once per instruction set: plain pointers and numbers. All
// sizes are multiples of four (see base/aligned.hpp).
#pragma once

#include <cstddef>

namespace attmirror::kernels {

// The exponents that products and roots serve, and the general power.
enum class Power {
  general,
  one,
  two,
  three,
  four,
  ten,
  eleven,
  half,
  third,
  three_quarters,
  three_halves,
  four_thirds,
  seven_quarters,
  seven_thirds,
  count,
};

struct PowerKernels {
  // out = sign(x) |x|^r
  void (*signed_power)(const double* x, double* out, std::ptrdiff_t size, double r);
  // sum |scale x|^r
  double (*sum_power)(const double* x, std::ptrdiff_t size, double scale, double r);
  // y <- y - scale g, w = sign(y) |y|^r
  void (*mirror_step)(const double* g, double scale, double* y, double* w, std::ptrdiff_t size, double r);
};

struct PowerTable {
  PowerKernels kernels[static_cast<int>(Power::count)];
  double (*max_abs)(const double* x, std::ptrdiff_t size);  // NaN if there is one
};

}  // namespace attmirror::kernels

namespace attmirror {
namespace isa_sse2 {
const kernels::PowerTable& power_table();
}
namespace isa_avx2 {
const kernels::PowerTable& power_table();
}
namespace isa_avx512 {
const kernels::PowerTable& power_table();
}
}  // namespace attmirror
