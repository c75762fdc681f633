// One number's step without rounding before the end, for the CPU and for CUDA: see StepArithmetic::exact.
//
//   direction(plan, g, m, state)             d and the new momentum
//   mirror_step(w, d, plan, shrink, format)  w', rounded once to the format
//   steepest_step, sign_step                 likewise; `w` may be a weight or a master
//   image(w, plan, state)                    the master of a weight
//   mirror_master_step, weight_of_master     the two halves of a mirror step with a master
//
// All numbers pass as doubles, which hold those of every format. What the plan and `shrink` (1/||d||_q, or 1) say in
// doubles is the definition: results are correctly rounded but for errors of 2^-98, and so within 1 ulp always. Two
// roundings remain, for what is stored is what counts: the momentum is rounded to its format before the step goes along
// it, and a weight is that of its master as stored.
//
// Infinities and NaN go the way of plain arithmetic: w - rate d.
#pragma once

#include "mirror/exact_power.hpp"

namespace attmirror::exact {

// Not std::isfinite, which is not a device function everywhere.
ATTMIRROR_HOST_DEVICE inline bool is_finite(double x) { return std::fabs(x) < HUGE_VAL; }

// What a step goes along.
struct Direction {
  Number value;         // if `finite`
  bool finite = true;   //
  double rough = 0;     // the same in doubles, infinite or NaN where it is not finite
  double momentum = 0;  // to be stored
};

ATTMIRROR_HOST_DEVICE inline bool is_zero(const Direction& d) { return d.finite && is_zero(d.value); }

ATTMIRROR_HOST_DEVICE inline Direction direction(double d) {
  Direction result;
  result.finite = is_finite(d);
  result.rough = d;
  if (result.finite) result.value = number(d);
  return result;
}

// d = g unscale, m <- momentum m + d, d <- m or, with Nesterov, d + momentum m.
ATTMIRROR_HOST_DEVICE inline Direction direction(const kernels::StepPlan& plan, double gradient,
                                                 double momentum, const Format& state) {
  if (!is_finite(gradient) || (plan.momentum > 0 && !is_finite(momentum))) {
    const double d = plan.unscale < 0 ? -gradient : gradient;
    Direction result = direction(plan.momentum > 0 ? plan.momentum * momentum + d : d);
    result.momentum = result.rough;
    return result;
  }
  Direction result;
  const Number d = number(gradient) * number(plan.unscale);
  if (plan.momentum == 0) {
    result.value = d;
    result.rough = rounded(d, double_format());
    return result;
  }
  result.momentum = rounded(number(plan.momentum) * number(momentum) + d, state);
  result.finite = is_finite(result.momentum);
  result.rough = result.momentum;
  if (!result.finite) return result;
  const Number m = number(result.momentum);
  result.value = plan.nesterov ? d + number(plan.momentum) * m : m;
  result.rough = rounded(result.value, double_format());
  return result;
}

// rate d shrink, of a finite direction.
ATTMIRROR_HOST_DEVICE inline Number along(const Number& d, const kernels::StepPlan& plan, double shrink) {
  return number(plan.rate) * number(shrink) * d;
}

// ---- the mirror rule ------------------------------------------------------------------------------------------------

ATTMIRROR_HOST_DEVICE inline double image(double w, const kernels::StepPlan& plan, const Format& state) {
  if (!is_finite(w)) return w;
  return rounded(signed_power(number(w), plan.map), state);
}

ATTMIRROR_HOST_DEVICE inline double weight_of_master(double y, const kernels::StepPlan& plan,
                                                     const Format& format) {
  if (!is_finite(y)) return y;
  return rounded(signed_power(number(y), plan.inverse), format);
}

// y* = keep_image y - rate d shrink.
ATTMIRROR_HOST_DEVICE inline Number next_image(const Number& y, const Number& d,
                                               const kernels::StepPlan& plan, double shrink) {
  return number(plan.keep_image) * y - along(d, plan, shrink);
}

ATTMIRROR_HOST_DEVICE inline double mirror_master_step(double y, const Direction& d,
                                                       const kernels::StepPlan& plan, double shrink,
                                                       const Format& state) {
  if (!is_finite(y) || !d.finite || !is_finite(shrink)) return y - plan.rate * d.rough * shrink;
  return rounded(next_image(number(y), d.value, plan, shrink), state);
}

// w' before it is rounded.
ATTMIRROR_HOST_DEVICE inline Number mirror_step(const Number& w, const Number& d,
                                                const kernels::StepPlan& plan, double shrink) {
  const Number y = signed_power(w, plan.map);
  const Number step = along(d, plan, shrink);
  // Where the step is nothing against y, the weight is only kept; so it stays w itself also for a p so large that the
  // exponents of y end.
  const bool kept =
      !is_zero(y) && plan.keep_image > 0 && (is_zero(step) || y.exponent - step.exponent > 4096);
  if (kept && plan.keep_image == 1) return w;
  if (kept) return w * signed_power(number(plan.keep_image), plan.inverse);
  return signed_power(next_image(y, d, plan, shrink), plan.inverse);
}

ATTMIRROR_HOST_DEVICE inline double mirror_step(double w, const Direction& d, const kernels::StepPlan& plan,
                                                double shrink, const Format& format) {
  if (!is_finite(w) || !d.finite || !is_finite(shrink)) return w - plan.rate * d.rough * shrink;
  return rounded(mirror_step(number(w), d.value, plan, shrink), format);
}

// ---- the steepest and the sign rule ---------------------------------------------------------------------------------

// rate sign(d) (|d| shrink)^{1/(p-1)}
ATTMIRROR_HOST_DEVICE inline Number steepest_part(const Number& d, const kernels::StepPlan& plan,
                                                  double shrink) {
  return number(plan.rate) * signed_power(number(shrink) * d, plan.inverse);
}

ATTMIRROR_HOST_DEVICE inline double steepest_step(double w, const Direction& d, const kernels::StepPlan& plan,
                                                  double shrink, const Format& format) {
  if (!is_finite(w) || !d.finite || !is_finite(shrink)) return w - plan.rate * d.rough * shrink;
  return rounded(number(plan.keep) * number(w) - steepest_part(d.value, plan, shrink), format);
}

// rate sign(d)
ATTMIRROR_HOST_DEVICE inline Number sign_part(const Number& d, const kernels::StepPlan& plan) {
  if (is_zero(d)) return Number{};
  return number(d.negative ? -plan.rate : plan.rate);
}

// The sign of an infinite d is known, that of NaN is NaN.
ATTMIRROR_HOST_DEVICE inline double sign_step(double w, const Direction& d, const kernels::StepPlan& plan,
                                              const Format& format) {
  if (!is_finite(w) || d.rough != d.rough) return w - plan.rate * d.rough;
  const Number step = d.finite ? sign_part(d.value, plan) : number(d.rough < 0 ? -plan.rate : plan.rate);
  return rounded(number(plan.keep) * number(w) - step, format);
}

}  // namespace attmirror::exact
