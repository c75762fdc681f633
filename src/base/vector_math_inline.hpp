// exp, log, log1p, powers and cube root of vectors of doubles, for kernels.
//
// Training by mirror descent spends its time here: exp in the softmax, |y|^(1/(p-1)) in the inverse mirror
// map. Each function is a reduction of its argument to a small interval, one polynomial there, and exact
// scaling. There are no tables and, for ordinary arguments, no branches; a lane's result depends on that
// lane's argument only and has the same bits at every vector width. All polynomials are minimax fits (Remez
// in 400-bit arithmetic, rounded to doubles; scripts/fit_polynomials.py). Bounds are in units in the last
// place of the result; tests/base/vector_math_test.cpp holds them there against MPFR.
#pragma once

#include "base/float_parts.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

// log 2 in two parts. The first has 42 bits, so its product with an exponent (11 bits) is exact.
inline constexpr double ln2_hi = 0x1.62e42fefa3800p-1;
inline constexpr double ln2_lo = 0x1.ef35793c76730p-45;
inline constexpr double log2_e = 0x1.71547652b82fep+0;

// c0 + c1 x
template <class V>
[[gnu::always_inline]] inline V line(V x, double c0, double c1) {
  return mul_add(x, broadcast<V>(c1), broadcast<V>(c0));
}

// Q(r) of e^r = 1 + r + r^2 Q(r), |r| <= log(2)/2; of degree 9: 2^-57.9 relative to e^r.
template <class V>
[[gnu::always_inline]] inline V exp_series(V r, V r2) {
  const V r4 = r2 * r2;
  const V q01 = line(r, 0x1.000000000000ap-1, 0x1.55555555554ffp-3);
  const V q23 = line(r, 0x1.55555555506b8p-5, 0x1.11111111260c7p-7);
  const V q45 = line(r, 0x1.6c16c1848f489p-10, 0x1.a01a01359ea67p-13);
  const V q67 = line(r, 0x1.a01998f302221p-16, 0x1.71df0785eba51p-19);
  const V q89 = line(r, 0x1.28ae7d312ea16p-22, 0x1.adb5c86a13b45p-26);
  const V low = mul_add(q23, r2, q01);
  const V high = mul_add(mul_add(q89, r2, q67), r2, q45);
  return mul_add(high, r4, low);
}

// e^(x + x_lo) for a pair with |x_lo| far below ulp(x).
//
// With n = round(x / log 2) and r = x + x_lo - n log 2 it is 2^n e^r, |r| <= log(2)/2. The first step of the
// reduction is exact; the rounding error of the second is kept as r_lo. 1 + r is summed exactly, so only the
// final addition rounds noticeably: 0.5 ulp, plus 0.06 for the polynomial and 0.05 for the rounding of r^2 Q < 0.07.
template <class V>
[[gnu::always_inline]] inline V exp_of_pair(V x, V x_lo) {
  // Beyond these arguments the result is 0 or infinite already. A NaN stays (see min and max).
  const V bounded = min(broadcast<V>(710.5), max(broadcast<V>(-746.0), x));
  x_lo = bounded == x ? x_lo : broadcast<V>(0.0);
  x = bounded;
  const V n = mul_add(x, broadcast<V>(log2_e), broadcast<V>(integer_shifter)) - integer_shifter;
  const V r_hi = negative_mul_add(n, broadcast<V>(ln2_hi), x);
  const V correction = negative_mul_add(n, broadcast<V>(ln2_lo), x_lo);
  const Pair<V> r = fast_two_sum(r_hi, correction);

  const V r2 = r.hi * r.hi;
  const V q = exp_series(r.hi, r2);

  const Pair<V> one_plus_r = fast_two_sum(broadcast<V>(1.0), r.hi);
  const V rest = mul_add(r2, q, mul_add(r.lo, one_plus_r.hi, one_plus_r.lo));
  return scale_any(one_plus_r.hi + rest, n);
}

// e^x: 0.7 ulp, denormal results 0.85 (they are rounded twice). Exactly 1 at 0, exactly 0 at -inf, inf from
// 709.79, NaN at NaN.
template <class V>
[[gnu::always_inline]] inline V exp(V x) {
  return exp_of_pair(x, broadcast<V>(0.0));
}

// e^x for x <= 700 in two thirds of the time: 1.6 ulp. Below -708 it is e^-708, not yet 0: for terms of a sum whose
// largest is of order one. NaN at NaN.
template <class V>
[[gnu::always_inline]] inline V exp_of_term(V x) {
  x = max(broadcast<V>(-708.0), x);
  const V n = mul_add(x, broadcast<V>(log2_e), broadcast<V>(integer_shifter)) - integer_shifter;
  const V r = negative_mul_add(n, broadcast<V>(ln2_lo), negative_mul_add(n, broadcast<V>(ln2_hi), x));
  const V r2 = r * r;
  return scale(1.0 + mul_add(r2, exp_series(r, r2), r), n);
}

