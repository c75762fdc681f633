// The driver of a fused step: tensors are cut into chunks, chunks are shared among threads. Where a norm or a check for
// infinities is asked for, a first pass over the gradients comes before anything is written; it recomputes the momentum
// rather than storing it, so that a skipped step leaves no trace.
#include "base/share_chunks.hpp"
#include "mirror/make_step_plan.hpp"
#include "mirror/step_kernels.hpp"
#include <attmirror/mirror/fused_step.hpp>

#include <algorithm>
#include <vector>

namespace attmirror {

using kernels::NormPart;
using kernels::StepPlan;

namespace {

// Numbers in a chunk: enough to make handing it to a thread worth while, few enough that the second pass over a small
// network finds the gradients in the cache. A multiple of every vector's lanes.
constexpr std::ptrdiff_t chunk_size = 32768;

struct ChunkOfTensor {
  std::size_t tensor;
  std::ptrdiff_t begin, size;
};

std::vector<ChunkOfTensor> cut(std::span<const StepTensor> tensors) {
  std::vector<ChunkOfTensor> chunks;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    for (std::ptrdiff_t begin = 0; begin < tensors[i].size; begin += chunk_size)
      chunks.push_back({i, begin, std::min(chunk_size, tensors[i].size - begin)});
  return chunks;
}

StepChunk arrays(StepElement element, const StepTensor& tensor, const ChunkOfTensor& chunk) {
  const auto bytes = static_cast<std::ptrdiff_t>(size_of(element));
  const std::ptrdiff_t state_bytes = element == StepElement::float64 ? 8 : 4;
  const auto offset = [&](auto* pointer, std::ptrdiff_t size) {
    using Byte =
        std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(pointer)>>, const char, char>;
    return pointer == nullptr ? pointer : static_cast<Byte*>(pointer) + chunk.begin * size;
  };
  return {offset(tensor.weights, bytes), offset(tensor.gradient, bytes), offset(tensor.master, state_bytes),
          offset(tensor.momentum, state_bytes), chunk.size};
}

StepKernels choose(StepElement element, const StepOptions& options, const StepPlan& plan) {
  if (options.arithmetic == StepArithmetic::exact || !has_fast_step(element, plan))
    return exact_step_kernels(element, options.rule);
  return fast_step_kernels(element, options.rule,
                           needs_norm(options) ? StepMeasure::norm : StepMeasure::largest);
}

// Gradients by themselves; asked only where something is not finite, so it need not be fast.
bool has_nonfinite_gradient(StepElement element, const StepTensor& tensor) {
  const StepOptions options{.skip_nonfinite = true};
  const StepPlan plan = make_step_plan(options);
  const StepKernels kernels = choose(element, options, plan);
  DualNorm norm(plan.dual);
  for (const ChunkOfTensor& chunk : cut({&tensor, 1})) {
    StepChunk numbers = arrays(element, tensor, chunk);
    numbers.momentum = nullptr;
    norm.add(kernels.measure(plan, numbers));
  }
  return !norm.is_finite();
}

}  // namespace

StepReport fused_step(StepElement element, std::span<const StepTensor> tensors, const StepOptions& options,
                      ThreadPool* pool) {
  options.validate();
  validate_tensors(tensors, options);
  const StepPlan plan = make_step_plan(options);
  const StepKernels kernels = choose(element, options, plan);
  const std::vector<ChunkOfTensor> chunks = cut(tensors);
  const auto count = static_cast<std::ptrdiff_t>(chunks.size());
  const auto chunk_arrays = [&](std::ptrdiff_t c) {
    const ChunkOfTensor& chunk = chunks[static_cast<std::size_t>(c)];
    StepChunk result = arrays(element, tensors[chunk.tensor], chunk);
    if (options.momentum == 0) result.momentum = nullptr;
    return result;
  };

  std::vector<double> shrink(tensors.size(), 1.0);
  if (needs_measure(options)) {
    std::vector<NormPart> parts(chunks.size());
    share(pool, count, [&](std::ptrdiff_t c) {
      parts[static_cast<std::size_t>(c)] = kernels.measure(plan, chunk_arrays(c));
    });
    std::size_t next = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      DualNorm norm(plan.dual);
      for (; next < chunks.size() && chunks[next].tensor == i; ++next) norm.add(parts[next]);
      // The measure is of gradient and momentum together; an infinite momentum alone is no reason to skip.
      if (options.skip_nonfinite && !norm.is_finite() &&
          (options.momentum == 0 || has_nonfinite_gradient(element, tensors[i])))
        return {true, static_cast<std::ptrdiff_t>(i)};
      // A gradient of zeros has no direction; it takes no step.
      if (needs_norm(options)) shrink[i] = norm.value() == 0 ? 0 : 1 / norm.value();
    }
  }
  share(pool, count, [&](std::ptrdiff_t c) {
    kernels.update(plan, shrink[chunks[static_cast<std::size_t>(c)].tensor], chunk_arrays(c));
  });
  return {};
}

void fill_masters(StepElement element, std::span<const StepTensor> tensors, const StepOptions& options,
                  ThreadPool* pool) {
  options.validate();
  validate_masters(tensors);
  const StepPlan plan = make_step_plan(options);
  const StepKernels kernels = choose(element, options, plan);
  const std::vector<ChunkOfTensor> chunks = cut(tensors);
  share(pool, static_cast<std::ptrdiff_t>(chunks.size()), [&](std::ptrdiff_t c) {
    const ChunkOfTensor& chunk = chunks[static_cast<std::size_t>(c)];
    kernels.fill_master(plan, arrays(element, tensors[chunk.tensor], chunk));
  });
}

}  // namespace attmirror
