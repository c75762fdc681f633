// Holds StepArithmetic::exact to its promise, within 1 ulp of the correctly rounded result for every p and input, with
// MPFR as the yardstick; and counts results that are not the correctly rounded one.
#include "base/half_floats.hpp"
#include "mirror/make_step_plan.hpp"
#include "mirror/step_reference.hpp"
#include "support/element_array.hpp"
#include "support/special_numbers.hpp"
#include "support/step_cases.hpp"
#include <attmirror/mirror/fused_step.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::all_elements;
using test::BigFloat;
using test::BigFormat;
using test::StepCase;

const std::vector<double> exact_exponents{1.001, 1.01, 1.1, 1.3, 1.5, 1.75, 2, 2.5, 3, 4, 10, 50};

BigFormat format_of(StepElement element) {
  switch (element) {
    case StepElement::float32:
      return {24, -149, 127};
    case StepElement::bfloat16:
      return {8, -133, 127};
    case StepElement::float16:
      return {11, -24, 15};
    case StepElement::float64:
      break;
  }
  return {53, -1074, 1023};
}
BigFormat state_of(StepElement element) {
  return element == StepElement::float64 ? format_of(element) : format_of(StepElement::float32);
}

using Array = test::ElementArray;
using test::infinity;
using test::nan;
using test::state_element;

// What steps are compared on: the arrays before and after.
struct Trial {
  Trial(StepElement type, const std::vector<StepCase>& cases)
      : Trial(type, column(cases, &StepCase::w), column(cases, &StepCase::d)) {}
  Trial(StepElement type, const std::vector<double>& w, const std::vector<double>& g)
      : element(type),
        weights(type, w),
        gradient(type, g),
        master(state_element(type), std::vector<double>(w.size(), 0.0)),
        momentum(state_element(type), std::vector<double>(w.size(), 0.0)) {}

  static std::vector<double> column(const std::vector<StepCase>& cases, double StepCase::*field) {
    std::vector<double> values;
    for (const StepCase& c : cases) values.push_back(c.*field);
    return values;
  }
  enum class Use { plain, with_master };
  StepTensor tensor(const StepOptions& options, Use use) {
    return {.weights = weights.data(),
            .gradient = gradient.data(),
            .master = use == Use::with_master ? master.data() : nullptr,
            .momentum = options.momentum > 0 ? momentum.data() : nullptr,
            .size = weights.size()};
  }
  void step(const StepOptions& options, Use use = Use::plain) {
    const StepTensor t = tensor(options, use);
    fused_step(element, {&t, 1}, options);
  }
  void fill(const StepOptions& options) {
    const StepTensor t = tensor(options, Use::with_master);
    fill_masters(element, {&t, 1}, options);
  }

  StepElement element;
  Array weights, gradient, master, momentum;
};

StepOptions exact_options(double p, double rate) {
  return {.p = p, .rate = rate, .arithmetic = StepArithmetic::exact};
}

// Errors over many numbers.
struct Tally {
  void add(double got, const BigFloat& exact, const BigFormat& format, const StepCase& c) {
    ++count;
    if (got == round_to(exact, format)) return;
    ++misrounded;
    const double error = ulps_between(got, exact, format);
    if (!(error <= worst)) worst = error, worst_case = c, worst_got = got;
  }
  void expect(const std::string& what) const {
    EXPECT_LE(worst, 1.0) << what << std::hexfloat << " " << worst_case.kind << " w " << worst_case.w << " d "
                          << worst_case.d << " gives " << worst_got;
    EXPECT_EQ(misrounded, 0) << what << " of " << count;
  }
  int count = 0, misrounded = 0;
  double worst = 0, worst_got = 0;
  StepCase worst_case;
};

std::string name(double p, StepElement element) {
  return "p = " + std::to_string(p) + ", " + std::string(to_string(element));
}

TEST(ExactStep, IsCorrectlyRounded) {
  for (const StepElement element : all_elements)
    for (const double p : exact_exponents) {
      const StepOptions options = exact_options(p, element == StepElement::bfloat16 ? 0.1 : 1e-3);
      const kernels::StepPlan plan = make_step_plan(options);
      const auto cases = test::step_cases(plan, element, {.per_kind = 60});
      Trial trial(element, cases);
      trial.step(options);
      Tally tally;
      for (std::size_t i = 0; i < cases.size(); ++i)
        tally.add(trial.weights[i], test::big_mirror_step(cases[i].w, cases[i].d, plan), format_of(element),
                  cases[i]);
      tally.expect(name(p, element));
    }
}

