#include "deep/cuda/fours.cuh"
#include "deep/cuda/row_kernels.hpp"
#include "deep/dropout_bits.hpp"

namespace attmirror::cuda {

namespace {

constexpr int backward_blocks = 528;  // four for each of 132 multiprocessors

// Threads of a block in which teams of so many warps have a row each.
template <int team>
constexpr int team_threads = warps_per_block / team * team * warp;

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

// gelu(x) = x Phi(x), and its derivative Phi(x) + x phi(x).
__device__ float normal_share(float x) { return 0.5f * (1.0f + erff(x * 0.70710678118654752f)); }
__device__ float gelu_slope(float x) {
  return fmaf(x * 0.39894228040143268f, expf(-0.5f * x * x), normal_share(x));
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
      y.value[k] = v * normal_share(v);
    }
    if (dropout.keys) drop(dropout, static_cast<std::uint64_t>(dropout.keys[row]), column, y);
    store_four(result + 4ull * i, y);
  }
}

// gelu(x), and d_result times its derivative, sixteen bytes at a time.
template <class Number, bool backward>
__global__ void __launch_bounds__(block_threads)
    gelu_kernel(const Number* __restrict__ x, const Number* __restrict__ d_result, Number* __restrict__ result,
                std::int64_t count) {
  const std::int64_t first =
      (static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x) * Pack<Number>::size;
  if (first >= count) return;
  Pack<Number> v = load_pack(x + first), d = {};
  if constexpr (backward) d = load_pack(d_result + first);
#pragma unroll
  for (int i = 0; i < Pack<Number>::size; ++i)
    v.value[i] = backward ? d.value[i] * gelu_slope(v.value[i]) : v.value[i] * normal_share(v.value[i]);
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

// A warp has a row: thread l holds columns (128 c + 4 l) up to + 3 of each chunk c.
template <class Number, class Brief, int chunks>
__global__ void __launch_bounds__(block_threads)
    norm_forward_kernel(const Number* __restrict__ x, const Brief* __restrict__ branch,
                        const float* __restrict__ branch_bias, const float* __restrict__ weight,
                        const float* __restrict__ bias, float eps, RowDropout dropout,
                        Number* __restrict__ sum, float2* __restrict__ statistics, Brief* __restrict__ result,
                        std::int64_t rows, int width) {
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
    Four add{};
    if (branch) {
      add = load_four(branch + base + column);
      if (branch_bias) {
        const Four b = load_four(branch_bias + column);
#pragma unroll
        for (int i = 0; i < 4; ++i) add.value[i] += b.value[i];
      }
      if (dropout.keys) drop(dropout, key, column, add);
    }
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
    if (bias) {
      const Four b = load_four(bias + column);
#pragma unroll
      for (int i = 0; i < 4; ++i) y.value[i] += b.value[i];
    }
    store_four(result + base + column, y);
  }
}

