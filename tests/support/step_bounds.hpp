// Measures what one step of fused_step() did to one number against the bounds that the kernels promise. Needs only
// src/mirror/exact_arithmetic.hpp, so that it also compiles where there is no GoogleTest and no MPFR.
//
// How to call it (all numbers as doubles, which hold those of every format; `plan` from make_step_plan(options);
// `shrink` is 1, or 1/||d||_q in a normalised or steepest step; d is the gradient times plan.unscale, or the momentum
// as stored, or what Nesterov makes of both):
//
//   mirror_error(w, d, w_new, plan, shrink, element).image_ulps <= 2   without a master
//   master_error(y, d, y_new, plan, shrink, element).ulps_of_largest <= 2   the master of a mirror step
//   weight_error(y_new, w_new, plan, element).ulps                      ... and the weight that belongs to it
//   fill_error(w, y_new, plan, element).ulps                            a master as filled
//   steepest_error(w, d, w_new, plan, shrink, element).ulps_of_largest <= 2   also for masters: w, w_new are those
//   sign_error(w, d, w_new, plan, element).ulps_of_largest <= 2
//   rounding_error(master, w_new, element).ulps <= 0.5                  a 16-bit weight beside a steepest or sign
//                                                                       master
//
// Errors are infinite where the result is NaN and should not be (or the other way round), so comparisons with <= do.
//
// Why in the image? Where rate d nearly cancels y, or p is near 1, a rounding of y moves w' by many ulps, and no
// arithmetic in floats can help it. So the question for a mirror step is: is w_new, give or take 1 ulp of its own, the
// weight of some z close to the exact y* = keep_image y - rate d? The ulp that measures |z - y*| is that of
// max(|y|, |rate d|), in floats for weights of up to 32 bits, which have no exponent limit above, and 2^-149 at least.
#pragma once

#include "mirror/exact_arithmetic.hpp"
#include <attmirror/mirror/fused_step.hpp>

#include <cmath>
#include <limits>

