// Picks the kernels of the active instruction set.
//
// A kernel source is compiled once per instruction set (attmirror_add_kernels). It defines one constant table of
// function pointers in namespace attmirror::ATTMIRROR_ISA, hence up to three tables; the ordinary source beside it
// calls through the one that fits. For kernels called `lp_map`:
//
//   lp_map_kernels.hpp    struct LpMapKernels { void (*forward)(const double* in, double p, double* out, ...); };
//                         namespace isa_sse2 { extern const LpMapKernels lp_map_kernels; }  // isa_avx2, isa_avx512
//   lp_map_kernels.cpp    namespace attmirror::ATTMIRROR_ISA { const LpMapKernels lp_map_kernels{&forward}; }
//   lp_map.cpp            choose_kernels<isa_sse2::lp_map_kernels, isa_avx2::..., isa_avx512::...>().forward(...)
//
// The tables are template arguments, so that a set which this build leaves out (ATTMIRROR_KERNELS=native) is
// never linked.
//
// Not for kernel sources: this is an inline function outside the namespaces of the instruction sets.
#pragma once

#include <attmirror/base/isa.hpp>

namespace attmirror {

// Whether this build has the kernels of an instruction set; cmake/AttmirrorKernels.cmake says so.
constexpr bool is_built(Isa isa) {
  switch (isa) {
    case Isa::sse2:
      return ATTMIRROR_KERNELS_SSE2;
    case Isa::avx2:
      return ATTMIRROR_KERNELS_AVX2;
    case Isa::avx512:
      return ATTMIRROR_KERNELS_AVX512;
  }
  return false;
}

// active_isa() is always a set that was built.
template <const auto& sse2, const auto& avx2, const auto& avx512>
const auto& choose_kernels() {
  [[maybe_unused]] const Isa isa = active_isa();
  if constexpr (is_built(Isa::avx512))
    if (isa == Isa::avx512 || !(is_built(Isa::avx2) || is_built(Isa::sse2))) return avx512;
  if constexpr (is_built(Isa::avx2))
    if (isa == Isa::avx2 || !is_built(Isa::sse2)) return avx2;
  if constexpr (is_built(Isa::sse2)) return sse2;
}

}  // namespace attmirror
