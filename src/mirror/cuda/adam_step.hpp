// A step of Adam or AdamW over all tensors of a network, on a GPU: float32, in one launch for up to 64
// tensors. Internal.
#pragma once

#include "mirror/cuda/adam_element.hpp"
#include <attmirror/mirror/fused_step.hpp>

#include <cstddef>
#include <span>

namespace attmirror {

// Of each tensor, `momentum` is the average of gradients and `master` that of their squares.
//
// What a captured step must find in device memory: the number of steps so far, which the step increases by 1,
// and, where not null, the rate, which then stands for that of the numbers. `workspace` has
// adam_workspace_bytes. Nothing waits. Throws Error (bad input) for a missing pointer, Error (environment) if
// a launch fails.
inline constexpr std::size_t adam_workspace_bytes = 256;
void adam_step_on_device(std::span<const StepTensor> tensors, const AdamNumbers& numbers, double* steps,
                         const float* rate, void* workspace, void* stream);

}  // namespace attmirror
