// Taking doubles apart and keeping what rounding loses: the two tools under the vector math.
//
// 1. Every positive double is x = m 2^k. A function with a law for products (log x = k log 2 + log m,
//    cbrt x = cbrt m 2^(k/3), ...) needs its polynomial for one octave of m only. AVX-512 has instructions
//    for m, k and m 2^k; elsewhere they are a few integer operations on the bits.
// 2. A pair (hi, lo) with |lo| <= ulp(hi)/2 holds 106 bits. The error of one sum or product is itself a
// double, so
//    a pair costs only a handful of operations. Fused multiply-add gives the error of a product at once; SSE2
//    splits the factors into halves whose products are exact (Veltkamp 1968, Dekker 1971).
#pragma once

#include "base/simd.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

inline constexpr double infinity = __builtin_inf();
inline constexpr double smallest_normal = 0x1p-1022;

// Adding this to |x| < 2^51 rounds x to an integer, which then stands in the low bits of the sum.
inline constexpr double integer_shifter = 0x1.8p52;
inline constexpr int mantissa_bits = 52;
inline constexpr std::int64_t mantissa_mask = (std::int64_t{1} << mantissa_bits) - 1;

template <class V>
struct Pair {
  V hi, lo;
};

// a + b exactly, if |a| >= |b| or a = 0.
template <class V>
[[gnu::always_inline]] inline Pair<V> fast_two_sum(V a, V b) {
  const V sum = a + b;
  return {sum, b - (sum - a)};
}

