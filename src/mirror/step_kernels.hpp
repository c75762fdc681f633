// The boundary between the driver of a fused step and the loops over numbers: plain pointers. Internal.
#pragma once

#include "mirror/step_plan.hpp"
#include <attmirror/mirror/fused_step.hpp>

#include <cstddef>

namespace attmirror {

// The arrays of one chunk of one tensor. Momentum and master are null where there are none.
struct StepChunk {
  void* weights = nullptr;
  const void* gradient = nullptr;
  void* master = nullptr;
  void* momentum = nullptr;
  std::ptrdiff_t size = 0;
};

struct StepKernels {
  // The dual norm of this chunk of d, after momentum; changes nothing. Where only finiteness matters, so
  // does `largest`.
  kernels::NormPart (*measure)(const kernels::StepPlan& plan, const StepChunk& chunk);
  // The step itself, with d multiplied by `shrink`, 1/||d||_q or 1.
  void (*update)(const kernels::StepPlan& plan, double shrink, const StepChunk& chunk);
  // master = the image of the weights.
  void (*fill_master)(const kernels::StepPlan& plan, const StepChunk& chunk);
};

StepKernels exact_step_kernels(StepElement element, StepRule rule);

// What `measure` is asked for: the norm, or only whether all numbers are finite.
enum class StepMeasure { norm, largest };

// The fast kernels serve floats and less for p from 1.0079 to 17, and to 129 where p is a multiple of 1/64; doubles for
// every p.
bool has_fast_step(StepElement element, const kernels::StepPlan& plan);
StepKernels fast_step_kernels(StepElement element, StepRule rule, StepMeasure what);

}  // namespace attmirror