// Doubles for which rate d and y agree in 60 bits and more: what is left of y has lost as many.
TEST(ExactStep, SurvivesMassiveCancellation) {
  std::mt19937_64 engine(3);
  std::uniform_real_distribution<double> uniform(0.5, 2);
  double closest = 1;
  for (const double p : exact_exponents) {
    Tally tally;
    for (int repeat = 0; repeat < 12; ++repeat) {
      StepOptions options = exact_options(p, 1);
      const double w = uniform(engine);
      const BigFloat y = test::signed_power(w, make_step_plan(options).map);
      // Of some hundred rates, the one that comes closest with its best gradient.
      StepCase best{w, 0, "cancellation"};
      BigFloat best_rest(1.0);
      for (int k = 0; k < 200; ++k) {
        const double rate = uniform(engine);
        const double d = test::to_double(y / rate);
        const BigFloat rest = abs(y - BigFloat(rate) * BigFloat(d));
        if (rest < best_rest) best_rest = rest, best.d = d, options.rate = rate;
      }
      closest = std::min(closest, test::to_double(best_rest));
      Trial trial(StepElement::float64, {best});
      trial.step(options);
      tally.add(trial.weights[0], test::big_mirror_step(best.w, best.d, make_step_plan(options)),
                format_of(StepElement::float64), best);
    }
    tally.expect(name(p, StepElement::float64));
  }
  EXPECT_LT(closest, 0x1p-60);
}

// Roots that come out even: y = rate d exactly, and the weight is 0, not some rest.
TEST(ExactStep, ExactCancellationIsZero) {
  struct Even {
    double p, w, y;
  };
  for (const Even& c : {Even{1.5, 9, 3}, Even{1.5, 0x1.9p-400, 0x1.4p-200}, Even{2.5, 6.25, 15.625},
                        Even{1.75, 81, 27}, Even{1.75, 0x1p-1072, 0x1p-804}, Even{3, 0x1.8p-500, 0x1.2p-999},
                        Even{50, 1, 1}, Even{1.001, 1, 1}, Even{1.1, 1024, 2}, Even{4, 1e5, 1e15}}) {
    Trial trial(StepElement::float64, {c.w, -c.w}, {c.y, -c.y});
    trial.step(exact_options(c.p, 1));
    EXPECT_EQ(trial.weights[0], 0) << c.p << " " << c.w;
    EXPECT_EQ(trial.weights[1], 0) << c.p << " " << c.w;
  }
}

TEST(ExactStep, ZeroGradientLeavesEveryBit) {
  for (const StepElement element : all_elements)
    for (const double p : exact_exponents) {
      const std::vector<double> w{0.0, -0.0, 1e-7, -0.3, 65504, 6e-8, infinity, -infinity, nan};
      std::vector<double> zeros(w.size(), 0.0);
      zeros[3] = -0.0;
      Trial trial(element, w, zeros);
      const Array before = trial.weights;
      trial.step(exact_options(p, 0.1));
      EXPECT_TRUE(trial.weights == before);
      // The same entries with a step that is nothing against them.
      Trial tiny(element, {1.5, -2.25, 65504}, {6e-8, 6e-8, -6e-8});
      const Array unmoved = tiny.weights;
      tiny.step(exact_options(p, 1e-30));
      EXPECT_TRUE(tiny.weights == unmoved) << p;
    }
}

TEST(ExactStep, InfinitiesAndNaN) {
  for (const double p : {1.1, 2.0, 3.0}) {
    const std::vector<double> w{infinity, infinity, -infinity, 1, 1, 1, nan},
        d{1, infinity, 1, infinity, -infinity, nan, 1};
    const std::vector<double> wanted{infinity, nan, -infinity, -infinity, infinity, nan, nan};
    for (const StepElement element : all_elements)
      for (const Trial::Use use : {Trial::Use::plain, Trial::Use::with_master}) {
        Trial trial(element, w, d);
        trial.fill(exact_options(p, 0.1));
        trial.step(exact_options(p, 0.1), use);
        for (std::size_t i = 0; i < w.size(); ++i)
          EXPECT_TRUE(trial.weights[i] == wanted[i] ||
                      (std::isnan(trial.weights[i]) && std::isnan(wanted[i])))
              << i << ": " << trial.weights[i];
      }
  }
}

