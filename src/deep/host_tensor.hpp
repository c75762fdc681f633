// Memory of the host that a GPU can fetch by itself. Internal.
#pragma once

#include <cstdint>

#include <ATen/ATen.h>

namespace attmirror::deep {

// A copy from ordinary memory makes the host wait for all that the GPU has to do before it; from page-locked memory
// it does not. Where there is no GPU it is ordinary memory.
inline at::Tensor host_tensor(std::int64_t size, at::ScalarType type) {
  static const bool has_gpu = at::hasCUDA() && at::globalContext().hasCUDA();
  return at::empty({size}, at::TensorOptions().dtype(type).pinned_memory(has_gpu));
}

}  // namespace attmirror::deep
