// A list of tensors cut into batches, each of which is one launch.
#pragma once

#include "mirror/cuda/batch.cuh"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace attmirror::cuda {

inline void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw environment_error(std::string("CUDA could not ") + what + ": " + cudaGetErrorString(status));
}

inline bool on_vector(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

// Rounds in a chunk: as many as leave every multiprocessor a few dozen blocks to choose from, four at most.
inline int rounds_for(std::span<const StepTensor> tensors, int round) {
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
    if (batch.count == tensors_per_batch ||
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

}  // namespace attmirror::cuda
