#include "attention/rounding_floor.hpp"

#include "base/numbers.hpp"
#include <attmirror/attention/loss.hpp>

#include <algorithm>
#include <cmath>
#include <variant>

namespace attmirror {

namespace {

double largest_norm(ConstMatrixView rows) {
  return rows.rows == 0 ? 0.0 : std::sqrt(rows.eigen().rowwise().squaredNorm().maxCoeff());
}
double largest_entry(ConstMatrixView rows) {
  return rows.rows == 0 ? 0.0 : rows.eigen().cwiseAbs().maxCoeff();
}

// The direction u of query j, logits X u, of W and p.
Vector logit_direction(const Attention& model, const Parameters& at, std::ptrdiff_t j) {
  const auto* prompt = std::get_if<Prompt>(&model.parameterization());
  if (prompt == nullptr) return at.W * model.data().queries().eigen().row(j).transpose();
  return prompt->key_weights.size() == 0 ? at.p : Vector(prompt->key_weights.transpose() * at.p);
}

// What one query gives: the row X^T c, with absolute values throughout, without the factor e^{exponent} that the
// gradients leave out.
struct QueryTerms {
  Vector row;
  double exponent = -infinity;  // log|ell'| + E
};

QueryTerms terms_of(const Attention& model, const Parameters& at, std::ptrdiff_t j) {
  const Dataset& data = model.data();
  const auto X = data.tokens(data.sequence_of(j)).eigen();
  const Vector u = model.logit_scale() * logit_direction(model, at, j);
  Vector a = X * u;
  const Vector gamma = data.labels()[static_cast<std::size_t>(j)] * (X * at.v);
  for (std::ptrdiff_t t = 0; t < a.size(); ++t)
    if (!data.allows(j, t)) a[t] = -infinity;
  const double top = a.maxCoeff();
  double reference = -infinity, rival = -infinity;
  for (std::ptrdiff_t t = 0; t < a.size(); ++t)
    if (a[t] == top) reference = std::max(reference, gamma[t]);
  for (std::ptrdiff_t t = 0; t < a.size(); ++t)
    if (gamma[t] != reference) rival = std::max(rival, a[t]);
  const double pivot = rival == -infinity ? top : rival;

  double sum = 0, delta = 0, size = 0;
  Vector e(a.size()), h(a.size());
  for (std::ptrdiff_t t = 0; t < a.size(); ++t) {
    e[t] = std::exp(a[t] - top);
    h[t] = std::exp(std::min(a[t] - pivot, 0.0));
    sum += e[t];
    delta += h[t] * (reference - gamma[t]);
    size += h[t] * std::abs(reference - gamma[t]);
  }
  delta /= sum;
  size /= sum;
  const double gap = rival - top;
  const double slope = log_abs_loss_derivative(model.loss(), reference - delta * std::exp(gap));
  QueryTerms terms;
  terms.exponent = slope + gap;
  const Matrix absolute = X.cwiseAbs();
  const Vector coefficients = (h.cwiseProduct((gamma.array() - reference).abs().matrix()) + size * e) / sum;
  terms.row = absolute.transpose() * coefficients;
  return terms;
}

}  // namespace

RoundingFloor::RoundingFloor(const Attention& model) : model_(&model) {
  const Dataset& data = model.data();
  if (!std::holds_alternative<LinearHead>(model.head()) || model.penalty() != 0 ||
      model.is_trained(Block::v) || std::holds_alternative<KQ>(model.parameterization()))
    return;
  const auto T = static_cast<double>(data.max_length());
  unit_ = 0x1p-52 * (static_cast<double>(data.total_queries()) + T + static_cast<double>(data.dim()));
  // Each query has at most T tokens with coefficients of at most 4 max |gamma| between them.
  bound_ = unit_ * 4 * T * largest_norm(data.decoder()) * largest_norm(data.all_tokens()) *
           largest_entry(data.all_tokens()) * model.logit_scale();
  const auto* prompt = std::get_if<Prompt>(&model.parameterization());
  if (prompt == nullptr)
    bound_ *= largest_norm(data.queries());
  else if (prompt->key_weights.size() > 0)
    bound_ *= prompt->key_weights.rowwise().lpNorm<1>().maxCoeff();
}

bool RoundingFloor::is_zero(const ParameterBlocks& parameters, const Gradient& gradient,
                            std::ptrdiff_t b) const {
  const Attention& model = *model_;
  const Dataset& data = model.data();
  const auto* prompt = std::get_if<Prompt>(&model.parameterization());
  const double log_scale = gradient.log_scale[static_cast<std::size_t>(b)];
  const Parameters at = parameters.parameters(), g = gradient.blocks.parameters();
  const std::ptrdiff_t d = data.dim(), N = data.total_queries();
  Matrix terms = Matrix::Zero(d, prompt == nullptr ? d : 1);
  for (std::ptrdiff_t j = 0; j < N; ++j) {
    const QueryTerms own = terms_of(model, at, j);
    const double factor = model.logit_scale() * std::exp(own.exponent - log_scale) / static_cast<double>(N);
    if (prompt == nullptr)
      terms += factor * own.row * data.queries().eigen().row(j).cwiseAbs();
    else
      terms.col(0) += factor * own.row;
  }
  if (prompt != nullptr && prompt->key_weights.size() > 0) terms = prompt->key_weights.cwiseAbs() * terms;
  const Matrix values = prompt == nullptr ? g.W : Matrix(g.p);
  return (values.array().abs() <= unit_ * terms.array() || values.array() == 0).all();
}

}  // namespace attmirror
