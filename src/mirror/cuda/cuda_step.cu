// The driver of a fused step on the GPU: tensors are put into batches, batches are launched on the caller's stream.
// Where a norm or a check is asked for, all gradients are measured before anything is written.
#include "mirror/cuda/batch_list.cuh"
#include "mirror/cuda/step_launch.cuh"
#include "mirror/make_step_plan.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/mirror/cuda_step.hpp>

#include <cstdint>
#include <string>

namespace attmirror {

using cuda::Batch;
using cuda::for_each_batch;
using cuda::require;
using cuda::StepArguments;

namespace {

const cuda::Launches& launches_for(StepElement element) {
  switch (element) {
    case StepElement::float32:
      return cuda::float32_launches();
    case StepElement::bfloat16:
      return cuda::bfloat16_launches();
    case StepElement::float16:
      return cuda::float16_launches();
    case StepElement::float64:
      break;
  }
  return cuda::float64_launches();
}

StepArguments arguments_for(const StepOptions& options) {
  const kernels::StepPlan plan = make_step_plan(options);
  const double shrink = options.momentum > 0 ? 1 : plan.unscale;
  return {plan,
          cuda::float_constants(plan, options.rule, shrink),
          cuda::double_constants(plan, options.rule, shrink),
          nullptr,
          nullptr,
          nullptr,
          nullptr};
}

// What a rate in device memory means for the plan: worked out once, by one thread, and not by each thread of the step.
__global__ void rate_kernel(kernels::StepPlan plan, const float* rate, cuda::RateNumbers* numbers) {
  *numbers = cuda::rate_numbers(plan, *rate);
}

// Norms that were measured elsewhere.
__global__ void shrinks_kernel(const double* norms, int count, double* shrinks, float* found) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  if (found && !cuda::is_finite(norms[i])) *found = 1.0f;
  shrinks[i] = norms[i] == 0 ? 0 : 1 / norms[i];
}

// The workspace: a flag and the numbers of a rate, the shrinks, the parts of the norms.
constexpr std::size_t flag_bytes = 256, rate_offset = 64;
std::size_t shrinks_bytes(std::size_t tensors) { return (tensors * sizeof(double) + 255) / 256 * 256; }

double* parts_in(void* workspace, std::size_t tensors) {
  return reinterpret_cast<double*>(static_cast<char*>(workspace) + flag_bytes + shrinks_bytes(tensors));
}

// A call on a list of tensors: what its launches have in common.
struct DeviceStep {
  DeviceStep(StepElement of, std::span<const StepTensor> list, const StepOptions& with, void* memory,
             void* stream_pointer, const DeviceScaling& scaling)
      : element(of),
        tensors(list),
        options(with),
        workspace(memory),
        stream(static_cast<cudaStream_t>(stream_pointer)),
        launches(launches_for(of)) {
    options.validate();
    validate_tensors(tensors, options);
    if (workspace == nullptr && cuda_workspace_bytes(tensors, options, scaling) > 0)
      throw bad_input("workspace is null: this step needs cuda_workspace_bytes() of it");
    arguments = arguments_for(options);
    arguments.gradient_scale = scaling.gradient_scale;
    arguments.found_nonfinite = scaling.found_nonfinite;
    if (scaling.rate) {
      auto* numbers = reinterpret_cast<cuda::RateNumbers*>(static_cast<char*>(workspace) + rate_offset);
      rate_kernel<<<1, 1, 0, stream>>>(arguments.plan, scaling.rate, numbers);
      require(cudaGetLastError(), "read the rate");
      arguments.rate = numbers;
    }
  }

  bool is_exact() const { return options.arithmetic == StepArithmetic::exact; }

  void measure(const cuda::NormOutputs& outputs) const {
    double* parts = parts_in(workspace, tensors.size());
    for_each_batch(
        tensors, options.momentum > 0, launches.measure_round, [](const StepTensor&) { return true; },
        [&](const Batch& batch) {
          const bool with_norm = needs_norm(options);
          require(is_exact() ? cuda::exact_launches().measure(element, batch, arguments, with_norm, parts,
                                                              outputs, stream)
                             : launches.measure(batch, arguments, with_norm, parts, outputs, stream),
                  "measure gradients");
        });
  }

  void update() const {
    for (const bool has_master : {false, true})
      for_each_batch(
          tensors, options.momentum > 0, launches.update_round,
          [&](const StepTensor& tensor) { return (tensor.master != nullptr) == has_master; },
          [&](const Batch& batch) {
            require(is_exact()
                        ? cuda::exact_launches().update(element, batch, arguments, options.rule, stream)
                        : launches.update(batch, arguments, options.rule, has_master, stream),
                    "make a step");
          });
  }

