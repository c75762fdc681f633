// The formulas of the GPU's kernels where there is no GPU: the headers that the kernels are made of, compiled
// for the CPU. tests/mirror/emulation stands in for the GPU's approximations, with as much error as those may
// have; everything else is arithmetic that both machines round alike. So what is measured here holds for GPUs,
// except that the pow() of doubles is the CPU's. What is left to tests on a GPU are the kernels around the
// formulas (tests/device).
#include "mirror/cuda/step_constants.cuh"
#include "mirror/cuda/step_element.cuh"
#include "mirror/make_step_plan.hpp"
#include "support/step_bounds.hpp"
#include "support/step_cases.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using cuda::FloatConstants;
using kernels::StepPlan;
using test::StepCase;

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr double all_p[] = {1.01, 1.1, 1.3, 1.5, 1.75, 1.99, 2, 2.5, 3, 4, 10, 50};
constexpr double decays[] = {0, 0.2};

StepPlan plan_of(double p, double decay, StepRule rule = StepRule::mirror) {
  return make_step_plan({.rule = rule, .p = p, .rate = 0.1, .weight_decay = decay});
}

// Cases whose d is of the size that the rate times `shrink` brings to that of the images. A d of 0 never comes to the
// formulas; and with a shrink above 1, which is that of a norm, no d is longer than the norm, which leaves few of them.
std::vector<StepCase> cases_of(StepPlan plan, double shrink = 1, StepElement element = StepElement::float32) {
  plan.rate *= shrink;
  const int per_kind = shrink > 1 ? 500 : element == StepElement::float64 ? 20 : 60;
  std::vector<StepCase> cases = test::step_cases(
      plan, element, {.per_kind = per_kind, .seed = static_cast<std::uint64_t>(100 * plan.map.value)});
  std::erase_if(cases,
                [&](const StepCase& c) { return c.d == 0 || (shrink > 1 && std::abs(c.d) * shrink > 1); });
  return cases;
}

// The largest error seen, and where.
class Worst {
 public:
  void see(double error, const StepCase& c, double got, double expected) {
    ++count_;
    if (error <= error_) return;
    error_ = error;
    std::ostringstream text;
    text << std::hexfloat << c.kind << ": w " << c.w << ", d " << c.d << ", got " << got << ", expected "
         << expected;
    where_ = text.str();
  }
  double error() const { return error_; }
  int count() const { return count_; }
  const std::string& where() const { return where_; }

 private:
  double error_ = 0;
  int count_ = 0;
  std::string where_;
};

// ---- the stand-ins --------------------------------------------------------------------------------------------------

TEST(CudaFormulas, StandInsErrAsMuchAsTheyMay) {
  double reciprocal = 0, root = 0, logarithm = 0, power = 0;
  for (int i = 0; i < 2000; ++i) {
    const float x = std::exp2(0.12f * static_cast<float>(i) - 120.0f) * (1 + 0.0004f * static_cast<float>(i));
    const double exact = x;
    reciprocal = std::max(reciprocal, std::abs(cuda::fast_reciprocal(x) * exact - 1));
    root = std::max(root, std::abs(cuda::fast_rsqrt(x) * std::sqrt(exact) - 1));
    logarithm = std::max(logarithm, std::abs(cuda::fast_log2(x) / std::log2(exact) - 1));
    const float e = 0.1f * static_cast<float>(i) - 100.0f;
    power = std::max(power, std::abs(cuda::fast_exp2(e) / std::exp2(static_cast<double>(e)) - 1));
  }
  EXPECT_LE(reciprocal, 0x1p-23);
  EXPECT_GE(reciprocal, 0x1.8p-24);
  EXPECT_LE(root, std::exp2(-22.9));
  EXPECT_GE(root, 0x1.8p-24);
  EXPECT_GE(logarithm, 0x1.8p-23);
  EXPECT_LE(power, 0x1p-22);
  EXPECT_GE(power, 0x1.8p-23);

  // Denormals are zeros.
  EXPECT_EQ(cuda::fast_reciprocal(-0x1p-127f), -inf);
  EXPECT_EQ(cuda::fast_reciprocal(0x1p127f), 0.0f);
  EXPECT_EQ(cuda::fast_rsqrt(0x1p-127f), inf);
  EXPECT_EQ(cuda::fast_log2(0x1p-127f), -inf);
  EXPECT_EQ(cuda::fast_exp2(-127.0f), 0.0f);
  EXPECT_EQ(cuda::fast_exp2(200.0f), inf);
  EXPECT_TRUE(std::isnan(cuda::fast_reciprocal(nan)));
}

// ---- mirror steps ---------------------------------------------------------------------------------------------------

