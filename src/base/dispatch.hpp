// Picks the kernels of the active instruction set.
//
// A kernel source is compiled three times (attmirror_add_kernels). It defines one constant table of function
// pointers in namespace attmirror::ATTMIRROR_ISA, hence three tables; the ordinary source beside it calls
// through the one that fits. For kernels called `lp_map`:
//
//   lp_map_kernels.hpp    struct LpMapKernels { void (*forward)(const double* in, double p, double* out, ...); };
//                         namespace isa_sse2 { extern const LpMapKernels lp_map_kernels; }  // isa_avx2, isa_avx512
//   lp_map_kernels.cpp    namespace attmirror::ATTMIRROR_ISA { const LpMapKernels lp_map_kernels{&forward}; }
//   lp_map.cpp            choose_kernels(isa_sse2::lp_map_kernels, isa_avx2::..., isa_avx512::...).forward(...)
//
// Not for kernel sources: this is an inline function outside the namespaces of the instruction sets.
#pragma once

#include <attmirror/base/isa.hpp>

namespace attmirror {

template <class Kernels>
const Kernels& choose_kernels(const Kernels& sse2, const Kernels& avx2, const Kernels& avx512) {
  switch (active_isa()) {
    case Isa::avx512:
      return avx512;
    case Isa::avx2:
      return avx2;
    case Isa::sse2:
      break;
  }
  return sse2;
}

}  // namespace attmirror
