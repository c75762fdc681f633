// The checker that judges the kernels (tests/support/step_bounds.hpp) is itself judged here, by MPFR: its distances are
// those of the formulas, it accepts what is correctly rounded, and it rejects what is off by three ulps of the image.
#include "support/step_bounds.hpp"

#include "mirror/make_step_plan.hpp"
#include "mirror/step_reference.hpp"
#include "support/special_numbers.hpp"
#include "support/step_cases.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::BigFloat;
using test::BigFormat;
using test::infinity;
using test::nan;
using test::StepCase;

const std::vector<double> judged_exponents{1.01, 1.1, 1.3, 1.5, 1.75, 2, 2.5, 3, 10, 50};

BigFormat big(const exact::Format& format) { return {format.digits, format.least, format.largest}; }

kernels::StepPlan plan_of(double p, double rate = 1e-3, StepRule rule = StepRule::mirror) {
  return make_step_plan({.rule = rule, .p = p, .rate = rate, .weight_decay = 0.25});
}

// The distance of y* from the images of [w_new - ulp, w_new + ulp], in ulps of max(|y|, |rate d|).
double image_ulps(const StepCase& c, double w_new, const kernels::StepPlan& plan, StepElement element) {
  const BigFormat format = big(test::weight_format(element)), state = big(test::state_format(element));
  const BigFloat y = test::signed_power(c.w, plan.map), step = BigFloat(plan.rate) * BigFloat(c.d);
  const BigFloat target = BigFloat(plan.keep_image) * y - step;
  const BigFloat ulp = test::exp2_of(test::big_ulp_exponent(w_new, format));
  const BigFloat low = test::signed_power(BigFloat(w_new) - ulp, plan.map);
  const BigFloat high = test::signed_power(BigFloat(w_new) + ulp, plan.map);
  const BigFloat largest = abs(y) < abs(step) ? abs(step) : abs(y);
  const BigFloat unit = test::exp2_of(test::big_ulp_exponent(largest, state));
  if (target < low) return test::to_double((low - target) / unit);
  if (high < target) return test::to_double((target - high) / unit);
  return 0;
}

// w moved by some of its own ulps, in its format.
double moved(double w, int ulps, StepElement element) {
  const BigFormat format = big(test::weight_format(element));
  return round_to(BigFloat(w) + BigFloat(ulps) * test::exp2_of(test::big_ulp_exponent(w, format)), format);
}

TEST(StepBounds, DistancesAreThoseOfTheFormulas) {
  int far = 0;
  for (const StepElement element :
       {StepElement::float32, StepElement::bfloat16, StepElement::float16, StepElement::float64})
    for (const double p : judged_exponents) {
      const kernels::StepPlan plan = plan_of(p);
      int i = 0;
      for (const StepCase& c : test::step_cases(plan, element, {.per_kind = 5})) {
        const BigFloat exact = test::big_mirror_step(c.w, c.d, plan);
        const double rounded = round_to(exact, big(test::weight_format(element)));
        if (std::isinf(rounded)) continue;
        const double got = moved(rounded, i++ % 9 - 4, element);
        if (std::isinf(got)) continue;
        const test::MirrorError error = test::mirror_error(c.w, c.d, got, plan, 1, element);
        EXPECT_EQ(error.expected, rounded);
        const double wanted = image_ulps(c, got, plan, element);
        if (wanted < infinity) {
          EXPECT_NEAR(error.image_ulps, wanted, 1e-9 * wanted + 1e-12)
              << p << " " << c.kind << " " << c.w << " " << c.d;
        } else {
          EXPECT_EQ(error.image_ulps, infinity);
        }
        EXPECT_GE(error.relative_ulps, error.image_ulps);
        if (wanted > 2) ++far;
      }
    }
  EXPECT_GT(far, 100);
}

TEST(StepBounds, AcceptsWhatIsCorrectlyRounded) {
  for (const StepElement element :
       {StepElement::float32, StepElement::bfloat16, StepElement::float16, StepElement::float64})
    for (const double p : judged_exponents) {
      const kernels::StepPlan plan = plan_of(p);
      for (const StepCase& c : test::step_cases(plan, element, {.per_kind = 5})) {
        const BigFormat format = big(test::weight_format(element));
        const double rounded = round_to(test::big_mirror_step(c.w, c.d, plan), format);
        const test::MirrorError error = test::mirror_error(c.w, c.d, rounded, plan, 1, element);
        EXPECT_EQ(error.image_ulps, 0);
        EXPECT_EQ(error.relative_ulps, 0);
        EXPECT_LE(error.ulps, 0.5000001);
      }
    }
}

