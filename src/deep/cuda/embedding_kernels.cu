#include "deep/cuda/embedding_kernels.hpp"
#include "deep/cuda/row_device.cuh"

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

template <class Brief>
__global__ void __launch_bounds__(block_threads)
    embed_patches_kernel(const Brief* __restrict__ mapped, const float* __restrict__ bias,
                         const float* __restrict__ class_token, const float* __restrict__ by_position,
                         RowDropout dropout, float* __restrict__ result, unsigned tokens, unsigned fours,
                         unsigned fours_per_row) {
  for (unsigned i = blockIdx.x * block_threads + threadIdx.x; i < fours; i += gridDim.x * block_threads) {
    const unsigned row = i / fours_per_row, column = 4 * (i - row * fours_per_row);
    const unsigned sample = row / tokens, token = row - sample * tokens;
    Four v = load_four(token == 0 ? class_token + column : bias + column);
    const Four place = load_four(by_position + 4ull * token * fours_per_row + column);
    Four patch = {};
    if (token > 0) patch = load_four(mapped + 4ull * (row - sample - 1) * fours_per_row + column);
#pragma unroll
    for (int k = 0; k < 4; ++k) v.value[k] += patch.value[k] + place.value[k];
    if (dropout.keys) drop(dropout, static_cast<std::uint64_t>(dropout.keys[row]), column, v);
    store_four(result + 4ull * i, v);
  }
}

// A block has 128 columns of one place of all images; each of its warps takes every eighth image. The sums over images
// are always added in the same order.
template <class Brief>
__global__ void __launch_bounds__(block_threads)
    embed_patches_backward_kernel(const float* __restrict__ d_result, RowDropout dropout,
                                  Brief* __restrict__ d_mapped, float* __restrict__ d_class_token,
                                  float* __restrict__ d_by_position, unsigned samples, unsigned tokens,
                                  unsigned width) {
  __shared__ Four parts[warps_per_block][warp];
  const unsigned lane = threadIdx.x % warp, own = threadIdx.x / warp;
  const unsigned token = blockIdx.x, column = 4 * (blockIdx.y * warp + lane);
  const bool has_column = column < width;
  Four total = {};
  if (has_column) {
#pragma unroll 4
    for (unsigned sample = own; sample < samples; sample += warps_per_block) {
      const unsigned row = sample * tokens + token;
      Four d = load_four(d_result + 1ull * row * width + column);
      if (dropout.keys) drop(dropout, static_cast<std::uint64_t>(dropout.keys[row]), column, d);
#pragma unroll
      for (int k = 0; k < 4; ++k) total.value[k] += d.value[k];
      if (token > 0) store_four(d_mapped + 1ull * (row - sample - 1) * width + column, d);
    }
  }
  parts[own][lane] = total;
  __syncthreads();
  if (own != 0 || !has_column) return;
  for (int other = 1; other < warps_per_block; ++other)
#pragma unroll
    for (int k = 0; k < 4; ++k) total.value[k] += parts[other][lane].value[k];
  store_four(d_by_position + 1ull * token * width + column, total);
  if (token == 0) store_four(d_class_token + column, total);
}

template <class Brief>
cudaError_t launch_patches(const PatchRows& rows, const void* mapped, const float* bias,
                           const float* class_token, const float* by_position, const RowDropout& dropout,
                           float* result, cudaStream_t stream) {
  const auto fours = static_cast<unsigned>(rows.shape.rows * rows.shape.width / 4),
             per_row = static_cast<unsigned>(rows.shape.width / 4);
  embed_patches_kernel<<<blocks_for(fours), block_threads, 0, stream>>>(
      static_cast<const Brief*>(mapped), bias, class_token, by_position, dropout, result,
      static_cast<unsigned>(rows.tokens), fours, per_row);
  return cudaGetLastError();
}

template <class Brief>
cudaError_t launch_patches_backward(const PatchRows& rows, const float* d_result, const RowDropout& dropout,
                                    void* d_mapped, float* d_class_token, float* d_by_position,
                                    cudaStream_t stream) {
  const auto tokens = static_cast<unsigned>(rows.tokens), width = static_cast<unsigned>(rows.shape.width),
             samples = static_cast<unsigned>(rows.shape.rows / rows.tokens);
  const dim3 blocks(tokens, (width + 4 * warp - 1) / (4 * warp));
  embed_patches_backward_kernel<<<blocks, block_threads, 0, stream>>>(
      d_result, dropout, static_cast<Brief*>(d_mapped), d_class_token, d_by_position, samples, tokens, width);
  return cudaGetLastError();
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

cudaError_t embed_patches(const PatchRows& rows, const void* mapped, const float* bias,
                          const float* class_token, const float* by_position, const RowDropout& dropout,
                          float* result, cudaStream_t stream) {
  if (rows.shape.rows == 0) return cudaSuccess;
  return (rows.shape.brief == RowType::bfloat16
              ? launch_patches<__nv_bfloat16>
              : launch_patches<float>)(rows, mapped, bias, class_token, by_position, dropout, result, stream);
}

cudaError_t embed_patches_backward(const PatchRows& rows, const float* d_result, const RowDropout& dropout,
                                   void* d_mapped, float* d_class_token, float* d_by_position,
                                   cudaStream_t stream) {
  return (rows.shape.brief == RowType::bfloat16 ? launch_patches_backward<__nv_bfloat16>
                                                : launch_patches_backward<float>)(rows, d_result, dropout,
                                                                                  d_mapped, d_class_token,
                                                                                  d_by_position, stream);
}

}  // namespace attmirror::cuda
