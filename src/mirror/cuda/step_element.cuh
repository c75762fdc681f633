// One number's step on the GPU: from weight (or master) and direction to the new one. The rules are those of
// fused_step.hpp; float_powers.cuh has the powers. Roundings are few and known: the image and the rate are pairs, and
// their difference is rounded once as a float and kept with its remainder.
#pragma once

#include "mirror/cuda/float_powers.cuh"
#include "mirror/cuda/step_constants.cuh"
#include "mirror/exact_arithmetic.hpp"
#include "mirror/step_plan.hpp"
#include <attmirror/mirror/fused_step.hpp>

namespace attmirror::cuda {

// ---- floats ---------------------------------------------------------------------------------------------------------

// A direction in the range of its constants, and what decay leaves of a weight whose direction is 0.
__device__ __forceinline__ float lifted(float d, const FloatConstants& k) { return d * k.lift; }
__device__ __forceinline__ float kept(float w, const FloatConstants& k) { return fmaf(-w, k.lost, w); }

template <Power power>
inline constexpr bool is_general = power == Power::below_two || power == Power::above_two;

// |y|^{1/(p-1)} for y.hi >= 0, products and roots.
template <Power power>
__device__ __forceinline__ float inverse_of(FloatPair y) {
  if constexpr (power == Power::two) return y.hi + y.lo;
  if constexpr (power == Power::three) return square_root(y);
  if constexpr (power == Power::three_halves) return square(y);
  if constexpr (power == Power::eleven_tenths) return tenth_power(y);
}

// sign(y) |y|^{1/(p-1)} for y = hi + lo, products and roots.
template <Power power>
__device__ __forceinline__ float weight_of(float hi, float lo) {
  return times_sign(inverse_of<power>({fabsf(hi), times_sign(lo, hi)}), hi);
}

// y - rate d as a pair, for the image y >= 0 of |w|.
__device__ __forceinline__ FloatPair next_image(FloatPair image, float w, float d, const FloatConstants& k) {
  const float y = times_sign(image.hi, w);
  const float y_lo = fmaf(-y, k.lost_image, times_sign(image.lo, w));
  const float difference = fmaf(-k.rate.hi, d, y);
  const float low = fmaf(-k.rate.lo, d, y_lo);
  const float next = difference + low;
  return {next, low - (next - difference)};
}

// p = 3. The squares of weights beyond 1e19 or below 1e-19 are no floats; so the step is taken for w and d times
// powers of two, s w and s^2 d.
__device__ __forceinline__ float mirror_weight_three(float w, float d, const FloatConstants& k) {
  const float step = fabsf(k.rate.hi * d);
  const bool large = (fabsf(w) > 0x1p55f) | (step > 0x1p110f),
             small = (fabsf(w) < 0x1p-45f) & (step < 0x1p-90f);
  const float s = large ? 0x1p-70f : small ? 0x1p75f : 1.0f, back = large ? 0x1p70f : small ? 0x1p-75f : 1.0f;
  const float magnitude = fabsf(w * s);
  const float y = magnitude * magnitude;
  const FloatPair next = next_image({y, fmaf(magnitude, magnitude, -y)}, w, d * s * s, k);
  return weight_of<Power::three>(next.hi, next.lo) * back;
}

// General p. Above 2, images leave the range of floats (p = 10: w = 1e6 or 1e-6): where they, or the step, come near
// its ends, both are taken as multiples of 2^top, the larger of the two.
template <Power power>
__device__ __forceinline__ float mirror_weight_general(float w, float d, const FloatConstants& k) {
  const float magnitude = fabsf(w);
  const ScaledPair image = power == Power::below_two ? power_of(parts_of(magnitude), k.map)
                                                     : precise_power_of(parts_of(magnitude), k.map);
  int exponent = magnitude == 0.0f ? -100000 : image.exponent, top = 0;
  float scaled = d;
  if constexpr (power == Power::above_two) {
    const int step_exponent = ((__float_as_int(d) >> 23) & 0xff) + k.rate_exponent;
    top = max(exponent, step_exponent);
    top = static_cast<unsigned>(top + 90) < 190u ? 0 : top;
    exponent -= top;
    const TwoFactors factors = two_factors(-top);
    scaled = d * factors.first * factors.second;
  }
  const TwoFactors factors = two_factors(exponent);
  const FloatPair y{image.mantissa.hi * factors.first * factors.second,
                    image.mantissa.lo * factors.first * factors.second};
  const FloatPair next_pair = next_image(y, w, scaled, k);
  const float next = next_pair.hi;
  // log2(1 + lo/hi), where there is a lo to speak of.
  const float more = fabsf(next) > 0x1p-100f ? 0x1.715476p+0f * next_pair.lo * fast_reciprocal(next) : 0.0f;
  Parts parts = parts_of(fabsf(next));
  if constexpr (power == Power::above_two)
    parts.k += __int_as_float(__float_as_int(whole_shifter) + top) - whole_shifter;
  const ScaledPair weight = power_of(parts, k.inverse, more);
  const float result = times_sign(scale(weight.mantissa.hi, weight.exponent), next);
  // Zero, and what is no number.
  if (next == 0.0f) return next;
  const bool finite = (magnitude < HUGE_VALF) & (fabsf(d) < HUGE_VALF);
  return finite ? result : w - d;
}

// The mirror step without a master, d != 0.
template <Power power>
__device__ __forceinline__ float mirror_weight(float w, float d, const FloatConstants& k) {
  if constexpr (power == Power::two) {
    return fmaf(-k.rate.hi, d, fmaf(-w, k.lost, w));
  } else if constexpr (power == Power::three) {
    return mirror_weight_three(w, d, k);
  } else if constexpr (is_general<power>) {
    return mirror_weight_general<power>(w, d, k);
  } else {
    const FloatPair y = power == Power::three_halves ? sqrt_pair(fabsf(w)) : tenth_root_pair(fabsf(w));
    const FloatPair next = next_image(y, w, d, k);
    return weight_of<power>(next.hi, next.lo);
  }
}

// sign(x) |x|^r for finite x, precisely.
__device__ __forceinline__ float general_power(float x, FloatPair r) {
  const ScaledPair power = precise_power_of(parts_of(fabsf(x)), r);
  return fabsf(x) > 0.0f && fabsf(x) < HUGE_VALF ? times_sign(scale(power.mantissa.hi, power.exponent), x)
                                                 : x;
}

// sign(y) |y|^{1/(p-1)} of a master.
template <Power power>
__device__ __forceinline__ float weight_of_master(float y, const FloatConstants& k) {
  if constexpr (is_general<power>)
    return general_power(y, k.inverse);
  else
    return fabsf(y) < HUGE_VALF ? weight_of<power>(y, 0.0f) : y;
}

// The master of a weight.
template <Power power>
__device__ __forceinline__ float master_of_weight(float w, const FloatConstants& k) {
  if constexpr (power == Power::two) return w;
  if constexpr (power == Power::three) return w * fabsf(w);
  if constexpr (is_general<power>) return general_power(w, k.map);
  const FloatPair y = power == Power::three_halves ? sqrt_pair(fabsf(w)) : tenth_root_pair(fabsf(w));
  return times_sign(y.hi + y.lo, w);
}

// The new master of the mirror rule.
__device__ __forceinline__ float mirror_master(float y, float d, const FloatConstants& k) {
  return fmaf(-k.rate.hi, d,
              fmaf(-k.rate.lo, d, k.decays && fabsf(y) < HUGE_VALF ? fmaf(-y, k.lost_image, y) : y));
}

// w - rate sign(d) (|d|/||d||_q)^{1/(p-1)}, or w - rate sign(d), for d != 0.
template <StepRule rule, Power power>
__device__ __forceinline__ float primal_step(float w, float d, const FloatConstants& k) {
  const float kept = fmaf(-w, k.lost, w);
  if constexpr (rule == StepRule::sign) return fmaf(-k.rate.hi, d > 0.0f ? 1.0f : d < 0.0f ? -1.0f : d, kept);
  // Above p = 2 the power makes even denormal lengths matter: those are taken 2^64 times.
  constexpr bool lengthens = power == Power::three || power == Power::above_two;
  const bool small = lengthens && fabsf(d) < 0x1p-60f;
  const float lifted = small ? d * 0x1p64f : d;
  const float length = lifted * k.shrink.hi;
  const float length_lo = fmaf(lifted, k.shrink.lo, fmaf(lifted, k.shrink.hi, -length));
  float direction;
  if constexpr (is_general<power>) {
    Parts parts = parts_of(fabsf(length));
    if (small) parts.k -= 64.0f;
    const ScaledPair x = precise_power_of(parts, k.inverse);
    // (1 + lo/hi)^r, to first order; where the length is that small, its direction is 0.
    const float more = fabsf(length) > 0x1p-100f ? k.inverse.hi * length_lo * fast_reciprocal(length) : 0.0f;
    direction = times_sign(scale(fmaf(x.mantissa.hi, more, x.mantissa.hi), x.exponent), length);
    if (!(fabsf(length) > 0.0f) || !(fabsf(length) < HUGE_VALF)) direction = length;
  } else {
    direction = weight_of<power>(length, length_lo);
    if (small) direction *= 0x1p-32f;
  }
  return fmaf(-k.rate.hi, direction, kept);
}

// ---- doubles --------------------------------------------------------------------------------------------------------

__device__ __forceinline__ double lifted(double d, const DoubleConstants&) { return d; }
__device__ __forceinline__ double kept(double w, const DoubleConstants& k) { return fma(-w, k.lost, w); }

// x^r. What the double nearest to r lacks counts, too: |log x| is up to 700.
__device__ __forceinline__ double power_of(double x, const kernels::Sum& r) {
  const double power = pow(x, r.value);
  return x > 0 && power > 0 && power < HUGE_VAL ? fma(power, r.rest * log(x), power) : power;
}

template <Power power>
__device__ __forceinline__ double image_of(double magnitude, const DoubleConstants& k) {
  if constexpr (power == Power::two) return magnitude;
  if constexpr (power == Power::three) return magnitude * magnitude;
  if constexpr (power == Power::three_halves) return sqrt(magnitude);
  return power_of(magnitude, k.map);
}

template <Power power>
__device__ __forceinline__ double weight_of_master(double y, const DoubleConstants& k) {
  const double magnitude = fabs(y);
  if constexpr (power == Power::two) return y;
  if constexpr (power == Power::three) return copysign(sqrt(magnitude), y);
  if constexpr (power == Power::three_halves) return copysign(magnitude * magnitude, y);
  return copysign(power_of(magnitude, k.inverse), y);
}

template <Power power>
__device__ __forceinline__ double master_of_weight(double w, const DoubleConstants& k) {
  return copysign(image_of<power>(fabs(w), k), w);
}

__device__ __forceinline__ double mirror_master(double y, double d, const DoubleConstants& k) {
  return fma(-k.rate, d, k.decays ? fma(-y, k.lost_image, y) : y);
}

// Images out of the range of doubles: exactly. Rare, hence a function of its own.
static __device__ __noinline__ double far_mirror_weight(double w, double d, DoubleConstants k) {
  kernels::StepPlan plan;
  plan.map = k.map;
  plan.inverse = k.inverse;
  plan.rate = k.rate;
  plan.keep = 1 - k.lost;
  plan.keep_image = 1 - k.lost_image;
  return exact::mirror_step(w, exact::direction(d), plan, 1, exact::double_format());
}

template <Power power>
__device__ __forceinline__ double mirror_weight(double w, double d, const DoubleConstants& k) {
  const double y = master_of_weight<power>(w, k), larger = fmax(fabs(y), fabs(k.rate * d));
  if (power != Power::two && (!(larger < 0x1p1000) || (larger < 0x1p-900 && w != 0)))
    return far_mirror_weight(w, d, k);
  return weight_of_master<power>(mirror_master(y, d, k), k);
}

template <StepRule rule, Power power>
__device__ __forceinline__ double primal_step(double w, double d, const DoubleConstants& k) {
  const double kept = k.decays ? fma(-w, k.lost, w) : w;
  if constexpr (rule == StepRule::sign) return fma(-k.rate, d > 0.0 ? 1.0 : d < 0.0 ? -1.0 : d, kept);
  return fma(-k.rate, weight_of_master<power>(d * k.shrink, k), kept);
}

}  // namespace attmirror::cuda
