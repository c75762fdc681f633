// Ticks are round numbers within the range, and any range has some.
#include "report/axis_scale.hpp"

#include "support/special_numbers.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

using test::infinity;
using test::nan;

std::vector<std::string> labels(const AxisScale& scale, int wanted) {
  std::vector<std::string> words;
  for (const Tick& tick : scale.ticks(wanted))
    if (!tick.label.empty()) words.push_back(tick.label);
  return words;
}

using Words = std::vector<std::string>;

TEST(AxisScale, LinearTicksAreRound) {
  EXPECT_EQ(labels(AxisScale({}, {0, 1}), 5), (Words{"0", "0.2", "0.4", "0.6", "0.8", "1.0"}));
  EXPECT_EQ(labels(AxisScale({}, {0, 20000}), 4), (Words{"0", "5000", "10,000", "15,000", "20,000"}));
  EXPECT_EQ(labels(AxisScale({}, {-1e-7, 1e-7}), 4),
            (Words{"-1.0×10⁻⁷", "-0.5×10⁻⁷", "0", "0.5×10⁻⁷", "1.0×10⁻⁷"}));
}

TEST(AxisScale, LogTicksArePowersOfTen) {
  const Axis log{.scale = Axis::Scale::log};
  EXPECT_EQ(labels(AxisScale(log, {1, 1e4}), 6), (Words{"10⁰", "10¹", "10²", "10³", "10⁴"}));
  EXPECT_EQ(labels(AxisScale(log, {1e-12, 1}), 6),
            (Words{"10⁻¹²", "10⁻¹⁰", "10⁻⁸", "10⁻⁶", "10⁻⁴", "10⁻²", "10⁰"}));
  EXPECT_EQ(labels(AxisScale(log, {1, 20}), 6), (Words{"10⁰", "2", "5", "10¹", "20"}));
  EXPECT_EQ(labels(AxisScale(log, {100, 200}), 4), (Words{"100", "120", "140", "160", "180", "200"}));
}

TEST(AxisScale, WhatCountsHasWholeTicksAlone) {
  const std::vector<double> blocks{3, 4, 6};
  EXPECT_EQ(labels(AxisScale({}, blocks), 6), (Words{"3.0", "3.5", "4.0", "4.5", "5.0", "5.5", "6.0"}));
  EXPECT_EQ(labels(AxisScale({.whole = true}, blocks), 6), (Words{"3", "4", "5", "6"}));
  EXPECT_EQ(labels(AxisScale({.whole = true}, {1, 130}), 6), labels(AxisScale({}, {1, 130}), 6));
  const Axis log{.scale = Axis::Scale::log, .whole = true};
  EXPECT_EQ(labels(AxisScale(log, {3, 6}), 6), (Words{"3", "4", "5", "6"}));
  for (const Tick& tick : AxisScale(log, {0.2, 30}).ticks(6)) EXPECT_EQ(tick.value, std::round(tick.value));
  // Between two of them, an axis without numbers would be worse.
  EXPECT_GE(labels(AxisScale({.range = std::pair{0.2, 0.8}, .whole = true}, {}), 5).size(), 2u);
}

TEST(AxisScale, LeavesOutWhatCannotBeShown) {
  const AxisScale linear({}, {nan, infinity, 3, -infinity, 5});
  EXPECT_NEAR(linear.low(), 2.94, 1e-12);
  EXPECT_NEAR(linear.high(), 5.06, 1e-12);
  const AxisScale log({.scale = Axis::Scale::log}, {-1, 0, 10, 1000});
  EXPECT_FALSE(log.shows(0));
  EXPECT_FALSE(log.shows(-1));
  EXPECT_NEAR(log.position(100), 0.5, 1e-12);
}

TEST(AxisScale, RangeOfTheAxisCounts) {
  const AxisScale scale({.range = std::pair{0.0, 2.0}}, {-10, 50});
  EXPECT_EQ(scale.position(1), 0.5);
  EXPECT_EQ(scale.position(4), 2);
}

TEST(AxisScale, AnyNumbersGiveFinitePositionsAndTicks) {
  const std::vector<std::vector<double>> cases{{},
                                               {0},
                                               {7},
                                               {-7, -7},
                                               {1e-310},
                                               {5e-324, 1},
                                               {-1.7e308, 1.7e308},
                                               {1e308, 1.7e308},
                                               {1, 1 + 1e-15},
                                               {nan},
                                               {-1e-300, 1e-300}};
  for (const auto& [kind, whole] : {std::pair{Axis::Scale::linear, false}, std::pair{Axis::Scale::log, false},
                                    std::pair{Axis::Scale::linear, true}, std::pair{Axis::Scale::log, true}})
    for (const auto& values : cases) {
      const AxisScale scale({.scale = kind, .whole = whole}, values);
      EXPECT_TRUE(std::isfinite(scale.length()) && scale.length() > 0);
      for (const double value : values)
        if (scale.shows(value) && std::abs(value) < 1e300) {
          EXPECT_GE(scale.position(value), -1e-9) << value;
          EXPECT_LE(scale.position(value), 1 + 1e-9) << value;
        }
      EXPECT_GE(labels(scale, 5).size(), 1u) << testing::PrintToString(values);
    }
  EXPECT_TRUE(rc::check("ticks lie in the range", [](const std::vector<double>& values) {
    for (const auto kind : {Axis::Scale::linear, Axis::Scale::log}) {
      const AxisScale scale({.scale = kind}, values);
      const auto ticks = scale.ticks(6);
      RC_ASSERT(ticks.size() <= 120u);
      for (const Tick& tick : ticks) RC_ASSERT(std::abs(scale.position(tick.value) - 0.5) <= 0.5 + 1e-6);
    }
  }));
}

}  // namespace
}  // namespace attmirror
