// Holds the fast kernels of the fused step to their error bounds, on hard cases, for every rule, format and option.
#include "mirror/make_step_plan.hpp"
#include "support/element_array.hpp"
#include "support/step_cases.hpp"
#include <attmirror/mirror/fused_step.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::all_elements;
using test::ElementArray;
using test::StepCase;

const std::vector<double> kernel_exponents{1.01, 1.1, 1.3, 1.5, 1.75, 2, 2.5, 3, 4, 10, 50};

struct Numbers {
  std::vector<double> w, d;
  std::vector<const char*> kind;
};
Numbers numbers(const std::vector<StepCase>& cases) {
  Numbers result;
  for (const StepCase& c : cases) {
    result.w.push_back(c.w);
    result.d.push_back(c.d);
    result.kind.push_back(c.kind);
  }
  return result;
}

std::string describe(StepElement element, const StepOptions& options) {
  return fmt::format("{} {} p = {} rate {} decay {}", to_string(element), to_string(options.rule), options.p,
                     options.rate, options.weight_decay);
}

// The largest of some errors, and where.
struct Worst {
  double error = 0;
  std::string where;
  void see(double e, const Numbers& cases, std::size_t i, double got, double expected) {
    if (e <= error) return;
    error = e;
    where = fmt::format("{}: w {} d {} became {}, expected {}", cases.kind[i], cases.w[i], cases.d[i], got,
                        expected);
  }
};

StepTensor tensor_of(ElementArray& weights, ElementArray& gradient) {
  return {weights.data(), gradient.data(), nullptr, nullptr, weights.size()};
}

TEST(FusedStep, MirrorStepsAreWithinTwoUlpInTheImage) {
  for (const StepElement element : all_elements)
    for (const double p : kernel_exponents)
      for (const double decay : {0.0, 0.1}) {
        const StepOptions options{.p = p, .rate = p < 2 ? 0.37 : 1e-3, .weight_decay = decay};
        SCOPED_TRACE(describe(element, options));
        const kernels::StepPlan plan = make_step_plan(options);
        const Numbers cases = numbers(test::step_cases(plan, element, {.per_kind = 60, .seed = 3}));
        ElementArray w(element, cases.w), g(element, cases.d);
        const ElementArray before = w;
        const StepTensor tensor = tensor_of(w, g);
        fused_step(element, {&tensor, 1}, options);

        Worst worst;
        for (std::size_t i = 0; i < cases.w.size(); ++i) {
          if (cases.d[i] == 0 && decay == 0) {
            EXPECT_TRUE(w.same_bits(i, before)) << cases.w[i];
          } else if (cases.d[i] == 0) {
            const double keep = plan.keep * before[i];
            // Weights of 16 bits are rounded twice, denormals lose the second half of `keep`.
            const exact::Format format = test::weight_format(element);
            const double bound = std::abs(before[i]) < 1e-37 ? 1 : 0.51;
            EXPECT_LE(test::distance_in_ulps(w[i], exact::number(keep), format), bound) << before[i];
          } else {
            const test::MirrorError error = test::mirror_error(before[i], g[i], w[i], plan, 1, element);
            worst.see(error.image_ulps, cases, i, w[i], error.expected);
          }
        }
        EXPECT_LE(worst.error, element == StepElement::float64 ? 10 : 2) << worst.where;
      }
}

