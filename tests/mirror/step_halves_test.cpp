// Steps up the gradient, and steps in two calls: measured here, made there.
#include "support/element_array.hpp"
#include "support/special_numbers.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/mirror/fused_step.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::all_elements;
using test::ElementArray;
using test::gaussian;
using test::infinity;
using test::nan;
using test::state_element;

// One tensor with all arrays.
struct HalfStepTensor {
  HalfStepTensor(StepElement element, const std::vector<double>& w, const std::vector<double>& gradient,
                 bool with_master)
      : weights(element, w),
        slope(element, gradient),
        master(state_element(element), w),
        momentum(state_element(element), gaussian(w.size(), 0.01, 77)),
        tensor{weights.data(), slope.data(), with_master ? master.data() : nullptr, momentum.data(),
               weights.size()} {}
  bool operator==(const HalfStepTensor& other) const {
    return weights == other.weights && master == other.master && momentum == other.momentum;
  }
  ElementArray weights, slope, master, momentum;
  StepTensor tensor;
};

std::vector<StepOptions> steps_of_every_kind() {
  std::vector<StepOptions> result;
  for (const double p : {1.1, 1.5, 1.75, 2.0, 3.0, 10.0})
    for (const double scale : {1.0, 48.0, 1e-25})
      for (const double momentum : {0.0, 0.9}) {
        StepOptions step{.p = p, .rate = 0.01, .momentum = momentum, .gradient_scale = scale};
        result.push_back(step);
        step.weight_decay = 0.1;
        step.normalized = true;
        result.push_back(step);
        step.normalized = false;
        step.nesterov = momentum > 0;
        step.rule = StepRule::steepest;
        result.push_back(step);
        step.weight_decay = 0;
        result.push_back(step);
        step.rule = StepRule::sign;
        result.push_back(step);
      }
  return result;
}

// The numbers that a step meets, and those that it should not.
std::vector<double> gradients_of_every_kind(double scale) {
  std::vector<double> result = gaussian(61, scale, 5);
  for (const double x : {0.0, -0.0, 1e-44, -1e-30, 1e25, -1e25}) result.push_back(x);
  return result;
}

TEST(FusedStepHalves, MaximizingIsSteppingAlongMinusTheGradient) {
  for (const StepElement element : all_elements)
    for (const StepArithmetic arithmetic : {StepArithmetic::fast, StepArithmetic::exact})
      for (StepOptions options : steps_of_every_kind())
        for (const bool with_master : {false, true}) {
          options.arithmetic = arithmetic;
          options.maximize = false;
          std::vector<double> up = gradients_of_every_kind(0.01 * options.gradient_scale), down = up;
          for (double& x : down) x = -x;
          const std::vector<double> w = gaussian(up.size(), 0.1, 6);
          HalfStepTensor one(element, w, up, with_master), other(element, w, down, with_master),
              wrong(element, w, up, with_master);
          fused_step(element, {&other.tensor, 1}, options);
          fused_step(element, {&wrong.tensor, 1}, options);
          options.maximize = true;
          fused_step(element, {&one.tensor, 1}, options);
          ASSERT_TRUE(one == other) << to_string(element) << " " << to_string(options.rule) << " p "
                                    << options.p << " " << to_string(arithmetic) << " scale "
                                    << options.gradient_scale << " momentum " << options.momentum;
          // In float16 gradients of 1e25 are infinite, and a step by an infinite norm is none.
          if (element != StepElement::float16) {
            ASSERT_FALSE(one == wrong);
          }
        }
}

// Against the formula, without any other step to compare with.
TEST(FusedStepHalves, MaximizingAddsTheGradientToTheImage) {
  for (const StepArithmetic arithmetic : {StepArithmetic::fast, StepArithmetic::exact})
    for (const double p : {1.1, 1.5, 1.75, 3.0}) {
      ElementArray w(StepElement::float64, {0.5, -0.25, 0.125}), g(StepElement::float64, {0.1, 0.2, -0.3});
      const StepTensor tensor{w.data(), g.data(), nullptr, nullptr, 3};
      fused_step(StepElement::float64, {&tensor, 1},
                 {.p = p, .rate = 0.1, .maximize = true, .arithmetic = arithmetic});
      const double before[] = {0.5, -0.25, 0.125}, slope[] = {0.1, 0.2, -0.3};
      for (std::size_t i = 0; i < 3; ++i) {
        const double y = std::copysign(std::pow(std::abs(before[i]), p - 1), before[i]) + 0.1 * slope[i];
        EXPECT_NEAR(w[i], std::copysign(std::pow(std::abs(y), 1 / (p - 1)), y), 1e-13) << p;
      }
    }
}

TEST(FusedStepHalves, MaximizingShowsWhatIsNotFinite) {
  for (const StepElement element : all_elements)
    for (const StepArithmetic arithmetic : {StepArithmetic::fast, StepArithmetic::exact})
      for (const double p : {1.1, 1.75, 2.0, 3.0}) {
        ElementArray w(element, {1, 1, 1}), g(element, {nan, infinity, -infinity});
        const StepTensor tensor{w.data(), g.data(), nullptr, nullptr, 3};
        fused_step(element, {&tensor, 1}, {.p = p, .rate = 0.1, .maximize = true, .arithmetic = arithmetic});
        EXPECT_TRUE(std::isnan(w[0]));
        EXPECT_EQ(w[1], infinity) << to_string(element) << " p " << p;
        EXPECT_EQ(w[2], -infinity) << to_string(element) << " p " << p;
      }
}

