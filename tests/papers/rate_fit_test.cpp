// Slopes of known laws, and intervals that contain the truth as often as they claim.
#include "papers/rate_fit.hpp"

#include "base/random.hpp"
#include "papers/student_t.hpp"
#include "support/files.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

TEST(RateFit, FindsTheExponentOfALaw) {
  std::vector<double> x, y;
  for (int j = 40; j <= 120; ++j) {
    const double log_k = j * std::log(10.0) / 10;
    x.push_back(std::log(log_k));
    y.push_back(std::log(3.7 / (log_k * log_k)));
  }
  const LineFit fit = fit_line(x, y);
  EXPECT_NEAR(fit.slope, -2, 1e-12);
  EXPECT_NEAR(std::exp(fit.intercept), 3.7, 1e-10);
  EXPECT_LT(fit.slope_error, 1e-12);
  EXPECT_EQ(fit.points, 81);
  for (const double slope : local_slopes(x, y, 0.1)) EXPECT_NEAR(slope, -2, 1e-10);
}

TEST(RateFit, LocalSlopesFollowACurveThatBends) {
  std::vector<double> x, y;
  for (int i = 0; i <= 100; ++i) {
    x.push_back(0.1 * i);
    y.push_back(x.back() * x.back());
  }
  const std::vector<double> slopes = local_slopes(x, y, 0.25);
  for (std::size_t i = 5; i < 95; ++i) EXPECT_NEAR(slopes[i], 2 * x[i], 1e-9);
  EXPECT_TRUE(std::isnan(local_slopes(x, y, 0.01)[3]));  // no neighbor within reach
}

// Noise that remembers: the error must be near the true scatter of the slope, which the textbook formula misses by far.
TEST(RateFit, ErrorCountsTheCorrelationOfNeighbors) {
  const CounterRandom random(7, RandomStream::init_W);
  std::uint64_t next = 0;
  double scatter = 0, claimed = 0;
  const int tries = 400, n = 400;
  for (int attempt = 0; attempt < tries; ++attempt) {
    std::vector<double> x, y;
    double noise = 0;
    for (int i = 0; i < n; ++i) {
      noise = 0.8 * noise + random.normal(next++);
      x.push_back(i);
      y.push_back(2 + 0.5 * i + noise);
    }
    const LineFit fit = fit_line(x, y);
    scatter += (fit.slope - 0.5) * (fit.slope - 0.5) / tries;
    claimed += fit.slope_error * fit.slope_error / tries;
  }
  const double textbook = 1 / (1 - 0.64) / (n * (n * n - 1.0) / 12);
  EXPECT_GT(scatter, 5 * textbook);
  EXPECT_GT(claimed, 0.5 * scatter);
  EXPECT_LT(claimed, 1.5 * scatter);
}

TEST(RateFit, StudentsQuantiles) {
  EXPECT_NEAR(student_quantile(0.95, 1), 12.706205, 1e-6);
  EXPECT_NEAR(student_quantile(0.95, 2), 4.302653, 1e-6);
  EXPECT_NEAR(student_quantile(0.95, 9), 2.262157, 1e-6);
  EXPECT_NEAR(student_quantile(0.99, 30), 2.749996, 1e-6);
  EXPECT_NEAR(student_quantile(0.95, 100'000), 1.959988, 1e-6);
}

TEST(RateFit, IntervalsContainTheTruthAsOftenAsTheyClaim) {
  const CounterRandom random(8, RandomStream::init_W);
  std::uint64_t next = 0;
  int hits = 0;
  const int tries = 4000;
  for (int attempt = 0; attempt < tries; ++attempt) {
    std::vector<double> values;
    for (int i = 0; i < 5; ++i) values.push_back(1 + random.normal(next++));
    const Interval interval = confidence_interval(values, 0.9);
    hits += interval.low <= 1 && 1 <= interval.high ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(hits) / tries, 0.9, 0.02);
}

TEST(RateFit, WhatIsNotFiniteDoesNotCount) {
  const double nan = std::nan(""), inf = HUGE_VAL;
  const LineFit fit = fit_line(std::vector{0.0, 1.0, 2.0, 3.0, nan}, std::vector{1.0, 3.0, inf, 7.0, 0.0});
  EXPECT_NEAR(fit.slope, 2, 1e-14);
  EXPECT_EQ(fit.points, 3);
  EXPECT_TRUE(std::isnan(fit_line(std::vector{0.0, 1.0}, std::vector{0.0, 1.0}).slope_error));
  const Interval interval = confidence_interval(std::vector{2.0, nan, 4.0});
  EXPECT_EQ(interval.count, 2);
  EXPECT_EQ(interval.mean, 3);
  EXPECT_EQ(interval.error, 1);
  EXPECT_TRUE(std::isinf(confidence_interval(std::vector{2.0}).high));
  EXPECT_TRUE(std::isnan(confidence_interval({}).mean));
  test::expect_bad_input({"2 x and 1 y"}, [] { fit_line(std::vector{0.0, 1.0}, std::vector{0.0}); });
  test::expect_bad_input({"1 finite points"}, [=] {
    fit_line(std::vector{0.0, nan}, std::vector{0.0, 1.0});
  });
  test::expect_bad_input({"level is 1"}, [] { student_quantile(1, 3); });
  test::expect_bad_input({"freedom is 0"}, [] { student_quantile(0.5, 0); });
}

}  // namespace
}  // namespace attmirror
