#include "attention/optimal_token.hpp"
#include "base/numbers.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror {

namespace {

// The direction u_j with logits a_j = X u_j, for each parameterization.
struct DirectionOfTokens {
  const Parameters& at;
  Vector z;
  double scale;
  Vector operator()(const W&) const { return scale * (at.W * z); }
  Vector operator()(const KQ&) const { return scale * (at.K * (at.Q.transpose() * z)); }
  Vector operator()(const Prompt& prompt) const {
    if (prompt.key_weights.size() == 0) return scale * at.p;
    return scale * (prompt.key_weights.transpose() * at.p);
  }
};

Vector direction(const Attention& model, const Parameters& parameters, std::ptrdiff_t j) {
  const DirectionOfTokens direction_of{parameters, model.data().queries().eigen().row(j),
                                       model.logit_scale()};
  return std::visit(direction_of, model.parameterization());
}

// `values` with -inf for the tokens that query j may not attend to.
Vector only_allowed(Vector values, const Dataset& data, std::ptrdiff_t j) {
  for (std::ptrdiff_t t = 0; t < values.size(); ++t)
    if (!data.allows(j, t)) values[t] = -infinity;
  return values;
}

void check(const Attention& model, const Parameters& parameters) {
  ParameterBlocks(model.blocks()).assign(parameters);
}

std::int64_t first_maximum(const Vector& values) {
  std::ptrdiff_t at = 0;
  values.maxCoeff(&at);
  return at;
}

Selection first_maxima(const std::vector<Vector>& values) {
  Selection result;
  for (const Vector& v : values) result.tokens.push_back(first_maximum(v));
  return result;
}

// Y_j h(x_t) of every token that query j may attend to.
std::vector<Vector> scores_of(const Dataset& data, const Head& head, const Vector& v) {
  std::vector<Vector> result;
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    const auto X = data.tokens(data.sequence_of(j)).eigen();
    Vector scores(X.rows());
    if (std::holds_alternative<LinearHead>(head))
      scores = X * v;
    else
      for (std::ptrdiff_t t = 0; t < X.rows(); ++t) scores[t] = head_value(head, v, X.row(t).transpose());
    result.push_back(only_allowed(data.labels()[static_cast<std::size_t>(j)] * scores, data, j));
  }
  return result;
}

// The smallest difference of the logits X u_j between a selected token and another that the mask allows.
template <class DirectionOf>
double smallest_difference(const Dataset& data, const Selection& selection, DirectionOf direction_of) {
  selection.validate(data);
  double margin = infinity;
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    const auto X = data.tokens(data.sequence_of(j)).eigen();
    const Vector u = direction_of(j);
    const std::ptrdiff_t alpha = selection.tokens[static_cast<std::size_t>(j)];
    for (std::ptrdiff_t t = 0; t < X.rows(); ++t)
      if (t != alpha && data.allows(j, t)) margin = std::min(margin, (X.row(alpha) - X.row(t)).dot(u));
  }
  return margin;
}

}  // namespace

std::vector<Vector> token_scores(const Attention& model, const Parameters& parameters) {
  check(model, parameters);
  return scores_of(model.data(), model.head(), parameters.v);
}

std::vector<Vector> logits(const Attention& model, const Parameters& parameters) {
  check(model, parameters);
  std::vector<Vector> result;
  const Dataset& data = model.data();
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j)
    result.push_back(
        only_allowed(data.tokens(data.sequence_of(j)).eigen() * direction(model, parameters, j), data, j));
  return result;
}

std::vector<Vector> attention_probabilities(const Attention& model, const Parameters& parameters) {
  std::vector<Vector> result = logits(model, parameters);
  for (Vector& a : result) {
    const double largest = a.maxCoeff();
    for (double& x : a) x = std::exp(x - largest);  // Eigen's vector exp(-inf) is not 0
    a /= a.sum();
  }
  return result;
}

Selection optimal_tokens(const Attention& model, const Parameters& parameters) {
  return first_maxima(token_scores(model, parameters));
}

Selection optimal_tokens(const Dataset& data) {
  if (!data.has_decoder()) throw bad_input("the data have no decoder v: token scores need one");
  OptimalTokens optimal(data, data.decoder().eigen().row(0).transpose());
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i) optimal.add(data.offset(i), data.tokens(i));
  return optimal.selection();
}

Selection selected_tokens(const Attention& model, const Parameters& parameters) {
  return first_maxima(logits(model, parameters));
}

double selection_margin(const Dataset& data, const Selection& selection, const Matrix& W) {
  const std::ptrdiff_t d = data.dim();
  if (W.rows() != d || W.cols() != d)
    throw bad_input(fmt::format("W has shape ({}, {}): expected ({}, {})", W.rows(), W.cols(), d, d));
  return smallest_difference(data, selection, [&](std::ptrdiff_t j) -> Vector {
    return W * data.queries().eigen().row(j).transpose();
  });
}

double selection_margin(const Dataset& data, const Selection& selection, const Prompt& prompt,
                        const Vector& p) {
  const std::ptrdiff_t d = data.dim();
  const Matrix& A = prompt.key_weights;
  if (p.size() != d) throw bad_input(fmt::format("p has {} entries: expected {}", p.size(), d));
  if (A.size() != 0 && (A.rows() != d || A.cols() != d))
    throw bad_input(
        fmt::format("key weights have shape ({}, {}): expected ({}, {})", A.rows(), A.cols(), d, d));
  const Vector u = A.size() == 0 ? p : Vector(A.transpose() * p);
  return smallest_difference(data, selection, [&](std::ptrdiff_t) { return u; });
}

double selection_margin(const Attention& model, const Selection& selection, const Matrix& weights) {
  if (const auto* prompt = std::get_if<Prompt>(&model.parameterization()))
    return selection_margin(model.data(), selection, *prompt, weights.col(0));
  return selection_margin(model.data(), selection, weights);
}

}  // namespace attmirror
