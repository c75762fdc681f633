// The step of fused_step.hpp in tensor operations: for devices without a kernel, for directions that need all of a
// matrix, and as the text that kernels are checked against. Internal.
#pragma once

#include <attmirror/deep/fused_optimizer.hpp>

namespace attmirror::deep {

// sign(x) |x|^exponent
at::Tensor signed_power(const at::Tensor& x, double exponent);

// Numbers are computed as double, or as float on devices that have no double.
at::Tensor widened(const at::Tensor& x);

// `master` and `momentum` as in StepTensor, undefined where there is none.
void tensor_step(const at::Tensor& weights, const at::Tensor& gradient, const at::Tensor& master,
                 const at::Tensor& momentum, const GroupRule& rule);

void tensor_fill_master(const at::Tensor& weights, const at::Tensor& master, const StepOptions& options);

// Is `weights` what steps leave beside this master, or what it was made from, up to rounding?
bool is_master_of(const at::Tensor& weights, const at::Tensor& master, const StepOptions& options);

}  // namespace attmirror::deep
