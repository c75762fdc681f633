#include "base/numbers.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/next_token/partial_order.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

namespace attmirror {

namespace {

// The pairs (above, below) of one kind that scores put in that order, over queries.
struct PairCount {
  double right = 0, all = 0;

  // Both ascending.
  void add(const std::vector<double>& above, const std::vector<double>& below) {
    for (const double score : above)
      right += static_cast<double>(std::lower_bound(below.begin(), below.end(), score) - below.begin());
    all += static_cast<double>(above.size()) * static_cast<double>(below.size());
  }
  double share() const { return all == 0 ? 1 : right / all; }
};

// fmin and fmax take the number where the other is NaN.
void lower(double& value, double candidate) { value = std::fmin(value, candidate); }
void raise(double& value, double candidate) { value = std::fmax(value, candidate); }

void check(const Matrix& scores, const PartialOrders& orders, double tolerance) {
  const std::ptrdiff_t size = orders.vocabulary_size();
  if (scores.rows() != size || scores.cols() != size)
    throw bad_input(fmt::format("scores have shape ({}, {}): expected ({}, {}), tokens by queries",
                                scores.rows(), scores.cols(), size, size));
  if (!(tolerance >= 0 && tolerance < 1))
    throw bad_input(fmt::format("tolerance is {}: expected a number from 0 to below 1", tolerance));
  for (std::ptrdiff_t i = 0; i < size; ++i)
    for (std::ptrdiff_t j = 0; j < size; ++j)
      if (!std::isfinite(scores(i, j)))
        throw bad_input(fmt::format("scores[{},{}] is {}: expected a finite number", i, j, scores(i, j)));
}

}  // namespace

ExtendedOrder extended_order(const Matrix& scores, const PartialOrders& orders, double tolerance) {
  check(scores, orders, tolerance);
  ExtendedOrder result;
  result.lowest_optimal = result.highest_non_comparable = result.lowest_non_comparable =
      result.highest_non_optimal = nan_value;
  result.least_above_non_comparable = result.least_below_non_comparable = nan_value;
  PairCount optimal_non_comparable, non_comparable_non_optimal, optimal_non_optimal;
  for (const Token q : orders.queries()) {
    const double rounding = tolerance * scores.col(q).cwiseAbs().maxCoeff();
    std::array<std::vector<double>, 3> by_class;
    const std::vector<TokenClass> classes = orders.token_classes(q);
    for (Token x = 0; x < orders.vocabulary_size(); ++x) {
      const double score = std::fabs(scores(x, q)) <= rounding ? 0 : scores(x, q);
      by_class[static_cast<std::size_t>(classes[static_cast<std::size_t>(x)])].push_back(score);
    }
    for (std::vector<double>& values : by_class) std::ranges::sort(values);
    const auto& optimal = by_class[static_cast<std::size_t>(TokenClass::optimal)];
    const auto& non_optimal = by_class[static_cast<std::size_t>(TokenClass::non_optimal)];
    const auto& others = by_class[static_cast<std::size_t>(TokenClass::non_comparable)];
    optimal_non_comparable.add(optimal, others);
    non_comparable_non_optimal.add(others, non_optimal);
    optimal_non_optimal.add(optimal, non_optimal);
    if (!optimal.empty()) lower(result.lowest_optimal, optimal.front());
    if (!non_optimal.empty()) raise(result.highest_non_optimal, non_optimal.back());
    if (others.empty()) continue;
    raise(result.highest_non_comparable, others.back());
    lower(result.lowest_non_comparable, others.front());
    if (!optimal.empty()) lower(result.least_above_non_comparable, optimal.front() - others.back());
    if (!non_optimal.empty()) lower(result.least_below_non_comparable, others.front() - non_optimal.back());
  }
  result.optimal_above_non_comparable = optimal_non_comparable.share();
  result.non_comparable_above_non_optimal = non_comparable_non_optimal.share();
  result.optimal_above_non_optimal = optimal_non_optimal.share();
  result.holds = result.optimal_above_non_comparable == 1 && result.non_comparable_above_non_optimal == 1 &&
                 result.optimal_above_non_optimal == 1;
  return result;
}

}  // namespace attmirror
