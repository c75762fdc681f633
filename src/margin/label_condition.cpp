#include "margin/label_condition.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr double strict = 1e-9;           // relative: what is not more than rounding
constexpr std::size_t most_solved = 100;  // selections whose own label margin is computed

// A support vector of the decoder SVM: lambda_j Y_j x_t for the tokens it may attend to, the selected one first.
struct LabelPull {
  std::ptrdiff_t query;
  std::vector<std::int64_t> tokens;
  std::vector<Vector> pulls;
};

std::vector<LabelPull> label_pulls(const Dataset& data, const Selection& tokens,
                                   const MarginSolution& decoder) {
  const Vector lambda = decoder.lambda / decoder.lambda.sum();
  std::vector<LabelPull> all;
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    if (!(lambda[j] > strict * lambda.maxCoeff())) continue;
    const auto X = data.tokens(data.sequence_of(j)).eigen();
    const double weight = lambda[j] * data.labels()[static_cast<std::size_t>(j)];
    const std::int64_t chosen = tokens.tokens[static_cast<std::size_t>(j)];
    LabelPull one{j, {chosen}, {weight * X.row(chosen).transpose()}};
    for (std::ptrdiff_t t = 0; t < data.attended_length(j); ++t)
      if (t != chosen && data.allows(j, t)) {
        one.tokens.push_back(t);
        one.pulls.emplace_back(weight * X.row(t).transpose());
      }
    all.push_back(std::move(one));
  }
  return all;
}

// All selections, with F of each: one choice for each support vector, 0 being the selected token.
class SelectionWalk {
 public:
  SelectionWalk(const std::vector<LabelPull>& pulls, double margin) : pulls_(pulls), margin_(margin) {
    choice_.assign(pulls.size(), 0);
    walk(0, Vector::Zero(pulls.front().pulls.front().size()));
    std::ranges::sort(high_, std::greater<>(), &std::pair<double, std::vector<std::size_t>>::first);
  }

  double highest = -std::numeric_limits<double>::infinity();  // F over all but the selected tokens
  // Those with F >= Gamma, the highest first.
  const std::vector<std::pair<double, std::vector<std::size_t>>>& high() const { return high_; }

 private:
  void walk(std::size_t j, const Vector& sum) {
    if (j == pulls_.size()) {
      if (std::ranges::all_of(choice_, [](std::size_t c) { return c == 0; })) return;
      const double value = sum.norm();
      highest = std::max(highest, value);
      if (value >= margin_ * (1 - strict)) high_.emplace_back(value, choice_);
      return;
    }
    for (choice_[j] = 0; choice_[j] < pulls_[j].pulls.size(); ++choice_[j])
      walk(j + 1, sum + pulls_[j].pulls[choice_[j]]);
    choice_[j] = 0;
  }

  const std::vector<LabelPull>& pulls_;
  double margin_;
  std::vector<std::size_t> choice_;
  std::vector<std::pair<double, std::vector<std::size_t>>> high_;
};

// The least 1 - Y v^T x_t over the other tokens t of support vectors, in units of the label margin, and where it is.
struct LeastLoss {
  double value = std::numeric_limits<double>::infinity();
  std::ptrdiff_t query = -1;
  std::int64_t token = -1;
};

LeastLoss least_loss(const Dataset& data, const std::vector<LabelPull>& pulls, const Vector& v) {
  LeastLoss least;
  for (const LabelPull& pull : pulls) {
    const auto X = data.tokens(data.sequence_of(pull.query)).eigen();
    const double label = data.labels()[static_cast<std::size_t>(pull.query)];
    for (std::size_t k = 1; k < pull.tokens.size(); ++k) {
      const double loss = 1 - label * X.row(pull.tokens[k]).dot(v);
      if (loss < least.value) least = {loss, pull.query, pull.tokens[k]};
    }
  }
  return least;
}

}  // namespace

AssumptionCheck check_label_margin(const Dataset& data, const Selection& tokens,
                                   const MarginSolution& decoder, const MarginOptions& options) {
  using enum AssumptionStatus;
  AssumptionCheck check{Assumption::label_margin, open};
  const std::vector<LabelPull> pulls = label_pulls(data, tokens, decoder);
  const double margin = 1 / decoder.norm;
  const LeastLoss least = least_loss(data, pulls, decoder.W.col(0));
  check.value = least.value;
  if (least.query < 0) {
    check.status = holds;
    check.detail = "the support vectors of the decoder SVM have no other tokens";
    return check;
  }
  if (!(least.value > strict)) {
    check.status = fails;
    check.detail = fmt::format("mixing token {} into query {} does not lower the label margin of {:.4g}",
                               least.token, least.query, margin);
    return check;
  }
  double selections = 1;
  for (const LabelPull& pull : pulls) selections *= static_cast<double>(pull.tokens.size());
  if (selections > most_selections) {
    check.detail = fmt::format(
        "to first order mixing lowers the label margin of {:.4g}; {:.2g} selections are too many to look at",
        margin, selections);
    return check;
  }
  const SelectionWalk walk(pulls, margin);
  if (walk.high().empty()) {
    check.status = holds;
    check.detail = fmt::format(
        "proved with nu = {:.3g} for the label margin {:.4g}, over {:g} selections of {} support vectors",
        margin - walk.highest, margin, selections, pulls.size());
    return check;
  }
  for (std::size_t k = 0; k < std::min(walk.high().size(), most_solved); ++k) {
    Selection other = tokens;
    for (std::size_t j = 0; j < pulls.size(); ++j)
      other.tokens[static_cast<std::size_t>(pulls[j].query)] = pulls[j].tokens[walk.high()[k].second[j]];
    const MarginSolution solution = max_margin(data, DecoderSvm{other}, Norm::frobenius(), options);
    if (solution.status != MarginStatus::certified || solution.norm > decoder.norm * (1 + strict)) continue;
    check.status = fails;
    check.value = 1 - decoder.norm / solution.norm;
    check.detail = fmt::format("the selection {} has a label margin of {:.4g}, not below {:.4g}",
                               to_string(other), 1 / solution.norm, margin);
    return check;
  }
  check.detail = fmt::format(
      "to first order mixing lowers the label margin of {:.4g}; farther away it is not proved", margin);
  return check;
}

}  // namespace attmirror
