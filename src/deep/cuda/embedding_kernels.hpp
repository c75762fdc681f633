// Embeddings on a GPU, on raw pointers: those of tokens, or of the patches of images, and those of their positions.
// They are added, rounded and dropped in one pass, and have their gradients in another. Internal.
//
// For texts LibTorch makes four operations of the first, and sorts all tokens twice for the second. Here gradients are
// added where they belong as they come: in changing order, so that their last bits differ from run to run.
//
// For images it makes four passes forward (bias, class token before the patches, positions, dropout) and seven
// backward.
#pragma once

#include "deep/cuda/row_kernels.hpp"

#include <cstdint>

#include <cuda_runtime_api.h>

namespace attmirror::cuda {

struct EmbeddedRows {
  const std::int64_t *tokens = nullptr, *positions = nullptr;  // one per row
  RowShape shape = {};  // the type is that of the result, or of its gradient
};
inline bool embedding_takes(std::int64_t rows, std::int64_t width) {
  return width % 4 == 0 && rows * width / 4 < (std::int64_t{1} << 31);
}

// result[row] = by_token[tokens[row]] + by_position[positions[row]]
cudaError_t embed_rows(const EmbeddedRows& rows, const float* by_token, const float* by_position,
                       void* result, cudaStream_t stream);

// Adds the rows of d_result to both tables.
cudaError_t embed_rows_backward(const EmbeddedRows& rows, const void* d_result, float* d_by_token,
                                float* d_by_position, cudaStream_t stream);

// Image s has the class token's row and one for each of its patches:
//   result[s tokens]     = dropped(class_token + by_position[0])
//   result[s tokens + t] = dropped(mapped[s (tokens - 1) + t - 1] + bias + by_position[t]),  t = 1, ..., tokens - 1
struct PatchRows {
  RowShape shape = {};  // of the result, in float32; `brief` is the type of `mapped`
  std::int64_t tokens = 0;
};
cudaError_t embed_patches(const PatchRows& rows, const void* mapped, const float* bias,
                          const float* class_token, const float* by_position, const RowDropout& dropout,
                          float* result, cudaStream_t stream);

// The gradient of the bias is the sum of d_by_position over the patches.
cudaError_t embed_patches_backward(const PatchRows& rows, const float* d_result, const RowDropout& dropout,
                                   void* d_mapped, float* d_class_token, float* d_by_position,
                                   cudaStream_t stream);

}  // namespace attmirror::cuda