TEST(FusedStep, MastersAndTheirWeightsAreWithinTheirBounds) {
  for (const StepElement element : all_elements)
    for (const double p : kernel_exponents)
      for (const double decay : {0.0, 0.1}) {
        const StepOptions options{.p = p, .rate = 1e-3, .weight_decay = decay};
        SCOPED_TRACE(describe(element, options));
        const kernels::StepPlan plan = make_step_plan(options);
        const Numbers cases = numbers(test::step_cases(plan, element, {.per_kind = 40, .seed = 4}));
        ElementArray w(element, cases.w), g(element, cases.d);
        ElementArray y(test::state_element(element), cases.w);
        StepTensor tensor = tensor_of(w, g);
        tensor.master = y.data();
        fill_masters(element, {&tensor, 1}, options);
        const ElementArray w_before = w, y_before = y;
        // Powers in doubles come with 10 roundings at p = 1.1; of floats, those above 16 with more than one.
        const double slack = element == StepElement::float64 ? 10 : plan.inverse.value > 16 ? 1.5 : 1.1;
        Worst filled, master, weight;
        for (std::size_t i = 0; i < cases.w.size(); ++i) {
          const test::RoundingError error = test::fill_error(w[i], y[i], plan, element);
          filled.see(error.ulps, cases, i, y[i], error.expected);
        }
        fused_step(element, {&tensor, 1}, options);
        for (std::size_t i = 0; i < cases.w.size(); ++i) {
          if (cases.d[i] == 0 && decay == 0) {
            EXPECT_TRUE(w.same_bits(i, w_before) && y.same_bits(i, y_before)) << cases.w[i];
            continue;
          }
          const test::StateError error = test::master_error(y_before[i], g[i], y[i], plan, 1, element);
          master.see(error.ulps_of_largest, cases, i, y[i], error.expected);
          const test::RoundingError rounding = test::weight_error(y[i], w[i], plan, element);
          weight.see(rounding.ulps, cases, i, w[i], rounding.expected);
        }
        EXPECT_LE(filled.error, slack) << filled.where;
        EXPECT_LE(master.error, 2) << master.where;
        EXPECT_LE(weight.error, slack) << weight.where;
      }
}

// The norm of a steepest step is that of all numbers; entries far smaller than it test the powers.
std::vector<double> with_norm(std::vector<double> d, const exact::Format& format) {
  for (double& x : d)
    x = exact::rounded(exact::number(std::isfinite(x) ? std::clamp(x, -1e4, 1e4) : 1.0), format);
  return d;
}

double norm_of(const ElementArray& d, double q) {
  long double largest = 0, sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(d.size()); ++i)
    largest = std::max<long double>(largest, std::abs(d[i]));
  for (std::size_t i = 0; i < static_cast<std::size_t>(d.size()); ++i)
    sum += std::pow(std::abs(d[i]) / largest, static_cast<long double>(q));
  return static_cast<double>(largest * std::pow(sum, 1 / static_cast<long double>(q)));
}

TEST(FusedStep, SteepestStepsAreWithinTheirBounds) {
  for (const StepElement element : all_elements)
    for (const double p : kernel_exponents)
      for (const double decay : {0.0, 0.1}) {
        const StepOptions options{.rule = StepRule::steepest, .p = p, .rate = 0.03, .weight_decay = decay};
        SCOPED_TRACE(describe(element, options));
        const kernels::StepPlan plan = make_step_plan(options);
        const Numbers cases = numbers(test::step_cases(plan, element, {.per_kind = 40, .seed = 5}));
        ElementArray w(element, cases.w), g(element, with_norm(cases.d, test::weight_format(element)));
        const ElementArray before = w;
        const StepTensor tensor = tensor_of(w, g);
        fused_step(element, {&tensor, 1}, options);
        const double shrink = 1 / norm_of(g, plan.dual.value);
        Worst worst;
        for (std::size_t i = 0; i < cases.w.size(); ++i) {
          if (g[i] == 0 && decay == 0) {
            EXPECT_TRUE(w.same_bits(i, before)) << cases.w[i];
            continue;
          }
          // In doubles d/||d|| may underflow: such entries take no step.
          if (std::abs(g[i]) * shrink < std::numeric_limits<double>::min()) continue;
          const test::StateError error = test::steepest_error(before[i], g[i], w[i], plan, shrink, element);
          worst.see(error.ulps_of_largest, cases, i, w[i], error.expected);
        }
        // The error of the norm, about 2^-25, comes 1/(p-1) times.
        const double of_norm = element == StepElement::float64 ? 12 : 1;
        EXPECT_LE(worst.error, 2 + of_norm * std::max(1.0, plan.inverse.value)) << worst.where;
      }
}