// With n = (sum - mean) rstd and d = d_result weight:  d_sum = rstd (d - mean(d) - n mean(d n)), and what comes from
// those who read the sum itself. With biases there are two more sums over rows: of d_result, and of d_branch.
//
// A row has a team of warps, four columns a thread: with a warp a row, what a thread keeps of its columns (the row, and
// the sums over rows) would take so many registers that too few loads are under way to fill the memory's time.
template <class Number, class Brief, int team, bool with_bias>
__global__ void __launch_bounds__(team_threads<team>, 4)
    norm_backward_kernel(const Brief* __restrict__ d_result, const Brief* __restrict__ d_second,
                         const Number* __restrict__ d_passed, const Number* __restrict__ sum,
                         const float2* __restrict__ statistics, const float* __restrict__ weight,
                         RowDropout dropout, Number* __restrict__ d_sum, Brief* __restrict__ d_branch,
                         float* __restrict__ partials, std::int64_t rows, int width) {
  constexpr int sums = with_bias ? 3 : 1, teams = team_threads<team> / (team * warp);
  extern __shared__ float shared[];  // [sums * width]
  __shared__ float2 parts[2][teams][team];
  const int own_team = threadIdx.x / (team * warp), place = threadIdx.x % (team * warp), column = 4 * place;
  const bool has_column = column < width;
  const Four w = has_column ? load_four(weight + column) : Four{};
  Four d_weight = {}, d_bias = {}, d_branch_bias = {};
  int side = 0;
  // All teams of a block go round equally often, because they meet at its barriers.
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * teams; first < rows;
       first += static_cast<std::int64_t>(gridDim.x) * teams, side ^= 1) {
    const std::int64_t row = first + own_team, base = row * width + column;
    const bool is_there = has_column && row < rows;
    Four n = {}, d = {}, passed = {};
    float2 known = make_float2(0, 0);
    float d_total = 0, dn_total = 0;
    if (is_there) {
      known = statistics[row];
      n = load_four(sum + base);
      d = load_four(d_result + base);
      if (d_passed) passed = load_four(d_passed + base);
      if (d_second) {
        const Four second = load_four(d_second + base);
#pragma unroll
        for (int i = 0; i < 4; ++i) d.value[i] += second.value[i];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        n.value[i] = (n.value[i] - known.x) * known.y;
        d_weight.value[i] += d.value[i] * n.value[i];
        if constexpr (with_bias) d_bias.value[i] += d.value[i];
        d.value[i] *= w.value[i];
        d_total += d.value[i];
        dn_total += d.value[i] * n.value[i];
      }
    }
    d_total = warp_sum(d_total);
    dn_total = warp_sum(dn_total);
    if constexpr (team > 1) {
      // Of the two sides, one is written while the other may still be read.
      if (threadIdx.x % warp == 0) parts[side][own_team][place / warp] = make_float2(d_total, dn_total);
      __syncthreads();
      d_total = dn_total = 0;
#pragma unroll
      for (int other = 0; other < team; ++other) {
        d_total += parts[side][own_team][other].x;
        dn_total += parts[side][own_team][other].y;
      }
    }
    if (!is_there) continue;
    const float d_mean = d_total / width, dn_mean = dn_total / width;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      d.value[i] = known.y * (d.value[i] - d_mean - n.value[i] * dn_mean) + passed.value[i];
    store_four(d_sum + base, d);
    if (d_branch) {
      if (dropout.keys) drop(dropout, static_cast<std::uint64_t>(dropout.keys[row]), column, d);
      store_four(d_branch + base, d);
      if constexpr (with_bias)
#pragma unroll
        for (int i = 0; i < 4; ++i) d_branch_bias.value[i] += d.value[i];
    }
  }
  // The teams of a block add one after another: the same order, and so the same bits, every time.
  for (int turn = 0; turn < teams; ++turn) {
    if (turn > 0) __syncthreads();
    if (own_team != turn || !has_column) continue;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto add = [&](int which, float value) {
        float& place = shared[which * width + column + i];
        place = turn == 0 ? value : place + value;
      };
      add(0, d_weight.value[i]);
      if constexpr (with_bias) {
        add(1, d_bias.value[i]);
        add(2, d_branch_bias.value[i]);
      }
    }
  }
  __syncthreads();
  for (int c = threadIdx.x; c < sums * width; c += team_threads<team>)
    partials[static_cast<std::int64_t>(blockIdx.x) * sums * width + c] = shared[c];
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

// Sums over the rows of partials [backward_blocks, columns]: 32 columns a block, added in a fixed order.
__global__ void __launch_bounds__(warp* warp)
    sum_partials_kernel(const float* __restrict__ partials, float* __restrict__ result, int columns) {
  __shared__ float part[warp][warp + 1];
  const int column = static_cast<int>(blockIdx.x) * warp + static_cast<int>(threadIdx.x);
  float total = 0;
  if (column < columns)
    for (int row = static_cast<int>(threadIdx.y); row < backward_blocks; row += warp)
      total += partials[static_cast<std::int64_t>(row) * columns + column];
  part[threadIdx.y][threadIdx.x] = total;
  __syncthreads();
  total = warp_sum(part[threadIdx.x][threadIdx.y]);
  const int own = static_cast<int>(blockIdx.x) * warp + static_cast<int>(threadIdx.y);
  if (threadIdx.x == 0 && own < columns) result[own] = total;
}

