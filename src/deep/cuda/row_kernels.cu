#include "deep/cuda/row_kernels.hpp"
#include "deep/dropout_bits.hpp"

#include <cuda_bf16.h>

namespace attmirror::cuda {

namespace {

constexpr int warp = 32;
constexpr int warps_per_block = 8;
constexpr int block_threads = warp * warps_per_block;
constexpr int backward_blocks = 528;  // four for each of 132 multiprocessors

// Four neighbouring numbers: what a thread loads at once, 16 bytes of floats or 8 of bfloat16.
struct Four {
  float value[4];
};

__device__ Four load_four(const float* at) {
  const float4 v = *reinterpret_cast<const float4*>(at);
  return {{v.x, v.y, v.z, v.w}};
}
__device__ Four load_four(const __nv_bfloat16* at) {
  const uint2 bits = *reinterpret_cast<const uint2*>(at);
  const float2 a = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&bits.x)),
               b = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&bits.y));
  return {{a.x, a.y, b.x, b.y}};
}
__device__ void store_four(float* at, const Four& v) {
  *reinterpret_cast<float4*>(at) = make_float4(v.value[0], v.value[1], v.value[2], v.value[3]);
}
__device__ void store_four(__nv_bfloat16* at, const Four& v) {
  const __nv_bfloat162 a = __floats2bfloat162_rn(v.value[0], v.value[1]),
                       b = __floats2bfloat162_rn(v.value[2], v.value[3]);
  uint2 bits;
  bits.x = *reinterpret_cast<const unsigned*>(&a);
  bits.y = *reinterpret_cast<const unsigned*>(&b);
  *reinterpret_cast<uint2*>(at) = bits;
}

template <class Number>
__device__ float rounded(float x) {
  if constexpr (sizeof(Number) == 2)
    return __bfloat162float(__float2bfloat16_rn(x));
  else
    return x;
}

__device__ float warp_sum(float x) {
  for (int distance = warp / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(~0u, x, distance);
  return x;
}

__device__ void drop(const RowDropout& dropout, std::uint64_t key, std::uint32_t column, Four& v) {
#pragma unroll
  for (int i = 0; i < 4; ++i)
    v.value[i] =
        dropout_bits(key, dropout.site, column + i) >= dropout.threshold ? v.value[i] * dropout.scale : 0.0f;
}

template <class Number>
__global__ void drop_kernel(const Number* x, RowDropout dropout, Number* result, std::int64_t rows,
                            std::int64_t width) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const auto key = static_cast<std::uint64_t>(dropout.keys[row]);
    for (std::int64_t c = threadIdx.x; c < width; c += blockDim.x) {
      const float value = static_cast<float>(x[row * width + c]);
      const bool stays = dropout_bits(key, dropout.site, static_cast<std::uint32_t>(c)) >= dropout.threshold;
      result[row * width + c] = static_cast<Number>(stays ? value * dropout.scale : 0.0f);
    }
  }
}

// A warp has a row: thread l holds columns (128 c + 4 l) up to + 3 of each chunk c.
template <class Number, int chunks>
__global__ void __launch_bounds__(block_threads)
    norm_forward_kernel(const Number* __restrict__ x, const Number* __restrict__ branch,
                        const float* __restrict__ weight, float eps, RowDropout dropout,
                        Number* __restrict__ sum, float2* __restrict__ statistics,
                        Number* __restrict__ result, std::int64_t rows, int width) {
  const int lane = threadIdx.x % warp;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * warps_per_block + threadIdx.x / warp;
  if (row >= rows) return;
  const std::uint64_t key = dropout.keys ? static_cast<std::uint64_t>(dropout.keys[row]) : 0;
  const std::int64_t base = row * width;
  Four s[chunks];
  float total = 0;
#pragma unroll
  for (int c = 0; c < chunks; ++c) {
    const int column = c * 4 * warp + 4 * lane;
    s[c] = {{0, 0, 0, 0}};
    if (column >= width) continue;
    s[c] = load_four(x + base + column);
    Four add = load_four(branch + base + column);
    if (dropout.keys) drop(dropout, key, column, add);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      s[c].value[i] = rounded<Number>(s[c].value[i] + add.value[i]);
      total += s[c].value[i];
    }
    if (sum) store_four(sum + base + column, s[c]);
  }
  const float mean = warp_sum(total) / width;
  float squares = 0;
