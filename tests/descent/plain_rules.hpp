// The update rules once more, as plainly as their formulas are written: Eigen, true magnitudes, no scales, no
// fused kernels. And a way to drive the real ones with gradients made by hand.
#pragma once

#include "descent/update_rule.hpp"
#include "support/random_data.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include <Eigen/SVD>

namespace attmirror::test {

using Matrices = std::vector<Matrix>;

inline Matrix entrywise(const Matrix& m, const std::function<double(double)>& f) { return m.unaryExpr(f); }

inline Matrix signed_power(const Matrix& m, double exponent) {
  return entrywise(
      m, [=](double x) { return x == 0 ? 0.0 : std::copysign(std::pow(std::abs(x), exponent), x); });
}

// f of the singular values, as one column.
inline Matrix spectral(const Matrix& m, const std::function<Matrix(const Matrix&)>& f) {
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(m, Eigen::ComputeThinU | Eigen::ComputeThinV);
  return svd.matrixU() * f(Matrix(svd.singularValues())).col(0).asDiagonal() * svd.matrixV().transpose();
}

inline double plain_lp(const Matrix& m, double p) {
  if (std::isinf(p)) return m.cwiseAbs().maxCoeff();
  return std::pow(m.cwiseAbs().array().pow(p).sum(), 1 / p);
}

inline double plain_norm(const Matrix& m, const Norm& norm) {
  if (norm.is_entrywise()) return plain_lp(m, norm.p());
  return plain_lp(Matrix(Eigen::JacobiSVD<Eigen::MatrixXd>(m).singularValues()), norm.p());
}

// The d of l_p norm 1 with the largest <g, d>.
inline Matrix plain_lp_direction(const Matrix& g, double p) {
  if (g.isZero(0)) return g;
  if (std::isinf(p)) return entrywise(g, [](double x) { return double((x > 0) - (x < 0)); });
  if (p == 1) {
    Eigen::Index i = 0, j = 0;
    g.cwiseAbs().maxCoeff(&i, &j);
    Matrix d = Matrix::Zero(g.rows(), g.cols());
    d(i, j) = g(i, j) > 0 ? 1 : -1;
    return d;
  }
  return signed_power(g / plain_lp(g, p / (p - 1)), 1 / (p - 1));
}

inline Matrix plain_direction(const Matrix& g, const Norm& norm) {
  if (norm.is_entrywise()) return plain_lp_direction(g, norm.p());
  return spectral(g, [&](const Matrix& sigma) { return plain_lp_direction(sigma, norm.p()); });
}

class PlainRule {
 public:
  PlainRule(Optimizer optimizer, Matrices weights) : weights_(std::move(weights)), optimizer_(optimizer) {
    for (const Matrix& w : weights_) {
      moments_.push_back(Matrix::Zero(w.rows(), w.cols()));
      squares_.push_back(Matrix::Zero(w.rows(), w.cols()));
      duals_.push_back(to_dual(w));
    }
  }

  const Matrices& weights() const { return weights_; }

  void step(const Matrices& gradients, double loss) {
    ++steps_;
    std::visit([&](const auto& options) { step(options, gradients, loss); }, optimizer_);
  }

 private:
  const MirrorDescent& md() const { return std::get<MirrorDescent>(optimizer_); }

  Matrix to_dual(const Matrix& w) const {
    const auto* o = std::get_if<MirrorDescent>(&optimizer_);
    if (o == nullptr) return w;
    if (o->geometry == Geometry::lp) return signed_power(w, o->p - 1);
    if (o->geometry == Geometry::schatten)
      return spectral(w, [&](const Matrix& s) { return signed_power(s, o->p - 1); });
    return entrywise(w, [&](double x) { return std::asinh(x / o->beta); });
  }

  Matrix from_dual(const Matrix& y) const {
    if (md().geometry == Geometry::lp) return signed_power(y, 1 / (md().p - 1));
    if (md().geometry == Geometry::schatten)
      return spectral(y, [&](const Matrix& s) { return signed_power(s, 1 / (md().p - 1)); });
    return entrywise(y, [&](double x) { return md().beta * std::sinh(x); });
  }

  template <class Options>
  double rate(const Options& options, const Matrices& gradients, double loss) const {
    if (options.schedule.kind == ScheduleKind::power)
      return options.lr * std::pow(steps_, -options.schedule.exponent);
    if (options.schedule.kind == ScheduleKind::constant) return options.lr;
    double sum = 0;
    for (const Matrix& g : gradients) sum += std::pow(plain_norm(g, measuring_norm(optimizer_).dual()), 2);
    return options.lr * (loss - options.schedule.lower_bound) / sum;
  }

  template <class Options>
  Matrix averaged(const Options& options, const Matrix& g, std::size_t b) {
    const Momentum& momentum = options.momentum;
    if (momentum.kind == MomentumKind::none) return g;
    const double weight = momentum.kind == MomentumKind::ema ? 1 - momentum.beta : 1;
    return moments_[b] = momentum.beta * moments_[b] + weight * g;
  }

  template <class Options>
  double divisor(const Options& options, const Matrix& g) const {
    if (!options.normalized) return 1;
    return plain_norm(g, measuring_norm(optimizer_).dual()) +
           (options.eps == EpsPolicy::paper ? options.eps_value : 0);
  }