// The weight of z = y* + k ulps of the image, moved outwards by 2 of its own ulps, is off by at least k in the image;
// rounded to nearest instead it is off by at most k.
TEST(StepBounds, RejectsThreeUlpsOfTheImage) {
  for (const StepElement element : {StepElement::float32, StepElement::float64})
    for (const double p : judged_exponents) {
      const kernels::StepPlan plan = plan_of(p);
      const BigFormat format = big(test::weight_format(element));
      std::map<std::string, int> tried;
      for (const StepCase& c : test::step_cases(plan, element, {.per_kind = 8}))
        for (const double k : {-3.0, 3.0}) {
          const BigFloat y = test::signed_power(c.w, plan.map), step = BigFloat(plan.rate) * BigFloat(c.d);
          const BigFloat largest = abs(y) < abs(step) ? abs(step) : abs(y);
          const BigFloat unit = test::exp2_of(test::big_ulp_exponent(largest, format));
          const BigFloat target = BigFloat(plan.keep_image) * y - step;
          const double bad = round_to(test::signed_power(target + BigFloat(k) * unit, plan.inverse), format);
          const double worse = moved(bad, k < 0 ? -2 : 2, element);
          if (std::isinf(worse) || std::isinf(bad)) continue;
          ++tried[c.kind];
          EXPECT_GE(test::mirror_error(c.w, c.d, worse, plan, 1, element).image_ulps, 2.999) << c.kind;
          EXPECT_LE(test::mirror_error(c.w, c.d, bad, plan, 1, element).image_ulps, 3.001) << c.kind;
        }
      EXPECT_GE(tried.size(), 8u) << p;
    }
}

TEST(StepBounds, NotFinite) {
  const kernels::StepPlan plan = plan_of(1.1, 1);
  EXPECT_EQ(test::mirror_error(1, 1, nan, plan).image_ulps, infinity);
  EXPECT_EQ(test::mirror_error(nan, 1, 1, plan).image_ulps, infinity);
  EXPECT_EQ(test::mirror_error(nan, 1, nan, plan).image_ulps, 0);
  EXPECT_EQ(test::mirror_error(infinity, 1, infinity, plan).image_ulps, 0);
  EXPECT_EQ(test::mirror_error(1, infinity, -infinity, plan).image_ulps, 0);
  EXPECT_EQ(test::mirror_error(1, infinity, infinity, plan).image_ulps, infinity);
  // |w'| = 1e5^10: beyond floats, and only an infinity of the right sign will do.
  EXPECT_EQ(test::mirror_error(1, -1e5, infinity, plan).image_ulps, 0);
  EXPECT_GT(test::mirror_error(1, -1e5, -infinity, plan).image_ulps, 1e6);
  EXPECT_GT(test::mirror_error(1, -1e5, 3.4e38, plan).image_ulps, 1e6);
  // An ordinary result is not infinite.
  EXPECT_GT(test::mirror_error(1, 1e-3, infinity, plan).image_ulps, 1e6);
  EXPECT_EQ(test::steepest_error(1, 1, nan, plan).ulps_of_largest, infinity);
  EXPECT_GT(test::steepest_error(1, 1, infinity, plan).ulps_of_largest, 1e6);
  EXPECT_EQ(test::master_error(1, infinity, -infinity, plan).ulps_of_largest, 0);
  EXPECT_EQ(test::weight_error(nan, 1, plan, StepElement::bfloat16).ulps, infinity);
}

TEST(StepBounds, MastersAndTheirWeights) {
  for (const StepElement element : {StepElement::bfloat16, StepElement::float16, StepElement::float64})
    for (const double p : judged_exponents) {
      const kernels::StepPlan plan = plan_of(p);
      const BigFormat format = big(test::weight_format(element)), state = big(test::state_format(element));
      for (const StepCase& c : test::step_cases(plan, element, {.per_kind = 4})) {
        const BigFloat y = test::signed_power(c.w, plan.map);
        const double filled = round_to(y, state);
        if (std::isinf(filled)) continue;
        EXPECT_LE(test::fill_error(c.w, filled, plan, element).ulps, 0.5000001);
        const BigFloat step = BigFloat(plan.rate) * BigFloat(c.d);
        const BigFloat target = test::big_next_image(filled, c.d, plan, 1);
        const BigFloat largest =
            std::abs(filled) < test::to_double(abs(step)) ? abs(step) : BigFloat(std::abs(filled));
        const BigFloat unit = test::exp2_of(test::big_ulp_exponent(largest, state));
        const double next = round_to(target, state), off = round_to(target + BigFloat(3.0) * unit, state);
        if (std::isinf(next) || std::isinf(off)) continue;
        EXPECT_EQ(test::master_error(filled, c.d, next, plan, 1, element).expected, next);
        EXPECT_LE(test::master_error(filled, c.d, next, plan, 1, element).ulps_of_largest, 0.5);
        EXPECT_GE(test::master_error(filled, c.d, off, plan, 1, element).ulps_of_largest, 1.99);
        const BigFloat weight = test::signed_power(next, plan.inverse);
        const double rounded = round_to(weight, format), far_off = moved(rounded, next < 0 ? -3 : 3, element);
        if (std::isinf(rounded) || std::isinf(far_off)) continue;
        EXPECT_EQ(test::weight_error(next, rounded, plan, element).expected, rounded);
        EXPECT_LE(test::weight_error(next, rounded, plan, element).ulps, 0.5000001);
        EXPECT_GE(test::weight_error(next, far_off, plan, element).ulps, 1.4);
      }
    }
}