  StepElement element;
  std::span<const StepTensor> tensors;
  const StepOptions& options;
  void* workspace;
  cudaStream_t stream;
  const cuda::Launches& launches;
  StepArguments arguments{};
};

}  // namespace

std::size_t cuda_workspace_bytes(std::span<const StepTensor> tensors, const StepOptions& options,
                                 const DeviceScaling& scaling) {
  if (!needs_measure(options)) return scaling.rate ? flag_bytes : 0;
  // The shortest chunks are those of doubles, of one round.
  std::size_t parts = 0;
  for (const StepTensor& tensor : tensors)
    parts += static_cast<std::size_t>(tensor.size) / cuda::float64_launches().measure_round + 1;
  return flag_bytes + shrinks_bytes(tensors.size()) + 2 * sizeof(double) * parts;
}

void fused_step_on_device(StepElement element, std::span<const StepTensor> tensors,
                          const StepOptions& options, void* workspace, void* stream, DeviceScaling scaling) {
  if (scaling.norms && !needs_norm(options))
    throw bad_input("norms are given to a step that takes none: its rule is " +
                    std::string(to_string(options.rule)) + " with normalized off");
  DeviceStep step(element, tensors, options, workspace, stream, scaling);
  if (needs_measure(options)) {
    char* memory = static_cast<char*>(workspace);
    cuda::NormOutputs outputs;
    if (options.skip_nonfinite) {
      outputs.found = scaling.found_nonfinite ? scaling.found_nonfinite : reinterpret_cast<float*>(memory);
      require(cudaMemsetAsync(outputs.found, 0, sizeof(float), step.stream), "clear a flag");
      step.arguments.found_nonfinite = outputs.found;
    }
    if (needs_norm(options)) outputs.shrinks = reinterpret_cast<double*>(memory + flag_bytes);
    if (!scaling.norms) {
      step.measure(outputs);
    } else if (!tensors.empty()) {
      const int count = static_cast<int>(tensors.size());
      shrinks_kernel<<<(count + cuda::threads - 1) / cuda::threads, cuda::threads, 0, step.stream>>>(
          scaling.norms, count, outputs.shrinks, outputs.found);
      require(cudaGetLastError(), "take over norms");
    }
    step.arguments.shrinks = outputs.shrinks;
  }
  step.update();
}

void measure_on_device(StepElement element, std::span<const StepTensor> tensors, const StepOptions& options,
                       double* norms, void* workspace, void* stream, DeviceScaling scaling) {
  if (!needs_norm(options))
    throw bad_input("a step of the " + std::string(to_string(options.rule)) +
                    " rule with normalized off takes no norms");
  if (tensors.empty()) return;
  if (norms == nullptr) throw bad_input("norms is null");
  const DeviceStep step(element, tensors, options, workspace, stream, scaling);
  // Empty tensors are in no batch.
  require(cudaMemsetAsync(norms, 0, tensors.size() * sizeof(double), step.stream), "clear norms");
  step.measure({.norms = norms});
}

void find_nonfinite_on_device(StepElement element, std::span<const StepTensor> tensors, float* found,
                              void* workspace, void* stream) {
  const StepOptions options{.skip_nonfinite = true};
  validate_gradients(tensors);
  if (found == nullptr) throw bad_input("found is null");
  if (workspace == nullptr)
    throw bad_input("workspace is null: this check needs cuda_workspace_bytes() of it");
  const cuda::Launches& launches = launches_for(element);
  double* parts = parts_in(workspace, tensors.size());
  const StepArguments arguments = arguments_for(options);
  for_each_batch(
      tensors, false, launches.measure_round, [](const StepTensor&) { return true; },
      [&](const Batch& batch) {
        require(launches.measure(batch, arguments, false, parts, {.found = found},
                                 static_cast<cudaStream_t>(stream)),
                "check gradients");
      });
}

void fill_masters_on_device(StepElement element, std::span<const StepTensor> tensors,
                            const StepOptions& options, void* stream) {
  options.validate();
  validate_masters(tensors);
  const cuda::Launches& launches = launches_for(element);
  const StepArguments arguments = arguments_for(options);
  for_each_batch(
      tensors, false, launches.update_round, [](const StepTensor&) { return true; },
      [&](const Batch& batch) {
        require(launches.fill_masters(batch, arguments, options.rule, static_cast<cudaStream_t>(stream)),
                "fill masters");
      });
}

}  // namespace attmirror