// The polynomial of the logarithms: with s = f/(2 + f), log(1 + f) = 2 atanh(s) = 2s + s R(s^2), and s^2 < 0.0295 for
// 1 + f in [sqrt(1/2), sqrt(2)). R without its constant term, which is 0; of degree 7: 2^-59.5 relative.
template <class V>
[[gnu::always_inline]] inline V log_series(V s) {
  const V z = s * s;
  const V z2 = z * z;
  const V r12 = line(z, 0x1.5555555555593p-1, 0x1.999999997fb32p-2);
  const V r34 = line(z, 0x1.249249421799cp-2, 0x1.c71c51e7fb9ddp-3);
  const V r56 = line(z, 0x1.7466462bdf1cdp-3, 0x1.39a0f50fc8e73p-3);
  const V tail = mul_add(z2, broadcast<V>(0x1.2f0d8e3c97bf7p-3), r56);
  return z * mul_add(mul_add(tail, z2, r34), z2, r12);
}

// k log 2 + log(1 + f) + small, where `small` is below an ulp of 1. 2s = f - s f = f - f^2/2 + s f^2/2 puts
// the exact f in front. Of the result's ulp, the last sum but one and the last cost 0.5 together where the
// result is below 1/2 (then the last is exact) and 0.75 elsewhere; the roundings of f^2/2 and of what is
// subtracted from it add at most 0.25 and 0.12 in these cases, the polynomial less than 0.1.
template <class V>
[[gnu::always_inline]] inline V log_of_parts(V k, V f, V s, V small) {
  const V half_square = 0.5 * f * f;
  const V inner = mul_add(k, broadcast<V>(ln2_lo), small);
  const V curved = mul_add(s, half_square + log_series(s), inner);
  return mul_add(k, broadcast<V>(ln2_hi), f - (half_square - curved));
}

// Natural logarithm: 0.95 ulp. -inf at 0, NaN below, exactly 0 at 1, inf at inf.
template <class V>
[[gnu::always_inline]] inline V log(V x) {
  const Parts<V> parts = centred_parts(x);
  const V f = parts.mantissa - 1.0;
  return log_of_parts(parts.exponent, f, f / (f + 2.0), broadcast<V>(0.0));
}

// log(1 + x) for x >= 0: 0.95 ulp. The rounding error c of 1 + x comes back as c/(1 + x), to first order exact.
template <class V>
[[gnu::always_inline]] inline V log1p(V x) {
  const Pair<V> sum = two_sum(broadcast<V>(1.0), x);
  const Parts<V> parts = centred_parts(sum.hi);
  const V f = parts.mantissa - 1.0;
  const V s = f / (f + 2.0);
  // 1/m = (1 - s)/(1 + s) to 1%, and the error it multiplies is at most half an ulp. From 2^60 on the error
  // of the sum does not matter.
  const V reciprocal = mul_add(s, mul_add(s, broadcast<V>(2.0), broadcast<V>(-2.0)), broadcast<V>(1.0));
  const auto large = sum.hi >= 0x1p60;
  const V error = large ? broadcast<V>(0.0) : sum.lo;
  const V power = large ? broadcast<V>(0.0) : -parts.exponent;
  return log_of_parts(parts.exponent, f, s, error * scale(reciprocal, power));
}

// log x as a pair, for finite x > 0: relative error about 2^-65. (0 and inf have -inf and inf for a high
// part.)
//
// With t = 2f/(2 + f), log(1 + f) = t + t^3 (1/12 + t^2 Q(t^2)), Q of degree 7. The correctly rounded t gets
// its remainder as a second part; t^3/12, which is at most 1% of t, is computed as a pair, Q plainly.
//
// It is two functions, so that a loop over many numbers can do the first for all of them before the second: a processor
// looks ahead by about a hundred instructions, and the whole logarithm is longer than that.
template <class V>
struct LogStart {
  V f, reciprocal;  // 1/(2 + f)
  V exponent;
};

template <class V>
[[gnu::always_inline]] inline LogStart<V> start_log(V x) {
  const Parts<V> parts = centred_parts(x);
  const V f = parts.mantissa - 1.0;
  return {f, 1.0 / (f + 2.0), parts.exponent};
}

template <class V>
[[gnu::always_inline]] inline Pair<V> finish_log(const LogStart<V>& start) {
  const V f = start.f, reciprocal = start.reciprocal;
  const Pair<V> denominator = fast_two_sum(broadcast<V>(2.0), f);
  const V two_f = f + f;
  const V t = two_f * reciprocal;
  const V t_lo = reciprocal * negative_mul_add(t, denominator.lo, residual(t, denominator.hi, two_f));

  const Pair<V> z = two_product(t, t);
  const V z2 = z.hi * z.hi;
  const V q01 = line(z.hi, 0x1.9999999999996p-7, 0x1.2492492493049p-9);
  const V q23 = line(z.hi, 0x1.c71c71c57dfe4p-12, 0x1.745d18337b5c1p-14);
  const V q45 = line(z.hi, 0x1.3b136266ef32ap-16, 0x1.1120c186f2d8bp-18);
  const V q67 = line(z.hi, 0x1.de318d6827a31p-21, 0x1.eb20dce937c19p-23);
  const V q = mul_add(mul_add(q67, z2, q45), z2 * z2, mul_add(q23, z2, q01));

  // cubic = t^3, factor = 1/12 + z Q.
  Pair<V> factor = fast_two_sum(broadcast<V>(0x1.5555555555555p-4), z.hi * q);
  factor.lo = factor.lo + 0x1.5555555555555p-58;
  Pair<V> cubic = two_product(t, z.hi);
  cubic.lo = mul_add(t, z.lo, mul_add(3.0 * t_lo, z.hi, cubic.lo));
  Pair<V> bend = two_product(cubic.hi, factor.hi);
  bend.lo = mul_add(cubic.hi, factor.lo, mul_add(cubic.lo, factor.hi, bend.lo));

  const Pair<V> log_mantissa = fast_two_sum(t, bend.hi);
  const Pair<V> sum = fast_two_sum(start.exponent * ln2_hi, log_mantissa.hi);
  const V low = log_mantissa.lo + (t_lo + bend.lo);
  return {sum.hi, mul_add(start.exponent, broadcast<V>(ln2_lo), sum.lo + low)};
}

