// The boundary of the fast step's loops, which are compiled once per instruction set: plain pointers and numbers.
#pragma once

#include "mirror/step_plan.hpp"

#include <cstddef>

namespace attmirror::kernels {

// The arrays of one chunk of one tensor. Momentum and master are null where there are none.
struct StepArrays {
  void* weights;
  const void* gradient;
  void* master;
  void* momentum;
  std::ptrdiff_t size;
};

// What multiplies the direction of a step, with all that is constant over a tensor in it: for the mirror rule
// `factor` is rate/(gradient_scale ||d||). For the steepest rule the step is rate (factor |d|)^r, and the rate, too,
// goes inside: log2_step is the logarithm of rate factor^r, and the special powers have a factor that is rate^{1/r}
// times as large. A negative factor turns the direction round.
struct StepFactors {
  double factor = 0;
  double log2_step = 0;
};

struct StepLoops {
  void (*update)(const StepPlan& plan, const StepFactors& factors, const StepArrays& arrays);
  void (*fill_master)(const StepPlan& plan, const StepArrays& arrays);
};

enum class LoopRule { mirror, steepest, sign, count };

struct StepLoopTable {
  StepLoops loops[static_cast<int>(LoopRule::count)][static_cast<int>(StepPower::count)];
  // The largest magnitude among the directions, infinite or NaN if one of them is.
  double (*largest)(const StepPlan& plan, const StepArrays& arrays);
  // sum (|d| / largest)^q, given the largest (finite, not 0).
  double (*sum_of_powers[static_cast<int>(StepPower::count)])(const StepPlan& plan, double largest,
                                                              const StepArrays& arrays);
};

}  // namespace attmirror::kernels

namespace attmirror {
namespace isa_sse2 {
extern const kernels::StepLoopTable step_loop_tables[];  // float, bfloat16, half
extern const kernels::StepLoopTable double_step_loop_table;
}  // namespace isa_sse2
namespace isa_avx2 {
extern const kernels::StepLoopTable step_loop_tables[];
extern const kernels::StepLoopTable double_step_loop_table;
}  // namespace isa_avx2
namespace isa_avx512 {
extern const kernels::StepLoopTable step_loop_tables[];
extern const kernels::StepLoopTable double_step_loop_table;
}  // namespace isa_avx512
}  // namespace attmirror
