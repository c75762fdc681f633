// The step in one arithmetic for all formats and all p, one number at a time: see StepArithmetic::exact.
#include "base/half_floats.hpp"
#include "mirror/step_kernels.hpp"

#include <cmath>
#include <type_traits>

namespace attmirror {

using kernels::NormPart;
using kernels::StepPlan;

namespace {

double widen(double x) { return x; }
double widen(float x) { return x; }
double widen(BFloat16 x) { return to_float(x); }
double widen(Half x) { return to_float(x); }

template <class T>
T narrow(long double x) {
  if constexpr (std::is_same_v<T, BFloat16>)
    return to_bfloat16(static_cast<float>(x));
  else if constexpr (std::is_same_v<T, Half>)
    return to_half(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

long double signed_power(long double x, const kernels::Sum& r) {
  return std::copysign(std::pow(std::abs(x), static_cast<long double>(r.value) + r.rest), x);
}

// What the step goes along, and the momentum after it.
struct Direction {
  double value, momentum;
};
Direction direction(const StepPlan& plan, double gradient, double momentum) {
  const double d = gradient * plan.unscale;
  if (plan.momentum == 0) return {d, 0};
  const double m = plan.momentum * momentum + d;
  return {plan.nesterov ? d + plan.momentum * m : m, m};
}

// T is the format of weights and gradients, State that of masters and momenta.
template <class T, class State>
struct Loops {
  static Direction direction_at(const StepPlan& plan, const StepChunk& chunk, std::ptrdiff_t i) {
    const double gradient = widen(static_cast<const T*>(chunk.gradient)[i]);
    return direction(plan, gradient, chunk.momentum ? static_cast<const State*>(chunk.momentum)[i] : 0.0);
  }

  static NormPart measure(const StepPlan& plan, const StepChunk& chunk) {
    NormPart part;
    for (std::ptrdiff_t i = 0; i < chunk.size; ++i) {
      const double magnitude = std::abs(direction_at(plan, chunk, i).value);
      if (!std::isfinite(magnitude)) return {magnitude, 0};
      part.largest = std::max(part.largest, magnitude);
    }
    if (part.largest == 0) return part;
    for (std::ptrdiff_t i = 0; i < chunk.size; ++i)
      part.sum += std::pow(std::abs(direction_at(plan, chunk, i).value) / part.largest, plan.dual.value);
    return part;
  }

  template <StepRule rule>
  static void update(const StepPlan& plan, double shrink, const StepChunk& chunk) {
    T* weights = static_cast<T*>(chunk.weights);
    State* master = static_cast<State*>(chunk.master);
    for (std::ptrdiff_t i = 0; i < chunk.size; ++i) {
      const Direction d = direction_at(plan, chunk, i);
      if (chunk.momentum) static_cast<State*>(chunk.momentum)[i] = static_cast<State>(d.momentum);
      if (d.value == 0 && plan.keep == 1) continue;
      const long double along = static_cast<long double>(d.value) * shrink;
      if constexpr (rule == StepRule::mirror) {
        const long double image = master ? master[i] : signed_power(widen(weights[i]), plan.map);
        const long double next = plan.keep_image * image - plan.rate * along;
        if (master) master[i] = static_cast<State>(next);
        weights[i] = narrow<T>(signed_power(master ? master[i] : next, plan.inverse));
      } else {
        const long double step = rule == StepRule::steepest
                                     ? signed_power(along, plan.inverse)
                                     : static_cast<long double>((along > 0) - (along < 0));
        const long double next = plan.keep * (master ? master[i] : widen(weights[i])) - plan.rate * step;
        if (master) master[i] = static_cast<State>(next);
        weights[i] = narrow<T>(next);
      }
    }
  }

  template <StepRule rule>
  static void fill_master(const StepPlan& plan, const StepChunk& chunk) {
    for (std::ptrdiff_t i = 0; i < chunk.size; ++i) {
      const double w = widen(static_cast<const T*>(chunk.weights)[i]);
      static_cast<State*>(chunk.master)[i] = static_cast<State>(
          rule == StepRule::mirror ? signed_power(w, plan.map) : static_cast<long double>(w));
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

StepKernels exact_step_kernels(Element element, StepRule rule) {
  switch (element) {
    case Element::float32:
      return Loops<float, float>::choose(rule);
    case Element::bfloat16:
      return Loops<BFloat16, float>::choose(rule);
    case Element::float16:
      return Loops<Half, float>::choose(rule);
    case Element::float64:
      break;
  }
  return Loops<double, double>::choose(rule);
}

}  // namespace attmirror
