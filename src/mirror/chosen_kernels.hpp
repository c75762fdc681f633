// The kernels of this room for the instruction set in use; the loops of fused steps are chosen in fast_step.cpp.
#pragma once

#include "base/dispatch.hpp"
#include "mirror/dense_kernels.hpp"
#include "mirror/power_kernels.hpp"

namespace attmirror {

inline const kernels::DenseTable& dense_kernels() {
  return choose_kernels<isa_sse2::dense_table, isa_avx2::dense_table, isa_avx512::dense_table>();
}

inline const kernels::PowerTable& power_kernels() {
  return choose_kernels<isa_sse2::power_table, isa_avx2::power_table, isa_avx512::power_table>();
}

}  // namespace attmirror
