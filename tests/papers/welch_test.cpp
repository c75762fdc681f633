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

// P(|T| <= t) for whole degrees of freedom: a finite sum of powers of the cosine of atan(t / sqrt(nu)).
double within_by_sum(double t, int nu) {
  const double theta = std::atan(t / std::sqrt(static_cast<double>(nu)));
  const double sine = std::sin(theta), cosine = std::cos(theta);
  const bool odd = nu % 2 == 1;
  double term = odd ? cosine : 1, sum = 0;
  for (int k = odd ? 1 : 0; k < nu - 1; k += 2) {
    sum += term;
    term *= cosine * cosine * (k + 1) / (k + 2);
  }
  return odd ? 2 / pi * (theta + sine * sum) : sine * sum;
}

// For any: 2 / B(nu/2, 1/2) times the integral of cos^(nu - 1) up to atan(t / sqrt(nu)), by Simpson's rule.
double within_by_quadrature(double t, long double nu) {
  const auto power = [&](long double theta) { return std::pow(std::cos(theta), nu - 1); };
  const long double beta = std::tgamma(nu / 2) * std::tgamma(0.5L) / std::tgamma((nu + 1) / 2);
  constexpr int pieces = 10'000;
  const long double end = std::atan(t / std::sqrt(nu)), step = end / pieces;
  long double sum = power(0) + power(end);
  for (int i = 1; i < pieces; ++i) sum += power(i * step) * (i % 2 == 1 ? 4 : 2);
  return static_cast<double>(2 / beta * sum * step / 3);
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

TEST(StudentT, AgreesWithSumsAndQuadrature) {
  for (const double t : {0.2, 1.1, 2.3, 4.0}) {
    for (const int nu : {4, 5, 10, 31, 78, 81, 82, 300})
      EXPECT_NEAR(student_two_sided(t, nu), 1 - within_by_sum(t, nu), 5e-15) << nu << " " << t;
    for (const double nu : {1.6, 3.7, 7.3, 12.01, 41.5, 79.9, 80.1, 333.3})
      EXPECT_NEAR(student_two_sided(t, nu), 1 - within_by_quadrature(t, nu), 5e-15) << nu << " " << t;
  }
  // Far out only the relative error says something: nu = 4 has a closed form there, too.
  const double t = 1e5, x = 4 / (4 + t * t), y = std::sqrt(1 - x);
  EXPECT_NEAR(student_two_sided(t, 4) / (x * x * (2 + y) / (2 * (1 + y) * (1 + y))), 1, 1e-13);
}

TEST(StudentT, TablesHaveItsQuantiles) {
  // 1 and 2 degrees of freedom by closed forms, the others from tables.
  EXPECT_NEAR(student_quantile(0.95, 1), std::tan(0.475 * pi), 2e-13);
  EXPECT_NEAR(student_quantile(0.95, 2), 0.95 * std::sqrt(2 / (1 - 0.95 * 0.95)), 1e-14);
  EXPECT_NEAR(student_quantile(0.95, 3), 3.182446305, 5e-10);
  EXPECT_NEAR(student_quantile(0.95, 4), 2.776445105, 5e-10);
  EXPECT_NEAR(student_quantile(0.95, 10), 2.228138852, 5e-10);
  EXPECT_NEAR(student_quantile(0.95, 30), 2.042272456, 5e-10);
  EXPECT_NEAR(student_quantile(0.95, std::numeric_limits<double>::infinity()), 1.959963985, 5e-10);
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
  const double reach = student_quantile(0.95, comparison.freedom) * std::sqrt(4.0 / 3);
  EXPECT_NEAR(comparison.high - 3, reach, 1e-12);
  EXPECT_NEAR(3 - comparison.low, reach, 1e-12);
  EXPECT_NEAR(comparison.probability, student_two_sided(3 / std::sqrt(4.0 / 3), comparison.freedom), 1e-15);
  EXPECT_GT(comparison.low, 0);
  // The other way round it is the same comparison.
  const WelchComparison swapped = welch(second, first);
  EXPECT_DOUBLE_EQ(swapped.low, -comparison.high);
  EXPECT_DOUBLE_EQ(swapped.probability, comparison.probability);
  // A wider level, a wider interval.
  EXPECT_GT(welch(first, second, 0.99).high, comparison.high);
}

TEST(Welch, EqualSamplesAreStudentsTTest) {
  const SampleSummary sample = summarize(std::vector<double>{1, 2, 3, 4});
  const WelchComparison comparison = welch(sample, sample);
  EXPECT_DOUBLE_EQ(comparison.freedom, 6);  // n1 + n2 - 2
  EXPECT_EQ(comparison.probability, 1);
  EXPECT_EQ(comparison.low, -comparison.high);
}

TEST(Welch, TooLittleIsSaidToBeTooLittle) {
  const SampleSummary one = summarize(std::vector<double>{1}), two = summarize(std::vector<double>{2, 3});
  EXPECT_TRUE(std::isnan(one.deviation));
  const WelchComparison comparison = welch(one, two);
  EXPECT_TRUE(std::isnan(comparison.freedom));
  EXPECT_TRUE(std::isinf(comparison.low) && std::isinf(comparison.high));
  EXPECT_TRUE(std::isinf(mean_reach(one)));
  EXPECT_THROW(welch(summarize({}), two), Error);
  EXPECT_THROW(summarize(std::vector<double>{1, std::nan("")}), Error);
  // Without any scatter the difference is what it is.
  const SampleSummary constant = summarize(std::vector<double>{5, 5});
  EXPECT_EQ(welch(constant, summarize(std::vector<double>{4, 4})).probability, 0);
  EXPECT_EQ(welch(constant, constant).probability, 1);
}

TEST(Welch, TheIntervalOfAMean) {
  EXPECT_NEAR(mean_reach(summarize(std::vector<double>{1, 2, 3, 4, 5})), 2.776445105 * std::sqrt(0.5), 1e-9);
}

}  // namespace
}  // namespace attmirror
