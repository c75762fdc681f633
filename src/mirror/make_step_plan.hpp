// From the options of a step to the numbers that its kernels use. Internal.
#pragma once

#include "mirror/step_plan.hpp"
#include <attmirror/mirror/fused_step.hpp>

namespace attmirror {

kernels::StepPlan make_step_plan(const StepOptions& options);

// Throws Error (bad input) naming the tensor and what is wrong with it.
void validate_tensors(std::span<const StepTensor> tensors, const StepOptions& options);

void validate_gradients(std::span<const StepTensor> tensors);
void validate_masters(std::span<const StepTensor> tensors);

// Does a step need to see all gradients before it changes anything?
inline bool needs_norm(const StepOptions& options) {
  return options.rule == StepRule::steepest || (options.rule == StepRule::mirror && options.normalized);
}
inline bool needs_measure(const StepOptions& options) {
  return needs_norm(options) || options.skip_nonfinite;
}

// ||d||_q from its parts; q = dual.value + dual.rest. Infinite or NaN where a part is.
class DualNorm {
 public:
  explicit DualNorm(const kernels::Sum& dual) : q_(dual.value) {}
  void add(const kernels::NormPart& part);
  double value() const;
  bool is_finite() const;

 private:
  double q_;
  kernels::NormPart total_;
};

}  // namespace attmirror