#pragma unroll
  for (int c = 0; c < chunks; ++c)
    if (c * 4 * warp + 4 * lane < width)
#pragma unroll
      for (int i = 0; i < 4; ++i) squares += (s[c].value[i] - mean) * (s[c].value[i] - mean);
  const float rstd = rsqrtf(warp_sum(squares) / width + eps);
  if (statistics && lane == 0) statistics[row] = make_float2(mean, rstd);
#pragma unroll
  for (int c = 0; c < chunks; ++c) {
    const int column = c * 4 * warp + 4 * lane;
    if (column >= width) continue;
    const Four w = load_four(weight + column);
    Four y;
#pragma unroll
    for (int i = 0; i < 4; ++i) y.value[i] = (s[c].value[i] - mean) * rstd * w.value[i];
    store_four(result + base + column, y);
  }
}

// With n = (sum - mean) rstd and d = d_result weight:  d_sum = rstd (d - mean(d) - n mean(d n)).
template <class Number, int chunks>
__global__ void __launch_bounds__(block_threads)
    norm_backward_kernel(const Number* __restrict__ d_result, const Number* __restrict__ sum,
                         const float2* __restrict__ statistics, const float* __restrict__ weight,
                         RowDropout dropout, Number* __restrict__ d_sum, Number* __restrict__ d_branch,
                         float* __restrict__ partials, std::int64_t rows, int width) {
  extern __shared__ float shared[];  // [width]
  const int lane = threadIdx.x % warp;
  for (int c = threadIdx.x; c < width; c += block_threads) shared[c] = 0;
  Four d_weight[chunks] = {};
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * warps_per_block;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * warps_per_block + threadIdx.x / warp;
       row < rows; row += stride) {
    const float2 known = statistics[row];
    const std::int64_t base = row * width;
    Four n[chunks], d[chunks];
    float d_total = 0, dn_total = 0;
#pragma unroll
    for (int c = 0; c < chunks; ++c) {
      const int column = c * 4 * warp + 4 * lane;
      n[c] = d[c] = {{0, 0, 0, 0}};
      if (column >= width) continue;
      n[c] = load_four(sum + base + column);
      d[c] = load_four(d_result + base + column);
      const Four w = load_four(weight + column);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        n[c].value[i] = (n[c].value[i] - known.x) * known.y;
        d_weight[c].value[i] += d[c].value[i] * n[c].value[i];
        d[c].value[i] *= w.value[i];
        d_total += d[c].value[i];
        dn_total += d[c].value[i] * n[c].value[i];
      }
    }
    const float d_mean = warp_sum(d_total) / width, dn_mean = warp_sum(dn_total) / width;
    const std::uint64_t key = dropout.keys ? static_cast<std::uint64_t>(dropout.keys[row]) : 0;
#pragma unroll
    for (int c = 0; c < chunks; ++c) {
      const int column = c * 4 * warp + 4 * lane;
      if (column >= width) continue;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        d[c].value[i] = known.y * (d[c].value[i] - d_mean - n[c].value[i] * dn_mean);
      store_four(d_sum + base + column, d[c]);
      if (d_branch) {
        if (dropout.keys) drop(dropout, key, column, d[c]);
        store_four(d_branch + base + column, d[c]);
      }
    }
  }
  // The warps of a block add one after another: the same order, and so the same bits, every time.
  for (int turn = 0; turn < warps_per_block; ++turn) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) / warp != turn) continue;
#pragma unroll
    for (int c = 0; c < chunks; ++c) {
      const int column = c * 4 * warp + 4 * lane;
      if (column >= width) continue;
#pragma unroll
      for (int i = 0; i < 4; ++i) shared[column + i] += d_weight[c].value[i];
    }
  }
  __syncthreads();
  for (int c = threadIdx.x; c < width; c += block_threads)
    partials[static_cast<std::int64_t>(blockIdx.x) * width + c] = shared[c];
}

