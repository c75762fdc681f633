// Powers of floats on the GPU, as pairs where a float is not enough.
//
// The processor's own approximations (1/x, 1/sqrt x, log2, 2^x) are right to 22 or 23 bits and cost one instruction. Where
// a function has a cheap inverse - a root's is a product - one step of Newton's method with an exact remainder turns the
// approximation into a pair: what is missing is kept as a second number instead of being rounded off. General powers go
// through log2 and 2^x as polynomials.
//
// Arguments are finite and >= 0; results for infinities and NaN are infinite or NaN.
#pragma once

#include "mirror/step_plan.hpp"

namespace attmirror::cuda {

using kernels::StepPower;

// hi + lo, |lo| about an ulp of hi or less.
struct FloatPair {
  float hi, lo;
};

__device__ __forceinline__ float fast_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float fast_rsqrt(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float fast_log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The approximations read denormals as 0. x times 2^60 is normal; `back` undoes it after the root of the given order.
struct Lifted {
  float x, back;
};
template <int order>
__device__ __forceinline__ Lifted lift_denormal(float x) {
  const bool small = x < 0x1p-100f;
  constexpr float factor = 0x1p60f, back = order == 2 ? 0x1p-30f : 0x1p-6f;
  return {small ? x * factor : x, small ? back : 1.0f};
}

// sqrt x: s = x rsqrt(x), and what is missing, (x - s^2)/(2 s).
__device__ __forceinline__ FloatPair sqrt_pair(float x) {
  const Lifted lifted = lift_denormal<2>(x);
  const float inverse = fast_rsqrt(lifted.x);
  const float root = lifted.x * inverse;
  const float rest = 0.5f * inverse * fmaf(-root, root, lifted.x);
  if (x == 0.0f) return {0.0f, 0.0f};
  return {root * lifted.back, rest * lifted.back};
}

// x^{1/10}: r = 2^(log2(x)/10), and what is missing, r (x/r^10 - 1)/10. Rounding r^2 costs r^10 five times as much, so that
// its error is taken back; those of r^4 and r^8 make 3e-8 of the rest, an eighth of an ulp of r.
__device__ __forceinline__ FloatPair tenth_root_pair(float x) {
  const Lifted lifted = lift_denormal<10>(x);
  const float root = fast_exp2(0.1f * fast_log2(lifted.x));
  const float r2 = root * root, error2 = fmaf(root, root, -r2);
  const float r4 = r2 * r2, r8 = r4 * r4;
  const float missing = fmaf(-5.0f * error2, r8, fmaf(-r8, r2, lifted.x));
  // missing / x, both made smaller first: the reciprocal of the largest floats would be denormal.
  const float rest = (0x1p-20f * missing) * (0.1f * root * fast_reciprocal(0x1p-20f * lifted.x));
  if (x == 0.0f) return {0.0f, 0.0f};
  return {root * lifted.back, rest * lifted.back};
}

// (hi + lo)^2, sqrt(hi + lo) and (hi + lo)^10, rounded once or twice at the end.
__device__ __forceinline__ float square(FloatPair x) { return fmaf(x.hi, x.hi, 2.0f * x.hi * x.lo); }

__device__ __forceinline__ float square_root(FloatPair x) {
  const FloatPair root = sqrt_pair(x.hi);
  // x.lo/(2 root); where the root is that small, the rest below it is smaller than any float.
  const float rest = root.hi > 0x1p-60f ? 0.5f * x.lo * fast_reciprocal(root.hi) : 0.0f;
  return root.hi + (root.lo + rest);
}

__device__ __forceinline__ float tenth_power(FloatPair x) {
  const float x2 = x.hi * x.hi, e2 = fmaf(2.0f * x.hi, x.lo, fmaf(x.hi, x.hi, -x2));
  const float x4 = x2 * x2, e4 = fmaf(2.0f * x2, e2, fmaf(x2, x2, -x4));
  const float x8 = x4 * x4, e8 = fmaf(2.0f * x4, e4, fmaf(x4, x4, -x8));
  const float power = fmaf(x8, x2, fmaf(x8, e2, x2 * e8));
  // Beyond the largest float the errors are not numbers any more.
  return x.hi < 7131.0f ? power : x8 * x2;
}

// log2 x = exponent + hi + lo for finite x > 0; |hi + lo| <= 1/2, right to about 2^-31.
//
// With x = m 2^k, m in [sqrt(1/2), sqrt 2) and t = (m - 1)/(m + 1), log2 m = (2/log 2) atanh t = K (t + t^3/3 + ...). The
// first term is kept as a pair: the quotient with its remainder, the product with K with its error.
struct Logarithm {
  float exponent, hi, lo;
};
__device__ __forceinline__ Logarithm log2_pair(float x) {
  const bool small = x < 0x1p-126f;
  const int bits = __float_as_int(small ? x * 0x1p24f : x);
  const int k = (bits - 0x3f3504f3) >> 23;
  const float m = __int_as_float(bits - (k << 23));
  const float z = m - 1.0f;
  const float sum = 2.0f + z, sum_lo = z - (sum - 2.0f);
  const float inverse = fast_reciprocal(sum);
  const float t = z * inverse;
  const float t_lo = inverse * fmaf(-t, sum_lo, fmaf(-t, sum, z));
  const float t2 = t * t;
  // Minimax on t^2 <= 0.0295, scripts/fit_polynomials.py.
  const float bend = fmaf(fmaf(0x1.baa518p-2f, t2, 0x1.2744c0p-1f), t2, 0x1.ec70e6p-1f) * (t * t2);
  constexpr float K = 0x1.715476p+1f, K_lo = 0x1.4ae0c0p-25f;
  const float first = K * t;
  const float rest = fmaf(K, t, -first) + fmaf(K_lo, t, fmaf(K, t_lo, bend));
  const float hi = first + rest;
  return {static_cast<float>(small ? k - 24 : k), hi, rest - (hi - first)};
}

// (mantissa) 2^exponent, mantissa in (0.7, 1.42).
struct ScaledPair {
  FloatPair mantissa;
  float exponent;
};

// 2^(r log2 x) for an exponent r = r.hi + r.lo.
//
// n = round(r log2 x); what remains is summed from the largest down, each rounding kept: r times the exponent is a number
// of up to 32 bits, and its part behind the point must be right to 2^-26.
__device__ __forceinline__ ScaledPair power_of(const Logarithm& log, FloatPair r) {
  const float whole = r.hi * log.exponent, whole_lo = fmaf(r.hi, log.exponent, -whole);
  const float part = r.hi * log.hi, part_lo = fmaf(r.hi, log.hi, -part);
  const float n = rintf(whole + part);
  const float difference = whole - n;  // exact
  const float sum = difference + part;
  const float back = sum - difference;
  const float sum_lo = (difference - (sum - back)) + (part - back);
  const float low = fmaf(r.lo, log.exponent, fmaf(r.hi, log.lo, fmaf(r.lo, log.hi, whole_lo + part_lo)));
  const float x = sum + (sum_lo + low);
  // 2^x = 1 + x P(x), minimax on |x| <= 1/2, scripts/fit_polynomials.py.
  float q = fmaf(0x1.471498p-13f, x, 0x1.5f769cp-10f);
  q = fmaf(q, x, 0x1.3b26fep-7f);
  q = fmaf(q, x, 0x1.c6ae6ap-5f);
  q = fmaf(q, x, 0x1.ebfbe2p-3f);
  q = fmaf(q, x, 0x1.62e432p-1f) * x;
  const float hi = 1.0f + q;
  return {{hi, q - (hi - 1.0f)}, n};
}

// x 2^n for whole n, over- and underflowing as floats do. Two factors, since 2^n alone may be out of range.
__device__ __forceinline__ float scale(float x, float n) {
  const int whole = static_cast<int>(fminf(fmaxf(n, -252.0f), 252.0f));
  const int half = whole >> 1;
  return x * __int_as_float((half + 127) << 23) * __int_as_float((whole - half + 127) << 23);
}

}  // namespace attmirror::cuda