template <class Number, class Brief, int chunks>
cudaError_t launch_forward(const RowShape& shape, const NormForward& arrays, float eps,
                           const RowDropout& dropout, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((shape.rows + warps_per_block - 1) / warps_per_block);
  norm_forward_kernel<Number, Brief, chunks><<<blocks, block_threads, 0, stream>>>(
      static_cast<const Number*>(arrays.x), static_cast<const Brief*>(arrays.branch), arrays.branch_bias,
      arrays.weight, arrays.bias, eps, dropout, static_cast<Number*>(arrays.sum), arrays.statistics,
      static_cast<Brief*>(arrays.result), shape.rows, static_cast<int>(shape.width));
  return cudaGetLastError();
}

template <class Number, class Brief, int chunks, bool with_bias>
cudaError_t launch_backward(const RowShape& shape, const NormBackward& arrays, const RowDropout& dropout,
                            cudaStream_t stream) {
  const unsigned bytes = static_cast<unsigned>(shape.width) * (with_bias ? 3 : 1) * sizeof(float);
  norm_backward_kernel<Number, Brief, chunks, with_bias><<<backward_blocks, team_threads<chunks>, bytes, stream>>>(
      static_cast<const Brief*>(arrays.d_result), static_cast<const Brief*>(arrays.d_second),
      static_cast<const Number*>(arrays.d_passed), static_cast<const Number*>(arrays.sum), arrays.statistics,
      arrays.weight, dropout, static_cast<Number*>(arrays.d_sum), static_cast<Brief*>(arrays.d_branch),
      arrays.partials, shape.rows, static_cast<int>(shape.width));
  return cudaGetLastError();
}

// Calls launch.template operator()<Number, Brief, chunks>() for the types and the width of the rows.
template <class Launch>
cudaError_t dispatch(const RowShape& shape, const Launch& launch) {
  const auto for_type = [&]<class Number, class Brief>() {
    const std::int64_t chunks = (shape.width + 4 * warp - 1) / (4 * warp);
    if (chunks <= 1) return launch.template operator()<Number, Brief, 1>();
    if (chunks <= 2) return launch.template operator()<Number, Brief, 2>();
    if (chunks <= 3) return launch.template operator()<Number, Brief, 3>();
    if (chunks <= 4) return launch.template operator()<Number, Brief, 4>();
    if (chunks <= 6) return launch.template operator()<Number, Brief, 6>();
    return launch.template operator()<Number, Brief, 8>();
  };
  if (shape.rows == 0) return cudaSuccess;
  if (shape.type == RowType::bfloat16) return for_type.template operator()<__nv_bfloat16, __nv_bfloat16>();
  return shape.brief == RowType::bfloat16 ? for_type.template operator()<float, __nv_bfloat16>()
                                          : for_type.template operator()<float, float>();
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

cudaError_t sum_partials(const float* partials, float* result, std::int64_t columns, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((columns + warp - 1) / warp);
  sum_partials_kernel<<<blocks, dim3(warp, warp), 0, stream>>>(partials, result, static_cast<int>(columns));
  return cudaGetLastError();
}

cudaError_t drop_rows(const RowShape& shape, const void* x, const RowDropout& dropout, void* result,
                      cudaStream_t stream) {
  if (shape.rows == 0 || shape.width == 0) return cudaSuccess;
  return shape.type == RowType::float32 ? launch_drop<float>(shape, x, dropout, result, stream)
                                        : launch_drop<__nv_bfloat16>(shape, x, dropout, result, stream);
}

cudaError_t norm_forward(const RowShape& shape, const NormForward& arrays, float eps,
                         const RowDropout& dropout, cudaStream_t stream) {
  return dispatch(shape, [&]<class Number, class Brief, int chunks>() {
    return launch_forward<Number, Brief, chunks>(shape, arrays, eps, dropout, stream);
  });
}

std::int64_t row_partials() { return backward_blocks; }

cudaError_t norm_backward(const RowShape& shape, const NormBackward& arrays, const RowDropout& dropout,
                          cudaStream_t stream) {
  return dispatch(shape, [&]<class Number, class Brief, int chunks>() {
    return arrays.with_bias ? launch_backward<Number, Brief, chunks, true>(shape, arrays, dropout, stream)
                            : launch_backward<Number, Brief, chunks, false>(shape, arrays, dropout, stream);
  });
}

}  // namespace attmirror::cuda