  void step(const MirrorDescent& options, const Matrices& gradients, double loss) {
    const double lr = rate(options, gradients, loss);
    for (std::size_t b = 0; b < weights_.size(); ++b) {
      const Matrix g = averaged(options, gradients[b], b);
      duals_[b] -= lr / divisor(options, g) * g;
      weights_[b] = from_dual(duals_[b]);
    }
  }

  void step(const GradientDescent& options, const Matrices& gradients, double loss) {
    const double lr = rate(options, gradients, loss);
    for (std::size_t b = 0; b < weights_.size(); ++b) {
      const Matrix g = averaged(options, gradients[b], b);
      weights_[b] -= lr / divisor(options, g) * g;
    }
  }

  void step(const SteepestDescent& options, const Matrices& gradients, double loss) {
    const double lr = rate(options, gradients, loss);
    for (std::size_t b = 0; b < weights_.size(); ++b) {
      const Matrix g = averaged(options, gradients[b], b);
      const double length = plain_norm(g, options.norm.dual()) / divisor(options, g);
      weights_[b] -= lr * length * plain_direction(g, options.norm);
    }
  }

  void step(const Adam& options, const Matrices& gradients, double loss) {
    const double lr = rate(options, gradients, loss);
    const double eps = options.eps == EpsPolicy::paper ? options.eps_value : 0;
    for (std::size_t b = 0; b < weights_.size(); ++b) {
      Matrix &m = moments_[b], &v = squares_[b];
      m = options.beta1 * m + (1 - options.beta1) * gradients[b];
      v = options.beta2 * v + (1 - options.beta2) * gradients[b].cwiseAbs2();
      const Matrix root = (v / (1 - std::pow(options.beta2, steps_))).cwiseSqrt();
      const Matrix mean = m / (1 - std::pow(options.beta1, steps_));
      weights_[b] -= lr * mean.cwiseQuotient(entrywise(root, [&](double r) { return r + eps; }));
    }
  }

  void step(const Lion& options, const Matrices& gradients, double loss) {
    const double lr = rate(options, gradients, loss);
    for (std::size_t b = 0; b < weights_.size(); ++b) {
      const Matrix c = options.beta1 * moments_[b] + (1 - options.beta1) * gradients[b];
      weights_[b] -= lr * entrywise(c, [](double x) { return double((x > 0) - (x < 0)); });
      moments_[b] = options.beta2 * moments_[b] + (1 - options.beta2) * gradients[b];
    }
  }

  void step(const AdaGrad& options, const Matrices& gradients, double loss) {
    const double lr = rate(options, gradients, loss);
    const double eps = options.eps == EpsPolicy::paper ? options.eps_value : 0;
    for (std::size_t b = 0; b < weights_.size(); ++b) {
      squares_[b] += gradients[b].cwiseAbs2();
      const Matrix root = squares_[b].cwiseSqrt();
      weights_[b] -= lr * gradients[b].cwiseQuotient(entrywise(root, [&](double r) { return r + eps; }));
    }
  }

  Matrices weights_, duals_, moments_, squares_;
  Optimizer optimizer_;
  int steps_ = 0;
};

// The real rule. Blocks are as the rule sees them: W and K transposed, vectors as one row.
class DrivenRule {
 public:
  DrivenRule(const Optimizer& optimizer, const Attention& model, const Parameters& start)
      : weights_(model.blocks()), gradient_{ParameterBlocks(model.trained_blocks()), {}} {
    weights_.assign(start);
    for (const Block block : model.trained()) positions_.push_back(weights_.find(block));
    gradient_.log_scale.assign(positions_.size(), 0.0);
    rule_ = make_rule(optimizer, model, weights_);
  }

  UpdateRule& rule() { return *rule_; }
  std::size_t count() const { return positions_.size(); }
  Matrix weight(std::size_t b) const { return weights_.view(positions_[b]).eigen(); }
  Matrices weights() const {
    Matrices result;
    for (std::size_t b = 0; b < count(); ++b) result.push_back(weight(b));
    return result;
  }

  // The gradient is `stored` times e^log_scale.
  void step(const Matrices& stored, const std::vector<double>& log_scale, double loss = 1) {
    for (std::size_t b = 0; b < count(); ++b)
      gradient_.blocks.view(static_cast<std::ptrdiff_t>(b)).eigen() = stored[b];
    gradient_.log_scale = log_scale;
    rule_->step(gradient_, {steps_++, loss}, weights_);
  }
  void step(const Matrices& gradient, double loss = 1) {
    step(gradient, std::vector<double>(count(), 0.0), loss);
  }

 private:
  ParameterBlocks weights_;
  Gradient gradient_;
  std::vector<std::ptrdiff_t> positions_;
  std::unique_ptr<UpdateRule> rule_;
  std::int64_t steps_ = 0;
};

// Random gradients in the shape of the weights.
inline Matrices random_gradients(const Matrices& weights, std::uint64_t seed) {
  Matrices result;
  for (const Matrix& w : weights)
    result.push_back(random_matrix(w.rows(), w.cols(), seed * 16 + result.size()));
  return result;
}

}  // namespace attmirror::test