// Exponents beyond all range still give the limit of the formula: a weight above 1 stays, one below 1 goes to -sign(d).
TEST(ExactStep, ExtremeP) {
  for (const double p : {1e4, 1e12, 1e300}) {
    Trial trial(StepElement::float64, {2, -3, 0.5, 0, 1e300}, {1, 1, 1, -1, 1});
    trial.step(exact_options(p, 1));
    EXPECT_EQ(trial.weights[0], 2);
    EXPECT_EQ(trial.weights[1], -3);
    EXPECT_NEAR(trial.weights[2], -1, 1e-3);
    EXPECT_NEAR(trial.weights[3], 1, 1e-3);
    EXPECT_EQ(trial.weights[4], 1e300);
  }
  const double p = 1 + 0x1p-50;
  const StepOptions options = exact_options(p, 0x1p-51);
  Trial trial(StepElement::float64, {2, 1, -0.5}, {1, -1, 0.25});
  trial.step(options);
  const kernels::StepPlan plan = make_step_plan(options);
  EXPECT_EQ(trial.weights[0], round_to(test::big_mirror_step(2, 1.0, plan), format_of(StepElement::float64)));
  EXPECT_EQ(trial.weights[1],
            round_to(test::big_mirror_step(1, -1.0, plan), format_of(StepElement::float64)));
  EXPECT_EQ(trial.weights[2],
            round_to(test::big_mirror_step(-.5, .25, plan), format_of(StepElement::float64)));
}

TEST(ExactStep, MastersMomentumDecayAndScale) {
  for (const StepElement element : all_elements)
    for (const double p : {1.1, 1.75, 2.0, 3.0, 10.0})
      for (const bool nesterov : {false, true}) {
        StepOptions options = exact_options(p, 0.01);
        options.momentum = 0.9;
        options.nesterov = nesterov;
        options.weight_decay = 0.5;
        options.gradient_scale = 3;
        const kernels::StepPlan plan = make_step_plan(options);
        const auto cases = test::step_cases(plan, element, {.per_kind = 3});
        Trial plain(element, cases), kept(element, cases);
        const BigFormat format = format_of(element), state = state_of(element);
        kept.fill(options);
        Tally fills;
        for (std::size_t i = 0; i < cases.size(); ++i)
          fills.add(kept.master[i], test::signed_power(cases[i].w, plan.map), state, cases[i]);
        fills.expect("masters, " + name(p, element));
        for (int step = 0; step < 2; ++step) {
          const Trial plain_before = plain, kept_before = kept;
          plain.step(options);
          kept.step(options, Trial::Use::with_master);
          EXPECT_TRUE(kept.momentum == plain.momentum);
          Tally weights, momenta, masters, derived;
          for (std::size_t i = 0; i < cases.size(); ++i) {
            const BigFloat g = BigFloat(cases[i].d) * BigFloat(plan.unscale);
            momenta.add(plain.momentum[i], BigFloat(plan.momentum) * BigFloat(plain_before.momentum[i]) + g,
                        state, cases[i]);
            const BigFloat m(plain.momentum[i]);
            if (!std::isfinite(plain.momentum[i]) || !std::isfinite(plain_before.weights[i]) ||
                !std::isfinite(kept_before.master[i]))
              continue;
            const BigFloat d = nesterov ? g + BigFloat(plan.momentum) * m : m;
            weights.add(plain.weights[i], test::big_mirror_step(plain_before.weights[i], d, plan), format,
                        cases[i]);
            masters.add(kept.master[i], test::big_next_image(kept_before.master[i], d, plan, 1), state,
                        cases[i]);
            if (std::isfinite(kept.master[i]))
              derived.add(kept.weights[i], test::signed_power(kept.master[i], plan.inverse), format,
                          cases[i]);
          }
          weights.expect("weights, " + name(p, element));
          momenta.expect("momenta, " + name(p, element));
          masters.expect("next masters, " + name(p, element));
          derived.expect("weights of masters, " + name(p, element));
        }
      }
}