TEST(StepBounds, SteepestAndSign) {
  const double shrink = 0.3;
  for (const StepElement element :
       {StepElement::float32, StepElement::bfloat16, StepElement::float16, StepElement::float64})
    for (const double p : judged_exponents)
      for (const StepRule rule : {StepRule::steepest, StepRule::sign}) {
        const kernels::StepPlan plan = plan_of(p, 1e-3, rule);
        const BigFormat format = big(test::weight_format(element)), state = big(test::state_format(element));
        for (const StepCase& c : test::step_cases(plan, element, {.per_kind = 4})) {
          const BigFloat kept = BigFloat(plan.keep) * BigFloat(c.w);
          const BigFloat step =
              BigFloat(plan.rate) *
              (rule == StepRule::sign ? BigFloat(static_cast<double>((c.d > 0) - (c.d < 0)))
                                      : test::signed_power(BigFloat(shrink) * BigFloat(c.d), plan.inverse));
          const auto error = [&](double got) {
            return rule == StepRule::sign ? test::sign_error(c.w, c.d, got, plan, element)
                                          : test::steepest_error(c.w, c.d, got, plan, shrink, element);
          };
          const double good = round_to(kept - step, format);
          EXPECT_EQ(error(good).expected, good);
          EXPECT_EQ(error(good).ulps_of_largest, 0);
          // Off by four ulps of the larger term, of which rounding may take one; in 16 bits by two of its own, too.
          const BigFloat largest = BigFloat(std::abs(c.w)) < abs(step) ? abs(step) : BigFloat(std::abs(c.w));
          const BigFloat unit = test::exp2_of(test::big_ulp_exponent(largest, state));
          const BigFloat own = test::exp2_of(test::big_ulp_exponent(good, format));
          const BigFloat extra = format.digits < state.digits ? BigFloat(2.5) * own : BigFloat(0.0);
          const double bad = round_to(kept - step + BigFloat(4.0) * unit + extra, format);
          if (std::isinf(bad) || std::isinf(good)) continue;
          EXPECT_GT(error(bad).ulps_of_largest, 2) << p << " " << c.w << " " << c.d;
        }
      }
}

// Each kind of case is there for a reason; a kind that no longer does what its name says would go unnoticed.
TEST(StepCases, AreWhatTheirKindsSay) {
  for (const StepElement element :
       {StepElement::float32, StepElement::bfloat16, StepElement::float16, StepElement::float64})
    for (const double p : {1.1, 1.5, 2.0, 3.0, 10.0}) {
      const kernels::StepPlan plan = make_step_plan({.p = p, .rate = 0.01});
      const BigFormat format = big(test::weight_format(element));
      std::map<std::string, int> count, as_named;
      for (const StepCase& c : test::step_cases(plan, element, {.per_kind = 40})) {
        const std::string kind = c.kind;
        ASSERT_TRUE(std::isfinite(c.w) && std::isfinite(c.d));
        ASSERT_EQ(round_to(c.w, format), c.w);
        ASSERT_EQ(round_to(c.d, format), c.d);
        const BigFloat y = test::signed_power(c.w, plan.map), step = BigFloat(plan.rate) * BigFloat(c.d);
        const double ratio = test::to_double(step / y);
        const double result = std::abs(round_to(test::big_mirror_step(c.w, c.d, plan), format));
        ++count[kind];
        as_named[kind] += kind == "cancellation"    ? std::abs(ratio - 1) < std::ldexp(8.0, -format.digits)
                          : kind == "opposed signs" ? ratio < 0
                          : kind == "tiny step"     ? std::abs(ratio) < 1e-4
                          : kind == "overflow"      ? std::isinf(result)
                          : kind == "underflow"     ? result < std::ldexp(1.0, format.least + format.digits)
                                                    : 1;
      }
      EXPECT_GE(count.size(), 12u);
      for (const auto& [kind, n] : count) {
        // From p = 2 on, results reach the ends of the range only with gradients that no format has.
        if ((kind == "overflow" || kind == "underflow") && p >= 2) continue;
        EXPECT_GE(as_named[kind], n / 4) << kind << " at p = " << p << " in " << to_string(element);
      }
    }
}

}  // namespace
}  // namespace attmirror
