// The loss of attention in long double, term by term as the definition reads: what gradients are checked against.
#pragma once

#include <attmirror/attention/attention.hpp>

#include <cmath>
#include <functional>

namespace attmirror::test {

struct TrainedForm {
  Parameterization parameterization;
  std::vector<Block> train;
};

using Real = long double;
using RealVector = Eigen::Matrix<Real, Eigen::Dynamic, 1>;
using RealMatrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// The loss and the head of one's own that tests use. Written as templates so that the reference runs in long double.
//   ell(m) = (1 + e^-m)^2 / 2 - 1/2,   ell' = -e^-m (1 + e^-m)
template <class T>
T squared_tail(T m) {
  const T e = std::exp(-m);
  return e + e * e / 2;
}
class SquaredTail final : public CustomLoss {
 public:
  std::string name() const override { return "squared_tail"; }
  double value(double m) const override { return squared_tail(m); }
  double log_abs_derivative(double m) const override { return -m + std::log1p(std::exp(-m)); }
};

//   h(u) = sum_c sin(c u_c)
class SineHead final : public CustomHead {
 public:
  std::string name() const override { return "sine"; }
  double evaluate(std::span<const double> u, std::span<double> gradient) const override {
    double sum = 0;
    for (std::size_t c = 0; c < u.size(); ++c) {
      const auto factor = static_cast<double>(c + 1);
      sum += std::sin(factor * u[c]);
      gradient[c] = factor * std::cos(factor * u[c]);
    }
    return sum;
  }
};

struct ReferenceLossTerm {
  Real m;
  Real operator()(Logistic) const { return m > 0 ? std::log1p(std::exp(-m)) : -m + std::log1p(std::exp(m)); }
  Real operator()(Exponential) const { return std::exp(-m); }
  Real operator()(LinearLoss) const { return -m; }
  Real operator()(Sigmoid) const { return 1 / (1 + std::exp(m)); }
  Real operator()(const std::shared_ptr<const CustomLoss>&) const { return squared_tail(m); }
};

inline Real reference_loss_term(const Loss& loss, Real m) { return std::visit(ReferenceLossTerm{m}, loss); }

inline Real reference_head(const Head& head, const RealVector& v, const RealVector& u) {
  if (const auto* relu = std::get_if<ReluHead>(&head))
    return (relu->V.cast<Real>().transpose() * u).cwiseMax(Real(0)).sum();
  if (const auto* quadratic = std::get_if<QuadraticHead>(&head))
    return v.dot(u) - Real(quadratic->lambda) * u.squaredNorm();
  if (std::holds_alternative<LinearHead>(head)) return v.dot(u);
  Real sum = 0;
  for (std::ptrdiff_t c = 0; c < u.size(); ++c) sum += std::sin(Real(c + 1) * u[c]);
  return sum;
}

inline RealVector reference_logits(const Attention& model, const Parameters& at, std::ptrdiff_t j) {
  const Dataset& data = model.data();
  const RealMatrix X = data.tokens(data.sequence_of(j)).eigen().cast<Real>();
  const RealVector z = data.queries().eigen().row(j).transpose().cast<Real>();
  RealVector u;
  if (at.W.size() > 0) {
    u = at.W.cast<Real>() * z;
  } else if (at.K.size() > 0) {
    u = at.K.cast<Real>() * (at.Q.cast<Real>().transpose() * z);
  } else {
    const Matrix& A = std::get<Prompt>(model.parameterization()).key_weights;
    u = A.size() == 0 ? RealVector(at.p.cast<Real>())
                      : RealVector(A.cast<Real>().transpose() * at.p.cast<Real>());
  }
  return Real(model.logit_scale()) * (X * u);
}

inline Real reference_loss(const Attention& model, const Parameters& at) {
  const Dataset& data = model.data();
  Real sum = 0;
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    const RealMatrix X = data.tokens(data.sequence_of(j)).eigen().cast<Real>();
    const RealVector a = reference_logits(model, at, j);
    RealVector s = RealVector::Zero(a.size());
    for (std::ptrdiff_t t = 0; t < a.size(); ++t)
      if (data.allows(j, t)) s[t] = std::exp(a[t] - a.maxCoeff());
    s /= s.sum();
    const Real f = reference_head(model.head(), at.v.cast<Real>(), X.transpose() * s);
    sum += reference_loss_term(model.loss(), data.labels()[static_cast<std::size_t>(j)] * f);
  }
  Real squares = 0;
  if (model.is_trained(Block::W)) squares += at.W.cast<Real>().squaredNorm();
  if (model.is_trained(Block::K)) squares += at.K.cast<Real>().squaredNorm();
  if (model.is_trained(Block::Q)) squares += at.Q.cast<Real>().squaredNorm();
  if (model.is_trained(Block::p)) squares += at.p.cast<Real>().squaredNorm();
  return sum / data.total_queries() + Real(model.penalty()) * squares;
}

// The gradient of W and v for a linear head and the logistic loss, one query each, as the formulas read.
struct ReferenceGradient {
  RealMatrix W;
  RealVector v;
};

inline ReferenceGradient reference_gradient(const Attention& model, const Parameters& at) {
  const Dataset& data = model.data();
  ReferenceGradient sum{RealMatrix::Zero(data.dim(), data.dim()), RealVector::Zero(data.dim())};
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i) {
    const RealMatrix X = data.tokens(i).eigen().cast<Real>();
    const RealVector z = data.queries().eigen().row(i).transpose().cast<Real>();
    const Real y = data.labels()[static_cast<std::size_t>(i)];
    const RealVector a = reference_logits(model, at, i);
    RealVector s = (a.array() - a.maxCoeff()).exp();
    s /= s.sum();
    const RealVector gamma = y * (X * at.v.cast<Real>());
    const Real m = gamma.dot(s), slope = -1 / (1 + std::exp(m)) / data.samples();
    const RealVector g = slope * (s.array() * (gamma.array() - m)).matrix();
    sum.W += X.transpose() * g * z.transpose();
    sum.v += slope * y * (X.transpose() * s);
  }
  return sum;
}

// Central difference of the reference in one number of the parameters.
inline double difference(const Attention& model, Parameters at,
                         const std::function<double&(Parameters&)>& entry) {
  const double here = entry(at), step = 1e-5;
  entry(at) = here + step;
  const Real up = reference_loss(model, at), up_at = entry(at);
  entry(at) = here - step;
  const Real down = reference_loss(model, at), down_at = entry(at);
  return static_cast<double>((up - down) / (up_at - down_at));
}

}  // namespace attmirror::test
