// The step itself on the GPU: one pass, every number read once and written once, 16 bytes at a time. A thread asks for all
// its numbers before it computes with the first.
#pragma once

#include "mirror/cuda/batch.cuh"
#include "mirror/cuda/step_element.cuh"

namespace attmirror::cuda {

// Packets of 16 bytes of weights per thread. Two hide the memory's latency; four would cost registers.
inline constexpr int packets_per_thread = 2;

template <class T>
inline constexpr int packet_size = 16 / sizeof(T);
template <class T>
inline constexpr int chunk_size = threads * packets_per_thread * packet_size<T>;

// d from a gradient and, where there is one, its momentum.
template <class Number>
struct DirectionConstants {
  Number unscale, momentum;
  bool nesterov;
};
template <class Number>
__device__ __forceinline__ Number advance(Number gradient, Number& momentum, const DirectionConstants<Number>& k) {
  const Number d = gradient * k.unscale;
  momentum = fma(k.momentum, momentum, d);
  return k.nesterov ? fma(k.momentum, momentum, d) : momentum;
}

__device__ __forceinline__ double unscale_of(const StepArguments& arguments) {
  return arguments.gradient_scale ? arguments.plan.unscale / *arguments.gradient_scale : arguments.plan.unscale;
}

template <class Number>
__device__ __forceinline__ DirectionConstants<Number> direction_constants(const StepArguments& arguments) {
  return {static_cast<Number>(unscale_of(arguments)), static_cast<Number>(arguments.plan.momentum), arguments.plan.nesterov};
}

// Without momentum the gradients' scale goes into the rate (or, for steepest directions, the norm).
template <StepRule rule, class Constants>
__device__ __forceinline__ Constants element_constants(const StepArguments& arguments, int tensor, bool has_momentum) {
  const kernels::StepPlan& plan = arguments.plan;
  const double shrink = (arguments.shrinks ? arguments.shrinks[tensor] : 1.0) * (has_momentum ? 1.0 : unscale_of(arguments));
  const double rate = rule == StepRule::mirror ? plan.rate * shrink : plan.rate;
  const double lost = 1 - plan.keep, lost_image = 1 - plan.keep_image;
  if constexpr (std::is_same_v<Constants, FloatConstants>) {
    const FloatPair map = to_pair(plan.map.value), inverse = to_pair(plan.inverse.value);
    return {to_pair(rate), map, inverse, static_cast<float>(lost), static_cast<float>(lost_image),
            static_cast<float>(shrink), plan.keep != 1, plan.map.value > 1};
  } else {
    return {rate, plan.map.value, plan.inverse.value, lost, lost_image, shrink, plan.keep != 1};
  }
}

// The new weight, and the new master where there is one. Says whether they differ from the old ones.
template <class T, StepRule rule, StepPower power, bool has_master, class Constants>
__device__ __forceinline__ bool step_element(T& weight, State<T>& master, State<T> d, const Constants& k) {
  if (d == State<T>(0) && !k.decays) return false;
  if constexpr (!has_master) {
    if constexpr (rule == StepRule::mirror)
      weight = narrow<T>(mirror_weight<power>(widen(weight), d, k));
    else
      weight = narrow<T>(primal_step<rule, power>(widen(weight), d, k));
  } else if constexpr (rule == StepRule::mirror) {
    master = mirror_master(master, d, k);
    weight = narrow<T>(weight_of<power>(master, State<T>(0), k));
  } else {
    master = primal_step<rule, power>(master, d, k);
    weight = narrow<T>(master);
  }
  return true;
}

template <class T, StepRule rule, StepPower power, bool has_master>
__global__ void __launch_bounds__(threads)
    update_kernel(const __grid_constant__ Batch batch, const __grid_constant__ StepArguments arguments) {
  using Number = State<T>;
  using Constants = std::conditional_t<std::is_same_v<Number, float>, FloatConstants, DoubleConstants>;
  constexpr int width = packet_size<T>, chunk = chunk_size<T>;

  if (arguments.found_nonfinite && *arguments.found_nonfinite != 0) return;
  // From the last block to the first: what a pass over the gradients before this one has left in the cache is its end.
  const int block = static_cast<int>(gridDim.x - 1 - blockIdx.x);
  const int index = tensor_of_block(batch, block);
  const BatchTensor& tensor = batch.tensors[index];
  const long long begin = static_cast<long long>(block - batch.first_chunk[index]) * chunk;
  const long long left = tensor.size - begin;

  T* weights = static_cast<T*>(tensor.weights) + begin;
  const T* gradient = static_cast<const T*>(tensor.gradient) + begin;
  Number* master = has_master ? static_cast<Number*>(tensor.master) + begin : nullptr;
  const bool has_momentum = tensor.momentum != nullptr;
  Number* momentum = has_momentum ? static_cast<Number*>(tensor.momentum) + begin : nullptr;
  const auto direct = direction_constants<Number>(arguments);
  const auto k = element_constants<rule, Constants>(arguments, batch.first_tensor + index, has_momentum);

  if (batch.vectors[index] && left >= chunk) {
    Packet<T, width> w[packets_per_thread], g[packets_per_thread];
    Packet<Number, width> y[packets_per_thread], m[packets_per_thread];
#pragma unroll
    for (int u = 0; u < packets_per_thread; ++u) {
      const int at = (u * threads + static_cast<int>(threadIdx.x)) * width;
      g[u] = load<T, width>(gradient + at);
      if constexpr (has_master)
        y[u] = load<Number, width>(master + at);
      else
        w[u] = load<T, width>(weights + at);
      if (has_momentum) m[u] = load<Number, width>(momentum + at);
    }
#pragma unroll
    for (int u = 0; u < packets_per_thread; ++u) {
      const int at = (u * threads + static_cast<int>(threadIdx.x)) * width;
      bool changed[width], all = true;
#pragma unroll
      for (int i = 0; i < width; ++i) {
        Number d = widen(g[u].value[i]);
        if (has_momentum) d = advance(d, m[u].value[i], direct);
        changed[i] = step_element<T, rule, power, has_master>(w[u].value[i], y[u].value[i], d, k);
        all = all && changed[i];
      }
      if (has_momentum) store(momentum + at, m[u]);
      if constexpr (has_master) {
        store(master + at, y[u]);
        // The weights have not been read: those that do not change must not be written.
        if (all) {
          store(weights + at, w[u]);
        } else {
#pragma unroll
          for (int i = 0; i < width; ++i)
            if (changed[i]) weights[at + i] = w[u].value[i];
        }
      } else {
        store(weights + at, w[u]);
      }
    }
  } else {
    const int end = static_cast<int>(left < chunk ? left : chunk);
    for (int i = static_cast<int>(threadIdx.x); i < end; i += threads) {
      Number d = widen(gradient[i]);
      if (has_momentum) {
        Number m = momentum[i];
        d = advance(d, m, direct);
        momentum[i] = m;
      }
      T w = weights[i];
      Number y = has_master ? master[i] : Number(0);
      if (step_element<T, rule, power, has_master>(w, y, d, k)) {
        weights[i] = w;
        if constexpr (has_master) master[i] = y;
      }
    }
  }
}

// master = image of the weights (mirror rule) or the weights themselves.
template <class T, StepRule rule, StepPower power>
__global__ void __launch_bounds__(threads)
    fill_master_kernel(const __grid_constant__ Batch batch, const __grid_constant__ StepArguments arguments) {
  using Number = State<T>;
  using Constants = std::conditional_t<std::is_same_v<Number, float>, FloatConstants, DoubleConstants>;
  const int index = tensor_of_block(batch, static_cast<int>(blockIdx.x));
  const BatchTensor& tensor = batch.tensors[index];
  const long long begin = static_cast<long long>(static_cast<int>(blockIdx.x) - batch.first_chunk[index]) * chunk_size<T>;
  const long long left = tensor.size - begin;
  const int end = static_cast<int>(left < chunk_size<T> ? left : chunk_size<T>);
  const auto k = element_constants<rule, Constants>(arguments, 0, true);
  for (int i = static_cast<int>(threadIdx.x); i < end; i += threads) {
    const Number w = widen(static_cast<const T*>(tensor.weights)[begin + i]);
    Number* to = static_cast<Number*>(tensor.master) + begin + i;
    if constexpr (rule != StepRule::mirror) {
      *to = w;
    } else if constexpr (std::is_same_v<Number, float>) {
      const FloatPair y = image_of<power>(fabsf(w), k);
      *to = copysignf(y.hi + y.lo, w);
    } else {
      *to = copysign(image_of<power>(fabs(w), k), w);
    }
  }
}

}  // namespace attmirror::cuda