void expect_mirror_steps(double p, double decay, double shrink) {
  const StepPlan plan = plan_of(p, decay);
  const FloatConstants k = cuda::float_constants(plan, StepRule::mirror, shrink);
  Worst worst;
  cuda::with_power(plan, [&](auto power) {
    for (const StepCase& c : cases_of(plan, shrink)) {
      const float d = cuda::lifted(static_cast<float>(c.d), k);
      const float got = cuda::mirror_weight<decltype(power)::value>(static_cast<float>(c.w), d, k);
      const test::MirrorError error = test::mirror_error(c.w, c.d, got, plan, shrink);
      worst.see(error.image_ulps, c, got, error.expected);
    }
  });
  // The bound lets the weight err by 1 ulp of its own. The last power errs by up to 1.05, which is (p - 1)/20 ulps of
  // the image, more or less: nothing but where p is large.
  const double bound = p > 10 ? 2 + 0.05 * (p - 1) : 2;
  EXPECT_LE(worst.error(), bound) << "p = " << p << ", decay " << decay << ", shrink " << shrink << ", "
                                  << worst.where();
  EXPECT_GT(worst.count(), 50) << "p = " << p << ", shrink " << shrink;
}

TEST(CudaFormulas, MirrorStepsAreWithinTwoUlpsOfTheImage) {
  for (const double p : all_p)
    for (const double decay : decays) expect_mirror_steps(p, decay, 1);
}

void expect_masters(double p, double decay, double shrink) {
  const StepPlan plan = plan_of(p, decay);
  const FloatConstants k = cuda::float_constants(plan, StepRule::mirror, shrink);
  Worst fill, step, weight;
  cuda::with_power(plan, [&](auto power) {
    for (const StepCase& c : cases_of(plan, shrink)) {
      const float y = cuda::master_of_weight<decltype(power)::value>(static_cast<float>(c.w), k);
      const test::RoundingError filled = test::fill_error(c.w, y, plan, StepElement::float32);
      fill.see(filled.ulps, c, y, filled.expected);
      if (std::isinf(y)) continue;
      const float next = cuda::mirror_master(y, cuda::lifted(static_cast<float>(c.d), k), k);
      const test::StateError stepped = test::master_error(y, c.d, next, plan, shrink, StepElement::float32);
      step.see(stepped.ulps_of_largest, {y, c.d, c.kind}, next, stepped.expected);
      const float w = cuda::weight_of_master<decltype(power)::value>(next, k);
      const test::RoundingError back = test::weight_error(next, w, plan, StepElement::float32);
      weight.see(back.ulps, {next, c.d, c.kind}, w, back.expected);
    }
  });
  EXPECT_LE(fill.error(), 2.5) << "p = " << p << ", " << fill.where();
  EXPECT_LE(step.error(), 2) << "p = " << p << ", decay " << decay << ", shrink " << shrink << ", "
                             << step.where();
  // An error in log2 |y| becomes 1/(p - 1) of it in that of the weight.
  EXPECT_LE(weight.error(), 1.5 + 0.02 * std::max(1.0, 1 / (p - 1))) << "p = " << p << ", " << weight.where();
  EXPECT_GT(weight.count(), 50) << "p = " << p << ", shrink " << shrink;
}

TEST(CudaFormulas, MastersAndTheirWeightsAreWithinTheirBounds) {
  for (const double p : all_p)
    for (const double decay : decays) expect_masters(p, decay, 1);
}

// ---- steepest and sign steps ----------------------------------------------------------------------------------------

void expect_steepest_steps(double p, double decay, double shrink) {
  const StepPlan plan = plan_of(p, decay, StepRule::steepest);
  const FloatConstants k = cuda::float_constants(plan, StepRule::steepest, shrink);
  Worst worst;
  cuda::with_power(plan, [&](auto power) {
    for (const StepCase& c : cases_of(plan, shrink)) {
      const double length = std::abs(c.d) * shrink;
      if (length > 1) continue;
      // Above p = 2 even what is 2^-120 of a norm > 2^60 makes a step to speak of; but after the lift it has
      // lost digits.
      if (p > 2 && k.lift < 1 && length < 0x1p-120) continue;
      const float d = cuda::lifted(static_cast<float>(c.d), k);
      const float got =
          cuda::primal_step<StepRule::steepest, decltype(power)::value>(static_cast<float>(c.w), d, k);
      const test::StateError error = test::steepest_error(c.w, c.d, got, plan, shrink);
      worst.see(error.ulps_of_largest, c, got, error.expected);
    }
  });
  // Of the larger term's ulps, one is that of rounding a sum up to twice as large; the direction has the other two.
  EXPECT_LE(worst.error(), 3) << "p = " << p << ", decay " << decay << ", shrink " << shrink << ", "
                              << worst.where();
  EXPECT_GT(worst.count(), 50) << "p = " << p << ", shrink " << shrink;
}

