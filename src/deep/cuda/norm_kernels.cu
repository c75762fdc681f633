// norm(x + dropout(branch)) and its gradients.
#include "deep/cuda/row_device.cuh"

namespace attmirror::cuda {

namespace {

// Threads of a block in which teams of so many warps have a row each.
template <int team>
constexpr int team_threads = warps_per_block / team* team* warp;

template <class Number>
__device__ float rounded(float x) {
  if constexpr (sizeof(Number) == 2)
    return __bfloat162float(__float2bfloat16_rn(x));
  else
    return x;
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
// those who read the sum itself. For norms without a bias: a warp has a row, as above.
template <class Number, class Brief, int chunks>
__global__ void __launch_bounds__(block_threads)
    norm_backward_kernel(const Brief* __restrict__ d_result, const Brief* __restrict__ d_second,
                         const Number* __restrict__ d_passed, const Number* __restrict__ sum,
                         const float2* __restrict__ statistics, const float* __restrict__ weight,
                         RowDropout dropout, Number* __restrict__ d_sum, Brief* __restrict__ d_branch,
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
      if (d_second) {
        const Four second = load_four(d_second + base + column);
#pragma unroll
        for (int i = 0; i < 4; ++i) d[c].value[i] += second.value[i];
      }
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
      if (d_passed) {
        const Four passed = load_four(d_passed + base + column);
#pragma unroll
        for (int i = 0; i < 4; ++i) d[c].value[i] += passed.value[i];
      }
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

// The same for norms with a bias, which have two more sums over rows: of d_result, and of d_branch. A row has a team of
// warps, four columns a thread: with a warp a row, the sums would take so many registers that too few loads were
// under way.
template <class Number, class Brief, int team>
__global__ void __launch_bounds__(team_threads<team>, 4)
    biased_norm_backward_kernel(const Brief* __restrict__ d_result, const Brief* __restrict__ d_second,
                                const Number* __restrict__ d_passed, const Number* __restrict__ sum,
                                const float2* __restrict__ statistics, const float* __restrict__ weight,
                                RowDropout dropout, Number* __restrict__ d_sum, Brief* __restrict__ d_branch,
                                float* __restrict__ partials, std::int64_t rows, int width) {
  constexpr int sums = 3, teams = team_threads<team> / (team * warp);
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
        d_bias.value[i] += d.value[i];
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
      add(1, d_bias.value[i]);
      add(2, d_branch_bias.value[i]);
    }
  }
  __syncthreads();
  for (int c = threadIdx.x; c < sums * width; c += team_threads<team>)
    partials[static_cast<std::int64_t>(blockIdx.x) * sums * width + c] = shared[c];
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

template <class Number, class Brief, int chunks>
cudaError_t launch_backward(const RowShape& shape, const NormBackward& arrays, const RowDropout& dropout,
                            cudaStream_t stream) {
  const unsigned bytes = static_cast<unsigned>(shape.width) * sizeof(float);
  const auto launch = [&](auto* kernel, int threads, unsigned sums) {
    kernel<<<backward_blocks, threads, sums * bytes, stream>>>(
        static_cast<const Brief*>(arrays.d_result), static_cast<const Brief*>(arrays.d_second),
        static_cast<const Number*>(arrays.d_passed), static_cast<const Number*>(arrays.sum),
        arrays.statistics, arrays.weight, dropout, static_cast<Number*>(arrays.d_sum),
        static_cast<Brief*>(arrays.d_branch), arrays.partials, shape.rows, static_cast<int>(shape.width));
    return cudaGetLastError();
  };
  return arrays.with_bias
             ? launch(biased_norm_backward_kernel<Number, Brief, chunks>, team_threads<chunks>, 3)
             : launch(norm_backward_kernel<Number, Brief, chunks>, block_threads, 1);
}

}  // namespace

cudaError_t sum_partials(const float* partials, float* result, std::int64_t columns, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((columns + warp - 1) / warp);
  sum_partials_kernel<<<blocks, dim3(warp, warp), 0, stream>>>(partials, result, static_cast<int>(columns));
  return cudaGetLastError();
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
    return launch_backward<Number, Brief, chunks>(shape, arrays, dropout, stream);
  });
}

}  // namespace attmirror::cuda
