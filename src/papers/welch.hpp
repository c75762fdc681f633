// Welch's t: means of two samples whose variances need not be equal, with an interval for their difference. Internal.
//
// For samples of n1 and n2 numbers with means m1, m2 and variances s1^2, s2^2 (with n - 1),
//
//   v1 = s1^2 / n1,   v2 = s2^2 / n2,   t = (m1 - m2) / sqrt(v1 + v2),
//
// is about Student's t with (v1 + v2)^2 / (v1^2 / (n1 - 1) + v2^2 / (n2 - 1)) degrees of freedom (Welch and
// Satterthwaite).
#pragma once

#include <cstddef>
#include <span>

namespace attmirror {

// What is known of a sample: enough for published ones, too.
struct SampleSummary {
  double mean = 0, deviation = 0;  // the deviation with n - 1
  std::ptrdiff_t count = 0;
};
// Throws Error (bad input) for a number that is not finite. The deviation of fewer than two numbers is NaN.
SampleSummary summarize(std::span<const double> values);

// Half of Student's interval for the mean; infinite for fewer than two numbers.
double mean_reach(const SampleSummary& sample, double level = 0.95);

// The first mean minus the second.
struct WelchComparison {
  double difference = 0, standard_error = 0;
  double freedom = 0;      // degrees of freedom; NaN where a sample has fewer than two numbers
  double probability = 1;  // of a difference at least so large in size, were the means equal
  double factor = 0;       // standard errors to either end of the interval
  // The interval for the difference; everything where the freedom is NaN.
  double low = 0, high = 0;
};

// Throws Error (bad input) for an empty sample.
WelchComparison welch(const SampleSummary& first, const SampleSummary& second, double level = 0.95);

}  // namespace attmirror
