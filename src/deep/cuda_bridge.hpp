// Steps on an NVIDIA GPU, on LibTorch's current stream and with memory from its allocator. Internal; compiled where
// attmirror::cuda is (ATTMIRROR_HAS_CUDA).
#pragma once

#include "deep/parameter_list.hpp"
#include "mirror/cuda/adam_element.hpp"

#include <span>

namespace attmirror::deep {

// `found_nonfinite` is a float on the device, or undefined (DeviceScaling in mirror/cuda_step.hpp).
void step_on_gpu(const StepBatch& batch, std::span<const StepTensor> tensors, const StepOptions& options,
                 const at::Tensor& found_nonfinite);

void fill_masters_on_gpu(const StepBatch& batch, std::span<const StepTensor> tensors);

// 1 where a gradient of the batches is not finite, else 0: a float on their device, which all have in common.
at::Tensor found_nonfinite_on_gpu(std::span<const StepBatch> batches);

// What Adam's step of a parameter reads and writes: float32, contiguous.
struct AdamTensors {
  at::Tensor weights, gradient, average, squares;
};
// `steps`: a double on the device, the number of steps so far, which the step increases; `rate`: a float there, or
// undefined for that of the numbers.
void adam_step_on_gpu(std::span<const AdamTensors> tensors, const AdamNumbers& numbers,
                      const at::Tensor& steps, const at::Tensor& rate);

}  // namespace attmirror::deep
