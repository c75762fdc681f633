// What networks ask of our own GPU kernels (src/deep/cuda). Without them every function here says that it
// cannot. Internal.
#pragma once

#include "deep/keyed_dropout.hpp"
#include "deep/packed_attention.hpp"

#include <cstdint>
#include <vector>

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
// What comes out: norms of this type, and beside them the sum that they are the norm of (in the type of x), or the same
// norms once more, for a second reader.
struct NormOutputs {
  at::ScalarType type = at::kFloat;
  bool sum = false;
};
// The branch and biases may be undefined. Of float32 and bfloat16; branch and norms have the type `outputs.type`.
NormedRows residual_norm_on_gpu(const at::Tensor& x, const Branch& branch, const Affine& norm,
                                const Dropout& dropout, double eps, const NormOutputs& outputs);

// by_token[tokens] + by_position[positions] of float32 tables, rounded to `type`.
bool has_embedding_on_gpu(const at::Tensor& by_token, const at::Tensor& tokens, at::ScalarType type);
at::Tensor embedded_on_gpu(const at::Tensor& by_token, const at::Tensor& by_position,
                           const at::Tensor& tokens, const at::Tensor& positions, at::ScalarType type);

// Rows of images for a table of positions [tokens, width]: those of the class token and of mapped patches, plus
// positions, dropped; float32 [samples tokens, width]. `type` is that of the mapped patches.
bool has_patches_on_gpu(const at::Tensor& by_position, std::int64_t samples, at::ScalarType type);
at::Tensor patches_on_gpu(const Branch& mapped, const at::Tensor& class_token, const at::Tensor& by_position,
                          const Dropout& dropout);

// The weights in bfloat16, all by a launch or two, and their gradients likewise.
std::vector<at::Tensor> brief_on_gpu(const std::vector<at::Tensor>& weights);

// For rows of this width and of the type and number of those of x.
bool has_gelu_on_gpu(const at::Tensor& x, std::int64_t width);
at::Tensor gelu_on_gpu(const at::Tensor& x, const at::Tensor& bias, const Dropout& dropout);

// gelu(x) by itself.
bool has_plain_gelu_on_gpu(const at::Tensor& x);
at::Tensor plain_gelu_on_gpu(const at::Tensor& x);

// LibTorch's flash attention with variable lengths: whether it takes these queries, and its result.
bool has_fused_attention(const at::Tensor& query);
at::Tensor fused_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const PackedRows& queries, const PackedRows& keys,
                           const AttentionDropout& dropout);

}  // namespace attmirror::deep
