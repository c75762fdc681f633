#include "deep/cuda_bridge.hpp"

#include "mirror/cuda/adam_step.hpp"
#include <attmirror/mirror/cuda_step.hpp>

#include <cstddef>
#include <vector>

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

namespace attmirror::deep {

namespace {

// The allocator hands memory of a stream on to later work of the same stream only, so it may be freed while a
// step waits.
at::Tensor workspace_for(std::span<const StepTensor> tensors, const StepOptions& options, at::Device device,
                         const DeviceScaling& scaling = {}) {
  return at::empty({static_cast<std::int64_t>(cuda_workspace_bytes(tensors, options, scaling))},
                   at::TensorOptions().dtype(at::kByte).device(device));
}

}  // namespace

void step_on_gpu(const StepBatch& batch, std::span<const StepTensor> tensors, const StepOptions& options,
                 const at::Tensor& found_nonfinite) {
  const c10::cuda::CUDAGuard guard(batch.device);
  DeviceScaling scaling;
  if (found_nonfinite.defined()) scaling.found_nonfinite = found_nonfinite.data_ptr<float>();
  if (batch.rule.device_rate.defined()) scaling.rate = batch.rule.device_rate.data_ptr<float>();
  const at::Tensor workspace = workspace_for(tensors, options, batch.device, scaling);
  fused_step_on_device(batch.element, tensors, options, workspace.data_ptr(),
                       c10::cuda::getCurrentCUDAStream(batch.device.index()).stream(), scaling);
}

void fill_masters_on_gpu(const StepBatch& batch, std::span<const StepTensor> tensors) {
  const c10::cuda::CUDAGuard guard(batch.device);
  fill_masters_on_device(batch.element, tensors, batch.rule.step,
                         c10::cuda::getCurrentCUDAStream(batch.device.index()).stream());
}

at::Tensor found_nonfinite_on_gpu(std::span<const StepBatch> batches) {
  const at::Device device = batches.front().device;
  const c10::cuda::CUDAGuard guard(device);
  at::Tensor found = at::zeros({1}, at::TensorOptions().dtype(at::kFloat).device(device));
  for (const StepBatch& batch : batches) {
    std::vector<StepTensor> tensors;
    for (const StepParameter& entry : batch.parameters)
      tensors.push_back({.gradient = entry.gradient.data_ptr(), .size = entry.gradient.numel()});
    const at::Tensor workspace = workspace_for(tensors, {.skip_nonfinite = true}, device);
    find_nonfinite_on_device(batch.element, tensors, found.data_ptr<float>(), workspace.data_ptr(),
                             c10::cuda::getCurrentCUDAStream(device.index()).stream());
  }
  return found;
}

void adam_step_on_gpu(std::span<const AdamTensors> tensors, const AdamNumbers& numbers,
                      const at::Tensor& steps, const at::Tensor& rate) {
  const at::Device device = steps.device();
  const c10::cuda::CUDAGuard guard(device);
  std::vector<StepTensor> arrays;
  for (const AdamTensors& each : tensors)
    arrays.push_back({.weights = each.weights.data_ptr(),
                      .gradient = each.gradient.data_ptr(),
                      .master = each.squares.data_ptr(),
                      .momentum = each.average.data_ptr(),
                      .size = static_cast<std::ptrdiff_t>(each.weights.numel())});
  const at::Tensor workspace = at::empty({static_cast<std::int64_t>(adam_workspace_bytes)},
                                         at::TensorOptions().dtype(at::kByte).device(device));
  adam_step_on_device(arrays, numbers, steps.data_ptr<double>(),
                      rate.defined() ? rate.data_ptr<float>() : nullptr, workspace.data_ptr(),
                      c10::cuda::getCurrentCUDAStream(device.index()).stream());
}

}  // namespace attmirror::deep
