// Pairs (w, d) on which a step is hard: what the tests of the kernels, on the CPU and on GPUs, run through. Seeded: the
// same in each run. Needs neither GoogleTest nor MPFR.
//
//   const StepPlan plan = make_step_plan(options);
//   for (const StepCase& c : step_cases(plan, StepElement::float32)) ... c.w, c.d, c.kind
//
// Of the plan, the exponents and the rate (which must not be 0) are used: d is what the rate multiplies.
//
// w and d are numbers of the element's format, as doubles. The kinds are shuffled, so that a vector's lanes hold an
// ordinary number next to one that needs care.
#pragma once

#include "support/step_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace attmirror::test {

struct StepCase {
  double w = 0, d = 0;
  const char* kind = "";
};

struct StepCaseOptions {
  int per_kind = 300;  // of each of about ten kinds
  std::uint64_t seed = 1;
};

class StepCaseMaker {
 public:
  StepCaseMaker(const kernels::StepPlan& plan, StepElement element, const StepCaseOptions& options)
      : plan_(plan), format_(weight_format(element)), count_(options.per_kind), engine_(options.seed) {}

  std::vector<StepCase> make() {
    const int n = count_;
    const double least = format_.least, largest = format_.largest + 1;
    const double normal = least + format_.digits;
    for (int i = 0; i < n; ++i) add("ordinary", 0.02 * gaussian(), 1e-3 * gaussian());
    for (int i = 0; i < n; ++i) add("wide", any(least, largest), any(least, largest));
    for (int i = 0; i < n / 10 + 1; ++i) {
      add("zero weight", i % 2 == 0 ? 0.0 : -0.0, any(least, largest));
      add("zero gradient", any(least, largest), i % 2 == 0 ? 0.0 : -0.0);
    }
    add("zeros", 0.0, 0.0), add("zeros", -0.0, 0.0), add("zeros", 0.0, -0.0);
    for (int i = 0; i < n; ++i) {
      const double tiny = any(least, normal);
      if (i % 3 == 0)
        add("denormal", tiny, 1e-3 * gaussian());
      else
        add("denormal", i % 3 == 1 ? 0.02 * gaussian() : tiny, any(least, normal));
    }
    for (int i = 0; i < n; ++i) {
      const double huge = any(largest - 8, largest);
      if (i % 3 == 0)
        add("huge", huge, 1e-3 * gaussian());
      else
        add("huge", i % 3 == 1 ? 0.02 * gaussian() : huge, any(largest - 8, largest));
    }
    for (int i = 0; i < n; ++i) {
      const double w = comparable_weight();
      if (w == 0) break;  // no weight whose image a gradient could reach
      add("cancellation", w, neighbour(balance(w), static_cast<int>(engine_() % 7) - 3));
      add("towards zero", w, balance(w) * std::exp2(uniform(-3, 3)));
      add("opposed signs", w, -balance(w) * std::exp2(uniform(-3, 3)));
      add("tiny step", w, balance(w) * std::exp2(uniform(-60, -15)));
    }
    // Steps from near 0 to about the largest and the smallest numbers, |rate d|^{1/(p-1)} = 2^e.
    for (int i = 0; i < n; ++i) {
      const double w = i % 2 == 0 ? 0.0 : 0.02 * gaussian();
      add("overflow", w, gradient_to(uniform(largest - 2, largest + 2)));
      add("underflow", i % 4 < 2 ? 0.0 : any(least, normal), gradient_to(uniform(least - 2, normal)));
    }
    std::shuffle(cases_.begin(), cases_.end(), engine_);
    return std::move(cases_);
  }

 private:
  double uniform(double a, double b) { return a + (b - a) * 0x1p-53 * static_cast<double>(engine_() >> 11); }
  double gaussian() {
    return std::sqrt(-2 * std::log(uniform(0x1p-60, 1))) * std::cos(uniform(0, 6.283185307179586));
  }
  double sign() { return engine_() % 2 == 0 ? 1.0 : -1.0; }
  // +- 2^e with e from a to b, all exponents alike; the mantissa is that of the format.
  double any(double a, double b) {
    const int exponent = static_cast<int>(std::floor(uniform(a, b)));
    return sign() * std::ldexp(1 + uniform(0, 1), exponent);
  }

  // In the format and finite.
  double round(double x) const {
    const double limit = exact::rounded(
        exact::power_of_two(format_.largest + 1) - exact::power_of_two(format_.largest - format_.digits + 1),
        format_);
    if (std::abs(x) >= limit) return std::copysign(limit, x);
    const double result = exact::rounded(exact::number(x), format_);
    return result == 0 ? std::copysign(0.0, x) : result;
  }
  double neighbour(double x, int count) const {
    const exact::Number ulp = exact::power_of_two(ulp_exponent(exact::number(x), format_));
    return exact::rounded(exact::number(x) + exact::number(count) * ulp, format_);
  }

  void add(const char* kind, double w, double d) { cases_.push_back({round(w), round(d), kind}); }

  // A weight with an image |y| = |rate d| for some d in the middle of the format's range; 0 if there is none.
  double comparable_weight() {
    const double log_rate = std::log2(plan_.rate), r = plan_.map.value;
    const double middle = format_.least + format_.digits + 6;
    const double low = std::max(format_.least + 1.0, (middle + log_rate) / r);
    const double high = std::min<double>(format_.largest, (format_.largest - 4 + log_rate) / r);
    if (!(low < high)) return 0;
    // One in two of ordinary size, where there is such.
    const bool ordinary = engine_() % 2 == 0 && low < -10 && high > -4;
    const double exponent = ordinary ? uniform(-10, -4) : uniform(low, high);
    return round(sign() * std::exp2(exponent));
  }

  // d = y/rate.
  double balance(double w) const {
    using namespace exact;
    const Number y = signed_power(number(w), plan_.map), inverse = number(1 / plan_.rate);
    const Number quotient = y * inverse;
    return round(rounded(quotient + (y - quotient * number(plan_.rate)) * inverse, double_format()));
  }

  double gradient_to(double exponent) {
    const double log_gradient = exponent * plan_.map.value - std::log2(plan_.rate);
    return sign() * std::exp2(std::clamp(log_gradient, -1070.0, 1023.0));
  }

  kernels::StepPlan plan_;
  exact::Format format_;
  int count_;
  std::mt19937_64 engine_;
  std::vector<StepCase> cases_;
};

inline std::vector<StepCase> step_cases(const kernels::StepPlan& plan, StepElement element,
                                        const StepCaseOptions& options = {}) {
  return StepCaseMaker(plan, element, options).make();
}

}  // namespace attmirror::test
