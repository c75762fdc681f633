// The mirror step on numbers whose images have no place among the floats or doubles, for kernels.
//
// At p = 10 the image of 10^6 is 10^54, and that of 10^-6 is 10^-54: outside the range of floats, with w inside. Here
// an image is m 2^n with the exponent apart, so nothing over- or underflows before the end. In doubles; slow, for the
// few numbers that need it. y = w^s = 2^{s log2 w}: s log2 w is the sum of s e, whose whole part becomes n, and of s
// log2 m.
#pragma once

#include "base/vector_math_inline.hpp"
#include "mirror/step_plan.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

// mantissa 2^exponent; zero has the mantissa 0.
template <class V>
struct Scaled {
  V mantissa, exponent;
};

template <class V>
[[gnu::always_inline]] inline Scaled<V> scaled_power(V x, V exponent, const kernels::Sum& s) {
  const Parts<V> parts = centred_parts(x);
  const V e = parts.exponent + exponent;
  const V log2_m = log(parts.mantissa) * log2_e;
  const Pair<V> product = two_product(e, broadcast<V>(s.value));
  const V rest = mul_add(e, broadcast<V>(s.rest), product.lo) + s.value * log2_m;
  const V n = (product.hi + rest + integer_shifter) - integer_shifter;
  const V h = (product.hi - n) + rest;
  const auto zero = x == 0.0;
  return {zero ? broadcast<V>(0.0) : exp(h * (ln2_hi + ln2_lo)), zero ? broadcast<V>(0.0) : n};
}

// x 2^n for n <= 0, and about 0 where n is below -1000.
template <class V>
[[gnu::always_inline]] inline V scale_down(V x, V n) {
  return x * scale(broadcast<V>(1.0), max(broadcast<V>(-1000.0), n));
}

// sign(z) |z|^r for z = keep sign(w) |w|^s - t.
template <class V>
[[gnu::always_inline]] inline V scaled_step(V w, V t, double keep, const kernels::Sum& s,
                                            const kernels::Sum& r) {
  const Scaled<V> image = scaled_power(abs(w), broadcast<V>(0.0), s);
  const V t_exponent = t == 0.0 ? image.exponent : centred_parts(abs(t)).exponent;
  const V common = w == 0.0 ? t_exponent : max(image.exponent, t_exponent);
  const V y = copy_sign(scale_down(image.mantissa, image.exponent - common), w) * keep;
  // t is not below 2^-1074, so half of the exponent at a time brings it near 1.
  const V half = (0.5 * common + integer_shifter) - integer_shifter;
  const V bounded_half = max(broadcast<V>(-700.0), min(broadcast<V>(1000.0), half));
  const V other_half = max(broadcast<V>(-700.0), min(broadcast<V>(1000.0), common - half));
  const V one = broadcast<V>(1.0);
  const V z = y - t * scale(one, -bounded_half) * scale(one, -other_half);
  const Scaled<V> power = scaled_power(abs(z), common, r);
  const V n = max(broadcast<V>(-1400.0), min(broadcast<V>(1400.0), power.exponent));
  const V result = copy_sign(power.mantissa == 0.0 ? broadcast<V>(0.0) : scale_any(power.mantissa, n), z);
  return ((abs(w) < infinity) & (abs(t) < infinity)) ? result : w - t;
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