TEST(CudaFormulas, SteepestStepsAreWithinTheirBound) {
  for (const double p : all_p)
    for (const double decay : decays)
      for (const double shrink : {1.0, 0.3, 1e30}) expect_steepest_steps(p, decay, shrink);
}

TEST(CudaFormulas, SignStepsAreWithinTheirBound) {
  for (const double decay : decays) {
    const StepPlan plan = plan_of(2, decay, StepRule::sign);
    const FloatConstants k = cuda::float_constants(plan, StepRule::sign, 1);
    Worst worst;
    for (const StepCase& c : cases_of(plan)) {
      const float got = cuda::primal_step<StepRule::sign, cuda::Power::two>(static_cast<float>(c.w),
                                                                            static_cast<float>(c.d), k);
      const test::StateError error = test::sign_error(c.w, c.d, got, plan);
      worst.see(error.ulps_of_largest, c, got, error.expected);
    }
    EXPECT_LE(worst.error(), 2.5) << "decay " << decay << ", " << worst.where();
    EXPECT_GT(worst.count(), 50);
  }
}

// ---- the ends of the range ------------------------------------------------------------------------------------------

// The norms of gradients of denormals, or of many huge ones: 1/norm is no float.
TEST(CudaFormulas, ShrinksBeyondTheRangeOfFloatsAreLifted) {
  for (const double shrink : {1e40, 1e-20, 1e-40}) {
    for (const StepRule rule : {StepRule::mirror, StepRule::steepest}) {
      const FloatConstants k = cuda::float_constants(plan_of(3, 0, rule), rule, shrink);
      EXPECT_EQ(k.lift, shrink > 1 ? 0x1p64f : shrink < 1e-30 ? 0x1p-120f : 0x1p-60f);
    }
    for (const double p : all_p) {
      expect_mirror_steps(p, 0, shrink);
      expect_masters(p, 0, shrink);
      expect_steepest_steps(p, 0, shrink);
    }
  }
}

TEST(CudaFormulas, WhatIsNotFiniteStaysSo) {
  struct Pair {
    float w, d;
  };
  const Pair pairs[] = {{inf, 0.5f}, {-inf, 0.5f}, {nan, 0.5f}, {0.5f, inf}, {0.5f, -inf},
                        {0.5f, nan}, {0.0f, inf},  {0.0f, nan}, {inf, inf},  {inf, -inf},
                        {-inf, nan}, {nan, inf},   {nan, nan}};
  for (const double p : all_p)
    for (const double decay : decays) {
      const StepPlan plan = plan_of(p, decay), steepest = plan_of(p, decay, StepRule::steepest);
      const FloatConstants k = cuda::float_constants(plan, StepRule::mirror, 1);
      const FloatConstants k_steepest = cuda::float_constants(steepest, StepRule::steepest, 1);
      cuda::with_power(plan, [&](auto power) {
        constexpr cuda::Power P = decltype(power)::value;
        for (const auto& [w, d] : pairs) {
          SCOPED_TRACE(testing::Message()
                       << "p = " << p << ", decay " << decay << ", w " << w << ", d " << d);
          EXPECT_FALSE(std::isfinite(cuda::mirror_weight<P>(w, d, k)));
          const float master = cuda::mirror_master(cuda::master_of_weight<P>(w, k), d, k);
          EXPECT_FALSE(std::isfinite(master));
          EXPECT_FALSE(std::isfinite(cuda::weight_of_master<P>(master, k)));
          EXPECT_FALSE(std::isfinite((cuda::primal_step<StepRule::steepest, P>(w, d, k_steepest))));
          // An infinite direction has a sign.
          if (!std::isfinite(w) || std::isnan(d)) {
            EXPECT_FALSE(std::isfinite((cuda::primal_step<StepRule::sign, P>(w, d, k))));
          }
        }
      });
    }
}

// ---- up the gradient, and rates that only the GPU knows -----------------------------------------------------------

