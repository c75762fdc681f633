// One number's step on the GPU: from weight (or master) and direction to the new one. The rules are those of
// fused_step.hpp; float_powers.cuh has the powers. Roundings are few and known: the image and the rate are pairs, and their
// difference is rounded once as a float and kept with its remainder.
#pragma once

#include "mirror/cuda/float_powers.cuh"
#include "mirror/exact_arithmetic.hpp"
#include "mirror/step_plan.hpp"
#include <attmirror/mirror/fused_step.hpp>

namespace attmirror::cuda {

// What an element's step uses, in registers. The rate has the tensor's norm and the gradients' scale in it.
struct FloatConstants {
  float lift;                // a power of 2 that brings d and the rate into range: the rate has been divided by it
  FloatPair rate;
  FloatPair map, inverse;    // p - 1 and 1/(p - 1)
  float lost, lost_image;    // 1 - keep and 1 - keep_image: more digits than keep itself has
  FloatPair shrink;          // of the steepest rule; divided by lift, too
  bool decays;               // lost != 0
};
struct DoubleConstants {
  double rate;
  kernels::Sum map, inverse;
  double lost, lost_image, shrink;
  bool decays;
};

__device__ __forceinline__ FloatPair to_pair(double x) {
  const float hi = static_cast<float>(x);
  return {hi, static_cast<float>(x - hi)};
}

// ---- floats ---------------------------------------------------------------------------------------------------------

// The powers where all is in range: |w|^{p-1} of normal floats, with an image of 2^-126 to 2^127.
template <StepPower power>
__device__ __forceinline__ FloatPair image_of(float magnitude, const FloatConstants& k, int& exponent) {
  if constexpr (power == StepPower::two) return {magnitude, 0.0f};
  if constexpr (power == StepPower::three) {
    const float y = magnitude * magnitude;
    return {y, fmaf(magnitude, magnitude, -y)};
  }
  if constexpr (power == StepPower::three_halves) return sqrt_pair(magnitude);
  if constexpr (power == StepPower::eleven_tenths) return tenth_root_pair(magnitude);
  if constexpr (power == StepPower::general) {
    const ScaledPair y = power_of(log2_pair(magnitude), k.map);
    exponent = y.exponent;
    const float factor = power_of_two(min(max(y.exponent, -126), 127));
    return {y.mantissa.hi * factor, y.mantissa.lo * factor};
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
    Logarithm log = log2_pair(y.hi);
    // log2(1 + lo/hi); below 2^-60 there is no lo that would count.
    if (y.hi > 0x1p-60f) log.lo = fmaf(0x1.715476p+0f * y.lo, fast_reciprocal(y.hi), log.lo);
    const ScaledPair w = power_of(log, k.inverse);
    return scale(w.mantissa.hi, w.exponent);
  }
}

// sign(y) |y|^{1/(p-1)} for y = hi + lo.
template <StepPower power>
__device__ __forceinline__ float weight_of(float hi, float lo, const FloatConstants& k) {
  return copysignf(inverse_of<power>({fabsf(hi), hi < 0.0f ? -lo : lo}, k), hi);
}

// What the formulas above do not reach, in doubles: images or steps out of the range of floats (p = 10: w = 1e6 or 1e-6),
// denormal weights under general powers, infinities and NaN. Numbers are multiples of 2^top, the larger of image and step.
// Rare, hence functions of their own that take no registers from the others.
static __device__ __noinline__ float far_mirror_weight(float w, float d, double rate, double map, double inverse,
                                                       double lost_image) {
  const double step = rate * d;
  const double log_image = map * log2(fabs(static_cast<double>(w)));
  const double top = ceil(fmax(log_image, step == 0 ? -HUGE_VAL : log2(fabs(step))));
  const double image = copysign(exp2(log_image - top), static_cast<double>(w)) * (1 - lost_image);
  const double next = image - step * exp2(-top);
  return static_cast<float>(next == 0 ? 0 : copysign(exp2((log2(fabs(next)) + top) * inverse), next));
}
static __device__ __noinline__ float far_power(float x, double r) {
  return static_cast<float>(copysign(exp2(log2(fabs(static_cast<double>(x))) * r), static_cast<double>(x)));
}

__device__ __forceinline__ double together(FloatPair x) { return static_cast<double>(x.hi) + x.lo; }

// The mirror step without a master, d != 0. Sets `far` where the result is not to be trusted: then far_mirror_weight()
// knows. (Asked for all numbers of a packet at once: a call in each would cost every one of them.)
template <StepPower power>
__device__ __forceinline__ float mirror_weight(float w, float d, const FloatConstants& k, bool& far) {
  if constexpr (power == StepPower::two) return fmaf(-k.rate.hi, d, k.decays ? fmaf(-w, k.lost, w) : w);

  const float magnitude = fabsf(w);
  int exponent = 0;
  FloatPair y = image_of<power>(magnitude, k, exponent);
  if constexpr (power == StepPower::general)
    if (magnitude == 0.0f) y = {0.0f, 0.0f};
  y.hi = copysignf(y.hi, w);
  y.lo = w < 0.0f ? -y.lo : y.lo;
  if (k.decays) y.lo = fmaf(-y.hi, k.lost_image, y.lo);
  const float difference = fmaf(-k.rate.hi, d, y.hi);
  const float low = fmaf(-k.rate.lo, d, y.lo);
  const float next = difference + low;
  if constexpr (power == StepPower::three || power == StepPower::general) {
    const float larger = fmaxf(fabsf(y.hi), fabsf(k.rate.hi * d));
    far = !(larger < 0x1p120f) | ((larger < 0x1p-100f) & (magnitude > 0.0f));
    if constexpr (power == StepPower::general)
      far |= (exponent > 120) | ((magnitude < 0x1p-126f) & (magnitude > 0.0f)) | (fabsf(next) < 0x1p-126f);
  }
  return weight_of<power>(next, low - (next - difference), k);
}

__device__ __forceinline__ float far_mirror_weight(float w, float d, const FloatConstants& k) {
  return far_mirror_weight(w, d, together(k.rate), together(k.map), together(k.inverse), k.lost_image);
}

// sign(y) |y|^{1/(p-1)} for any y.
template <StepPower power>
__device__ __forceinline__ float weight_of_master(float y, const FloatConstants& k) {
  if constexpr (power == StepPower::general)
    if (!(fabsf(y) >= 0x1p-126f && fabsf(y) < HUGE_VALF)) return y == 0.0f ? y : far_power(y, together(k.inverse));
  return weight_of<power>(y, 0.0f, k);
}

// The master of any w.
template <StepPower power>
__device__ __forceinline__ float master_of_weight(float w, const FloatConstants& k) {
  const float magnitude = fabsf(w);
  if constexpr (power == StepPower::general) {
    return magnitude == 0.0f ? w : far_power(w, together(k.map));
  } else {
    int exponent = 0;
    const FloatPair y = image_of<power>(magnitude, k, exponent);
    return copysignf(y.hi < HUGE_VALF ? y.hi + y.lo : y.hi, w);
  }
}

// The new master of the mirror rule; d != 0 or it decays.
__device__ __forceinline__ float mirror_master(float y, float d, const FloatConstants& k) {
  const float low = fmaf(-k.rate.lo, d, k.decays ? -y * k.lost_image : 0.0f);
  return fmaf(-k.rate.hi, d, y) + low;
}

// w - rate sign(d) (|d|/||d||_q)^{1/(p-1)}, or w - rate sign(d), for d != 0.
template <StepRule rule, StepPower power>
__device__ __forceinline__ float primal_step(float w, float d, const FloatConstants& k) {
  const float kept = k.decays ? fmaf(-w, k.lost, w) : w;
  if constexpr (rule == StepRule::sign) return fmaf(-k.rate.hi, d > 0.0f ? 1.0f : d < 0.0f ? -1.0f : d, kept);
  const float length = d * k.shrink.hi;
  float direction;
  if (power == StepPower::general && !(fabsf(length) >= 0x1p-100f && fabsf(length) < 2.0f))
    direction = length == 0.0f ? length : far_power(length, together(k.inverse));
  else
    direction = weight_of<power>(length, fmaf(d, k.shrink.lo, fmaf(d, k.shrink.hi, -length)), k);
  return fmaf(-k.rate.hi, direction, kept);
}

// ---- doubles --------------------------------------------------------------------------------------------------------

// x^r. What the double nearest to r lacks counts, too: |log x| is up to 700.
__device__ __forceinline__ double power_of(double x, const kernels::Sum& r) {
  const double power = pow(x, r.value);
  return x > 0 && power > 0 && power < HUGE_VAL ? fma(power, r.rest * log(x), power) : power;
}

template <StepPower power>
__device__ __forceinline__ double image_of(double magnitude, const DoubleConstants& k) {
  if constexpr (power == StepPower::two) return magnitude;
  if constexpr (power == StepPower::three) return magnitude * magnitude;
  if constexpr (power == StepPower::three_halves) return sqrt(magnitude);
  return power_of(magnitude, k.map);
}

template <StepPower power>
__device__ __forceinline__ double weight_of_master(double y, const DoubleConstants& k) {
  const double magnitude = fabs(y);
  if constexpr (power == StepPower::two) return y;
  if constexpr (power == StepPower::three) return copysign(sqrt(magnitude), y);
  if constexpr (power == StepPower::three_halves) return copysign(magnitude * magnitude, y);
  return copysign(power_of(magnitude, k.inverse), y);
}

template <StepPower power>
__device__ __forceinline__ double master_of_weight(double w, const DoubleConstants& k) {
  return copysign(image_of<power>(fabs(w), k), w);
}

__device__ __forceinline__ double mirror_master(double y, double d, const DoubleConstants& k) {
  return fma(-k.rate, d, k.decays ? fma(-y, k.lost_image, y) : y);
}

template <StepPower power>
__device__ __forceinline__ double mirror_weight(double w, double d, const DoubleConstants& k, bool& far) {
  const double y = master_of_weight<power>(w, k), larger = fmax(fabs(y), fabs(k.rate * d));
  far = power != StepPower::two && (!(larger < 0x1p1000) || (larger < 0x1p-900 && w != 0));
  return weight_of_master<power>(mirror_master(y, d, k), k);
}

template <StepRule rule, StepPower power>
__device__ __forceinline__ double primal_step(double w, double d, const DoubleConstants& k) {
  const double kept = k.decays ? fma(-w, k.lost, w) : w;
  if constexpr (rule == StepRule::sign) return fma(-k.rate, d > 0.0 ? 1.0 : d < 0.0 ? -1.0 : d, kept);
  return fma(-k.rate, weight_of_master<power>(d * k.shrink, k), kept);
}

// Images out of the range of doubles: exactly.
static __device__ __noinline__ double far_mirror_weight(double w, double d, const DoubleConstants& k) {
  kernels::StepPlan plan;
  plan.map = k.map;
  plan.inverse = k.inverse;
  plan.rate = k.rate;
  plan.keep = 1 - k.lost;
  plan.keep_image = 1 - k.lost_image;
  return exact::mirror_step(w, exact::direction(d), plan, 1, exact::double_format());
}

}  // namespace attmirror::cuda