namespace attmirror::test {

// The format of weights, and that in which steps are computed and masters and momenta stored.
inline exact::Format weight_format(StepElement element) {
  switch (element) {
    case StepElement::bfloat16:
      return exact::bfloat16_format();
    case StepElement::float16:
      return exact::half_format();
    case StepElement::float64:
      return exact::double_format();
    case StepElement::float32:
      break;
  }
  return exact::float_format();
}
inline exact::Format state_format(StepElement element) {
  return element == StepElement::float64 ? exact::double_format() : exact::float_format();
}

// The exponent of an ulp of |x| in a format without an upper limit.
inline std::int64_t ulp_exponent(const exact::Number& x, const exact::Format& format) {
  if (exact::is_zero(x) || x.exponent - format.digits + 1 < format.least) return format.least;
  return x.exponent - format.digits + 1;
}

inline double in_units(const exact::Number& x, std::int64_t exponent) {
  return exact::rounded(exact::magnitude(exact::scaled(x, -exponent)), exact::double_format());
}

// An infinite result is where rounding puts numbers from 2^{largest + 1} on.
inline exact::Number result_number(double x, const exact::Format& format) {
  if (!std::isinf(x)) return exact::number(x);
  const exact::Number beyond = exact::power_of_two(format.largest + 1);
  return x < 0 ? exact::negated(beyond) : beyond;
}

// |got - wanted| in ulps of the format at `wanted`.
inline double distance_in_ulps(double got, const exact::Number& wanted, const exact::Format& format) {
  if (std::isnan(got)) return std::numeric_limits<double>::infinity();
  if (std::isinf(exact::rounded(wanted, format)))
    return got == exact::rounded(wanted, format)
               ? 0
               : in_units(result_number(got, format) - result_number(exact::rounded(wanted, format), format),
                          format.largest - format.digits + 1);
  return in_units(result_number(got, format) - wanted, ulp_exponent(wanted, format));
}

inline double same_or_infinite(double got, double wanted) {
  return got == wanted || (std::isnan(got) && std::isnan(wanted)) ? 0
                                                                  : std::numeric_limits<double>::infinity();
}

struct MirrorError {
  double image_ulps = 0;     // how far y* is from the image of [w_new - ulp, w_new + ulp]: the bound
  double relative_ulps = 0;  // the same without the floor of 2^-149 (2^-1074): what is left of tiny images
  double expected = 0;       // w' correctly rounded
  double ulps = 0;           // |w_new - w'| in ulps of w', w' before it is rounded
};

inline MirrorError mirror_error(double w, double d, double w_new, const kernels::StepPlan& plan,
                                double shrink = 1, StepElement element = StepElement::float32) {
  using namespace exact;
  const Format format = weight_format(element), state = state_format(element);
  const Direction direction = exact::direction(d);
  MirrorError error;
  error.expected = mirror_step(w, direction, plan, shrink, format);
  if (!is_finite(w) || !is_finite(d) || !is_finite(shrink)) {
    error.image_ulps = error.relative_ulps = error.ulps = same_or_infinite(w_new, error.expected);
    return error;
  }
  error.ulps = distance_in_ulps(w_new, mirror_step(number(w), direction.value, plan, shrink), format);
  if (std::isnan(w_new)) {
    error.image_ulps = error.relative_ulps = error.ulps;
    return error;
  }
  const Number y = signed_power(number(w), plan.map);
  const Number target = next_image(y, direction.value, plan, shrink);
  // The images of w_new's neighbourhood, seen from the positive side.
  const bool flip = w_new < 0;
  const Number wanted = flip ? negated(target) : target;
  const Number result = magnitude(result_number(w_new, format));
  const Number ulp =
      power_of_two(std::isinf(w_new) ? format.largest - format.digits + 1 : ulp_exponent(result, format));
  const Number lower = signed_power(result - ulp, plan.map);
  const Number upper = signed_power(result + ulp, plan.map);
  Number distance;
  if (compare(wanted, lower) < 0)
    distance = lower - wanted;
  else if (compare(wanted, upper) > 0 && !std::isinf(w_new))
    distance = wanted - upper;
  const Number step = along(direction.value, plan, shrink);
  const Number largest = compare_magnitudes(y, step) < 0 ? step : y;
  error.image_ulps = in_units(distance, ulp_exponent(largest, state));
  if (!is_zero(distance))
    error.relative_ulps = is_zero(largest) ? std::numeric_limits<double>::infinity()
                                           : in_units(distance, largest.exponent - state.digits + 1);
  return error;
}

struct StateError {
  double ulps_of_largest = 0;  // |got - wanted| in ulps of the larger of the two terms
  double expected = 0;         // correctly rounded
};

// Of a sum of the terms a and b, computed in `state` and stored in `format`, where that is shorter with an ulp of
// it free.
inline StateError sum_error(double got, const exact::Number& wanted, const exact::Number& a,
                            const exact::Number& b, const exact::Format& format, const exact::Format& state) {
  using namespace exact;
  StateError error;
  error.expected = rounded(wanted, format);
  if (std::isnan(got)) {
    error.ulps_of_largest = std::numeric_limits<double>::infinity();
    return error;
  }
  if (got == error.expected) return error;
  Number distance = magnitude(result_number(got, format) - wanted);
  if (format.digits < state.digits) {
    distance = distance - power_of_two(ulp_exponent(result_number(got, format), format));
    if (distance.negative) return error;
  }
  const Number& largest = compare_magnitudes(a, b) < 0 ? b : a;
  error.ulps_of_largest = in_units(distance, ulp_exponent(largest, state));
  return error;
}

inline StateError master_error(double y, double d, double y_new, const kernels::StepPlan& plan,
                               double shrink = 1, StepElement element = StepElement::bfloat16) {
  using namespace exact;
  const Format state = state_format(element);
  const Direction direction = exact::direction(d);
  if (!is_finite(y) || !is_finite(d) || !is_finite(shrink)) {
    const double expected = mirror_master_step(y, direction, plan, shrink, state);
    return {same_or_infinite(y_new, expected), expected};
  }
  return sum_error(y_new, next_image(number(y), direction.value, plan, shrink), number(y),
                   along(direction.value, plan, shrink), state, state);
}

struct RoundingError {
  double ulps = 0;      // |got - wanted| in ulps of the format at the unrounded number
  double expected = 0;  // correctly rounded
};

inline RoundingError weight_error(double y, double w_new, const kernels::StepPlan& plan,
                                  StepElement element) {
  using namespace exact;
  const Format format = weight_format(element);
  const double expected = weight_of_master(y, plan, format);
  if (!is_finite(y)) return {same_or_infinite(w_new, expected), expected};
  return {distance_in_ulps(w_new, signed_power(number(y), plan.inverse), format), expected};
}

inline RoundingError fill_error(double w, double y_new, const kernels::StepPlan& plan, StepElement element) {
  using namespace exact;
  const Format state = state_format(element);
  const double expected = image(w, plan, state);
  if (!is_finite(w)) return {same_or_infinite(y_new, expected), expected};
  return {distance_in_ulps(y_new, signed_power(number(w), plan.map), state), expected};
}

inline RoundingError rounding_error(double master, double w_new, StepElement element) {
  using namespace exact;
  const Format format = weight_format(element);
  if (!is_finite(master)) return {same_or_infinite(w_new, master), master};
  return {distance_in_ulps(w_new, number(master), format), rounded(number(master), format)};
}

// Steepest and sign steps add to w itself. The error counts the power of the direction, too; weights of 16 bits, for
// which the step is computed in floats and then rounded, have an ulp of their own free.
inline StateError steepest_error(double w, double d, double w_new, const kernels::StepPlan& plan,
                                 double shrink = 1, StepElement element = StepElement::float32) {
  using namespace exact;
  const Format format = weight_format(element);
  const Direction direction = exact::direction(d);
  if (!is_finite(w) || !is_finite(d) || !is_finite(shrink)) {
    const double expected = steepest_step(w, direction, plan, shrink, format);
    return {same_or_infinite(w_new, expected), expected};
  }
  const Number kept = number(plan.keep) * number(w);
  const Number step = steepest_part(direction.value, plan, shrink);
  return sum_error(w_new, kept - step, number(w), step, format, state_format(element));
}

inline StateError sign_error(double w, double d, double w_new, const kernels::StepPlan& plan,
                             StepElement element = StepElement::float32) {
  using namespace exact;
  const Format format = weight_format(element);
  const Direction direction = exact::direction(d);
  if (!is_finite(w) || !is_finite(d)) {
    const double expected = sign_step(w, direction, plan, format);
    return {same_or_infinite(w_new, expected), expected};
  }
  const Number kept = number(plan.keep) * number(w);
  const Number step = sign_part(direction.value, plan);
  return sum_error(w_new, kept - step, number(w), step, format, state_format(element));
}

}  // namespace attmirror::test
