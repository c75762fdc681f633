// From the numbers of a step to the loops of the active instruction set.
#include "base/dispatch.hpp"
#include "mirror/step_kernels.hpp"
#include "mirror/step_loops.hpp"

#include <algorithm>
#include <cmath>

namespace attmirror {

using kernels::LoopRule;
using kernels::NormPart;
using kernels::StepArrays;
using kernels::StepFactors;
using kernels::StepLoopTable;
using kernels::StepPlan;
using kernels::StepPower;

namespace {

template <StepElement element>
const StepLoopTable& step_table() {
  if constexpr (element == StepElement::float64)
    return choose_kernels<isa_sse2::double_step_loop_table, isa_avx2::double_step_loop_table,
                          isa_avx512::double_step_loop_table>();
  constexpr int index = static_cast<int>(element);
  return choose_kernels<isa_sse2::step_loop_tables, isa_avx2::step_loop_tables,
                        isa_avx512::step_loop_tables>()[index];
}

StepArrays plain(const StepChunk& chunk) {
  return {chunk.weights, chunk.gradient, chunk.master, chunk.momentum, chunk.size};
}

template <StepElement element, StepRule rule>
StepFactors factors_of(const StepPlan& plan, double shrink, bool has_momentum) {
  // Momentum is of unscaled gradients; without it the scale, and the sign that maximizes, are part of the factor.
  const double direction = has_momentum ? shrink : shrink * plan.unscale;
  if constexpr (rule == StepRule::sign) return {std::copysign(plan.rate, direction), 0};
  if constexpr (rule == StepRule::mirror) return {plan.rate * direction, 0};
  if constexpr (element == StepElement::float64) return {direction, 0};
  // Steepest: rate (direction |d|)^r. A logarithm far below any float's stands for 0.
  const double log2_direction = std::log2(std::abs(direction));
  const double log2_step = std::max(
      -1e5, plan.inverse.value * log2_direction + plan.inverse.rest * log2_direction + std::log2(plan.rate));
  switch (plan.power) {
    case StepPower::two:
      return {plan.rate * direction, log2_step};
    case StepPower::three:
      return {plan.rate * plan.rate * direction, log2_step};
    case StepPower::three_halves:
      return {std::sqrt(plan.rate) * direction, log2_step};
    case StepPower::eleven_tenths:
    case StepPower::general:
    case StepPower::count:
      break;
  }
  return {std::copysign(1.0, direction), log2_step};
}

template <StepElement element, StepRule rule>
struct FastLoops {
  static void update(const StepPlan& plan, double shrink, const StepChunk& chunk) {
    const StepFactors factors = factors_of<element, rule>(plan, shrink, chunk.momentum != nullptr);
    loops(plan).update(plan, factors, plain(chunk));
  }
  static void fill_master(const StepPlan& plan, const StepChunk& chunk) {
    loops(plan).fill_master(plan, plain(chunk));
  }
  static const kernels::StepLoops& loops(const StepPlan& plan) {
    return step_table<element>().loops[static_cast<int>(rule)][static_cast<int>(plan.power)];
  }
};

template <StepElement element>
NormPart largest(const StepPlan& plan, const StepChunk& chunk) {
  return {step_table<element>().largest(plan, plain(chunk)), 0};
}

template <StepElement element>
NormPart measure(const StepPlan& plan, const StepChunk& chunk) {
  NormPart part = largest<element>(plan, chunk);
  if (part.largest > 0 && std::isfinite(part.largest))
    part.sum =
        step_table<element>().sum_of_powers[static_cast<int>(plan.power)](plan, part.largest, plain(chunk));
  return part;
}

template <StepElement element>
StepKernels kernels_of(StepRule rule, StepMeasure what) {
  const auto measure_kernel = what == StepMeasure::norm ? measure<element> : largest<element>;
  switch (rule) {
    case StepRule::mirror:
      return {measure_kernel, FastLoops<element, StepRule::mirror>::update,
              FastLoops<element, StepRule::mirror>::fill_master};
    case StepRule::steepest:
      return {measure_kernel, FastLoops<element, StepRule::steepest>::update,
              FastLoops<element, StepRule::steepest>::fill_master};
    case StepRule::sign:
      break;
  }
  return {measure_kernel, FastLoops<element, StepRule::sign>::update,
          FastLoops<element, StepRule::sign>::fill_master};
}

}  // namespace

bool has_fast_step(StepElement element, const StepPlan& plan) {
  if (element == StepElement::float64 || plan.power != StepPower::general) return true;
  // See base/float_power_inline.hpp. Of the exponent p - 1 the rounding errors are not mirrored by its inverse, so it
  // must be small, or short enough for its products to be exact.
  const double map = plan.map.value;
  const bool is_short = map * 64 == std::floor(map * 64);
  return plan.inverse.value <= 128 && map <= (is_short ? 128 : 16);
}

StepKernels fast_step_kernels(StepElement element, StepRule rule, StepMeasure what) {
  switch (element) {
    case StepElement::float32:
      return kernels_of<StepElement::float32>(rule, what);
    case StepElement::bfloat16:
      return kernels_of<StepElement::bfloat16>(rule, what);
    case StepElement::float16:
      return kernels_of<StepElement::float16>(rule, what);
    case StepElement::float64:
      break;
  }
  return kernels_of<StepElement::float64>(rule, what);
}

}  // namespace attmirror
