// The loops of StepArithmetic::exact: one number at a time, for all formats and all p.
#include "base/half_floats.hpp"
#include "mirror/exact_arithmetic.hpp"
#include "mirror/step_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace attmirror {

using exact::Direction;
using exact::Format;
using kernels::NormPart;
using kernels::StepPlan;

namespace {

template <class T>
constexpr Format format_of() {
  if constexpr (std::is_same_v<T, BFloat16>)
    return exact::bfloat16_format();
  else if constexpr (std::is_same_v<T, Half>)
    return exact::half_format();
  else if constexpr (std::is_same_v<T, float>)
    return exact::float_format();
  else
    return exact::double_format();
}

// T is the format of weights and gradients, State that of masters and momenta.
template <class T, class State>
struct ExactLoops {
  static constexpr Format format = format_of<T>(), state = format_of<State>();

  static Direction direction_at(const StepPlan& plan, const StepChunk& chunk, std::ptrdiff_t i) {
    const double gradient = widen(static_cast<const T*>(chunk.gradient)[i]);
    return exact::direction(plan, gradient,
                            chunk.momentum ? static_cast<const State*>(chunk.momentum)[i] : 0.0, state);
  }

  // The norm is a double in the end; a compensated sum (Neumaier 1974) makes it one that does not feel the number
  // of entries.
  static NormPart measure(const StepPlan& plan, const StepChunk& chunk) {
    NormPart part;
    for (std::ptrdiff_t i = 0; i < chunk.size; ++i) {
      const double magnitude = std::abs(direction_at(plan, chunk, i).rough);
      if (!std::isfinite(magnitude)) return {magnitude, 0};
      part.largest = std::max(part.largest, magnitude);
    }
    if (part.largest == 0) return part;
    double lost = 0;
    for (std::ptrdiff_t i = 0; i < chunk.size; ++i) {
      const double magnitude = std::abs(direction_at(plan, chunk, i).rough);
      const double term = std::pow(magnitude / part.largest, plan.dual.value);
      const double sum = part.sum + term;
      lost += part.sum >= term ? (part.sum - sum) + term : (term - sum) + part.sum;
      part.sum = sum;
    }
    part.sum += lost;
    return part;
  }

  template <StepRule rule>
  static void update(const StepPlan& plan, double shrink, const StepChunk& chunk) {
    T* weights = static_cast<T*>(chunk.weights);
    State* master = static_cast<State*>(chunk.master);
    for (std::ptrdiff_t i = 0; i < chunk.size; ++i) {
      const Direction d = direction_at(plan, chunk, i);
      if (chunk.momentum) static_cast<State*>(chunk.momentum)[i] = static_cast<State>(d.momentum);
      if (is_zero(d) && plan.keep == 1) continue;
      if constexpr (rule == StepRule::mirror) {
        if (master) {
          master[i] = static_cast<State>(exact::mirror_master_step(master[i], d, plan, shrink, state));
          weights[i] = narrow<T>(exact::weight_of_master(master[i], plan, format));
        } else {
          weights[i] = narrow<T>(exact::mirror_step(widen(weights[i]), d, plan, shrink, format));
        }
      } else {
        const double before = master ? master[i] : widen(weights[i]);
        const Format& target = master ? state : format;
        const double after = rule == StepRule::steepest
                                 ? exact::steepest_step(before, d, plan, shrink, target)
                                 : exact::sign_step(before, d, plan, target);
        if (master) master[i] = static_cast<State>(after);
        weights[i] = narrow<T>(after);
      }
    }
  }

  template <StepRule rule>
  static void fill_master(const StepPlan& plan, const StepChunk& chunk) {
    for (std::ptrdiff_t i = 0; i < chunk.size; ++i) {
      const double w = widen(static_cast<const T*>(chunk.weights)[i]);
      static_cast<State*>(chunk.master)[i] =
          static_cast<State>(rule == StepRule::mirror ? exact::image(w, plan, state) : w);
    }
  }

  template <StepRule rule>
  static constexpr StepKernels kernels{&measure, &update<rule>, &fill_master<rule>};

  static StepKernels choose(StepRule rule) {
    switch (rule) {
      case StepRule::mirror:
        return kernels<StepRule::mirror>;
      case StepRule::steepest:
        return kernels<StepRule::steepest>;
      case StepRule::sign:
        break;
    }
    return kernels<StepRule::sign>;
  }
};

}  // namespace

StepKernels exact_step_kernels(StepElement element, StepRule rule) {
  switch (element) {
    case StepElement::float32:
      return ExactLoops<float, float>::choose(rule);
    case StepElement::bfloat16:
      return ExactLoops<BFloat16, float>::choose(rule);
    case StepElement::float16:
      return ExactLoops<Half, float>::choose(rule);
    case StepElement::float64:
      break;
  }
  return ExactLoops<double, double>::choose(rule);
}

}  // namespace attmirror