TEST(FusedStepHalves, TwoCallsHaveTheBitsOfOne) {
  ThreadPool three(3);
  for (const StepElement element : all_elements)
    for (const StepArithmetic arithmetic : {StepArithmetic::fast, StepArithmetic::exact})
      for (StepOptions options : steps_of_every_kind()) {
        options.arithmetic = arithmetic;
        if (options.rule == StepRule::sign || (options.rule == StepRule::mirror && !options.normalized))
          continue;
        if (element == StepElement::float16 && options.gradient_scale < 1) continue;  // all zeros
        // More than one chunk, once.
        const std::size_t size =
            arithmetic == StepArithmetic::fast && options.gradient_scale == 48 ? 40'001 : 90;
        const std::vector<double> w = gaussian(size, 0.1, 1),
                                  g = gaussian(size, 0.01 * options.gradient_scale, 2);
        HalfStepTensor whole(element, w, g, true), halves(element, w, g, true);
        const HalfStepTensor before = halves;
        fused_step(element, {&whole.tensor, 1}, options);
        const StepTensor list[] = {StepTensor{}, halves.tensor};
        double norms[] = {-1, -1};
        measure_step(element, list, options, norms, &three);
        EXPECT_TRUE(halves == before) << "measuring changes nothing";
        EXPECT_EQ(norms[0], 0) << "of an empty tensor";
        EXPECT_GT(norms[1], 0);
        step_with_norms(element, list, options, norms, &three);
        EXPECT_TRUE(halves == whole) << to_string(element) << " " << to_string(options.rule) << " p "
                                     << options.p;
      }
}

// A tensor cut in three, as its holders would do it.
TEST(FusedStepHalves, PartsStepByTheNormOfTheWhole) {
  for (const StepRule rule : {StepRule::mirror, StepRule::steepest})
    for (const double p : {1.1, 1.5, 1.75, 2.0, 3.0, 10.0})
      for (const double scale : {1e-200, 1.0, 1e200}) {
        const StepOptions options{.rule = rule, .p = p, .rate = 0.01, .normalized = rule == StepRule::mirror};
        const std::vector<double> w = gaussian(3000, 0.1, 3), g = gaussian(3000, scale, 4);
        ElementArray whole(StepElement::float64, w), parts(StepElement::float64, w),
            slopes(StepElement::float64, g);
        const StepTensor tensor{whole.data(), slopes.data(), nullptr, nullptr, 3000};
        fused_step(StepElement::float64, {&tensor, 1}, options);

        auto* weights = static_cast<double*>(parts.data());
        const auto* gradient = static_cast<const double*>(slopes.data());
        const StepTensor cut[] = {{weights, gradient, nullptr, nullptr, 17},
                                  {weights + 17, gradient + 17, nullptr, nullptr, 0},
                                  {weights + 17, gradient + 17, nullptr, nullptr, 2983}};
        double norms[3];
        measure_step(StepElement::float64, cut, options, norms);
        const double q = p / (p - 1), largest = std::max(norms[0], norms[2]);
        double sum = 0;
        for (const double norm : norms) sum += std::pow(norm / largest, q);
        for (double& norm : norms) norm = largest * std::pow(sum, 1 / q);
        step_with_norms(StepElement::float64, cut, options, norms);
        for (std::size_t i = 0; i < 3000; i += 7)
          EXPECT_NEAR(parts[i], whole[i], 1e-12 * std::abs(whole[i]) / std::min(1.0, p - 1)) << p;
      }
}

TEST(FusedStepHalves, NormsThatAreGivenDecide) {
  ElementArray w(StepElement::float64, {1, 2}), g(StepElement::float64, {3, 4});
  const StepTensor tensor{w.data(), g.data(), nullptr, nullptr, 2};
  const StepOptions options{.p = 2, .rate = 0.5, .normalized = true};
  const double zero = 0, ten = 10, bad = infinity, below = -1;
  step_with_norms(StepElement::float64, {&tensor, 1}, options, {&zero, 1});
  EXPECT_EQ(w[0], 1);
  step_with_norms(StepElement::float64, {&tensor, 1}, options, {&ten, 1});
  EXPECT_DOUBLE_EQ(w[0], 1 - 0.15);
  EXPECT_DOUBLE_EQ(w[1], 2 - 0.2);
  StepOptions careful = options;
  careful.skip_nonfinite = true;
  EXPECT_TRUE(step_with_norms(StepElement::float64, {&tensor, 1}, careful, {&bad, 1}).skipped);
  EXPECT_DOUBLE_EQ(w[0], 1 - 0.15);

  const auto message = [&](const StepOptions& step, std::span<const double> norms) -> std::string {
    try {
      step_with_norms(StepElement::float64, {&tensor, 1}, step, norms);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message(options, {}), "norms has 0 numbers: expected 1, as many as tensors");
  EXPECT_EQ(message(options, {&below, 1}), "norms[0] is -1: expected 0 or more");
  EXPECT_EQ(message({.p = 2, .rate = 0.5}, {&ten, 1}),
            "a step of the mirror rule with normalized off takes no norms: fused_step() makes it");
}

}  // namespace
}  // namespace attmirror
