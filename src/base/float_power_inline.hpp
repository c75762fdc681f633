// Powers of vectors of floats, |x|^s for 0 < s <= 128: 0.53 ulp, for kernels.
//
// x = 2^e m, and log2 m = t + log2(1 + f) by a table of 32 entries: t is a short number, f is small and exact. Then
//
//   s log2 x = n + h,   h = (s (e + t) - n) + s log2(1 + f),   n the nearest multiple of 1/16
//   x^s      = 2^floor(n) 2^(n mod 1) 2^h
//
// where 2^(n mod 1) comes from a table of 16 and 2^h from a cubic. What decides the accuracy: each term of h is
// rounded when it is already below 1/16, so no rounding counts more than 2^-29; and s is applied to the coefficients
// of the series, in double, before they become floats. So h needs no second float, and powers like x^9 are as good as
// roots. AVX-512 has the tables in registers.
//
// A power is left as a sum (head + tail) 2^n, so that what a caller adds to it is not rounded twice.
#pragma once

#include "base/float_power_tables.hpp"
#include "base/float_simd.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

// Adding this to |x| < 2^18 rounds x to a multiple of 1/16, which then stands in the low bits of the sum.
inline constexpr float sixteenth_shifter = 0x1.8p19f;

// x^s 2^bias, for s = value + rest. The short series of the logarithm costs s 0.09 ulp of the result: it is for s <=
// 1, and for powers whose error counts as that of x, which is 0.09 ulp for every s.
enum class LogSeries { full, brief };

struct FloatExponent {
  float head, tail;              // s
  float shifter;                 // with the bias to the nearest sixteenth
  float bias_rest;               // and what is left of it
  float series_tail, series[4];  // s log2(1 + f) / f; the tail belongs to series[0]
  LogSeries length;
};

[[gnu::always_inline]] inline FloatExponent float_exponent(double value, double rest, double bias,
                                                           LogSeries length) {
  FloatExponent s;
  s.head = static_cast<float>(value);
  s.tail = static_cast<float>((value - s.head) + rest);
  s.shifter = static_cast<float>(double{sixteenth_shifter} + bias);
  s.bias_rest = static_cast<float>(bias - (double{s.shifter} - double{sixteenth_shifter}));
  s.length = length;
  const double* series = length == LogSeries::brief ? log2_short_series : log2_series;
  for (int i = 0; i < 3; ++i) s.series[i] = static_cast<float>(series[i] * value);
  s.series[3] = length == LogSeries::brief ? 0 : static_cast<float>(series[3] * value);
  s.series_tail = static_cast<float>(series[0] * value - s.series[0] + series[0] * rest);
  return s;
}

// x = m 2^e with m in [1, 2), for finite x > 0, denormal or not.
struct FloatParts {
  Floats mantissa, exponent;
};
[[gnu::always_inline]] inline FloatParts float_parts(Floats x) {
#if defined(ATTMIRROR_ISA_avx512)
  return {Floats(_mm512_maskz_getmant_ps(0xffff, x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero)),
          Floats(_mm512_maskz_getexp_ps(0xffff, x))};
#else
  const auto tiny = x < 0x1p-126f;
  const Words bits = bit_cast<Words>(tiny ? x * 0x1p32f : x);
  const Floats exponent = __builtin_convertvector(bit_cast<Ints>(bits >> 23), Floats);
  return {bit_cast<Floats>((bits & 0x7fffffu) | 0x3f800000u),
          exponent - (tiny ? spread(127.0f + 32.0f) : spread(127.0f))};
#endif
}

// x 2^floor(shifted - sixteenth_shifter), rounded once where it is denormal.
[[gnu::always_inline]] inline Floats scale_by_sixteenths(Floats x, Floats shifted) {
#if defined(ATTMIRROR_ISA_avx512)
  return Floats(_mm512_maskz_scalef_ps(0xffff, x, shifted - sixteenth_shifter));
#else
  // By half of the exponent at a time; the first product is exact.
  const std::int32_t origin = bit_cast<std::int32_t>(sixteenth_shifter);
  Ints n = (bit_cast<Ints>(shifted) - origin) >> 4;
  n = n > 250 ? Ints{} + 250 : n;
  n = n < -250 ? Ints{} - 250 : n;
  const Ints half = n >> 1;
  const auto power = [](Ints k) { return bit_cast<Floats>((k + 127) << 23); };
  return x * power(half) * power(n - half);
#endif
}

