// The driver of a fused step: tensors are cut into chunks, chunks are shared among threads. Where a norm or a check for
// infinities is asked for, a first pass over the gradients comes before anything is written; it recomputes the momentum
// rather than storing it, so that a skipped step leaves no trace.
#include "base/share_chunks.hpp"
#include "mirror/make_step_plan.hpp"
#include "mirror/step_kernels.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/mirror/fused_step.hpp>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

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

// One step: its plan, its kernels and its chunks.
class StepDriver {
 public:
  StepDriver(StepElement element, std::span<const StepTensor> tensors, const StepOptions& options,
             ThreadPool* pool)
      : element_(element), tensors_(tensors), options_(options), pool_(pool) {
    options.validate();
    validate_tensors(tensors, options);
    plan_ = make_step_plan(options);
    kernels_ = choose(element, options, plan_);
    chunks_ = cut(tensors);
  }

  // The dual norm of each tensor, or what only tells whether it is finite.
  std::vector<DualNorm> measure() const {
    std::vector<NormPart> parts(chunks_.size());
    share(pool_, count(), [&](std::ptrdiff_t c) {
      parts[static_cast<std::size_t>(c)] = kernels_.measure(plan_, chunk_arrays(c));
    });
    std::vector<DualNorm> norms(tensors_.size(), DualNorm(plan_.dual));
    for (std::size_t c = 0; c < chunks_.size(); ++c) norms[chunks_[c].tensor].add(parts[c]);
    return norms;
  }

  // The tensors' directions are multiplied by `shrink`, 1/||d||_q or 1.
  void update(const std::vector<double>& shrink) const {
    share(pool_, count(), [&](std::ptrdiff_t c) {
      kernels_.update(plan_, shrink[chunks_[static_cast<std::size_t>(c)].tensor], chunk_arrays(c));
    });
  }

 private:
  std::ptrdiff_t count() const { return static_cast<std::ptrdiff_t>(chunks_.size()); }
  StepChunk chunk_arrays(std::ptrdiff_t c) const {
    const ChunkOfTensor& chunk = chunks_[static_cast<std::size_t>(c)];
    StepChunk result = arrays(element_, tensors_[chunk.tensor], chunk);
    if (options_.momentum == 0) result.momentum = nullptr;
    return result;
  }

  StepElement element_;
  std::span<const StepTensor> tensors_;
  const StepOptions& options_;
  ThreadPool* pool_;
  StepPlan plan_;
  StepKernels kernels_{};
  std::vector<ChunkOfTensor> chunks_;
};

// A gradient of zeros has no direction; it takes no step.
double shrink_of(double norm) { return norm == 0 ? 0 : 1 / norm; }

void require_norms(std::span<const StepTensor> tensors, const StepOptions& options, std::size_t norms) {
  if (!needs_norm(options))
    throw bad_input(
        fmt::format("a step of the {} rule with normalized off takes no norms: fused_step() makes it",
                    to_string(options.rule)));
  if (norms != tensors.size())
    throw bad_input(
        fmt::format("norms has {} numbers: expected {}, as many as tensors", norms, tensors.size()));
}

}  // namespace

StepReport fused_step(StepElement element, std::span<const StepTensor> tensors, const StepOptions& options,
                      ThreadPool* pool) {
  const StepDriver driver(element, tensors, options, pool);
  std::vector<double> shrink(tensors.size(), 1.0);
  if (needs_measure(options)) {
    const std::vector<DualNorm> norms = driver.measure();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      // The measure is of gradient and momentum together; an infinite momentum alone is no reason to skip.
      if (options.skip_nonfinite && !norms[i].is_finite() &&
          (options.momentum == 0 || has_nonfinite_gradient(element, tensors[i])))
        return {true, static_cast<std::ptrdiff_t>(i)};
      if (needs_norm(options)) shrink[i] = shrink_of(norms[i].value());
    }
  }
  driver.update(shrink);
  return {};
}

void measure_step(StepElement element, std::span<const StepTensor> tensors, const StepOptions& options,
                  std::span<double> norms, ThreadPool* pool) {
  const StepDriver driver(element, tensors, options, pool);
  require_norms(tensors, options, norms.size());
  const std::vector<DualNorm> measured = driver.measure();
  for (std::size_t i = 0; i < tensors.size(); ++i) norms[i] = measured[i].value();
}

StepReport step_with_norms(StepElement element, std::span<const StepTensor> tensors,
                           const StepOptions& options, std::span<const double> norms, ThreadPool* pool) {
  const StepDriver driver(element, tensors, options, pool);
  require_norms(tensors, options, norms.size());
  std::vector<double> shrink(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (norms[i] < 0) throw bad_input(fmt::format("norms[{}] is {}: expected 0 or more", i, norms[i]));
    if (options.skip_nonfinite && !std::isfinite(norms[i])) return {true, static_cast<std::ptrdiff_t>(i)};
    shrink[i] = shrink_of(norms[i]);
  }
  driver.update(shrink);
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
