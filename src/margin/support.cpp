#include <attmirror/base/error.hpp>
#include <attmirror/margin/support.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror {

namespace {

using LongVector = Eigen::Matrix<long double, Eigen::Dynamic, 1>;
using LongMatrix = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

void check_decoder(const Dataset& data, const Vector& v) {
  if (v.size() != data.dim())
    throw bad_input(fmt::format("v has {} entries: expected {}, the dimension", v.size(), data.dim()));
  for (std::ptrdiff_t i = 0; i < v.size(); ++i)
    if (!std::isfinite(v[i])) throw bad_input(fmt::format("v[{}] is {}: expected a finite number", i, v[i]));
}

long double length(ConstMatrixView matrix, std::ptrdiff_t row) {
  return matrix.eigen().row(row).cast<long double>().norm();
}

void check_scores(const Dataset& data, const std::vector<Vector>& scores) {
  if (static_cast<std::ptrdiff_t>(scores.size()) != data.total_queries())
    throw bad_input(fmt::format("scores has {} vectors: expected {}, one per query", scores.size(),
                                data.total_queries()));
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const std::ptrdiff_t i = data.sequence_of(static_cast<std::ptrdiff_t>(j));
    if (scores[j].size() != data.length(i))
      throw bad_input(fmt::format("scores[{}] has {} entries: expected {}, one per token of sequence {}", j,
                                  scores[j].size(), data.length(i), i));
  }
}

double score(const std::vector<Vector>& scores, std::ptrdiff_t query, std::int64_t token) {
  const double value = scores[static_cast<std::size_t>(query)][token];
  if (std::isnan(value))
    throw bad_input(fmt::format("scores[{}][{}] is {}: expected a number", query, token, value));
  return value;
}

// Whether constraint k holds with equality, up to the tolerance.
bool is_met(const MarginConstraints& constraints, std::ptrdiff_t k, const LongMatrix& W, double tolerance) {
  const auto left = constraints.left().eigen(), right = constraints.right().eigen();
  const LongVector a = left.row(k).transpose().cast<long double>();
  const LongVector z = right.row(constraints.group_of(k)).transpose().cast<long double>();
  const long double bound = constraints.bounds()[static_cast<std::size_t>(k)];
  const long double scale = bound > 0 ? bound : a.cwiseAbs().dot(LongVector(W.cwiseAbs() * z.cwiseAbs()));
  return a.dot(LongVector(W * z)) - bound <= tolerance * scale;
}

}  // namespace

std::vector<std::ptrdiff_t> support(const MarginConstraints& constraints, const Matrix& W, double tolerance) {
  if (W.rows() != constraints.rows() || W.cols() != constraints.cols())
    throw bad_input(fmt::format("W has shape ({}, {}): expected ({}, {})", W.rows(), W.cols(),
                                constraints.rows(), constraints.cols()));
  if (!(tolerance >= 0)) throw bad_input(fmt::format("tolerance is {}: expected a number >= 0", tolerance));
  std::vector<std::ptrdiff_t> result;
  LongMatrix weights;  // when it is needed
  const double size = W.norm();
  const auto left = constraints.left().eigen();
  for (std::ptrdiff_t g = 0; g < constraints.groups(); ++g) {
    if (constraints.first(g) == constraints.first(g + 1)) continue;
    const auto z = constraints.right().eigen().row(g).transpose();
    const Vector product = W * z;
    const double z_length = z.norm();
    for (std::ptrdiff_t k = constraints.first(g); k < constraints.first(g + 1); ++k) {
      const double bound = constraints.bounds()[static_cast<std::size_t>(k)];
      bool holds = constraints.is_equality(k);
      if (!holds) {
        // In double precision where that decides, otherwise in long double, whose range no product of three
        // doubles leaves.
        const double scale = size * z_length * left.row(k).norm();
        const double beyond = left.row(k).dot(product) - (1 + tolerance) * bound;
        if (bound > 0 && scale > 1e-250 && scale < 1e250 && std::fabs(beyond) > 1e-10 * (scale + bound)) {
          holds = beyond < 0;
        } else {
          if (weights.size() == 0) weights = W.cast<long double>();
          holds = is_met(constraints, k, weights, tolerance);
        }
      }
      if (holds) result.push_back(k);
    }
  }
  return result;
}