// The norm is a double, right to a few ulps; nothing of that shows in formats of up to 32 bits.
TEST(ExactStep, Normalized) {
  for (const StepElement element : all_elements)
    for (const double p : exact_exponents) {
      StepOptions options = exact_options(p, 0.01);
      options.normalized = true;
      const kernels::StepPlan plan = make_step_plan(options);
      std::mt19937_64 engine(5);
      std::normal_distribution<double> normal;
      std::vector<double> w(300), d(300);
      for (std::size_t i = 0; i < w.size(); ++i) w[i] = 0.02 * normal(engine), d[i] = 1e-3 * normal(engine);
      Trial trial(element, w, d);
      const Array before = trial.weights;
      trial.step(options);
      BigFloat norm(0.0);
      for (std::size_t i = 0; i < w.size(); ++i)
        norm = norm + test::signed_power(std::abs(trial.gradient[i]), plan.dual);
      mpfr_pow(norm.get(), norm.get(), (BigFloat(1.0) / test::big(plan.dual)).get(), MPFR_RNDN);
      double worst = 0;
      for (std::size_t i = 0; i < w.size(); ++i) {
        const BigFloat wanted = test::big_mirror_step(before[i], BigFloat(trial.gradient[i]) / norm, plan);
        const double ulps = ulps_between(trial.weights[i], wanted, format_of(element));
        // Weights that all but vanish in the difference show every ulp of the norm.
        const bool cancels = std::abs(trial.weights[i]) < std::abs(before[i]) / 4;
        if (!cancels) worst = std::max(worst, ulps);
      }
      EXPECT_LE(worst, element == StepElement::float64 ? 4 + 4 / (p - 1) : 0.51) << name(p, element);
    }
}

TEST(ExactStep, SteepestAndSign) {
  for (const StepElement element : all_elements)
    for (const double p : {1.1, 1.5, 2.0, 3.0, 50.0}) {
      StepOptions options = exact_options(p, 0.01);
      options.weight_decay = 0.5;
      for (const StepRule rule : {StepRule::steepest, StepRule::sign}) {
        options.rule = rule;
        const kernels::StepPlan plan = make_step_plan(options);
        // Gradients of which one is the whole norm: shrink is 1/|that|, exactly 1/4.
        std::vector<StepCase> cases{{0.5, 4, "largest"}};
        for (double w : {0.0, 0.02, -0.3, 6e-8, 60000.0})
          for (double d : {1e-3, -0x1p-20, 6e-8, 0.0}) cases.push_back({w, d, "small"});
        Trial trial(element, cases), kept(element, cases);
        cases.clear();
        double norm = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(trial.weights.size()); ++i) {
          cases.push_back({trial.weights[i], trial.gradient[i], "rounded"});
          if (rule == StepRule::steepest) norm += std::pow(std::abs(trial.gradient[i]) / 4, plan.dual.value);
        }
        const double shrink = 1 / (4 * std::pow(norm, 1 / plan.dual.value));
        kept.fill(options);
        trial.step(options);
        kept.step(options, Trial::Use::with_master);
        const BigFormat format = format_of(element), state = state_of(element);
        for (std::size_t i = 0; i < cases.size(); ++i) {
          const double d = cases[i].d;
          const BigFloat wanted =
              rule == StepRule::steepest
                  ? test::big_steepest_step(cases[i].w, d, plan, shrink)
                  : BigFloat(plan.keep) * BigFloat(cases[i].w) -
                        BigFloat(plan.rate) * BigFloat(static_cast<double>((d > 0) - (d < 0)));
          // The norm is a double, and known here to a few of its ulps only.
          EXPECT_LE(ulps_between(trial.weights[i], wanted, format),
                    element == StepElement::float64 ? 30 : 0.51)
              << name(p, element) << " " << cases[i].w << " " << d;
          EXPECT_LE(ulps_between(kept.master[i], wanted, state), element == StepElement::float64 ? 30 : 0.51);
          EXPECT_EQ(kept.weights[i], round_to(kept.master[i], format));
        }
      }
    }
}

}  // namespace
}  // namespace attmirror
