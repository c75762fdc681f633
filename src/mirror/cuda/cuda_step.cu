// The driver of a fused step on the GPU: tensors are put into batches, batches are launched on the caller's stream.
// Where a norm or a check is asked for, all gradients are measured before anything is written.
#include "mirror/cuda/step_launch.cuh"
#include "mirror/make_step_plan.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/mirror/cuda_step.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace attmirror {

using cuda::Batch;
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

void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw environment_error(std::string("CUDA could not ") + what + ": " + cudaGetErrorString(status));
}

bool on_vector(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

// Rounds in a chunk: as many as leave every multiprocessor a few dozen blocks to choose from, four at most.
int rounds_for(std::span<const StepTensor> tensors, int round) {
  std::ptrdiff_t total = 0;
  for (const StepTensor& tensor : tensors) total += tensor.size;
  constexpr std::ptrdiff_t blocks_wanted = 8192;
  return static_cast<int>(std::clamp<std::ptrdiff_t>(total / round / blocks_wanted, 1, 4));
}

// Calls f with batches of those tensors for which `wanted` says yes; `round` numbers make a round.
template <class Wanted, class F>
void for_each_batch(std::span<const StepTensor> tensors, bool has_momentum, int round, Wanted&& wanted,
                    F&& f) {
  Batch batch{};
  batch.rounds = rounds_for(tensors, round);
  const std::ptrdiff_t chunk = static_cast<std::ptrdiff_t>(batch.rounds) * round;
  const auto flush = [&] {
    if (batch.count > 0) f(batch);
    batch.count = 0;
  };
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const StepTensor& tensor = tensors[i];
    if (tensor.size == 0 || !wanted(tensor)) continue;
    const std::ptrdiff_t chunks = (tensor.size + chunk - 1) / chunk;
    if (chunks > std::numeric_limits<int>::max())
      throw bad_input("tensors[" + std::to_string(i) + "].size is " + std::to_string(tensor.size) +
                      ": too large for one launch");
    // Tensors of a batch are neighbours, so that first_tensor + index is a tensor's number.
    if (batch.count == cuda::tensors_per_batch ||
        (batch.count > 0 && static_cast<std::size_t>(batch.first_tensor + batch.count) != i) ||
        (batch.count > 0 && batch.first_chunk[batch.count] > std::numeric_limits<int>::max() - chunks))
      flush();
    if (batch.count == 0) {
      batch.first_tensor = static_cast<int>(i);
      batch.first_chunk[0] = 0;
    }
    void* momentum = has_momentum ? tensor.momentum : nullptr;
    batch.tensors[batch.count] = {tensor.weights, tensor.gradient, tensor.master, momentum, tensor.size};
    batch.vectors[batch.count] = on_vector(tensor.weights) && on_vector(tensor.gradient) &&
                                 on_vector(tensor.master) && on_vector(momentum);
    batch.first_chunk[batch.count + 1] = batch.first_chunk[batch.count] + static_cast<int>(chunks);
    ++batch.count;
  }
  flush();
}

StepArguments arguments_for(const StepOptions& options) {
  const kernels::StepPlan plan = make_step_plan(options);
  const double shrink = options.momentum > 0 ? 1 : plan.unscale;
  return {plan,
          cuda::float_constants(plan, options.rule, shrink),
          cuda::double_constants(plan, options.rule, shrink),
          nullptr,
          nullptr,
          nullptr};
}

// The workspace: a flag, the shrinks, the parts of the norms.
constexpr std::size_t flag_bytes = 256;
std::size_t shrinks_bytes(std::size_t tensors) { return (tensors * sizeof(double) + 255) / 256 * 256; }

}  // namespace

std::size_t cuda_workspace_bytes(std::span<const StepTensor> tensors, const StepOptions& options) {
  if (!needs_measure(options)) return 0;
  // The shortest chunks are those of doubles, of one round.
  std::size_t parts = 0;
  for (const StepTensor& tensor : tensors)
    parts += static_cast<std::size_t>(tensor.size) / cuda::float64_launches().measure_round + 1;
  return flag_bytes + shrinks_bytes(tensors.size()) + 2 * sizeof(double) * parts;
}

void fused_step_on_device(StepElement element, std::span<const StepTensor> tensors,
                          const StepOptions& options, void* workspace, void* stream_pointer,
                          DeviceScaling scaling) {
  options.validate();
  validate_tensors(tensors, options);
  const auto stream = static_cast<cudaStream_t>(stream_pointer);
  const bool is_exact = options.arithmetic == StepArithmetic::exact, with_norm = needs_norm(options);
  const bool has_momentum = options.momentum > 0;
  const cuda::Launches& launches = launches_for(element);

  StepArguments arguments = arguments_for(options);
  arguments.gradient_scale = scaling.gradient_scale;
  arguments.found_nonfinite = scaling.found_nonfinite;
  if (needs_measure(options)) {
    if (workspace == nullptr)
      throw bad_input("workspace is null: this step needs cuda_workspace_bytes() of it");
    char* memory = static_cast<char*>(workspace);
    float* found = nullptr;
    if (options.skip_nonfinite) {
      found = scaling.found_nonfinite ? scaling.found_nonfinite : reinterpret_cast<float*>(memory);
      require(cudaMemsetAsync(found, 0, sizeof(float), stream), "clear a flag");
      arguments.found_nonfinite = found;
    }
    double* shrinks = with_norm ? reinterpret_cast<double*>(memory + flag_bytes) : nullptr;
    auto* parts = reinterpret_cast<double*>(memory + flag_bytes + shrinks_bytes(tensors.size()));
    for_each_batch(
        tensors, has_momentum, launches.measure_round, [](const StepTensor&) { return true; },
        [&](const Batch& batch) {
          require(is_exact ? cuda::exact_launches().measure(element, batch, arguments, with_norm, parts,
                                                            shrinks, found, stream)
                           : launches.measure(batch, arguments, with_norm, parts, shrinks, found, stream),
                  "measure gradients");
        });
    arguments.shrinks = shrinks;
  }
  for (const bool has_master : {false, true})
    for_each_batch(
        tensors, has_momentum, launches.update_round,
        [&](const StepTensor& tensor) { return (tensor.master != nullptr) == has_master; },
        [&](const Batch& batch) {
          require(is_exact ? cuda::exact_launches().update(element, batch, arguments, options.rule, stream)
                           : launches.update(batch, arguments, options.rule, has_master, stream),
                  "make a step");
        });
}

void find_nonfinite_on_device(StepElement element, std::span<const StepTensor> tensors, float* found,
                              void* workspace, void* stream) {
  const StepOptions options{.skip_nonfinite = true};
  validate_gradients(tensors);
  if (found == nullptr) throw bad_input("found is null");
  if (workspace == nullptr)
    throw bad_input("workspace is null: this check needs cuda_workspace_bytes() of it");
  const cuda::Launches& launches = launches_for(element);
  auto* parts =
      reinterpret_cast<double*>(static_cast<char*>(workspace) + flag_bytes + shrinks_bytes(tensors.size()));
  const StepArguments arguments = arguments_for(options);
  for_each_batch(
      tensors, false, launches.measure_round, [](const StepTensor&) { return true; },
      [&](const Batch& batch) {
        require(launches.measure(batch, arguments, false, parts, nullptr, found,
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
