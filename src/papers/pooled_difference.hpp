// The difference of two optimizers over networks of several sizes, in one model. Internal.
//
// Let y_spi be the accuracy of training i with optimizer p = 1, 2 at size s. The model has a mean for each size, one
// difference for all, and one variance:
//
//   y_spi = a_s + d [p = 1] + e_spi,   e_spi normal with variance sigma^2.
//
// With n_s1 and n_s2 trainings, means m_s1 and m_s2, deviations s_s1 and s_s2, and S sizes that have both optimizers,
// least squares gives
//
//   w_s = n_s1 n_s2 / (n_s1 + n_s2),   d_s = m_s1 - m_s2,   d = sum w_s d_s / sum w_s,
//   sigma^2 = ( sum (n_s1 - 1) s_s1^2 + (n_s2 - 1) s_s2^2  +  sum w_s (d_s - d)^2 ) / nu,
//   nu = sum (n_s1 + n_s2) - S - 1,
//
// and (d - its true value) / sqrt(sigma^2 / sum w_s) is Student's t with nu degrees of freedom. The second sum is what
// sizes differ in: where the difference depends on the size, the interval is wider.
#pragma once

#include "papers/welch.hpp"

#include <span>

namespace attmirror {

// Both optimizers at one size.
struct SamplePair {
  SampleSummary first, second;
};

// The first minus the second, as welch() reports it. A pair with an empty sample says nothing and is left out; where
// no degree of freedom is left, the interval is everything and the freedom NaN. Throws Error (bad input) where no pair
// is left.
WelchComparison pooled_difference(std::span<const SamplePair> pairs, double level = 0.95);

}  // namespace attmirror
