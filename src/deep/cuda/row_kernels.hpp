// Kernels for rows of numbers on a GPU, on raw pointers: dropout, dropout of gelu, and norm(x + dropout(branch)), with
// their gradients. Internal.
//
// All are bound by memory. LibTorch makes the last of three operations (dropout, sum, norm) and keeps a mask: eleven
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
  // Of norms: the type of what is added and of the result, where rows that others add to are kept longer.
  RowType brief = type;
};

constexpr std::int64_t widest_row = 1024;  // of norms: a warp keeps a row in registers
inline bool norm_takes(std::int64_t width) { return width > 0 && width % 4 == 0 && width <= widest_row; }

// result = x times the mask. The launchers return the first CUDA error, if any.
cudaError_t drop_rows(const RowShape& shape, const void* x, const RowDropout& dropout, void* result,
                      cudaStream_t stream);

// result = dropped(gelu(x + bias)), and its gradient; that of the bias is the sum of `partials` over rows.
bool gelu_takes(const RowShape& shape);
cudaError_t gelu_rows(const RowShape& shape, const void* x, const float* bias, const RowDropout& dropout,
                      void* result, cudaStream_t stream);
cudaError_t gelu_rows_backward(const RowShape& shape, const void* x, const float* bias, const void* d_result,
                               const RowDropout& dropout, void* d_x, float* partials, cudaStream_t stream);

// Without bias and dropout: result = gelu(x), or d_result times its derivative where d_result is not null. Of `count`
// numbers.
bool gelu_alone_takes(std::int64_t count);
cudaError_t gelu_alone(RowType type, const void* x, const void* d_result, void* result, std::int64_t count,
                       cudaStream_t stream);

// sum = x + dropped(branch + branch_bias); result = (sum - mean) rstd weight + bias; statistics[row] = (mean,
// rstd). `branch` and the biases may be null; `sum` and `statistics` where nobody asks for them.
struct NormForward {
  const void *x = nullptr, *branch = nullptr;
  const float *branch_bias = nullptr, *weight = nullptr, *bias = nullptr;
  void* sum = nullptr;
  float2* statistics = nullptr;
  void* result = nullptr;
};
cudaError_t norm_forward(const RowShape& shape, const NormForward& arrays, float eps,
                         const RowDropout& dropout, cudaStream_t stream);

// The number of partial sums over rows that the gradients of weights and biases come in: [row_partials(), columns]
// floats, which sum_partials() adds up. Norms without a bias have `width` columns; with one, three times as many: of
// the weight, the bias, and the branch's bias.
std::int64_t row_partials();
cudaError_t sum_partials(const float* partials, float* result, std::int64_t columns, cudaStream_t stream);

// d_sum is the gradient of x, d_branch (where not null) that of the branch. The result's gradient is d_result
// and, where not null, d_second; `d_passed` is that of the sum as an output of its own, or null.
struct NormBackward {
  const void *d_result = nullptr, *d_second = nullptr, *d_passed = nullptr, *sum = nullptr;
  const float2* statistics = nullptr;
  const float* weight = nullptr;
  void *d_sum = nullptr, *d_branch = nullptr;
  float* partials = nullptr;
  bool with_bias = false;
};
cudaError_t norm_backward(const RowShape& shape, const NormBackward& arrays, const RowDropout& dropout,
                          cudaStream_t stream);

}  // namespace attmirror::cuda
