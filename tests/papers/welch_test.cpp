// Student's t against closed forms and quadrature; Welch's comparison against numbers worked out by hand.
#include "papers/welch.hpp"

#include "papers/student_t.hpp"
#include <attmirror/base/error.hpp>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

constexpr double pi = std::numbers::pi;

// P(|T| > t) has closed forms for few degrees of freedom.
double two_sided_1(double t) { return 2 / pi * std::atan2(1, t); }
double two_sided_2(double t) { return 2 / (t * t + 2 + t * std::sqrt(t * t + 2)); }
double two_sided_3(double t) {
  return 1 - 2 / pi * (std::atan(t / std::sqrt(3.0)) + t * std::sqrt(3.0) / (3 + t * t));
}

// By Simpson's rule in long double, in the variable t = sqrt(nu) tan(theta).
double two_sided_by_quadrature(double t, double nu) {
  const auto density = [&](long double theta) { return std::pow(std::cos(theta), nu - 1.0L); };
  const auto integral = [&](long double from, long double to) {
    constexpr int pieces = 20'000;
    const long double step = (to - from) / pieces;
    long double sum = density(from) + density(to);
    for (int i = 1; i < pieces; ++i) sum += density(from + i * step) * (i % 2 == 1 ? 4 : 2);
    return sum * step / 3;
  };
  const long double half_pi = std::numbers::pi_v<long double> / 2;
  const long double at = std::atan(static_cast<long double>(t) / std::sqrt(static_cast<long double>(nu)));
  return static_cast<double>(integral(at, half_pi) / integral(0, half_pi));
}

TEST(StudentT, AgreesWithClosedForms) {
  for (const double t : {1e-8, 0.01, 0.3, 1.0, 2.5, 12.7, 300.0, 1e6}) {
    EXPECT_NEAR(student_two_sided(t, 1) / two_sided_1(t), 1, 2e-14) << t;
    EXPECT_NEAR(student_two_sided(t, 2) / two_sided_2(t), 1, 2e-14) << t;
    if (t < 50) {
      EXPECT_NEAR(student_two_sided(t, 3), two_sided_3(t), 1e-15) << t;
    }
  }
  EXPECT_EQ(student_two_sided(0, 4.5), 1);
  EXPECT_EQ(student_two_sided(std::numeric_limits<double>::infinity(), 4.5), 0);
}

TEST(StudentT, AgreesWithQuadratureForFractionalFreedom) {
  for (const double nu : {3.7, 7.3, 12.01, 41.5, 79.9, 80.1, 333.3})
    for (const double t : {0.2, 1.1, 2.3, 4.0})
      EXPECT_NEAR(student_two_sided(t, nu) / two_sided_by_quadrature(t, nu), 1, 1e-13) << nu << " " << t;
}

TEST(StudentT, TablesHaveItsQuantiles) {
  // df = 1: tan(0.475 pi); df = 2 by its closed form; the others from tables of 16 digits.
  EXPECT_NEAR(student_quantile(0.95, 1), std::tan(0.475 * pi), 1e-12);
  EXPECT_NEAR(student_quantile(0.95, 2), 0.95 * std::sqrt(2 / (1 - 0.95 * 0.95)), 1e-13);
  EXPECT_NEAR(student_quantile(0.95, 3), 3.182446305284263, 1e-13);
  EXPECT_NEAR(student_quantile(0.95, 4), 2.7764451051977987, 1e-13);
  EXPECT_NEAR(student_quantile(0.95, 10), 2.2281388519649385, 1e-13);
  EXPECT_NEAR(student_quantile(0.95, 30), 2.0422724563012373, 1e-13);
  EXPECT_NEAR(student_quantile(0.95, std::numeric_limits<double>::infinity()), 1.959963984540054, 1e-13);
  for (const double level : {1e-6, 0.2, 0.5, 0.99, 0.999999})
    for (const double nu : {0.5, 1.0, 2.6, 9.0, 1234.5})
      EXPECT_NEAR(student_two_sided(student_quantile(level, nu), nu) / (1 - level), 1, 1e-12)
          << level << " " << nu;
}