TEST(FusedStep, SignStepsAreWithinTwoUlp) {
  for (const StepElement element : all_elements)
    for (const double decay : {0.0, 0.1}) {
      const StepOptions options{.rule = StepRule::sign, .rate = 0.0123, .weight_decay = decay};
      SCOPED_TRACE(describe(element, options));
      const kernels::StepPlan plan = make_step_plan(options);
      const Numbers cases = numbers(test::step_cases(plan, element, {.per_kind = 100, .seed = 6}));
      ElementArray w(element, cases.w), g(element, cases.d), m(test::state_element(element), cases.w);
      const ElementArray before = w, m_before = m;
      StepTensor tensor = tensor_of(w, g);
      fused_step(element, {&tensor, 1}, options);
      for (std::size_t i = 0; i < cases.w.size(); ++i) {
        if (cases.d[i] == 0 && decay == 0)
          EXPECT_TRUE(w.same_bits(i, before)) << cases.w[i];
        else
          EXPECT_LE(test::sign_error(before[i], g[i], w[i], plan, element).ulps_of_largest, 2)
              << cases.kind[i] << " " << cases.w[i] << " " << cases.d[i] << " became " << w[i];
      }
      // With a master, the weight is the master rounded.
      tensor.master = m.data();
      fused_step(element, {&tensor, 1}, options);
      for (std::size_t i = 0; i < cases.w.size(); ++i) {
        if (cases.d[i] == 0) continue;
        EXPECT_LE(
            test::sign_error(m_before[i], g[i], m[i], plan, test::state_element(element)).ulps_of_largest, 2);
        EXPECT_LE(test::rounding_error(m[i], w[i], element).ulps, 0.5) << m[i];
      }
    }
}

TEST(FusedStep, MomentumAndScaleMakeTheDirection) {
  for (const StepElement element : all_elements)
    for (const double p : {1.1, 1.75, 2.0, 3.0, 10.0})
      for (const bool nesterov : {false, true}) {
        const StepOptions options{
            .p = p, .rate = 1e-2, .momentum = 0.9, .nesterov = nesterov, .gradient_scale = 48};
        SCOPED_TRACE(describe(element, options));
        const kernels::StepPlan plan = make_step_plan(options);
        const std::vector<double> weights{0.5, -0.25, 0.03, 0,   1,   -2,  0.125, 0.75, 1,
                                          3,   -3,    0.1,  0.2, 0.3, 0.4, 1,     2};
        std::vector<double> gradient, sums;
        for (std::size_t i = 0; i < weights.size(); ++i) {
          gradient.push_back(std::sin(3.0 * static_cast<double>(i)) * 48);
          sums.push_back(std::cos(5.0 * static_cast<double>(i)));
        }
        ElementArray w(element, weights), g(element, gradient), m(test::state_element(element), sums);
        const ElementArray before = w, m_before = m;
        StepTensor tensor = tensor_of(w, g);
        tensor.momentum = m.data();
        fused_step(element, {&tensor, 1}, options);
        const double ulp = element == StepElement::float64 ? 0x1p-52 : 0x1p-23;
        for (std::size_t i = 0; i < weights.size(); ++i) {
          const double d = g[i] / 48, sum = 0.9 * m_before[i] + d;
          EXPECT_NEAR(m[i], sum, 2 * ulp * (std::abs(m_before[i]) + std::abs(d)));
          // From the momentum as it is stored.
          const double along = nesterov ? d + 0.9 * m[i] : m[i];
          const test::MirrorError error = test::mirror_error(before[i], along, w[i], plan, 1, element);
          EXPECT_LE(error.image_ulps, nesterov || element == StepElement::float64 ? 8 : 2)
              << weights[i] << " " << along << " became " << w[i] << ", expected " << error.expected;
        }
      }
}

}  // namespace
}  // namespace attmirror
