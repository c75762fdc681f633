// The step of fused_step.hpp on an NVIDIA GPU: the same options, numbers and bounds, with pointers into
// device memory. It is in the library attmirror::cuda, which is built if CUDA's compiler is found.
//
// Nothing waits: work is put on the stream, and the call returns. Tensors are grouped into a few launches,
// whatever their number. A step can be captured into a CUDA graph; `options` are then fixed, but what is in
// device memory is not.
#pragma once

#include <attmirror/mirror/fused_step.hpp>

#include <cstddef>
#include <span>

namespace attmirror {

// Numbers in device memory that a step reads or writes, so that the host need not wait for them. All optional.
struct DeviceScaling {
  const float* gradient_scale = nullptr;  // divides gradients, besides options.gradient_scale
  // If not 0, the step does nothing. With options.skip_nonfinite the step itself sets it to 0 or 1, depending
  // on whether a gradient is not finite, or a momentum, which is measured along with it
  // (find_nonfinite_on_device() looks only at gradients); otherwise it is only read.
  float* found_nonfinite = nullptr;
  // The rate, instead of options.rate, so that a captured step can follow a schedule. Decay is computed on
  // the GPU. Nothing checks it: a rate below 0 goes the other way, and rate * weight_decay must stay below 1.
  const float* rate = nullptr;
  // ||d||_q of each tensor, instead of what the step would measure: see measure_on_device().
  const double* norms = nullptr;
};

// Device memory, in bytes, that a step needs besides its tensors; 0 for a plain step.
std::size_t cuda_workspace_bytes(std::span<const StepTensor> tensors, const StepOptions& options,
                                 const DeviceScaling& scaling = {});

// `stream` is a cudaStream_t; `workspace` has cuda_workspace_bytes() and is aligned to 256 bytes. Throws Error (bad
// input) like fused_step(), and Error (environment) with CUDA's own words if a launch fails.
void fused_step_on_device(StepElement element, std::span<const StepTensor> tensors,
                          const StepOptions& options, void* workspace, void* stream,
                          DeviceScaling scaling = {});

// The first half of a step whose tensors are parts of larger ones (measure_step() of fused_step.hpp): writes ||d||_q of
// each tensor to `norms` in device memory, and changes nothing else. The other half is a step with scaling.norms.
void measure_on_device(StepElement element, std::span<const StepTensor> tensors, const StepOptions& options,
                       double* norms, void* workspace, void* stream, DeviceScaling scaling = {});

// Sets `found` (a float in device memory) to 1 if a gradient is infinite or NaN, and leaves it alone
// otherwise. Use it to step several lists of tensors, or none of them if one is unusable. The workspace is
// that of a step with skip_nonfinite; of the tensors, gradient and size are used.
void find_nonfinite_on_device(StepElement element, std::span<const StepTensor> tensors, float* found,
                              void* workspace, void* stream);

// fill_masters() for tensors on a GPU.
void fill_masters_on_device(StepElement element, std::span<const StepTensor> tensors,
                            const StepOptions& options, void* stream);

}  // namespace attmirror
