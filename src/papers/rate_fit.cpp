#include "papers/rate_fit.hpp"

#include "papers/student_t.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

LineFit fit_line(std::span<const double> x, std::span<const double> y) {
  if (x.size() != y.size())
    throw bad_input(fmt::format("a fit has {} x and {} y: expected as many of both", x.size(), y.size()));
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::isfinite(x[i]) && std::isfinite(y[i])) kept.push_back(i);
  const auto n = static_cast<double>(kept.size());
  double mean_x = 0, mean_y = 0, square = 0, product = 0;
  for (const std::size_t i : kept) mean_x += x[i] / n, mean_y += y[i] / n;
  for (const std::size_t i : kept) {
    square += (x[i] - mean_x) * (x[i] - mean_x);
    product += (x[i] - mean_x) * (y[i] - mean_y);
  }
  if (!(square > 0))
    throw bad_input(
        fmt::format("a fit has {} finite points at one x: expected two distinct x or more", kept.size()));

  LineFit fit;
  fit.points = static_cast<std::ptrdiff_t>(kept.size());
  fit.slope = product / square;
  fit.intercept = mean_y - fit.slope * mean_x;
  std::vector<double> moment;  // (x - mean) times the residual: the slope's error is their weighted sum
  double squares = 0;
  for (const std::size_t i : kept) {
    const double rest = y[i] - fit.intercept - fit.slope * x[i];
    squares += rest * rest;
    moment.push_back((x[i] - mean_x) * rest);
  }
  fit.residual = std::sqrt(squares / n);
  if (kept.size() < 3) {
    fit.slope_error = nan;
    return fit;
  }
  // Residuals of a smooth curve stay on one side for a good part of it: lags up to a fifth of the points, with
  // Bartlett's falling weights, which keep the variance >= 0.
  const std::size_t lags = std::max<std::size_t>(1, kept.size() / 5);
  double variance = 0;
  for (std::size_t lag = 0; lag <= lags && lag < moment.size(); ++lag) {
    double sum = 0;
    for (std::size_t i = lag; i < moment.size(); ++i) sum += moment[i] * moment[i - lag];
    const double weight = 1 - static_cast<double>(lag) / static_cast<double>(lags + 1);
    variance += (lag == 0 ? 1 : 2) * weight * sum;
  }
  fit.slope_error = std::sqrt(std::max(variance, 0.0) * n / (n - 2)) / square;
  return fit;
}

std::vector<double> local_slopes(std::span<const double> x, std::span<const double> y, double width) {
  if (x.size() != y.size())
    throw bad_input(
        fmt::format("local slopes of {} x and {} y: expected as many of both", x.size(), y.size()));
  std::vector<double> slopes(x.size(), nan);
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::vector<double> near_x, near_y;
    for (std::size_t j = 0; j < x.size(); ++j)
      if (std::abs(x[j] - x[i]) <= width && std::isfinite(y[j])) {
        near_x.push_back(x[j]);
        near_y.push_back(y[j]);
      }
    const auto [least, most] = std::ranges::minmax_element(near_x);
    if (!near_x.empty() && *least < *most) slopes[i] = fit_line(near_x, near_y).slope;
  }
  return slopes;
}

Interval confidence_interval(std::span<const double> values, double level) {
  if (!(level > 0 && level < 1))
    throw bad_input(fmt::format("level is {}: expected a number between 0 and 1", level));
  Interval result;
  double sum = 0;
  for (const double value : values)
    if (std::isfinite(value)) {
      sum += value;
      ++result.count;
    }
  const auto n = static_cast<double>(result.count);
  result.mean = sum / n;  // NaN where there is none
  if (result.count < 2) {
    result.error = nan;
    result.low = -std::numeric_limits<double>::infinity();
    result.high = -result.low;
    return result;
  }
  double squares = 0;
  for (const double value : values)
    if (std::isfinite(value)) squares += (value - result.mean) * (value - result.mean);
  result.error = std::sqrt(squares / (n - 1) / n);
  const double half = student_quantile(level, n - 1) * result.error;
  result.low = result.mean - half;
  result.high = result.mean + half;
  return result;
}

}  // namespace attmirror
