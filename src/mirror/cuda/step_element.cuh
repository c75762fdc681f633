// One number's step on the GPU: from weight (or master) and direction to the new one. The rules are those of
// fused_step.hpp; float_powers.cuh has the powers. Roundings are few and known: the image and the rate are pairs, and their
// difference is rounded once as a float and kept with its remainder.
#pragma once

#include "mirror/cuda/float_powers.cuh"
#include "mirror/step_plan.hpp"
#include <attmirror/mirror/fused_step.hpp>

namespace attmirror::cuda {

// What an element's step uses, in registers. The rate has the tensor's norm and the gradients' scale in it.
struct FloatConstants {
  using Number = float;
  FloatPair rate;
  FloatPair map, inverse;    // p - 1 and 1/(p - 1)
  float lost, lost_image;    // 1 - keep and 1 - keep_image: more digits than keep itself has
  float shrink;              // of the steepest rule
  bool decays;               // lost != 0
  bool above_two;            // p > 2: images may leave the range of floats
};
struct DoubleConstants {
  using Number = double;
  double rate, map, inverse, lost, lost_image, shrink;
  bool decays;
};

__device__ __forceinline__ FloatPair to_pair(double x) {
  const float hi = static_cast<float>(x);
  return {hi, static_cast<float>(x - hi)};
}

// ---- floats ---------------------------------------------------------------------------------------------------------

// |w|^{p-1}.
template <StepPower power>
__device__ __forceinline__ FloatPair image_of(float magnitude, const FloatConstants& k) {
  if constexpr (power == StepPower::two) return {magnitude, 0.0f};
  if constexpr (power == StepPower::three) {
    const float y = magnitude * magnitude;
    return {y, fmaf(magnitude, magnitude, -y)};
  }
  if constexpr (power == StepPower::three_halves) return sqrt_pair(magnitude);
  if constexpr (power == StepPower::eleven_tenths) return tenth_root_pair(magnitude);
  if constexpr (power == StepPower::general) {
    if (magnitude == 0.0f || !(magnitude < HUGE_VALF)) return {magnitude, 0.0f};
    const ScaledPair y = power_of(log2_pair(magnitude), k.map);
    return {scale(y.mantissa.hi, y.exponent), scale(y.mantissa.lo, y.exponent)};
  }
}

// |y|^{1/(p-1)} for y.hi >= 0.
template <StepPower power>
__device__ __forceinline__ float inverse_of(FloatPair y, const FloatConstants& k) {
  if constexpr (power == StepPower::two) return y.hi + y.lo;
  if constexpr (power == StepPower::three) return square_root(y);
  if constexpr (power == StepPower::three_halves) return square(y);
  if constexpr (power == StepPower::eleven_tenths) return tenth_power(y);
  if constexpr (power == StepPower::general) {
    if (y.hi == 0.0f || !(y.hi < HUGE_VALF)) return y.hi;
    const ScaledPair w = power_of(log2_pair(y.hi), k.inverse);
    return scale(w.mantissa.hi, w.exponent);
  }
}

// sign(y) |y|^{1/(p-1)} for y = hi + lo.
template <StepPower power>
__device__ __forceinline__ float weight_of(float hi, float lo, const FloatConstants& k) {
  return copysignf(inverse_of<power>({fabsf(hi), hi < 0.0f ? -lo : lo}, k), hi);
}

// The mirror step where an image, or rate d, is out of the range of floats (p = 10: w = 1e6 or 1e-6): in doubles, as
// multiples of 2^top, the larger of the two. Rare, hence a function of its own that takes no registers from the others.
static __device__ __noinline__ float mirror_far(float w, float d, double rate, double map, double inverse, double lost_image) {
  const double step = rate * d;
  const double log_image = map * log2(fabs(static_cast<double>(w)));
  const double top = ceil(fmax(log_image, step == 0 ? -HUGE_VAL : log2(fabs(step))));
  const double image = copysign(exp2(log_image - top), static_cast<double>(w)) * (1 - lost_image);
  const double next = image - step * exp2(-top);
  return static_cast<float>(copysign(exp2((log2(fabs(next)) + top) * inverse), next));
}

template <StepPower power>
__device__ __forceinline__ float mirror_weight(float w, float d, const FloatConstants& k) {
  if (d == 0.0f) return k.decays ? fmaf(-w, k.lost, w) : w;
  if constexpr (power == StepPower::two) return fmaf(-k.rate.hi, d, k.decays ? fmaf(-w, k.lost, w) : w);

  const float magnitude = fabsf(w);
  FloatPair y = image_of<power>(magnitude, k);
  if constexpr (power == StepPower::three || power == StepPower::general) {
    const float step = fabsf(k.rate.hi * d);
    const bool far = (fmaxf(y.hi, step) > 0x1p120f) | ((fmaxf(y.hi, step) < 0x1p-100f) & (magnitude > 0.0f));
    if (k.above_two && far && magnitude < HUGE_VALF && fabsf(d) < HUGE_VALF)
      return mirror_far(w, d, static_cast<double>(k.rate.hi) + k.rate.lo, static_cast<double>(k.map.hi) + k.map.lo,
                        static_cast<double>(k.inverse.hi) + k.inverse.lo, k.lost_image);
  }
  y.hi = copysignf(y.hi, w);
  y.lo = w < 0.0f ? -y.lo : y.lo;
  if (k.decays) y.lo = fmaf(-y.hi, k.lost_image, y.lo);
  const float difference = fmaf(-k.rate.hi, d, y.hi);
  const float low = fmaf(-k.rate.lo, d, y.lo);
  const float next = difference + low;
  return weight_of<power>(next, low - (next - difference), k);
}

// The new master of the mirror rule; d != 0 or it decays.
__device__ __forceinline__ float mirror_master(float y, float d, const FloatConstants& k) {
  const float low = fmaf(-k.rate.lo, d, k.decays ? -y * k.lost_image : 0.0f);
  return fmaf(-k.rate.hi, d, y) + low;
}

// w - rate sign(d) (|d|/||d||_q)^{1/(p-1)}, or w - rate sign(d).
template <StepRule rule, StepPower power>
__device__ __forceinline__ float primal_step(float w, float d, const FloatConstants& k) {
  const float kept = k.decays ? fmaf(-w, k.lost, w) : w;
  if (d == 0.0f) return kept;
  if constexpr (rule == StepRule::sign) return fmaf(-k.rate.hi, d > 0.0f ? 1.0f : d < 0.0f ? -1.0f : d, kept);
  return fmaf(-k.rate.hi, copysignf(inverse_of<power>({fabsf(d) * k.shrink, 0.0f}, k), d), kept);
}

// ---- doubles --------------------------------------------------------------------------------------------------------

template <StepPower power>
__device__ __forceinline__ double image_of(double magnitude, const DoubleConstants& k) {
  if constexpr (power == StepPower::two) return magnitude;
  if constexpr (power == StepPower::three) return magnitude * magnitude;
  if constexpr (power == StepPower::three_halves) return sqrt(magnitude);
  return pow(magnitude, k.map);
}

template <StepPower power>
__device__ __forceinline__ double weight_of(double y, double, const DoubleConstants& k) {
  const double magnitude = fabs(y);
  if constexpr (power == StepPower::two) return y;
  if constexpr (power == StepPower::three) return copysign(sqrt(magnitude), y);
  if constexpr (power == StepPower::three_halves) return copysign(magnitude * magnitude, y);
  return copysign(pow(magnitude, k.inverse), y);
}

__device__ __forceinline__ double mirror_master(double y, double d, const DoubleConstants& k) {
  return fma(-k.rate, d, k.decays ? fma(-y, k.lost_image, y) : y);
}

template <StepPower power>
__device__ __forceinline__ double mirror_weight(double w, double d, const DoubleConstants& k) {
  if (d == 0.0) return k.decays ? fma(-w, k.lost, w) : w;
  return weight_of<power>(mirror_master(copysign(image_of<power>(fabs(w), k), w), d, k), 0.0, k);
}

template <StepRule rule, StepPower power>
__device__ __forceinline__ double primal_step(double w, double d, const DoubleConstants& k) {
  const double kept = k.decays ? fma(-w, k.lost, w) : w;
  if (d == 0.0) return kept;
  if constexpr (rule == StepRule::sign) return fma(-k.rate, d > 0.0 ? 1.0 : d < 0.0 ? -1.0 : d, kept);
  return fma(-k.rate, weight_of<power>(d * k.shrink, 0.0, k), kept);
}

}  // namespace attmirror::cuda
