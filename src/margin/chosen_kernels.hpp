// The kernels of this room for the instruction set in use.
#pragma once

#include "base/dispatch.hpp"
#include "margin/ascent_kernels.hpp"
#include "margin/cholesky_kernels.hpp"
#include "margin/constraint_kernels.hpp"
#include "margin/qp_kernels.hpp"

namespace attmirror {

inline const kernels::AscentTable& ascent_kernels() {
  return choose_kernels<isa_sse2::ascent_table, isa_avx2::ascent_table, isa_avx512::ascent_table>();
}

inline const kernels::CholeskyTable& cholesky_kernels() {
  return choose_kernels<isa_sse2::cholesky_table, isa_avx2::cholesky_table, isa_avx512::cholesky_table>();
}

inline const kernels::ConstraintTable& constraint_kernels() {
  return choose_kernels<isa_sse2::constraint_table, isa_avx2::constraint_table,
                        isa_avx512::constraint_table>();
}

inline const kernels::QpTable& qp_kernels() {
  return choose_kernels<isa_sse2::qp_table, isa_avx2::qp_table, isa_avx512::qp_table>();
}

}  // namespace attmirror
