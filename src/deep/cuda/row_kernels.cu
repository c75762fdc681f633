// Dropout and gelu of rows, and their gradients.
#include "deep/cuda/row_device.cuh"

namespace attmirror::cuda {

namespace {

// Rows whose width is a multiple of 4, by fours.
template <class Number>
__global__ void __launch_bounds__(block_threads)
    drop_fours_kernel(const Number* __restrict__ x, RowDropout dropout, Number* __restrict__ result,
                      unsigned fours, unsigned fours_per_row) {
  for (unsigned i = blockIdx.x * block_threads + threadIdx.x; i < fours; i += gridDim.x * block_threads) {
    const unsigned row = i / fours_per_row;
    Four v = load_four(x + 4ull * i);
    drop(dropout, static_cast<std::uint64_t>(dropout.keys[row]), 4 * (i - row * fours_per_row), v);
    store_four(result + 4ull * i, v);
  }
}

// gelu(x) = x Phi(x), and its derivative Phi(x) + x phi(x), where phi is the density of the standard normal
// distribution and Phi its integral. Phi(-|x|) = e^(-x^2/2) q(t), t = 1 / (1 + 0.3275911 |x| / sqrt 2), with a
// polynomial q (Abramowitz and Stegun 7.1.26): within 7.5e-8 of Phi, as 1 + erff is, in a third of the
// instructions. With those of erff the kernels would wait for arithmetic, not for memory.
struct NormalShare {
  float share, density;  // Phi(x), phi(x) sqrt(2 pi)
};
__device__ NormalShare normal_share(float x) {
  const float density = __expf(-0.5f * x * x);
  const float t = __fdividef(1.0f, fmaf(0.23164188f, fabsf(x), 1.0f));
  float q = fmaf(0.5307027145f, t, -0.7265760135f);
  q = fmaf(q, t, 0.7107068705f);
  q = fmaf(q, t, -0.142248368f);
  q = fmaf(q, t, 0.1274147960f) * t;
  const float below = q * density;
  return {x < 0 ? below : 1.0f - below, density};
}
__device__ float gelu(float x) { return x * normal_share(x).share; }
__device__ float gelu_slope(float x) {
  const NormalShare normal = normal_share(x);
  return fmaf(x * 0.39894228040143268f, normal.density, normal.share);
}

template <class Number>
__global__ void __launch_bounds__(block_threads)
    gelu_bias_kernel(const Number* __restrict__ x, const float* __restrict__ bias, RowDropout dropout,
                     Number* __restrict__ result, unsigned fours, unsigned fours_per_row) {
  for (unsigned i = blockIdx.x * block_threads + threadIdx.x; i < fours; i += gridDim.x * block_threads) {
    const unsigned row = i / fours_per_row, column = 4 * (i - row * fours_per_row);
    Four y = load_four(x + 4ull * i);
    const Four b = load_four(bias + column);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float v = y.value[k] + b.value[k];
      y.value[k] = gelu(v);
    }
    if (dropout.keys) drop(dropout, static_cast<std::uint64_t>(dropout.keys[row]), column, y);
    store_four(result + 4ull * i, y);
  }
}

// gelu(x), and d_result times its derivative, sixteen bytes at a time.
template <class Number, bool backward>
__global__ void __launch_bounds__(block_threads)
    gelu_kernel(const Number* __restrict__ x, const Number* __restrict__ d_result,
                Number* __restrict__ result, std::int64_t count) {
  const std::int64_t first =
      (static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x) * Pack<Number>::size;
  if (first >= count) return;
  Pack<Number> v = load_pack(x + first), d = {};
  if constexpr (backward) d = load_pack(d_result + first);
#pragma unroll
  for (int i = 0; i < Pack<Number>::size; ++i)
    v.value[i] = backward ? d.value[i] * gelu_slope(v.value[i]) : gelu(v.value[i]);
  store_pack(result + first, v);
}

template <class Number>
cudaError_t launch_gelu_alone(const void* x, const void* d_result, void* result, std::int64_t count,
                              cudaStream_t stream) {
  const std::int64_t threads = count * static_cast<std::int64_t>(sizeof(Number)) / 16;
  const auto blocks = static_cast<unsigned>((threads + block_threads - 1) / block_threads);
  const auto *in = static_cast<const Number*>(x), *d = static_cast<const Number*>(d_result);
  auto* out = static_cast<Number*>(result);
  if (d == nullptr)
    gelu_kernel<Number, false><<<blocks, block_threads, 0, stream>>>(in, d, out, count);
  else
    gelu_kernel<Number, true><<<blocks, block_threads, 0, stream>>>(in, d, out, count);
  return cudaGetLastError();
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

// The gradient of gelu(x + bias) with dropout, a warp a row as above, and the bias's as sums over rows.
template <class Number, int chunks>
__global__ void __launch_bounds__(block_threads)
    gelu_bias_backward_kernel(const Number* __restrict__ x, const float* __restrict__ bias,
                              const Number* __restrict__ d_result, RowDropout dropout,
                              Number* __restrict__ d_x, float* __restrict__ partials, std::int64_t rows,
                              int width) {
  extern __shared__ float shared[];  // [width]
  const int lane = threadIdx.x % warp;
  for (int c = threadIdx.x; c < width; c += block_threads) shared[c] = 0;
  Four d_bias[chunks] = {};
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * warps_per_block;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * warps_per_block + threadIdx.x / warp;
       row < rows; row += stride) {
    const std::uint64_t key = dropout.keys ? static_cast<std::uint64_t>(dropout.keys[row]) : 0;
#pragma unroll
    for (int c = 0; c < chunks; ++c) {
      const int column = c * 4 * warp + 4 * lane;
      if (column >= width) continue;
      const Four v = load_four(x + row * width + column), b = load_four(bias + column);
      Four d = load_four(d_result + row * width + column);
      if (dropout.keys) drop(dropout, key, column, d);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        d.value[i] *= gelu_slope(v.value[i] + b.value[i]);
        d_bias[c].value[i] += d.value[i];
      }
      store_four(d_x + row * width + column, d);
    }
  }
  for (int turn = 0; turn < warps_per_block; ++turn) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) / warp != turn) continue;
