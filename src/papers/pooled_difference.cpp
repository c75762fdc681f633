#include "papers/pooled_difference.hpp"

#include "base/numbers.hpp"
#include "papers/student_t.hpp"
#include <attmirror/base/error.hpp>

#include <cmath>
#include <vector>

namespace attmirror {

namespace {

struct SizeTerms {
  double weight, difference, squares;  // w_s, d_s, and the squares within both samples
};

// A single number has no deviation, and no square either.
double squares_within(const SampleSummary& sample) {
  return sample.count < 2 ? 0 : static_cast<double>(sample.count - 1) * sample.deviation * sample.deviation;
}

}  // namespace

WelchComparison pooled_difference(std::span<const SamplePair> pairs, double level) {
  std::vector<SizeTerms> terms;
  double freedom = -1, weights = 0, weighted = 0, squares = 0;
  for (const auto& [first, second] : pairs) {
    if (first.count < 1 || second.count < 1) continue;
    const auto n1 = static_cast<double>(first.count), n2 = static_cast<double>(second.count);
    terms.push_back(
        {n1 * n2 / (n1 + n2), first.mean - second.mean, squares_within(first) + squares_within(second)});
    freedom += n1 + n2 - 1;
    weights += terms.back().weight;
    weighted += terms.back().weight * terms.back().difference;
    squares += terms.back().squares;
  }
  if (terms.empty()) throw bad_input("there is no size with trainings of both optimizers to compare");
  WelchComparison result{.difference = weighted / weights};
  for (const SizeTerms& term : terms)
    squares += term.weight * (term.difference - result.difference) * (term.difference - result.difference);
  if (freedom < 1) {
    result.freedom = result.probability = result.factor = result.standard_error = nan_value;
    result.low = -infinity, result.high = infinity;
    return result;
  }
  result.freedom = freedom;
  result.standard_error = std::sqrt(squares / freedom / weights);
  result.factor = student_quantile(level, freedom);
  const double reach = result.factor * result.standard_error, size = std::abs(result.difference);
  result.low = result.difference - reach, result.high = result.difference + reach;
  result.probability = squares > 0 ? student_two_sided(size / result.standard_error, freedom)
                       : size > 0  ? 0.0
                                   : 1.0;
  return result;
}

}  // namespace attmirror
