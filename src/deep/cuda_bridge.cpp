#include "deep/cuda_bridge.hpp"

#include <attmirror/mirror/cuda_step.hpp>

#include <cstddef>
#include <vector>

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace attmirror::torch {

void step_on_gpu(const StepBatch& batch, std::span<const StepTensor> tensors, const StepOptions& options,
                 const ::at::Tensor& found_nonfinite) {
  const c10::cuda::CUDAGuard guard(batch.device);
  // The allocator hands memory of a stream on to later work of the same stream only, so it may be freed on return.
  const std::size_t bytes = cuda_workspace_bytes(tensors, options);
  ::at::Tensor workspace;
  if (bytes > 0)
    workspace = ::at::empty({static_cast<std::int64_t>(bytes)},
                            ::at::TensorOptions().dtype(::at::kByte).device(batch.device));
  DeviceScaling scaling;
  if (found_nonfinite.defined()) scaling.found_nonfinite = found_nonfinite.data_ptr<float>();
  fused_step_on_device(batch.element, tensors, options, bytes > 0 ? workspace.data_ptr() : nullptr,
                       c10::cuda::getCurrentCUDAStream(batch.device.index()).stream(), scaling);
}

void fill_masters_on_gpu(const StepBatch& batch, std::span<const StepTensor> tensors) {
  const c10::cuda::CUDAGuard guard(batch.device);
  fill_masters_on_device(batch.element, tensors, batch.rule.step,
                         c10::cuda::getCurrentCUDAStream(batch.device.index()).stream());
}

::at::Tensor found_nonfinite_on_gpu(std::span<const StepBatch> batches) {
  const ::at::Device device = batches.front().device;
  const c10::cuda::CUDAGuard guard(device);
  const ::at::Tensor one = ::at::ones({1}, ::at::TensorOptions().dtype(::at::kFloat).device(device));
  ::at::Tensor found = ::at::zeros_like(one);
  // LibTorch's own check of many tensors at once, which would multiply them by the number it is given.
  for (const StepBatch& batch : batches) {
    std::vector<::at::Tensor> gradients;
    for (const StepParameter& entry : batch.parameters) gradients.push_back(entry.gradient);
    ::at::_amp_foreach_non_finite_check_and_unscale_(gradients, found, one);
  }
  return found;
}

}  // namespace attmirror::torch
