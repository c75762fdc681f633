// Token and position embeddings on a GPU, on raw pointers: looked up, added and rounded in one pass, and
// their gradients in another. Internal.
//
// LibTorch makes four operations of the first, and sorts all tokens twice for the second. Here gradients are
// added where they belong as they come: in changing order, so that their last bits differ from run to run.
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

}  // namespace attmirror::cuda
