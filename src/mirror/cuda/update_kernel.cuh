// The step itself on the GPU: one pass, every number read once and written once, 16 bytes at a time. A thread asks
// for all its numbers of a round before it computes with the first.
#pragma once

#include "mirror/cuda/batch.cuh"
#include "mirror/cuda/step_constants.cuh"
#include "mirror/cuda/step_element.cuh"

#include <type_traits>

namespace attmirror::cuda {

// Packets of 16 bytes of weights per thread and round. The many threads of a multiprocessor hide the memory's
// latency; more packets, and their registers, make the threads fewer.
inline constexpr int packets_per_thread = 1;
template <class T>
inline constexpr int packet_size = 16 / sizeof(T);
template <class T>
inline constexpr int round_size = threads* packets_per_thread* packet_size<T>;

// What a step knows besides its tensors. Null pointers where there is nothing. The constants are those of a tensor
// without norm and device scale, worked out by the host: a thread that steps a few numbers should not divide
// doubles first.
struct StepArguments {
  kernels::StepPlan plan;
  FloatConstants floats;
  DoubleConstants doubles;
  const double* shrinks;         // per tensor of the step: 1/||d||_q
  const float* gradient_scale;   // divides, besides the plan's
  const float* found_nonfinite;  // not 0: do nothing
  const RateNumbers* rate;       // in place of the plan's
};

template <class Number>
using ConstantsOf = std::conditional_t<std::is_same_v<Number, float>, FloatConstants, DoubleConstants>;

__device__ __forceinline__ double unscale_of(const StepArguments& arguments) {
  return arguments.gradient_scale ? arguments.plan.unscale / *arguments.gradient_scale
                                  : arguments.plan.unscale;
}

__device__ __forceinline__ kernels::StepPlan plan_of(const StepArguments& arguments) {
  return arguments.rate ? with_rate(arguments.plan, *arguments.rate) : arguments.plan;
}

// The constants of a tensor.
template <StepRule rule, class Number>
__device__ __forceinline__ ConstantsOf<Number> constants_of(const StepArguments& arguments, int tensor,
                                                            bool has_momentum) {
  const bool as_given = !arguments.shrinks && !arguments.gradient_scale && !arguments.rate;
  const auto shrink = [&] {
    return (arguments.shrinks ? arguments.shrinks[tensor] : 1.0) *
           (has_momentum ? 1.0 : unscale_of(arguments));
  };
  if constexpr (std::is_same_v<Number, float>)
    return as_given ? arguments.floats : float_constants(plan_of(arguments), rule, shrink());
  else
    return as_given ? arguments.doubles : double_constants(plan_of(arguments), rule, shrink());
}

// d from a gradient and its momentum.
template <class Number>
struct DirectionConstants {
  Number unscale, momentum;
  bool nesterov;
};
template <class Number>
__device__ __forceinline__ DirectionConstants<Number> direction_constants(const StepArguments& arguments) {
  return {static_cast<Number>(unscale_of(arguments)), static_cast<Number>(arguments.plan.momentum),
          arguments.plan.nesterov};
}
template <class Number>
__device__ __forceinline__ Number advance(Number gradient, Number& momentum,
                                          const DirectionConstants<Number>& k) {
  const Number d = gradient * k.unscale;
  momentum = fma(k.momentum, momentum, d);
  return k.nesterov ? fma(k.momentum, momentum, d) : momentum;
}

// The new weight, and the new master where there is one.
template <class T, StepRule rule, Power power, bool has_master, class Constants>
__device__ __forceinline__ void step_element(T& weight, State<T>& master, State<T> d, const Constants& k) {
  const bool rests = d == State<T>(0);
  if constexpr (has_master) {
    if (rests && !k.decays) return;
    if constexpr (rule == StepRule::mirror) {
      master = mirror_master(master, lifted(d, k), k);
      weight = narrow<T>(weight_of_master<power>(master, k));
    } else {
      master = rests ? kept(master, k) : primal_step<rule, power>(master, lifted(d, k), k);
      weight = narrow<T>(master);
    }
  } else {
    const State<T> w = widen(weight);
    T next;
    if constexpr (rule == StepRule::mirror)
      next = narrow<T>(mirror_weight<power>(w, lifted(d, k), k));
    else
      next = narrow<T>(primal_step<rule, power>(w, lifted(d, k), k));
    if (rests) next = k.decays ? narrow<T>(kept(w, k)) : weight;
    weight = next;
  }
}

template <class T, StepRule rule, Power power, bool has_master>
__global__ void __launch_bounds__(threads)
    update_kernel(const __grid_constant__ Batch batch, const __grid_constant__ StepArguments arguments) {
  using Number = State<T>;
  constexpr int width = packet_size<T>;

  if (arguments.found_nonfinite && *arguments.found_nonfinite != 0) return;
  // From the last block to the first: what a pass over the gradients before this one has left in the cache is its end.
  const int block = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  const int index = tensor_of_block(batch, block);
  const BatchTensor& tensor = batch.tensors[index];
  const long long begin =
      static_cast<long long>(block - batch.first_chunk[index]) * batch.rounds * round_size<T>;
  const long long left = tensor.size - begin;

  T* weights = static_cast<T*>(tensor.weights) + begin;
  const T* gradient = static_cast<const T*>(tensor.gradient) + begin;
  Number* master = has_master ? static_cast<Number*>(tensor.master) + begin : nullptr;
  const bool has_momentum = tensor.momentum != nullptr;
  Number* momentum = has_momentum ? static_cast<Number*>(tensor.momentum) + begin : nullptr;
  DirectionConstants<Number> direct{};
  if (has_momentum) direct = direction_constants<Number>(arguments);
  const auto k = constants_of<rule, Number>(arguments, batch.first_tensor + index, has_momentum);

  const int whole_rounds =
      batch.vectors[index] ? static_cast<int>(min(static_cast<long long>(batch.rounds), left / round_size<T>))
                           : 0;
  for (int round = 0; round < whole_rounds; ++round) {
    Packet<T, width> w[packets_per_thread], g[packets_per_thread];
    Packet<Number, width> y[packets_per_thread], m[packets_per_thread];
    const int first = round * round_size<T> + static_cast<int>(threadIdx.x) * width;
#pragma unroll
    for (int u = 0; u < packets_per_thread; ++u) {
      const int at = first + u * threads * width;
      g[u] = load<T, width>(gradient + at);
      if constexpr (has_master)
        y[u] = load<Number, width>(master + at);
      else
        w[u] = load<T, width>(weights + at);
      if (has_momentum) m[u] = load<Number, width>(momentum + at);
    }
#pragma unroll
    for (int u = 0; u < packets_per_thread; ++u) {
      const int at = first + u * threads * width;
      Packet<Number, width> d;
      bool all_move = true;
#pragma unroll
      for (int i = 0; i < width; ++i) {
        d.value[i] = widen(g[u].value[i]);
        if (has_momentum) d.value[i] = advance(d.value[i], m[u].value[i], direct);
        step_element<T, rule, power, has_master>(w[u].value[i], y[u].value[i], d.value[i], k);
        all_move = all_move && (d.value[i] != Number(0) || k.decays);
      }
      if (has_momentum) store(momentum + at, m[u]);
      if constexpr (has_master) {
        store(master + at, y[u]);
        // The weights have not been read: those that do not change must not be written.
        if (all_move) {
          store(weights + at, w[u]);
        } else {
#pragma unroll
          for (int i = 0; i < width; ++i)
            if (d.value[i] != Number(0)) weights[at + i] = w[u].value[i];
        }
      } else {
        store(weights + at, w[u]);
      }
    }
  }

  // The end of a tensor, and all of an unaligned one.
  const long long chunk = static_cast<long long>(batch.rounds) * round_size<T>;
  const int end = static_cast<int>(min(left, chunk));
  for (int i = whole_rounds * round_size<T> + static_cast<int>(threadIdx.x); i < end; i += threads) {
    Number d = widen(gradient[i]);
    if (has_momentum) {
      Number m = momentum[i];
      d = advance(d, m, direct);
      momentum[i] = m;
    }
    if (d == Number(0) && !k.decays) continue;
    T w = weights[i];
    Number y = has_master ? master[i] : Number(0);
    step_element<T, rule, power, has_master>(w, y, d, k);
    weights[i] = w;
    if constexpr (has_master) master[i] = y;
  }
}

// master = image of the weights (mirror rule) or the weights themselves.
template <class T, StepRule rule, Power power>
__global__ void __launch_bounds__(threads)
    fill_master_kernel(const __grid_constant__ Batch batch, const __grid_constant__ StepArguments arguments) {
  using Number = State<T>;
  const int index = tensor_of_block(batch, static_cast<int>(blockIdx.x));
  const BatchTensor& tensor = batch.tensors[index];
  const long long chunk = static_cast<long long>(batch.rounds) * round_size<T>;
  const long long begin = (static_cast<int>(blockIdx.x) - batch.first_chunk[index]) * chunk;
  const int end = static_cast<int>(min(tensor.size - begin, chunk));
  const auto k = constants_of<rule, Number>(arguments, 0, true);
  for (int i = static_cast<int>(threadIdx.x); i < end; i += threads) {
    const Number w = widen(static_cast<const T*>(tensor.weights)[begin + i]);
    static_cast<Number*>(tensor.master)[begin + i] =
        rule == StepRule::mirror ? master_of_weight<power>(w, k) : w;
  }
}

}  // namespace attmirror::cuda
