// Powers of floats on the GPU, as pairs where a float is not enough.
//
// The processor's own approximations (1/x, 1/sqrt x, log2, 2^x) are right to 22 or 23 bits and cost one instruction.
// Where a function has a cheap inverse - a root's is a product - one step of Newton's method with an exact remainder
// turns the approximation into a pair: what is missing is kept as a second number instead of being rounded off.
// General powers go through log2 and 2^x as polynomials.
//
// Arguments are finite and >= 0; results for infinities and NaN are infinite or NaN.
#pragma once

#include "mirror/cuda/approximations.cuh"
#include "mirror/step_plan.hpp"

namespace attmirror::cuda {

// hi + lo, |lo| about an ulp of hi or less.
struct FloatPair {
  float hi, lo;
};

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

// x^{1/10}: r = 2^(log2(x)/10), and what is missing, r (x/r^10 - 1)/10. Rounding r^2 costs r^10 five times as much,
// so that its error is taken back; those of r^4 and r^8 make 3e-8 of the rest, an eighth of an ulp of r.
__device__ __forceinline__ FloatPair tenth_root_pair(float x) {
  const Lifted lifted = lift_denormal<10>(x);
  const float root = fast_exp2(0.1f * fast_log2(lifted.x));
  const float r2 = root * root, error2 = fmaf(root, root, -r2);
  const float r4 = r2 * r2, r8 = r4 * r4;
  const float missing = fmaf(-5.0f * error2, r8, fmaf(-r8, r2, lifted.x));
  // missing / x, both made smaller first: the reciprocal of the largest floats would be denormal.
  const float rest = (0x1p-20f * missing) * (0.1f * root * fast_reciprocal(0x1p-20f * lifted.x));
  return {root * lifted.back, x == 0.0f ? 0.0f : rest * lifted.back};
}

// (hi + lo)^2, sqrt(hi + lo) and (hi + lo)^10, rounded once or twice at the end.
__device__ __forceinline__ float square(FloatPair x) {
  // Beyond the largest float the error is not a number any more.
  return fmaf(x.hi, x.hi, x.hi < 0x1p70f ? 2.0f * x.hi * x.lo : 0.0f);
}

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

// Adding this to a number rounds it to a whole one, which then stands in the low bits of the sum. (The conversions
// between floats and integers are four times slower than sums.)
inline constexpr float whole_shifter = 0x1.8p23f;

// x = m 2^k with m in [sqrt(1/2), sqrt 2), for finite x > 0, denormals included; k as a float.
struct Parts {
  float m, k;
};
__device__ __forceinline__ Parts parts_of(float x) {
  const bool small = x < 0x1p-126f;
  const int bits = __float_as_int(small ? x * 0x1p24f : x);
  const int k = (bits - 0x3f3504f3) >> 23;
  // k + shifter stands in the low bits of a float.
  return {__int_as_float(bits - (k << 23)), __int_as_float(__float_as_int(whole_shifter) + k) -
                                                (small ? whole_shifter + 24.0f : whole_shifter)};
}

// log2 m for such an m is (2/log 2) atanh t = K (t + t^3/3 + ...), t = (m - 1)/(m + 1). All terms but the first:
// minimax on t^2 <= 0.0295, error 2^-31.9 (scripts/fit_polynomials.py).
inline constexpr float K = 0x1.715476p+1f, K_lo = 0x1.4ae0c0p-25f;
__device__ __forceinline__ float log2_bend(float t) {
  const float t2 = t * t;
  return fmaf(fmaf(0x1.baa518p-2f, t2, 0x1.2744c0p-1f), t2, 0x1.ec70e6p-1f) * (t * t2);
}

// (2^x - 1 - c0 x)/x^2, minimax on |x| <= 1/2, error 2^-28.2 (scripts/fit_polynomials.py); c0 = log 2.
inline constexpr float c0 = 0x1.62e430p-1f;
__device__ __forceinline__ float exp2_bend(float x) {
  float q = fmaf(0x1.416f24p-13f, x, 0x1.5f0826p-10f);
  q = fmaf(q, x, 0x1.3b2df6p-7f);
  q = fmaf(q, x, 0x1.c6af82p-5f);
  return fmaf(q, x, 0x1.ebfbdcp-3f);
}

// mantissa 2^exponent, mantissa in (0.7, 1.42).
struct ScaledPair {
  FloatPair mantissa;
  int exponent;
};
__device__ __forceinline__ ScaledPair one_plus(float q, float shifted_exponent) {
  const float hi = 1.0f + q;
  return {{hi, q - (hi - 1.0f)}, __float_as_int(shifted_exponent) - __float_as_int(whole_shifter)};
}

// x^r, x = m 2^k, for an exponent r = r.hi + r.lo, |r log2 x| < 2^22, with an error of 2^-25 in log2 x. This is
// enough where r <= 1, and also for |y|^{1/(p-1)}: its errors in log2 |y| are those of a y with half an ulp of error.
//
// With n = round(r log2 x), 2^(r log2 x - n) remains, whose exponent must be right to 2^-26; r times k has up to 32
// bits. `more` is added to log2 x.
__device__ __forceinline__ ScaledPair power_of(const Parts& parts, FloatPair r, float more = 0.0f) {
  const float z = parts.m - 1.0f, sum = 2.0f + z;
  const float inverse = fast_reciprocal(sum);
  const float t = z * inverse;
  const float t_lo = inverse * fmaf(-t, sum, z);
  const float f = fmaf(K, t, fmaf(K, t_lo, log2_bend(t) + more));
  const float whole = r.hi * parts.k;
  const float shifted = fmaf(r.hi, f, whole) + whole_shifter;
  const float difference = whole - (shifted - whole_shifter);  // exact
  const float low = fmaf(r.lo, parts.k, fmaf(r.hi, parts.k, -whole));
  const float e = fmaf(r.hi, f, difference) + low;
  return one_plus(fmaf(c0, e, exp2_bend(e) * (e * e)), shifted);
}

// The same with an error of 2^-31 in log2 x, for r > 1. The first term of the logarithm is kept as a pair: the
// quotient t with its remainder, the product with K with its error; and so is the exponent that remains.
__device__ __forceinline__ ScaledPair precise_power_of(const Parts& parts, FloatPair r) {
  const float z = parts.m - 1.0f;
  const float sum = 2.0f + z, sum_lo = z - (sum - 2.0f);
  const float inverse = fast_reciprocal(sum);
  const float t = z * inverse;
  const float t_lo = inverse * fmaf(-t, sum_lo, fmaf(-t, sum, z));
  const float first = K * t;
  const float rest = fmaf(K, t, -first) + fmaf(K_lo, t, fmaf(K, t_lo, log2_bend(t)));
  const float f = first + rest, f_lo = rest - (f - first);

  const float whole = r.hi * parts.k, whole_lo = fmaf(r.hi, parts.k, -whole);
  const float part = r.hi * f, part_lo = fmaf(r.hi, f, -part);
  const float shifted = (whole + part) + whole_shifter;
  const float difference = whole - (shifted - whole_shifter);  // exact
  const float sum_e = difference + part, back = sum_e - difference;
  const float low = ((difference - (sum_e - back)) + (part - back)) +
                    fmaf(r.lo, parts.k, fmaf(r.hi, f_lo, fmaf(r.lo, f, whole_lo + part_lo)));
  const float e = sum_e + low, e_lo = low - (e - sum_e);
  // d(2^e) = c0 2^e de, near enough c0 (1 + c0 e) de.
  return one_plus(fmaf(c0, e, fmaf(exp2_bend(e) * e, e, e_lo * fmaf(c0 * c0, e, c0))), shifted);
}

// 2^n, -126 <= n <= 127.
__device__ __forceinline__ float power_of_two(int n) { return __int_as_float((n + 127) << 23); }

// 2^n as two factors, for n from -252 to 252 and the nearest of these otherwise: x first second is x 2^n, rounded
// once, as long as x second is normal.
struct TwoFactors {
  float first, second;
};
__device__ __forceinline__ TwoFactors two_factors(int n) {
  const int bounded = min(max(n, -252), 252), half = bounded >> 1;
  return {power_of_two(half), power_of_two(bounded - half)};
}
__device__ __forceinline__ float scale(float x, int n) {
  const TwoFactors factors = two_factors(n);
  return x * factors.first * factors.second;
}

// x with the sign of s, x >= 0; and x with its sign changed where s is negative.
__device__ __forceinline__ float times_sign(float x, float s) {
  return __int_as_float(__float_as_int(x) ^ (__float_as_int(s) & 0x80000000));
}

}  // namespace attmirror::cuda