template <class V>
[[gnu::always_inline]] inline Pair<V> log_pair(V x) {
  return finish_log(start_log(x));
}

// |x|^r: 0.75 ulp for |r| <= 100, 1 ulp for every finite r, denormal results 0.1 more. As in C, |x|^0 = 1 for
// all x; 0^r is 0 for r > 0 and inf for r < 0; inf^r the other way round.
//
// e^(r log|x|), where the exponent, up to 745, must be right to 2^-56: hence the logarithm as a pair. The
// time goes into the pairs; the division is a tenth of it.
template <class V>
[[gnu::always_inline]] inline V pow_abs(V x, V r) {
  const Pair<V> logarithm = log_pair(abs(x));
  // From |r| = 2^64 on, the result is 0, 1 or inf; two_product cannot split much larger numbers on SSE2.
  if constexpr (!has_fma) r = max(broadcast<V>(-0x1p64), min(broadcast<V>(0x1p64), r));
  const Pair<V> product = two_product(logarithm.hi, r);
  const V power = exp_of_pair(product.hi, mul_add(logarithm.lo, r, product.lo));
  return r == 0.0 ? broadcast<V>(1.0) : power;
}
template <class V>
requires(lanes<V> > 1) [[gnu::always_inline]] inline V pow_abs(V x, double r) {
  return pow_abs(x, broadcast<V>(r));
}

// Cube root with the sign of x: 0.501 ulp.
//
// With |x| = m 2^(3q + j), j in {-1, 0, 1}: cbrt|x| = 2^q cbrt(a), a = m 2^j. A cubic gives r = 1/cbrt(a) to
// 2^-11.9; with e = 1 - a r^3, the step r (1 + e/3 + 2e^2/9) has error 14/81 e^3, 2^-33; one Newton step for
// y = a r^2, with a - y^3 in full, leaves the rounding of the last addition. No division.
template <class V>
[[gnu::always_inline]] inline V cbrt(V x) {
  const V magnitude = abs(x);
  const Parts<V> parts = parts_from_one(magnitude);
  const V q =
      mul_add(parts.exponent, broadcast<V>(1.0 / 3.0), broadcast<V>(integer_shifter)) - integer_shifter;
  const V j = negative_mul_add(q, broadcast<V>(3.0), parts.exponent);
  const V a = scale(parts.mantissa, j);

  const V m = parts.mantissa;
  const V cubic = mul_add(line(m, 0x1.4561f0114b5abp-2, -0x1.9914e49152868p-5), m * m,
                          line(m, 0x1.8ab916498c84fp+0, -0x1.9eb301f4be9f6p-1));
  // The parabola through 2^(1/3), 1, 2^(-1/3) at j = -1, 0, 1.
  const V guess =
      cubic * mul_add(mul_add(j, broadcast<V>(0x1.b744985853540p-6), broadcast<V>(-0x1.dd68e9bbaedb2p-3)), j,
                      broadcast<V>(1.0));
  const V e = negative_mul_add(a * guess, guess * guess, broadcast<V>(1.0));
  const V r = mul_add(guess * e, line(e, 1.0 / 3.0, 2.0 / 9.0), guess);

  const V r2 = r * r;
  const V y = a * r2;
  const Pair<V> square = two_product(y, y);
  const V defect = negative_mul_add(square.lo, y, residual(square.hi, y, a));
  const V root = scale(mul_add(defect, r2 * (1.0 / 3.0), y), q);
  const auto ordinary = (magnitude > 0.0) & (magnitude < infinity);
  return ordinary ? copy_sign(root, x) : x;
}

// x^n by squaring: relative error at most (n - 1) 2^-53 as long as the result is normal. Cheaper than pow_abs
// for the whole exponents that p = 1.1 (10 and 11), 1.25, 1.5, 2, 3, 4 bring. x^0 = 1.
template <class V>
[[gnu::always_inline]] inline V integer_power(V x, unsigned n) {
  V power = broadcast<V>(1.0), square = x;
  for (;; square = square * square) {
    if ((n & 1u) != 0) power = power * square;
    n >>= 1;
    if (n == 0) return power;
  }
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
