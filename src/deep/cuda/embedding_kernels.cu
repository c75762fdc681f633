#include "deep/cuda/embedding_kernels.hpp"
#include "deep/cuda/fours.cuh"

namespace attmirror::cuda {

namespace {

__device__ void add_four(float* at, const Four& v) {
#if __CUDA_ARCH__ >= 900
  atomicAdd(reinterpret_cast<float4*>(at), make_float4(v.value[0], v.value[1], v.value[2], v.value[3]));
#else
  for (int i = 0; i < 4; ++i) atomicAdd(at + i, v.value[i]);
#endif
}

template <class Number>
__global__ void __launch_bounds__(block_threads)
    embed_kernel(const std::int64_t* __restrict__ tokens, const std::int64_t* __restrict__ positions,
                 const float* __restrict__ by_token, const float* __restrict__ by_position,
                 Number* __restrict__ result, unsigned fours, unsigned fours_per_row) {
  for (unsigned i = blockIdx.x * block_threads + threadIdx.x; i < fours; i += gridDim.x * block_threads) {
    const unsigned row = i / fours_per_row, column = 4 * (i - row * fours_per_row);
    Four v = load_four(by_token + tokens[row] * 4 * fours_per_row + column);
    const Four place = load_four(by_position + positions[row] * 4 * fours_per_row + column);
#pragma unroll
    for (int k = 0; k < 4; ++k) v.value[k] += place.value[k];
    store_four(result + 4ull * i, v);
  }
}

template <class Number>
__global__ void __launch_bounds__(block_threads)
    embed_backward_kernel(const std::int64_t* __restrict__ tokens, const std::int64_t* __restrict__ positions,
                          const Number* __restrict__ d_result, float* __restrict__ d_by_token,
                          float* __restrict__ d_by_position, unsigned fours, unsigned fours_per_row) {
  for (unsigned i = blockIdx.x * block_threads + threadIdx.x; i < fours; i += gridDim.x * block_threads) {
    const unsigned row = i / fours_per_row, column = 4 * (i - row * fours_per_row);
    const Four v = load_four(d_result + 4ull * i);
    // Filler has no gradient, and all of it is the same token.
    if (v.value[0] == 0 && v.value[1] == 0 && v.value[2] == 0 && v.value[3] == 0) continue;
    add_four(d_by_token + tokens[row] * 4 * fours_per_row + column, v);
    add_four(d_by_position + positions[row] * 4 * fours_per_row + column, v);
  }
}

}  // namespace

cudaError_t embed_rows(const EmbeddedRows& rows, const float* by_token, const float* by_position,
                       void* result, cudaStream_t stream) {
  const auto fours = static_cast<unsigned>(rows.shape.rows * rows.shape.width / 4),
             per_row = static_cast<unsigned>(rows.shape.width / 4);
  if (fours == 0) return cudaSuccess;
  if (rows.shape.type == RowType::float32)
    embed_kernel<<<blocks_for(fours), block_threads, 0, stream>>>(
        rows.tokens, rows.positions, by_token, by_position, static_cast<float*>(result), fours, per_row);
  else
    embed_kernel<<<blocks_for(fours), block_threads, 0, stream>>>(
        rows.tokens, rows.positions, by_token, by_position, static_cast<__nv_bfloat16*>(result), fours,
        per_row);
  return cudaGetLastError();
}

cudaError_t embed_rows_backward(const EmbeddedRows& rows, const void* d_result, float* d_by_token,
                                float* d_by_position, cudaStream_t stream) {
  const auto fours = static_cast<unsigned>(rows.shape.rows * rows.shape.width / 4),
             per_row = static_cast<unsigned>(rows.shape.width / 4);
  if (fours == 0) return cudaSuccess;
  if (rows.shape.type == RowType::float32)
    embed_backward_kernel<<<blocks_for(fours), block_threads, 0, stream>>>(
        rows.tokens, rows.positions, static_cast<const float*>(d_result), d_by_token, d_by_position, fours,
        per_row);
  else
    embed_backward_kernel<<<blocks_for(fours), block_threads, 0, stream>>>(
        rows.tokens, rows.positions, static_cast<const __nv_bfloat16*>(d_result), d_by_token, d_by_position,
        fours, per_row);
  return cudaGetLastError();
}

}  // namespace attmirror::cuda