std::vector<std::ptrdiff_t> conflict(const MarginConstraints& constraints, const Vector& lambda) {
  if (lambda.size() != constraints.count())
    throw bad_input(fmt::format("lambda has {} entries: expected {}, one per constraint", lambda.size(),
                                constraints.count()));
  std::vector<std::ptrdiff_t> result;
  std::vector<long double> weights;
  for (std::ptrdiff_t k = 0; k < constraints.count(); ++k) {
    const double value = constraints.is_equality(k) ? std::fabs(lambda[k]) : std::max(lambda[k], 0.0);
    const long double size =
        length(constraints.left(), k) * length(constraints.right(), constraints.group_of(k));
    // A row of zeros that demands more is a conflict of its own, which nothing outweighs.
    const bool impossible = value > 0 && size == 0 && constraints.bounds()[static_cast<std::size_t>(k)] != 0;
    weights.push_back(impossible ? std::numeric_limits<long double>::infinity() : value * size);
  }
  const long double largest = weights.empty() ? 0 : *std::max_element(weights.begin(), weights.end());
  for (std::ptrdiff_t k = 0; k < constraints.count(); ++k) {
    const long double weight = weights[static_cast<std::size_t>(k)];
    if (weight > 0 && weight >= 1e-9L * largest) result.push_back(k);
  }
  return result;
}

std::vector<Vector> linear_scores(const Dataset& data, const Vector& v) {
  check_decoder(data, v);
  std::vector<Vector> scores;
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j)
    scores.emplace_back(data.labels()[static_cast<std::size_t>(j)] *
                        (data.tokens(data.sequence_of(j)).eigen() * v));
  return scores;
}

LocalOptimality local_optimality(const Dataset& data, const Selection& tokens,
                                 const MarginConstraints& constraints,
                                 std::span<const std::ptrdiff_t> support, const std::vector<Vector>& scores) {
  tokens.validate(data);
  check_scores(data, scores);
  if (constraints.groups() != data.total_queries())
    throw bad_input(fmt::format("constraints have {} groups: expected {}, one per query",
                                constraints.groups(), data.total_queries()));
  LocalOptimality result;
  result.least_advantage = std::numeric_limits<double>::infinity();
  for (std::size_t s = 0; s < support.size(); ++s) {
    const std::ptrdiff_t k = support[s];
    if (k < 0 || k >= constraints.count())
      throw bad_input(
          fmt::format("support[{}] is {}: expected 0 to {}, a constraint", s, k, constraints.count() - 1));
    const std::ptrdiff_t j = constraints.group_of(k);
    const ConstraintOrigin& origin = constraints.origins()[static_cast<std::size_t>(k)];
    if (origin.token < 0 || origin.token >= data.length(data.sequence_of(j)))
      throw bad_input(fmt::format("the token of constraint {} is {}: expected one of sequence {}", k,
                                  origin.token, data.sequence_of(j)));
    const double selected = score(scores, j, tokens.tokens[static_cast<std::size_t>(j)]);
    const double other = score(scores, j, origin.token), advantage = selected - other;
    if (!(selected > other)) result.holds = false;
    if (!result.worst || advantage < result.least_advantage) {
      result.least_advantage = advantage;
      result.worst = origin;
    }
  }
  return result;
}

LabelMargins label_margins(const Dataset& data, const Selection& tokens, const Vector& v) {
  tokens.validate(data);
  check_decoder(data, v);
  LabelMargins result{Vector(data.total_queries())};
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    const auto query = static_cast<std::size_t>(j);
    result.values[j] = data.labels()[query] *
                       data.tokens(data.sequence_of(j)).eigen().row(tokens.tokens[query]).transpose().dot(v);
  }
  result.smallest = result.values.minCoeff();
  return result;
}

}  // namespace attmirror