// A power on its way: s log2 |x| = n + h, with n in the low bits of `shifted`.
struct PowerStart {
  Floats h, shifted;
};

// Of several x at once, finite and not 0 (anything for others). In one power nearly every instruction waits for the one
// before; so each is done for all x before the next. `biased` says whether the exponent has a bias.
template <bool biased, int count>
[[gnu::always_inline]] inline void start_powers(const Floats (&x)[count], const FloatExponent& s,
                                                PowerStart (&start)[count]) {
  Floats f[count], whole[count], rest[count];
  for (int k = 0; k < count; ++k) {
    const FloatParts parts = float_parts(magnitude(x[k]));
    f[k] = parts.mantissa;
    whole[k] = parts.exponent;
  }
  for (int k = 0; k < count; ++k) {
    const Words row = bit_cast<Words>(f[k]) >> 18;
    f[k] = fused(f[k], look_up(log2_inverse, row), spread(-1.0f));
    whole[k] = whole[k] + look_up(log2_offset, row);  // exact
  }
  for (int k = 0; k < count; ++k)
    start[k].shifted = rough_fused(f[k], spread(static_cast<float>(log2_series[0])), whole[k]);
  for (int k = 0; k < count; ++k)
    start[k].shifted =
        rough_fused(spread(s.head), start[k].shifted, spread(biased ? s.shifter : sixteenth_shifter));
  for (int k = 0; k < count; ++k) {
    rest[k] = spread(s.series[2]);
    if (s.length == LogSeries::full) rest[k] = rough_fused(f[k], spread(s.series[3]), rest[k]);
  }
  for (int k = 0; k < count; ++k) start[k].h = start[k].shifted - (biased ? s.shifter : sixteenth_shifter);
  for (int k = 0; k < count; ++k) rest[k] = rough_fused(f[k], rest[k], spread(s.series[1]));
  for (int k = 0; k < count; ++k) start[k].h = fused(spread(s.head), whole[k], -start[k].h);
  for (int k = 0; k < count; ++k) rest[k] = rough_fused(f[k], rest[k], spread(s.series_tail));
  for (int k = 0; k < count; ++k) {
    if constexpr (biased) start[k].h = start[k].h + s.bias_rest;
    start[k].h = rough_fused(spread(s.tail), whole[k], start[k].h);
  }
  for (int k = 0; k < count; ++k) start[k].h = fused(f[k], spread(s.series[0]), start[k].h);
  for (int k = 0; k < count; ++k) start[k].h = rough_fused(f[k], rest[k], start[k].h);
}

// (head + tail) 2^floor(shifted - sixteenth_shifter)
struct FloatPower {
  Floats head, tail, shifted;
};
[[gnu::always_inline]] inline FloatPower finish_power(const PowerStart& start) {
  const Words sixteenths = bit_cast<Words>(start.shifted);
  const Floats head = look_up(exp2_table, sixteenths);
  Floats slope = rough_fused(start.h, spread(exp2_series[2]), spread(exp2_series[1]));
  slope = rough_fused(start.h, slope, spread(exp2_series[0]));
  return {head, rough_fused(head, start.h * slope, look_up(exp2_rest, sixteenths)), start.shifted};
}

// x^s 2^bias for the x >= 0 that was started with; x itself where it is 0, infinite or NaN.
[[gnu::always_inline]] inline Floats finish_float(Floats x, const PowerStart& start) {
  const FloatPower power = finish_power(start);
  return unless_special(x, scale_by_sixteenths(power.head + power.tail, power.shifted));
}

// x^10 for x >= 0: 0.51 ulp where x^10 is normal. Each square takes the rounding error of the one before along.
[[gnu::always_inline]] inline Floats tenth_power(Floats x) {
  const Floats x2 = x * x;
  const Floats x2_rest = fused(x, x, -x2);
  const Floats x4 = x2 * x2;
  const Floats x4_rest = rough_fused(x2 + x2, x2_rest, fused(x2, x2, -x4));
  const Floats x8 = x4 * x4;
  const Floats x8_rest = rough_fused(x4 + x4, x4_rest, fused(x4, x4, -x8));
  const Floats small = rough_fused(x8, x2_rest, x8_rest * x2);
  // Where the product overflows, what the rests make of it may be of any sign.
  const Floats product = x8 * x2;
  return product < float_infinity ? fused(x8, x2, small) : product;
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