#pragma unroll
    for (int c = 0; c < chunks; ++c) {
      const int column = c * 4 * warp + 4 * lane;
      if (column >= width) continue;
#pragma unroll
      for (int i = 0; i < 4; ++i) shared[column + i] += d_bias[c].value[i];
    }
  }
  __syncthreads();
  for (int c = threadIdx.x; c < width; c += block_threads)
    partials[static_cast<std::int64_t>(blockIdx.x) * width + c] = shared[c];
}

bool goes_by_fours(const RowShape& shape) {
  return shape.width % 4 == 0 && shape.rows * shape.width / 4 < (std::int64_t{1} << 31);
}

template <class Number>
cudaError_t launch_gelu(const RowShape& shape, const void* x, const float* bias, const RowDropout& dropout,
                        void* result, cudaStream_t stream) {
  const auto fours = static_cast<unsigned>(shape.rows * shape.width / 4),
             per_row = static_cast<unsigned>(shape.width / 4);
  gelu_bias_kernel<<<blocks_for(fours), block_threads, 0, stream>>>(
      static_cast<const Number*>(x), bias, dropout, static_cast<Number*>(result), fours, per_row);
  return cudaGetLastError();
}

template <class Number>
cudaError_t launch_drop(const RowShape& shape, const void* x, const RowDropout& dropout, void* result,
                        cudaStream_t stream) {
  const auto* in = static_cast<const Number*>(x);
  auto* out = static_cast<Number*>(result);
  if (goes_by_fours(shape)) {
    const auto fours = static_cast<unsigned>(shape.rows * shape.width / 4),
               per_row = static_cast<unsigned>(shape.width / 4);
    drop_fours_kernel<<<blocks_for(fours), block_threads, 0, stream>>>(in, dropout, out, fours, per_row);
  } else {
    const auto blocks = static_cast<unsigned>(shape.rows < 65535 ? shape.rows : 65535);
    const unsigned threads = shape.width < 128 ? 64 : 128;
    drop_kernel<<<blocks, threads, 0, stream>>>(in, dropout, out, shape.rows, shape.width);
  }
  return cudaGetLastError();
}

}  // namespace

bool gelu_takes(const RowShape& shape) { return goes_by_fours(shape) && norm_takes(shape.width); }

cudaError_t gelu_rows(const RowShape& shape, const void* x, const float* bias, const RowDropout& dropout,
                      void* result, cudaStream_t stream) {
  if (shape.rows == 0) return cudaSuccess;
  return shape.type == RowType::float32 ? launch_gelu<float>(shape, x, bias, dropout, result, stream)
                                        : launch_gelu<__nv_bfloat16>(shape, x, bias, dropout, result, stream);
}

cudaError_t gelu_rows_backward(const RowShape& shape, const void* x, const float* bias, const void* d_result,
                               const RowDropout& dropout, void* d_x, float* partials, cudaStream_t stream) {
  return dispatch(shape, [&]<class Number, class Brief, int chunks>() {
    gelu_bias_backward_kernel<Number, chunks>
        <<<backward_blocks, block_threads, static_cast<unsigned>(shape.width) * sizeof(float), stream>>>(
            static_cast<const Number*>(x), bias, static_cast<const Number*>(d_result), dropout,
            static_cast<Number*>(d_x), partials, shape.rows, static_cast<int>(shape.width));
    return cudaGetLastError();
  });
}

bool gelu_alone_takes(std::int64_t count) { return count % 8 == 0; }

cudaError_t gelu_alone(RowType type, const void* x, const void* d_result, void* result, std::int64_t count,
                       cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return type == RowType::float32 ? launch_gelu_alone<float>(x, d_result, result, count, stream)
                                  : launch_gelu_alone<__nv_bfloat16>(x, d_result, result, count, stream);
}

cudaError_t drop_rows(const RowShape& shape, const void* x, const RowDropout& dropout, void* result,
                      cudaStream_t stream) {
  if (shape.rows == 0 || shape.width == 0) return cudaSuccess;
  return shape.type == RowType::float32 ? launch_drop<float>(shape, x, dropout, result, stream)
                                        : launch_drop<__nv_bfloat16>(shape, x, dropout, result, stream);
}

}  // namespace attmirror::cuda
