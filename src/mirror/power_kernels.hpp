// The boundary of the l_p kernels, which are compiled once per instruction set: plain pointers and numbers.
// All sizes are multiples of four (see base/aligned.hpp).
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

// The exponent of the general power, as an unevaluated sum: 1/(p-1) rounded to a double would be off by up to
// 2^-53, which |y|^(1/(p-1)) turns into a relative error of 2^-53 |log w|, up to 700 ulp.
struct Exponent {
  double value = 1, rest = 0;
};

struct PowerKernels {
  // out = sign(x) |x|^r
  void (*signed_power)(const double* x, double* out, std::ptrdiff_t size, Exponent r);
  // sum |scale x|^r
  double (*sum_power)(const double* x, std::ptrdiff_t size, double scale, Exponent r);
  // y <- y - scale g, w = sign(y) |y|^r
  void (*mirror_step)(const double* g, double scale, double* y, double* w, std::ptrdiff_t size, Exponent r);
};

struct PowerTable {
  PowerKernels kernels[static_cast<int>(Power::count)];
  double (*max_abs)(const double* x, std::ptrdiff_t size);  // NaN if there is one
  double (*root)(double sum, double inverse);               // sum^inverse
};

}  // namespace attmirror::kernels

namespace attmirror {
namespace isa_sse2 {
extern const kernels::PowerTable power_table;
}
namespace isa_avx2 {
extern const kernels::PowerTable power_table;
}
namespace isa_avx512 {
extern const kernels::PowerTable power_table;
}
}  // namespace attmirror