template <class Number, int chunks>
cudaError_t launch_forward(const RowShape& shape, const void* x, const void* branch, const float* weight,
                           float eps, const RowDropout& dropout, void* sum, float2* statistics, void* result,
                           cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((shape.rows + warps_per_block - 1) / warps_per_block);
  norm_forward_kernel<Number, chunks><<<blocks, block_threads, 0, stream>>>(
      static_cast<const Number*>(x), static_cast<const Number*>(branch), weight, eps, dropout,
      static_cast<Number*>(sum), statistics, static_cast<Number*>(result), shape.rows,
      static_cast<int>(shape.width));
  return cudaGetLastError();
}

template <class Number, int chunks>
cudaError_t launch_backward(const RowShape& shape, const void* d_result, const void* sum,
                            const float2* statistics, const float* weight, const RowDropout& dropout,
                            void* d_sum, void* d_branch, float* partials, cudaStream_t stream) {
  norm_backward_kernel<Number, chunks>
      <<<backward_blocks, block_threads, static_cast<unsigned>(shape.width) * sizeof(float), stream>>>(
          static_cast<const Number*>(d_result), static_cast<const Number*>(sum), statistics, weight, dropout,
          static_cast<Number*>(d_sum), static_cast<Number*>(d_branch), partials, shape.rows,
          static_cast<int>(shape.width));
  return cudaGetLastError();
}

// Calls launch.template operator()<Number, chunks>() for the type and width of the rows.
template <class Launch>
cudaError_t dispatch(const RowShape& shape, const Launch& launch) {
  const auto for_type = [&]<class Number>() {
    const std::int64_t chunks = (shape.width + 4 * warp - 1) / (4 * warp);
    if (chunks <= 1) return launch.template operator()<Number, 1>();
    if (chunks <= 2) return launch.template operator()<Number, 2>();
    if (chunks <= 3) return launch.template operator()<Number, 3>();
    if (chunks <= 4) return launch.template operator()<Number, 4>();
    if (chunks <= 6) return launch.template operator()<Number, 6>();
    return launch.template operator()<Number, 8>();
  };
  if (shape.rows == 0) return cudaSuccess;
  return shape.type == RowType::float32 ? for_type.template operator()<float>()
                                        : for_type.template operator()<__nv_bfloat16>();
}

}  // namespace

cudaError_t drop_rows(const RowShape& shape, const void* x, const RowDropout& dropout, void* result,
                      cudaStream_t stream) {
  if (shape.rows == 0 || shape.width == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>(shape.rows < 65535 ? shape.rows : 65535);
  const unsigned threads = shape.width < 128 ? 64 : 128;
  if (shape.type == RowType::float32)
    drop_kernel<<<blocks, threads, 0, stream>>>(static_cast<const float*>(x), dropout,
                                                static_cast<float*>(result), shape.rows, shape.width);
  else
    drop_kernel<<<blocks, threads, 0, stream>>>(static_cast<const __nv_bfloat16*>(x), dropout,
                                                static_cast<__nv_bfloat16*>(result), shape.rows, shape.width);
  return cudaGetLastError();
}

cudaError_t norm_forward(const RowShape& shape, const void* x, const void* branch, const float* weight,
                         float eps, const RowDropout& dropout, void* sum, float2* statistics, void* result,
                         cudaStream_t stream) {
  return dispatch(shape, [&]<class Number, int chunks>() {
    return launch_forward<Number, chunks>(shape, x, branch, weight, eps, dropout, sum, statistics, result,
                                          stream);
  });
}

std::int64_t norm_partials() { return backward_blocks; }

cudaError_t norm_backward(const RowShape& shape, const void* d_result, const void* sum,
                          const float2* statistics, const float* weight, const RowDropout& dropout,
                          void* d_sum, void* d_branch, float* partials, cudaStream_t stream) {
  return dispatch(shape, [&]<class Number, int chunks>() {
    return launch_backward<Number, chunks>(shape, d_result, sum, statistics, weight, dropout, d_sum, d_branch,
                                           partials, stream);
  });
}

}  // namespace attmirror::cuda
