// The table of array functions that vector_math_kernels.cpp defines once per instruction set (see
// dispatch.hpp).
#pragma once

#include <cstddef>

namespace attmirror {

struct VectorMathKernels {
  using Map = void (*)(const double* in, double* out, std::ptrdiff_t size);
  using PowerMap = void (*)(const double* in, double r, double* out, std::ptrdiff_t size);
  Map exp, log, log1p, sqrt, cbrt;
  PowerMap pow;
  Map exp_of_term;  // for other kernels; here for its test
};

namespace isa_sse2 {
extern const VectorMathKernels vector_math_kernels;
}
namespace isa_avx2 {
extern const VectorMathKernels vector_math_kernels;
}
namespace isa_avx512 {
extern const VectorMathKernels vector_math_kernels;
}

}  // namespace attmirror