// a + b exactly.
template <class V>
[[gnu::always_inline]] inline Pair<V> two_sum(V a, V b) {
  const V sum = a + b;
  const V b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// The upper 26 and the lower 26 bits of a (the sign of the lower half holds the 53rd).
template <class V>
[[gnu::always_inline]] inline Pair<V> halves(V a) {
  const V spread = a * 0x1.0000002p27;
  const V upper = spread - (spread - a);
  return {upper, a - upper};
}

// a * b exactly, as long as the error does not underflow (|ab| > 2^-968) and, on SSE2, |a|, |b| < 2^996.
template <class V>
[[gnu::always_inline]] inline Pair<V> two_product(V a, V b) {
  const V product = a * b;
  if constexpr (has_fma) {
    return {product, mul_add(a, b, -product)};
  } else {
    const Pair<V> x = halves(a), y = halves(b);
    return {product, ((x.hi * y.hi - product) + x.hi * y.lo + x.lo * y.hi) + x.lo * y.lo};
  }
}

// c - a*b where a*b is close to c: nothing of the product is lost before the difference.
template <class V>
[[gnu::always_inline]] inline V residual(V a, V b, V c) {
  if constexpr (has_fma) {
    return negative_mul_add(a, b, c);
  } else {
    const Pair<V> product = two_product(a, b);
    return (c - product.hi) - product.lo;
  }
}

// x * 2^n for integer n; x and the result must be normal. (AVX-512 has no such condition, see scale_any. Its
// 512-bit intrinsics are taken with a full mask: without one, GCC 12 warns about a variable of its own
// header.)
#if defined(ATTMIRROR_ISA_avx512)
[[gnu::always_inline]] inline double scale(double x, double n) {
  return _mm_cvtsd_f64(_mm_scalef_sd(_mm_set_sd(x), _mm_set_sd(n)));
}
[[gnu::always_inline]] inline F64x2 scale(F64x2 x, F64x2 n) { return F64x2(_mm_scalef_pd(x, n)); }
[[gnu::always_inline]] inline F64x4 scale(F64x4 x, F64x4 n) { return F64x4(_mm256_scalef_pd(x, n)); }
[[gnu::always_inline]] inline F64x8 scale(F64x8 x, F64x8 n) {
  return F64x8(_mm512_maskz_scalef_pd(0xff, x, n));
}
#else
template <class V>
[[gnu::always_inline]] inline V scale(V x, V n) {
  const auto shifted = bit_cast<UInt<V> >(n + integer_shifter) << mantissa_bits;
  return bit_cast<V>(bit_cast<UInt<V> >(x) + shifted);
}
#endif

// x * 2^n for x in (1/2, 2) and integer |n| < 1500, rounded once when the result is denormal, infinite when
// it is too large. (NaN if either is.)
template <class V>
[[gnu::always_inline]] inline V scale_any(V x, V n) {
#if defined(ATTMIRROR_ISA_avx512)
  return scale(x, n);
#else
  if (__builtin_expect(all(abs(n) <= 1021.0), 1)) return scale(x, n);
  // Half of n at a time: the first product is exact.
  const V one = broadcast<V>(1.0);
  const V half = (n * 0.5 + integer_shifter) - integer_shifter;
  return x * scale(one, half) * scale(one, n - half);
#endif
}

// x = mantissa * 2^exponent with lower <= mantissa < 2 lower, for finite x > 0, denormal or not. The other
// values give parts with which the usual formulas come out right by themselves: 0 is 1 * 2^-inf, inf is 1 *
// 2^inf, and NaN or x < 0 have a NaN for a mantissa.
template <class V>
struct Parts {
  V mantissa, exponent;
};

#if defined(ATTMIRROR_ISA_avx512)

// Immediate operand of vgetmantpd: mantissas in [1, 2), NaN for negative numbers.
inline constexpr _MM_MANTISSA_NORM_ENUM octave_from_one = _MM_MANT_NORM_1_2;
inline constexpr _MM_MANTISSA_SIGN_ENUM negative_is_nan = _MM_MANT_SIGN_nan;

[[gnu::always_inline]] inline Parts<double> parts_from_one(double x) {
  const __m128d v = _mm_set_sd(x);
  return {_mm_cvtsd_f64(_mm_getmant_sd(v, v, octave_from_one, negative_is_nan)),
          _mm_cvtsd_f64(_mm_getexp_sd(v, v))};
}
[[gnu::always_inline]] inline Parts<F64x2> parts_from_one(F64x2 x) {
  return {F64x2(_mm_getmant_pd(x, octave_from_one, negative_is_nan)), F64x2(_mm_getexp_pd(x))};
}
[[gnu::always_inline]] inline Parts<F64x4> parts_from_one(F64x4 x) {
  return {F64x4(_mm256_getmant_pd(x, octave_from_one, negative_is_nan)), F64x4(_mm256_getexp_pd(x))};
}
[[gnu::always_inline]] inline Parts<F64x8> parts_from_one(F64x8 x) {
  return {F64x8(_mm512_maskz_getmant_pd(0xff, x, octave_from_one, negative_is_nan)),
          F64x8(_mm512_maskz_getexp_pd(0xff, x))};
}

#else

// The octave that starts at `lower` in (1/2, 1]: adding bits(1) - bits(lower) to the bits of x makes the step
// of the exponent field fall on multiples of `lower`.
template <class V>
[[gnu::always_inline]] inline Parts<V> parts_from(V x, double lower) {
  const std::uint64_t one_bits = bit_cast<std::uint64_t>(1.0), lower_bits = bit_cast<std::uint64_t>(lower);
  V missing = broadcast<V>(0.0);  // exponent taken from denormals to make them normal
  V value = x;
  const bool rare = !all((x >= smallest_normal) & (x < infinity));
  if (__builtin_expect(rare, 0)) {
    missing = x < smallest_normal ? broadcast<V>(54.0) : missing;
    value = x < smallest_normal ? x * 0x1p54 : x;
  }
  const UInt<V> moved = bit_cast<UInt<V> >(value) + (one_bits - lower_bits);
  V mantissa = bit_cast<V>((moved & mantissa_mask) + lower_bits);
  V exponent = bit_cast<V>((moved >> mantissa_bits) | bit_cast<std::uint64_t>(0x1p52)) - (0x1p52 + 1023);
  if (__builtin_expect(rare, 0)) {
    const V one = broadcast<V>(1.0), nan = broadcast<V>(__builtin_nan(""));
    exponent = exponent - missing;
    exponent = x == 0.0 ? broadcast<V>(-infinity) : exponent;
    exponent = x == infinity ? x : exponent;
    mantissa = ((x == 0.0) | (x == infinity)) ? one : mantissa;
    mantissa = x >= 0.0 ? mantissa : nan;
  }
  return {mantissa, exponent};
}

template <class V>
[[gnu::always_inline]] inline Parts<V> parts_from_one(V x) {
  return parts_from(x, 1.0);
}

#endif

// Parts with a mantissa in [sqrt(1/2), sqrt(2)), where the logarithm is smallest.
template <class V>
[[gnu::always_inline]] inline Parts<V> centred_parts(V x) {
#if defined(ATTMIRROR_ISA_avx512)
  const Parts<V> parts = parts_from_one(x);
  const auto upper = parts.mantissa >= 0x1.6a09e667f3bcdp+0;
  return {upper ? parts.mantissa * 0.5 : parts.mantissa, upper ? parts.exponent + 1.0 : parts.exponent};
#else
  return parts_from(x, 0x1.6a09e667f3bcdp-1);
#endif
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
