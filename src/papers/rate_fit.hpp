// From measured curves to exponents with an error: is D falling like (log k)^-a, and how sure is a?
//
// The points of one training curve are not independent: each follows from the one before, and the distance from the
// law is a smooth function of time. The textbook error of a least-squares slope takes them for independent and is far
// too small. Two errors are offered that are not:
//
//   of one curve      Newey and West's estimate, which counts the correlation of neighboring residuals (of 100
//                     points or fewer it still comes out a third too small)
//   over seeds        fit each seed's curve, then Student's interval for the mean of the slopes: the seeds are
//                     independent, so
//                     this is the honest one where there are several. It says how the slope varies from problem to
//                     problem, not how far the law has set in: for that, look at local_slopes().
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace attmirror {

struct LineFit {
  double slope = 0, intercept = 0;
  double slope_error = 0;  // Newey and West's standard error; NaN with fewer than 3 points
  double residual = 0;     // root mean square
  std::ptrdiff_t points = 0;
};

// Least squares of y = intercept + slope x. Points are in the order of time; those where x or y is not finite do not
// count. Throws Error (bad input) where the lengths differ or fewer than two distinct x are left.
LineFit fit_line(std::span<const double> x, std::span<const double> y);

// The slope about each point, from the points that lie within `width` of it in x, itself included; NaN where fewer than
// two distinct x do. Shows whether a slope has settled.
std::vector<double> local_slopes(std::span<const double> x, std::span<const double> y, double width);

struct Interval {
  double mean = 0, low = 0, high = 0;
  double error = 0;  // standard error of the mean
  std::ptrdiff_t count = 0;
};

// Student's confidence interval for the mean of independent values; what is not finite does not count. With fewer than
// two values the interval is not finite. Throws Error (bad input) unless 0 < level < 1.
Interval confidence_interval(std::span<const double> values, double level = 0.95);

}  // namespace attmirror
