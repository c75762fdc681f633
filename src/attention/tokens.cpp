#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror {

namespace {

// The direction u_i with logits a_i = X_i u_i.
Vector direction(const Attention& model, const Parameters& parameters, std::ptrdiff_t i) {
  const Vector z = model.data().queries().eigen().row(i);
  if (const auto* prompt = std::get_if<Prompt>(&model.parameterization())) {
    if (prompt->key_weights.size() == 0) return parameters.p;
    return prompt->key_weights.transpose() * parameters.p;
  }
  if (std::holds_alternative<KQ>(model.parameterization()))
    return parameters.K * (parameters.Q.transpose() * z);
  return parameters.W * z;
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

std::vector<Vector> scores_of(const Dataset& data, const Vector& v) {
  std::vector<Vector> result;
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i)
    result.push_back(data.labels()[static_cast<std::size_t>(i)] * (data.tokens(i).eigen() * v));
  return result;
}

}  // namespace

std::vector<Vector> token_scores(const Attention& model, const Parameters& parameters) {
  check(model, parameters);
  return scores_of(model.data(), parameters.v);
}

std::vector<Vector> logits(const Attention& model, const Parameters& parameters) {
  check(model, parameters);
  std::vector<Vector> result;
  for (std::ptrdiff_t i = 0; i < model.data().samples(); ++i)
    result.push_back(model.data().tokens(i).eigen() * direction(model, parameters, i));
  return result;
}

std::vector<Vector> attention_probabilities(const Attention& model, const Parameters& parameters) {
  std::vector<Vector> result = logits(model, parameters);
  for (Vector& a : result) {
    a = (a.array() - a.maxCoeff()).exp();
    a /= a.sum();
  }
  return result;
}

Selection optimal_tokens(const Attention& model, const Parameters& parameters) {
  return first_maxima(token_scores(model, parameters));
}

Selection optimal_tokens(const Dataset& data) {
  if (!data.has_decoder()) throw bad_input("the data have no decoder v: token scores need one");
  return first_maxima(scores_of(data, data.decoder().eigen().row(0).transpose()));
}

Selection selected_tokens(const Attention& model, const Parameters& parameters) {
  return first_maxima(logits(model, parameters));
}

double selection_margin(const Dataset& data, const Selection& selection, const Matrix& W) {
  selection.validate(data);
  const std::ptrdiff_t d = data.dim();
  if (W.rows() != d || W.cols() != d)
    throw bad_input(fmt::format("W has shape ({}, {}): expected ({}, {})", W.rows(), W.cols(), d, d));
  double margin = std::numeric_limits<double>::infinity();
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i) {
    const auto X = data.tokens(i).eigen();
    const Vector u = W * data.queries().eigen().row(i).transpose();
    const std::ptrdiff_t alpha = selection.tokens[static_cast<std::size_t>(i)];
    for (std::ptrdiff_t t = 0; t < X.rows(); ++t)
      if (t != alpha) margin = std::min(margin, (X.row(alpha) - X.row(t)).dot(u));
  }
  return margin;
}

}  // namespace attmirror
