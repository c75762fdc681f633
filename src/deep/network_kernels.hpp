// What networks ask of our own GPU kernels (src/deep/cuda). Without them every function here says that it
// cannot. Internal.
#pragma once

#include "deep/keyed_dropout.hpp"
#include "deep/packed_attention.hpp"

#include <cstdint>

#include <torch/types.h>

namespace attmirror::deep {

// What stands for the keys where nothing is dropped: LibTorch's functions with a gradient do not take
// undefined tensors.
inline at::Tensor no_keys(const at::Tensor& beside) {
  return at::empty({0}, beside.options().dtype(at::kLong).requires_grad(false));
}

// x [rows, width] on a GPU, of float32 or bfloat16, contiguous.
at::Tensor masked_on_gpu(const at::Tensor& x, const at::Tensor& keys, std::uint32_t site, double probability);

// Whether the fused kernel takes rows of this width and type.
bool has_residual_norm_on_gpu(const at::Tensor& x);
at::Tensor residual_norm_on_gpu(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight,
                                const Dropout& dropout, double eps);

// LibTorch's flash attention with variable lengths: whether it takes these queries, and its result.
bool has_fused_attention(const at::Tensor& query);
at::Tensor fused_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const PackedRows& queries, const PackedRows& keys,
                           const AttentionDropout& dropout);

}  // namespace attmirror::deep