TEST(StudentT, WhatMakesNoSenseIsRefused) {
  EXPECT_THROW(student_two_sided(-1, 3), Error);
  EXPECT_THROW(student_two_sided(1, 0), Error);
  EXPECT_THROW(student_two_sided(std::nan(""), 3), Error);
  EXPECT_THROW(student_quantile(1, 3), Error);
  EXPECT_THROW(student_quantile(0.95, std::nan("")), Error);
}

TEST(Welch, AHandWorkedComparison) {
  // Variances 2.5 and 10/3: v1 = 0.5, v2 = 5/6, nu = (4/3)^2 / (0.25 / 4 + (25/36) / 3) = 6.0526...
  const SampleSummary first = summarize(std::vector<double>{4, 5, 6, 7, 8});
  const SampleSummary second = summarize(std::vector<double>{1, 2, 4, 5});
  EXPECT_DOUBLE_EQ(first.mean, 6);
  EXPECT_DOUBLE_EQ(first.deviation, std::sqrt(2.5));
  const WelchComparison comparison = welch(first, second);
  EXPECT_DOUBLE_EQ(comparison.difference, 3);
  EXPECT_DOUBLE_EQ(comparison.standard_error, std::sqrt(4.0 / 3));
  EXPECT_NEAR(comparison.freedom, 16.0 / 9 / (0.0625 + 25.0 / 108), 1e-12);
  EXPECT_NEAR(comparison.interval.half_width(),
              student_quantile(0.95, comparison.freedom) * std::sqrt(4.0 / 3), 1e-12);
  EXPECT_NEAR(comparison.probability, student_two_sided(3 / std::sqrt(4.0 / 3), comparison.freedom), 1e-15);
  EXPECT_FALSE(comparison.interval.contains(0));
  // The other way round it is the same comparison.
  const WelchComparison swapped = welch(second, first);
  EXPECT_DOUBLE_EQ(swapped.interval.low, -comparison.interval.high);
  EXPECT_DOUBLE_EQ(swapped.probability, comparison.probability);
  // A wider level, a wider interval.
  EXPECT_GT(welch(first, second, 0.99).interval.half_width(), comparison.interval.half_width());
}

TEST(Welch, EqualSamplesAreStudentsTTest) {
  const SampleSummary sample = summarize(std::vector<double>{1, 2, 3, 4});
  const WelchComparison comparison = welch(sample, sample);
  EXPECT_DOUBLE_EQ(comparison.freedom, 6);  // n1 + n2 - 2
  EXPECT_EQ(comparison.probability, 1);
  EXPECT_TRUE(comparison.interval.contains(0));
}

TEST(Welch, TooLittleIsSaidToBeTooLittle) {
  const SampleSummary one = summarize(std::vector<double>{1}), two = summarize(std::vector<double>{2, 3});
  EXPECT_TRUE(std::isnan(one.deviation));
  const WelchComparison comparison = welch(one, two);
  EXPECT_TRUE(std::isnan(comparison.freedom));
  EXPECT_TRUE(comparison.interval.contains(1e300));
  EXPECT_TRUE(mean_interval(one).contains(-1e300));
  EXPECT_THROW(welch(summarize({}), two), Error);
  EXPECT_THROW(summarize(std::vector<double>{1, std::nan("")}), Error);
  // Without any scatter the difference is what it is.
  const SampleSummary constant = summarize(std::vector<double>{5, 5});
  EXPECT_EQ(welch(constant, summarize(std::vector<double>{4, 4})).probability, 0);
  EXPECT_EQ(welch(constant, constant).probability, 1);
}

TEST(Welch, TheIntervalOfAMean) {
  const Interval interval = mean_interval(summarize(std::vector<double>{1, 2, 3, 4, 5}));
  EXPECT_NEAR(interval.half_width(), 2.7764451051977987 * std::sqrt(0.5), 1e-12);
  EXPECT_DOUBLE_EQ(interval.low + interval.high, 6);
}

}  // namespace
}  // namespace attmirror
