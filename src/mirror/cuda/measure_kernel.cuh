// The dual norms of all tensors on the GPU, and whether every gradient is finite: one pass that reads and writes
// nothing back but a pair of numbers per block, and a block per tensor that puts these together.
//
// |d|^11, the dual norm's power at p = 1.1, leaves the range of floats for d = 1e-4. So every partial result is a
// pair: the largest |d| so far, and the sum of (|d| / largest)^q; a new largest rescales the sum. The powers are the
// processor's approximations: the root 1/q at the end divides their errors by q, and 2^-22 is left.
#pragma once

#include "mirror/cuda/update_kernel.cuh"

namespace attmirror::cuda {

inline constexpr int measure_packets = 4;  // per thread and round
template <class T>
inline constexpr int measure_round_size = threads* measure_packets* packet_size<T>;

// largest is infinite or NaN where a number is.
template <class Number>
struct Part {
  Number largest, sum;
};

// Magnitudes as integers keep their order, with infinity and NaN on top; the maximum of floats would lose a NaN.
__device__ __forceinline__ float max_magnitude(float a, float b) {
  return __uint_as_float(max(__float_as_uint(a) & 0x7fffffffu, __float_as_uint(b) & 0x7fffffffu));
}
__device__ __forceinline__ double max_magnitude(double a, double b) {
  const unsigned long long mask = 0x7fffffffffffffffull;
  return __longlong_as_double(
      static_cast<long long>(max(static_cast<unsigned long long>(__double_as_longlong(a)) & mask,
                                 static_cast<unsigned long long>(__double_as_longlong(b)) & mask)));
}

// x^q for 0 <= x <= 1.
template <Power power>
__device__ __forceinline__ float dual_power(float x, float q) {
  if constexpr (power == Power::two) return x * x;
  if constexpr (power == Power::three) return x * __fsqrt_rn(x);
  if constexpr (power == Power::three_halves) return x * x * x;
  if constexpr (power == Power::eleven_tenths) {
    const float x2 = x * x, x4 = x2 * x2;
    return x4 * x4 * (x2 * x);
  }
  return fast_exp2(q * fast_log2(x));
}
template <Power power>
__device__ __forceinline__ double dual_power(double x, double q) {
  return power == Power::two ? x * x : pow(x, q);
}

template <class Number>
__device__ __forceinline__ bool is_finite(Number x) {
  return x < Number(HUGE_VAL);
}

// Multiplies |d| <= largest into [0, 1]. In two factors, since 1/largest may be out of range.
template <class Number>
struct Reciprocal {
  Number first, second;
  __device__ __forceinline__ explicit Reciprocal(Number largest)
      : first(largest < Number(1e-18)  ? Number(0x1p60)
              : largest > Number(1e18) ? Number(0x1p-60)
                                       : Number(1)),
        second(Number(1) / (largest * first)) {}
  __device__ __forceinline__ Number operator()(Number d) const { return fabs(d) * first * second; }
};

// The two together, in the order given. Neither is changed by an empty one.
template <class Number>
__device__ __forceinline__ Part<Number> merged(Part<Number> a, Part<Number> b, Number q) {
  const Number largest = max_magnitude(a.largest, b.largest);
  if (!is_finite(largest) || largest == Number(0)) return {largest, Number(0)};
  const Reciprocal<Number> ratio(largest);
  return {largest, a.sum * dual_power<Power::below_two>(ratio(a.largest), q) +
                       b.sum * dual_power<Power::below_two>(ratio(b.largest), q)};
}

// Over the threads of a block, in a fixed order; the result is that of thread 0.
template <class Number>
__device__ Part<Number> merged_over_block(Part<Number> part, Number q) {
  __shared__ Part<Number> of_warp[threads / 32];
  const auto merge_warp = [&](int lanes) {
    for (int step = lanes / 2; step > 0; step /= 2) {
      const Part<Number> other{__shfl_down_sync(0xffffffffu, part.largest, step),
                               __shfl_down_sync(0xffffffffu, part.sum, step)};
      part = merged(part, other, q);
    }
  };
  merge_warp(32);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = part;
  __syncthreads();
  if (threadIdx.x < 32) {
    part = threadIdx.x < threads / 32 ? of_warp[threadIdx.x] : Part<Number>{Number(0), Number(0)};
    merge_warp(threads / 32);
  }
  return part;
}

// Number is that of the arithmetic: double for the exact step.
template <class T, class Number, Power power, bool with_norm>
__global__ void __launch_bounds__(threads)
    measure_kernel(const __grid_constant__ Batch batch, const __grid_constant__ StepArguments arguments,
                   double* parts) {
  constexpr int width = packet_size<T>, per_round = measure_round_size<T>;
  const int block = static_cast<int>(blockIdx.x);
  const int index = tensor_of_block(batch, block);
  const BatchTensor& tensor = batch.tensors[index];
  const long long begin = static_cast<long long>(block - batch.first_chunk[index]) * batch.rounds * per_round;
  const long long left = tensor.size - begin;
  const T* gradient = static_cast<const T*>(tensor.gradient) + begin;
  const bool has_momentum = tensor.momentum != nullptr;
  const State<T>* momentum = has_momentum ? static_cast<const State<T>*>(tensor.momentum) + begin : nullptr;
  DirectionConstants<Number> direct{};
  if (has_momentum) direct = direction_constants<Number>(arguments);
  const Number q = static_cast<Number>(arguments.plan.dual.value);

  Part<Number> part{Number(0), Number(0)};
  // Adds some numbers at once, so that the sum is rescaled once for all of them.
  const auto add = [&](const auto& numbers) {
    constexpr int count = static_cast<int>(sizeof(numbers) / sizeof(Number));
    Number largest = part.largest;
#pragma unroll
    for (int i = 0; i < count; ++i) largest = max_magnitude(largest, numbers[i]);
    if constexpr (with_norm) {
      if (largest == Number(0)) return;
      const Reciprocal<Number> ratio(largest);
      if (part.largest != largest) part.sum *= dual_power<Power::below_two>(ratio(part.largest), q);
#pragma unroll
      for (int i = 0; i < count; ++i) part.sum += dual_power<power>(ratio(numbers[i]), q);
    }
    part.largest = largest;
  };

  // A round at a time: each thread's numbers lie one block's width apart. The last round of a tensor, and all of an
  // unaligned one, goes number by number; what would be beyond the end counts as 0.
  for (int round = 0; round < batch.rounds && left > static_cast<long long>(round) * per_round; ++round) {
    const int first = round * per_round;
    Number d[measure_packets * width];
    if (batch.vectors[index] && left >= first + per_round) {
      Packet<T, width> g[measure_packets];
#pragma unroll
      for (int u = 0; u < measure_packets; ++u)
        g[u] = load<T, width>(gradient + first + (u * threads + static_cast<int>(threadIdx.x)) * width);
#pragma unroll
      for (int u = 0; u < measure_packets; ++u) {
#pragma unroll
        for (int i = 0; i < width; ++i) d[u * width + i] = widen(g[u].value[i]);
        if (has_momentum) {
          const Packet<State<T>, width> m =
              load<State<T>, width>(momentum + first + (u * threads + static_cast<int>(threadIdx.x)) * width);
#pragma unroll
          for (int i = 0; i < width; ++i) {
            Number running = m.value[i];  // not stored: a step that is skipped leaves no trace
            d[u * width + i] = advance(d[u * width + i], running, direct);
          }
        }
      }
    } else {
      const int end = static_cast<int>(left - first < per_round ? left - first : per_round);
#pragma unroll
      for (int i = 0; i < measure_packets * width; ++i) {
        const int at = i * threads + static_cast<int>(threadIdx.x);
        d[i] = at < end ? Number(widen(gradient[first + at])) : Number(0);
        if (has_momentum) {
          Number running = at < end ? Number(momentum[first + at]) : Number(0);
          d[i] = advance(d[i], running, direct);
        }
      }
    }
    add(d);
  }
  part = merged_over_block(part, q);
  if (threadIdx.x == 0) {
    parts[2 * blockIdx.x] = part.largest;
    parts[2 * blockIdx.x + 1] = part.sum;
  }
}

// What measuring leaves, each where there is a pointer: of each tensor ||d||_q, or 1/||d||_q (0 for a d of zeros, which
// has no direction and takes no step), and 1 in `found` where a number is not finite.
struct NormOutputs {
  double* shrinks = nullptr;
  double* norms = nullptr;
  float* found = nullptr;
};

// One block per tensor.
template <class Number>
__global__ void __launch_bounds__(threads)
    finish_norms_kernel(const __grid_constant__ Batch batch, const __grid_constant__ StepArguments arguments,
                        const double* parts, NormOutputs outputs) {
  const int index = static_cast<int>(blockIdx.x);
  const Number q = static_cast<Number>(arguments.plan.dual.value);
  Part<Number> part{Number(0), Number(0)};
  for (int c = batch.first_chunk[index] + static_cast<int>(threadIdx.x); c < batch.first_chunk[index + 1];
       c += threads)
    part = merged(part,
                  Part<Number>{static_cast<Number>(parts[2 * c]), static_cast<Number>(parts[2 * c + 1])}, q);
  part = merged_over_block(part, q);
  if (threadIdx.x != 0) return;
  if (outputs.found && !is_finite(part.largest)) *outputs.found = 1.0f;
  if (!outputs.shrinks && !outputs.norms) return;
  const double largest = part.largest,
               unscale = batch.tensors[index].momentum ? 1.0 : fabs(unscale_of(arguments));
  // Without momentum the numbers above are not yet unscaled.
  const double norm = largest * pow(static_cast<double>(part.sum), 1 / arguments.plan.dual.value) * unscale;
  if (outputs.shrinks) outputs.shrinks[batch.first_tensor + index] = norm == 0 ? 0 : 1 / norm;
  if (outputs.norms) outputs.norms[batch.first_tensor + index] = largest == 0 ? 0 : norm;
}

}  // namespace attmirror::cuda
