// The arithmetic of one step on a vector of floats, for kernels: from a weight or a master and its direction to
// the next.
//
// The error is measured in the mirror image: y* = keep |w|^{p-1} - c d is missed by at most 2 ulp of the larger of
// its two terms. The last operation of the difference is a fused multiply-add, which may cost 1 ulp of the larger
// term (the sum can have twice its size); half an ulp goes into rounding y, and what y's power misses, below 0.1, and
// the rest of c are added to y before that. c itself is a sum of two floats.
//
// For p > 2 the image of a float need not be one. A comparison per vector finds such lanes, and scaled_step()
// treats them.
#pragma once

#include "base/float_power_inline.hpp"
#include "mirror/scaled_step_inline.hpp"

namespace attmirror::ATTMIRROR_ISA {

using kernels::StepPower;

namespace {

// A number as a sum of two positive floats: where they multiply an infinity both products are infinite, of one sign,
// and no NaN comes of them.
struct FloatSum {
  float head, tail;
};
[[gnu::always_inline]] inline FloatSum float_sum(double x) {
  const auto nearest = static_cast<float>(x);
  if (!(nearest > 0x1p-100f)) return {nearest, 0};
  const float below = nearest >= x ? bit_cast<float>(bit_cast<std::int32_t>(nearest) - 1) : nearest;
  return {below, static_cast<float>(x - below)};
}

// factor = prescale c with c near 1 and prescale a power of two: 1/||d|| of tiny gradients is not a float, d/||d|| is.
// The prescale has the sign of the factor.
struct FloatFactor {
  float prescale;
  float nearest;  // c as one float
  FloatSum c;
};
[[gnu::always_inline]] inline FloatFactor float_factor(double factor) {
  const double size = factor < 0 ? -factor : factor;
  if (!(size > 0) || size == infinity) return {static_cast<float>(factor), 1, {1, 0x1p-60f}};  // 0 or NaN
  double power = 1;
  if (size <= 0x1p-60 || size >= 0x1p60)
    power = scale(1.0, max(-126.0, min(127.0, parts_from_one(size).exponent)));
  const double c = size / power;
  return {static_cast<float>(factor < 0 ? -power : power), static_cast<float>(c), float_sum(c)};
}

struct FloatStep {
  FloatFactor factor;
  FloatSum keep, keep_image;
  bool decays;
  bool leaves_range;           // whether images of floats may be no floats, p > 2
  FloatExponent map, inverse;  // inverse: of steepest steps, with their bias
  float unscale, momentum;
  bool nesterov;
  float root_scale;  // of steepest steps that are roots
  // For scaled_step.
  double whole_factor, whole_keep_image;
  kernels::Sum map_exponent, inverse_exponent;
};

[[gnu::always_inline]] inline Floats times(const FloatSum& a, Floats x) {
  return fused(spread(a.head), x, a.tail * x);
}

// Lanes that are out of range for floats, in doubles. `direction` is not yet multiplied by anything.
[[gnu::noinline]] Floats step_out_of_range(Floats w, Floats direction, Floats in_range, Words out,
                                           const FloatStep& step) {
  const auto side = [&](HalfDoubles weight, HalfDoubles d) {
    return __builtin_convertvector(scaled_step(weight, d * step.whole_factor, step.whole_keep_image,
                                               step.map_exponent, step.inverse_exponent),
                                   HalfFloats);
  };
  const auto low = side(lower_doubles(w), lower_doubles(direction));
  const auto high = side(upper_doubles(w), upper_doubles(direction));
  Floats both;
  __builtin_memcpy(&both, &low, sizeof low);
  __builtin_memcpy(reinterpret_cast<char*>(&both) + sizeof low, &high, sizeof high);
  return bit_cast<Ints>(out) != 0 ? both : in_range;
}

// How a power is raised: at once by products and roots, or in two halves (see PowerStart).
constexpr bool has_general_map(StepPower power) {
  return power == StepPower::general || power == StepPower::eleven_tenths;
}
constexpr bool has_general_inverse(StepPower power) { return power == StepPower::general; }

// The halves of |w|^{p-1} and |y|^{1/(p-1)} with the sign of w or y.
template <StepPower power, int count>
[[gnu::always_inline]] inline void start_images(const Floats (&w)[count], const FloatStep& step,
                                                PowerStart (&start)[count]) {
  if constexpr (has_general_map(power)) start_powers<false>(w, step.map, start);
}
template <StepPower power>
[[gnu::always_inline]] inline Floats finish_image(Floats w, [[maybe_unused]] const PowerStart& start) {
  const Floats a = magnitude(w);
  if constexpr (power == StepPower::two) return w;
  if constexpr (power == StepPower::three) return flip(a * a, sign_of(w));
  if constexpr (power == StepPower::three_halves) return flip(square_root(a), sign_of(w));
  return flip(finish_float(a, start), sign_of(w));
}
template <StepPower power, int count>
[[gnu::always_inline]] inline void start_weights(const Floats (&y)[count], const FloatStep& step,
                                                 PowerStart (&start)[count]) {
  if constexpr (has_general_inverse(power)) start_powers<false>(y, step.inverse, start);
}
template <StepPower power>
[[gnu::always_inline]] inline Floats finish_weight(Floats y, [[maybe_unused]] const PowerStart& start) {
  const Floats a = magnitude(y);
  if constexpr (power == StepPower::two) return y;
  if constexpr (power == StepPower::three) return flip(square_root(a), sign_of(y));
  if constexpr (power == StepPower::three_halves) return flip(a * a, sign_of(y));
  if constexpr (power == StepPower::eleven_tenths) return flip(tenth_power(a), sign_of(y));
  return flip(finish_float(a, start), sign_of(y));
}

// keep y - c d for a y that is a float. Where nothing decays one rounding is the sum's, and that of c remains.
[[gnu::always_inline]] inline Floats next_image(Floats y, Floats d, const FloatSum& keep,
                                                const FloatStep& step) {
  const FloatSum& c = step.factor.c;
  if (!step.decays) return minus_fused(spread(step.factor.nearest), d, y);
  const Floats small = minus_fused(spread(c.tail), d, keep.tail * y);
  return fused(spread(keep.head), y, minus_fused(spread(c.head), d, small));
}

// The mirror step of weights without a master: the image of w minus c d, with the sign that makes w positive.
template <StepPower power>
[[gnu::always_inline]] inline Floats step_image(Floats w, Floats direction,
                                                [[maybe_unused]] const PowerStart& start,
                                                const FloatStep& step) {
  const Floats a = magnitude(w);
  const Floats d = flip(direction, sign_of(w));
  const FloatSum& c = step.factor.c;
  const FloatSum& keep = step.keep_image;
  const Floats tail_of_step = c.tail * d;
  if constexpr (power == StepPower::three) {
    const Floats minus_step = minus_fused(spread(c.head), d, -tail_of_step);
    if (!step.decays) return fused(a, a, minus_step);
    const Floats y = a * a;
    const Floats rest = rough_fused(spread(keep.tail), y, keep.head * fused(a, a, -y));
    return fused(spread(keep.head), y, minus_fused(spread(c.head), d, rest - tail_of_step));
  } else {
    // y = head unit + (tail unit - the tail of the step); the first product is exact.
    Floats head, tail, unit;
    if constexpr (power == StepPower::three_halves) {
      head = square_root(a);
      tail = Floats{};
      unit = spread(1.0f);
    } else {
      const FloatPower image = finish_power(start);
      head = image.head;
      tail = image.tail;
      unit = scale_by_sixteenths(spread(1.0f), image.shifted);
    }
    Floats y;
    if (step.decays) {
      const Floats whole = head * unit;
      const Floats rest = rough_fused(spread(keep.tail), whole, keep.head * (tail * unit));
      y = fused(spread(keep.head), whole, rest - tail_of_step);
    } else if constexpr (power == StepPower::three_halves) {
      y = head - tail_of_step;
    } else {
      y = rough_fused(head, unit, rough_fused(tail, unit, -tail_of_step));
    }
    if constexpr (power != StepPower::three_halves) y = unless_special(a, y);
    return minus_fused(spread(c.head), d, y);
  }
}

// Of a result of that step, where the image may be no float: computed again. `d` is direction times the prescale.
template <StepPower power>
[[gnu::always_inline]] inline Floats checked_range(Floats next, Floats w, Floats y, Floats direction,
                                                   Floats d, const FloatStep& step) {
  if (power == StepPower::general && !step.leaves_range) return next;
  // The larger term of the difference, by the difference itself and the step: |y| <= |y - t| + |t|.
  const Floats size = larger(magnitude(step.factor.c.head * d), magnitude(y));
  constexpr float low = 0x1p-100f, high = 0x1p120f;
  if (__builtin_expect(any_outside(size, d, low, high), 0))
    return step_out_of_range(w, direction, next, outside(size, low, high), step);
  return next;
}

// The steepest step: c |d|^r with all constants inside the power, and the sign of d.
template <StepPower power, int count>
[[gnu::always_inline]] inline void start_lengths(const Floats (&direction)[count], const FloatStep& step,
                                                 PowerStart (&start)[count]) {
  if constexpr (has_general_inverse(power)) start_powers<true>(direction, step.inverse, start);
}
template <StepPower power>
[[gnu::always_inline]] inline Floats finish_length(Floats direction, Floats d,
                                                   [[maybe_unused]] const PowerStart& start,
                                                   const FloatStep& step) {
  const FloatSum& c = step.factor.c;
  if constexpr (power == StepPower::three) {
    const Floats a = magnitude(d);
    return step.root_scale * square_root(fused(spread(c.head), a, c.tail * a));
  } else if constexpr (power == StepPower::three_halves) {
    const Floats a = magnitude(d);
    const Floats root = c.head * a;
    const Floats rest = rough_fused(spread(c.tail), a, fused(spread(c.head), a, -root));
    const Floats square = root * root;
    return square < float_infinity ? fused(root, root, 2.0f * root * rest) : square;
  } else {
    return finish_float(magnitude(direction), start);
  }
}

template <StepPower power>
[[gnu::always_inline]] inline Floats steepest_step(Floats w, Floats direction, Floats d,
                                                   const PowerStart& start, const FloatStep& step) {
  if constexpr (power == StepPower::two) {
    return next_image(w, d, step.keep, step);
  } else {
    const Floats length = flip(finish_length<power>(direction, d, start, step), sign_of(d));
    if (!step.decays) return w - length;
    return fused(spread(step.keep.head), w, step.keep.tail * w - length);
  }
}

[[gnu::always_inline]] inline Floats sign_step(Floats w, Floats direction, const FloatStep& step) {
  const Floats length = flip(spread(step.factor.nearest * step.factor.prescale), sign_of(direction));
  const Floats t = direction == 0.0f ? Floats{} : direction == direction ? length : direction;
  if (!step.decays) return w - t;
  return fused(spread(step.keep.head), w, step.keep.tail * w - t);
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
