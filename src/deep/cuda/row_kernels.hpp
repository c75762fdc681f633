// Kernels for rows of numbers on a GPU, on raw pointers: dropout, and norm(x + dropout(branch)) with its
// gradient. Internal.
//
// Both are bound by memory. LibTorch makes the second of three operations (dropout, sum, norm) and keeps a mask: eleven
// passes over the rows forward and backward, where these make seven and keep no mask.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace attmirror::cuda {

enum class RowType { float32, bfloat16 };

struct RowDropout {
  const std::int64_t* keys = nullptr;  // one per row; null: nothing is dropped
  std::uint32_t site = 0;
  std::uint32_t threshold = 0;
  float scale = 1;
};

struct RowShape {
  RowType type = RowType::float32;
  std::int64_t rows = 0, width = 0;
};

constexpr std::int64_t widest_row = 1024;  // of norms: a warp keeps a row in registers
inline bool norm_takes(std::int64_t width) { return width > 0 && width % 4 == 0 && width <= widest_row; }

// result = x times the mask. The launchers return the first CUDA error, if any.
cudaError_t drop_rows(const RowShape& shape, const void* x, const RowDropout& dropout, void* result,
                      cudaStream_t stream);

// sum = x + dropped(branch); result = (sum - mean) rstd weight; statistics[row] = (mean, rstd). `sum` and
// `statistics` may be null where no gradient will be asked for.
cudaError_t norm_forward(const RowShape& shape, const void* x, const void* branch, const float* weight,
                         float eps, const RowDropout& dropout, void* sum, float2* statistics, void* result,
                         cudaStream_t stream);

// The number of partial sums that norm_backward() writes for the weight's gradient: [norm_partials(), width] floats.
std::int64_t norm_partials();

// d_sum is the gradient of x, d_branch (where not null) that of the branch; the weight's is the sum of `partials`
// over rows.
cudaError_t norm_backward(const RowShape& shape, const void* d_result, const void* sum,
                          const float2* statistics, const float* weight, const RowDropout& dropout,
                          void* d_sum, void* d_branch, float* partials, cudaStream_t stream);

}  // namespace attmirror::cuda
