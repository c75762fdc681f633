#include "papers/welch.hpp"

#include "base/numbers.hpp"
#include "papers/student_t.hpp"
#include <attmirror/base/error.hpp>

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace attmirror {

namespace {

double variance_of_mean(const SampleSummary& sample) {
  return sample.deviation * sample.deviation / static_cast<double>(sample.count);
}

}  // namespace

SampleSummary summarize(std::span<const double> values) {
  SampleSummary result{.count = std::ssize(values)};
  const auto n = static_cast<double>(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i]))
      throw bad_entry("values", static_cast<std::int64_t>(i), values[i], "a finite number");
    result.mean += values[i] / n;
  }
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.deviation = values.size() < 2 ? nan_value : std::sqrt(squares / (n - 1));
  return result;
}

double mean_reach(const SampleSummary& sample, double level) {
  if (sample.count < 2) return infinity;
  return student_quantile(level, static_cast<double>(sample.count - 1)) * std::sqrt(variance_of_mean(sample));
}

WelchComparison welch(const SampleSummary& first, const SampleSummary& second, double level) {
  for (const SampleSummary& sample : {first, second})
    if (sample.count < 1)
      throw bad_input(fmt::format("a sample has {} numbers: expected at least 1", sample.count));
  WelchComparison result{.difference = first.mean - second.mean};
  const double v1 = variance_of_mean(first), v2 = variance_of_mean(second), v = v1 + v2;
  result.standard_error = std::sqrt(v);
  if (first.count < 2 || second.count < 2) {
    result.freedom = result.probability = result.factor = result.standard_error = nan_value;
    result.low = -infinity, result.high = infinity;
    return result;
  }
  const auto share = [&](double one, std::ptrdiff_t count) {
    return v > 0 ? one / v * (one / v) / static_cast<double>(count - 1) : 0.0;
  };
  const double shares = share(v1, first.count) + share(v2, second.count);
  // Samples without any scatter: the difference is what it is.
  result.freedom = shares > 0 ? 1 / shares : infinity;
  result.factor = student_quantile(level, result.freedom);
  const double reach = result.factor * result.standard_error;
  result.low = result.difference - reach, result.high = result.difference + reach;
  const double size = std::abs(result.difference);
  result.probability = v > 0      ? student_two_sided(size / result.standard_error, result.freedom)
                       : size > 0 ? 0.0
                                  : 1.0;
  return result;
}

}  // namespace attmirror
