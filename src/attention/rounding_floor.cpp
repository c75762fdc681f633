#include "attention/rounding_floor.hpp"

#include "base/numbers.hpp"
#include <attmirror/attention/loss.hpp>

#include <algorithm>
#include <cmath>
#include <variant>

namespace attmirror {

namespace {

// Blocks that are trained may have any size; this is where the quick bound ends. A larger one may cost a step that
// should have stood still, as it was before there was a bound.
constexpr double largest_block = 0x1p20;

double largest_norm(ConstMatrixView rows) {
  return rows.rows == 0 ? 0.0 : std::sqrt(rows.eigen().rowwise().squaredNorm().maxCoeff());
}
double largest_entry(ConstMatrixView rows) {
  return rows.rows == 0 ? 0.0 : rows.eigen().cwiseAbs().maxCoeff();
}

// The direction u of query j, logits X u.
struct LogitDirection {
  const Parameters& at;
  Vector z;
  Vector operator()(const W&) const { return at.W * z; }
  Vector operator()(const KQ&) const { return at.K * (at.Q.transpose() * z); }
  Vector operator()(const Prompt& prompt) const {
    return prompt.key_weights.size() == 0 ? at.p : Vector(prompt.key_weights.transpose() * at.p);
  }
};

// What one query gives: the row X^T c and, for v, X^T s, with absolute values throughout; both without the factor
// e^{exponent} that the gradients leave out, where the exponents are log|ell'| + E and log|ell'|.
struct QueryTerms {
  Vector row, attended;
  double exponent = -infinity, exponent_v = -infinity;
};

QueryTerms terms_of(const Attention& model, const Parameters& at, std::ptrdiff_t j) {
  const Dataset& data = model.data();
  const auto X = data.tokens(data.sequence_of(j)).eigen();
  const Vector u =
      model.logit_scale() *
      std::visit(LogitDirection{at, data.queries().eigen().row(j).transpose()}, model.parameterization());
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
  terms.exponent_v = slope;
  const Matrix absolute = X.cwiseAbs();
  const Vector coefficients = (h.cwiseProduct((gamma.array() - reference).abs().matrix()) + size * e) / sum;
  terms.row = absolute.transpose() * coefficients;
  terms.attended = absolute.transpose() * (e / sum);
  return terms;
}

}  // namespace

RoundingFloor::RoundingFloor(const Attention& model) : model_(&model) {
  const Dataset& data = model.data();
  if (!std::holds_alternative<LinearHead>(model.head()) || model.penalty() != 0) return;
  const auto T = static_cast<double>(data.max_length());
  unit_ = 0x1p-52 * (static_cast<double>(data.total_queries()) + T + static_cast<double>(data.dim()));
  const double x = largest_entry(data.all_tokens()), z = largest_norm(data.queries());
  const double v = model.is_trained(Block::v) ? largest_block : largest_norm(data.decoder());
  // Each query has at most T tokens with coefficients of at most 4 max |gamma| between them.
  const double row = 4 * T * v * largest_norm(data.all_tokens()) * x * model.logit_scale();
  attention_ = unit_ * row * z;
  keys_ = attention_ * largest_block;  // times |Q^T z|
  queries_ = attention_ * largest_block * std::sqrt(static_cast<double>(data.dim()));
  prompt_ = unit_ * row;
  if (const auto* prompt = std::get_if<Prompt>(&model.parameterization());
      prompt && prompt->key_weights.size() > 0)
    prompt_ *= prompt->key_weights.rowwise().lpNorm<1>().maxCoeff();
  decoder_ = unit_ * x;
}

double RoundingFloor::bound(const Block& name) const {
  if (unit_ == 0) return -1;  // every number is above it
  if (name == Block::K) return keys_;
  if (name == Block::Q) return queries_;
  if (name == Block::p) return prompt_;
  if (name == Block::v) return decoder_;
  return attention_;
}

bool RoundingFloor::is_zero(const ParameterBlocks& parameters, const Gradient& gradient,
                            std::ptrdiff_t b) const {
  const Attention& model = *model_;
  const Dataset& data = model.data();
  const Block& name = gradient.blocks.shape(b).name;
  const double log_scale = gradient.log_scale[static_cast<std::size_t>(b)];
  const Parameters at = parameters.parameters(), g = gradient.blocks.parameters();
  const std::ptrdiff_t d = data.dim(), N = data.total_queries();
  Matrix terms = name == Block::W   ? Matrix::Zero(d, d)
                 : name == Block::K ? Matrix::Zero(d, model.rank())
                 : name == Block::Q ? Matrix::Zero(d, model.rank())
                                    : Matrix::Zero(d, 1);
  for (std::ptrdiff_t j = 0; j < N; ++j) {
    const QueryTerms own = terms_of(model, at, j);
    const Vector z = data.queries().eigen().row(j).transpose().cwiseAbs();
    const double share = 1.0 / static_cast<double>(N);
    if (name == Block::v) {
      terms.col(0) += share * std::exp(own.exponent_v - log_scale) * own.attended;
      continue;
    }
    const Vector row = share * model.logit_scale() * std::exp(own.exponent - log_scale) * own.row;
    if (name == Block::W)
      terms += row * z.transpose();
    else if (name == Block::K)
      terms += row * (z.transpose() * at.Q.cwiseAbs());
    else if (name == Block::Q)
      terms += z * (row.transpose() * at.K.cwiseAbs());
    else
      terms.col(0) += row;
  }
  if (const auto* prompt = std::get_if<Prompt>(&model.parameterization());
      prompt && name == Block::p && prompt->key_weights.size() > 0)
    terms = prompt->key_weights.cwiseAbs() * terms;
  const auto within = [&](const auto& values) {
    return ((values.array().abs() <= unit_ * terms.array()) || (values.array() == 0)).all();
  };
  if (name == Block::W) return within(g.W);
  if (name == Block::K) return within(g.K);
  if (name == Block::Q) return within(g.Q);
  if (name == Block::p) return within(Matrix(g.p));
  return within(Matrix(g.v));
}

}  // namespace attmirror