// A negative shrink turns the direction round, to the bit.
TEST(CudaFormulas, NegativeShrinksMaximize) {
  for (const double p : all_p)
    for (const double shrink : {1.0, 0.3, 1e40, 1e-20, 1e-40}) {
      const StepPlan plan = plan_of(p, 0.2), steepest = plan_of(p, 0.2, StepRule::steepest);
      const FloatConstants down = cuda::float_constants(plan, StepRule::mirror, shrink),
                           up = cuda::float_constants(plan, StepRule::mirror, -shrink);
      const FloatConstants down_steepest = cuda::float_constants(steepest, StepRule::steepest, shrink),
                           up_steepest = cuda::float_constants(steepest, StepRule::steepest, -shrink);
      const FloatConstants down_sign = cuda::float_constants(plan, StepRule::sign, shrink),
                           up_sign = cuda::float_constants(plan, StepRule::sign, -shrink);
      const cuda::DoubleConstants down_double = cuda::double_constants(plan, StepRule::mirror, shrink),
                                  up_double = cuda::double_constants(plan, StepRule::mirror, -shrink);
      cuda::with_power(plan, [&](auto power) {
        constexpr cuda::Power P = decltype(power)::value;
        for (const StepCase& c : cases_of(plan, shrink)) {
          const auto w = static_cast<float>(c.w), d = static_cast<float>(c.d);
          const auto same = [&](auto a, auto b) {
            EXPECT_TRUE(a == b || (a != a && b != b)) << p << " " << c.kind;
          };
          same(cuda::mirror_weight<P>(w, cuda::lifted(d, up), up),
               cuda::mirror_weight<P>(w, cuda::lifted(-d, down), down));
          same(cuda::mirror_master(w, cuda::lifted(d, up), up),
               cuda::mirror_master(w, cuda::lifted(-d, down), down));
          same(cuda::primal_step<StepRule::steepest, P>(w, cuda::lifted(d, up_steepest), up_steepest),
               cuda::primal_step<StepRule::steepest, P>(w, cuda::lifted(-d, down_steepest), down_steepest));
          same(cuda::primal_step<StepRule::sign, P>(w, cuda::lifted(d, up_sign), up_sign),
               cuda::primal_step<StepRule::sign, P>(w, cuda::lifted(-d, down_sign), down_sign));
          same(cuda::mirror_weight<P>(c.w, c.d, up_double), cuda::mirror_weight<P>(c.w, -c.d, down_double));
        }
      });
    }
  const StepPlan plan = plan_of(3, 0, StepRule::sign);
  const cuda::DoubleConstants up = cuda::double_constants(plan, StepRule::sign, -1);
  EXPECT_EQ((cuda::primal_step<StepRule::sign, cuda::Power::two>(1.0, 5.0, up)), 1.1);
  const StepPlan steepest = plan_of(2, 0, StepRule::steepest);
  const cuda::DoubleConstants up_steepest = cuda::double_constants(steepest, StepRule::steepest, -0.2);
  EXPECT_EQ((cuda::primal_step<StepRule::steepest, cuda::Power::two>(1.0, 5.0, up_steepest)), 1.1);
}

TEST(CudaFormulas, RatesOfTheDeviceMakeThePlanOfTheHost) {
  for (const double p : all_p)
    for (const double decay : {0.0, 0.2, 0.9})
      for (const float rate : {0.0f, 1e-12f, 0.1f, 1.0f}) {
        const StepPlan host = make_step_plan({.p = p, .rate = rate, .weight_decay = decay});
        const StepPlan other = make_step_plan({.p = p, .rate = 0, .weight_decay = decay});
        const StepPlan device = cuda::with_rate(other, cuda::rate_numbers(other, rate));
        EXPECT_EQ(device.rate, host.rate);
        EXPECT_EQ(device.keep, host.keep);
        EXPECT_EQ(device.keep_image, host.keep_image) << p << " " << rate << " " << decay;
      }
}

// ---- doubles --------------------------------------------------------------------------------------------------------

TEST(CudaFormulas, StepsOfDoublesAreWithinTheirBounds) {
  for (const double p : all_p)
    for (const double decay : decays) {
      const StepPlan plan = plan_of(p, decay);
      const cuda::DoubleConstants k = cuda::double_constants(plan, StepRule::mirror, 1);
      Worst mirror, master;
      cuda::with_power(plan, [&](auto power) {
        constexpr cuda::Power P = decltype(power)::value;
        for (const StepCase& c : cases_of(plan, 1, StepElement::float64)) {
          const double got = cuda::mirror_weight<P>(c.w, c.d, k);
          const test::MirrorError error = test::mirror_error(c.w, c.d, got, plan, 1, StepElement::float64);
          mirror.see(error.image_ulps, c, got, error.expected);
          const double y = cuda::master_of_weight<P>(c.w, k);
          if (std::isinf(y)) continue;
          const double next = cuda::mirror_master(y, c.d, k);
          const test::StateError stepped = test::master_error(y, c.d, next, plan, 1, StepElement::float64);
          master.see(stepped.ulps_of_largest, {y, c.d, c.kind}, next, stepped.expected);
        }
      });
      EXPECT_LE(mirror.error(), 4) << "p = " << p << ", decay " << decay << ", " << mirror.where();
      EXPECT_LE(master.error(), 2) << "p = " << p << ", decay " << decay << ", " << master.where();
      EXPECT_GT(mirror.count(), 50) << "p = " << p;
    }
}

}  // namespace
}  // namespace attmirror
