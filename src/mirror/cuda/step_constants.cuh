// What one number's step needs to know, worked out once per tensor from the step's plan: the rate with all that
// multiplies gradients in it, in a range that floats have, and which way of raising to powers. Host and device both
// compute this: the host for all tensors alike, the device where norms or scales are known to it only.
#pragma once

#include "mirror/cuda/float_powers.cuh"
#include "mirror/step_plan.hpp"
#include <attmirror/mirror/fused_step.hpp>

#include <cmath>
#include <type_traits>

namespace attmirror::cuda {

// The ways to raise to p - 1 and 1/(p - 1). Above p = 2 the first general power has an exponent > 1 and must
// be precise.
enum class Power { two, three, three_halves, eleven_tenths, below_two, above_two };

// Calls f with the power as a compile-time constant.
template <class F>
void with_power(const kernels::StepPlan& plan, F&& f) {
  using kernels::StepPower;
  switch (plan.power) {
    case StepPower::two:
      return f(std::integral_constant<Power, Power::two>());
    case StepPower::three:
      return f(std::integral_constant<Power, Power::three>());
    case StepPower::three_halves:
      return f(std::integral_constant<Power, Power::three_halves>());
    case StepPower::eleven_tenths:
      return f(std::integral_constant<Power, Power::eleven_tenths>());
    case StepPower::general:
    case StepPower::count:
      break;
  }
  if (plan.map.value <= 1)
    f(std::integral_constant<Power, Power::below_two>());
  else
    f(std::integral_constant<Power, Power::above_two>());
}

// What a plan has from its rate.
struct RateNumbers {
  double rate, keep, keep_image;
};
__host__ __device__ inline RateNumbers rate_numbers(const kernels::StepPlan& plan, double rate) {
  const double decay = rate * plan.weight_decay;
  return {rate, 1 - decay, decay == 0 ? 1 : exp(log1p(-decay) * plan.map.value)};
}
__host__ __device__ inline kernels::StepPlan with_rate(kernels::StepPlan plan, const RateNumbers& numbers) {
  plan.rate = numbers.rate;
  plan.keep = numbers.keep;
  plan.keep_image = numbers.keep_image;
  return plan;
}

// What an element's step uses, in registers. The rate has the tensor's norm and the gradients' scale in it.
struct FloatConstants {
  // A power of 2 that brings d and the rate into range: the rate has been divided by it. Negative where steps go up
  // the gradient.
  float lift;
  FloatPair rate;
  int rate_exponent;       // floor(log2 rate), less the bias of a float's exponent
  FloatPair map, inverse;  // p - 1 and 1/(p - 1)
  float lost, lost_image;  // 1 - keep and 1 - keep_image: more digits than keep itself has
  FloatPair shrink;        // of the steepest rule; divided by lift, too
  bool decays;             // lost != 0
};
struct DoubleConstants {
  double rate;
  kernels::Sum map, inverse;
  double lost, lost_image, shrink;
  bool decays;
};

__host__ __device__ inline FloatPair to_pair(double x) {
  const float hi = static_cast<float>(x);
  return {hi, static_cast<float>(x - hi)};
}

// floor(log2 x) of a double > 0; far below that of any float for 0.
__host__ __device__ inline int exponent_of(double x) {
  int exponent = 0;
  frexp(x, &exponent);
  return x > 0 ? exponent - 1 : -1000;
}

// `shrink` is 1/||d||_q and, without momentum, what unscales gradients: both go into the rate (of steepest
// directions, into the norm). Negative, it turns d round.
__host__ __device__ inline FloatConstants float_constants(const kernels::StepPlan& plan, StepRule rule,
                                                          double signed_shrink) {
  const double shrink = fabs(signed_shrink);
  const bool is_mirror = rule == StepRule::mirror;
  const double rate = is_mirror ? plan.rate * shrink : plan.rate;
  // Norms of 1e-40 or scales of 1e30 put the rate, though not its product with d, out of the range of floats. A
  // small one is brought to between 2^-60 and 1: so the digits that a lowered d loses are below the smallest float
  // in the product.
  const double factor = is_mirror ? rate : shrink;
  const bool large = factor > 0x1p60, small = factor < 0x1p-60, tiny = factor < 0x1p-120;
  const float lift = large ? 0x1p64f : tiny ? 0x1p-120f : small ? 0x1p-60f : 1.0f;
  const double lower = large ? 0x1p-64 : tiny ? 0x1p120 : small ? 0x1p60 : 1.0;
  return {signed_shrink < 0 ? -lift : lift,
          to_pair(is_mirror ? rate * lower : rate),
          exponent_of(is_mirror ? rate * lower : rate) - 127,
          to_pair(plan.map.value),
          to_pair(plan.inverse.value),
          static_cast<float>(1 - plan.keep),
          static_cast<float>(1 - plan.keep_image),
          to_pair(shrink * lower),
          plan.keep != 1};
}
__host__ __device__ inline DoubleConstants double_constants(const kernels::StepPlan& plan, StepRule rule,
                                                            double shrink) {
  // The other rules have the sign in the shrink or, without a length, in the rate.
  const double sign = rule == StepRule::sign && shrink < 0 ? -1 : 1;
  return {rule == StepRule::mirror ? plan.rate * shrink : sign * plan.rate,
          plan.map,
          plan.inverse,
          1 - plan.keep,
          1 - plan.keep_image,
          shrink,
          plan.keep != 1};
}

}  // namespace attmirror::cuda
