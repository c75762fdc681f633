#include "descent/data_scale.hpp"

#include "descent/optimizer_fields.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

namespace attmirror {

namespace {

// The l_q norm that a factor of the rank-one matrix x z^T contributes to its dual norm.
double factor_exponent(const Norm& dual) { return dual.is_entrywise() ? dual.p() : 2; }

double three_digits(double value) { return std::strtod(fmt::format("{:.3g}", value).c_str(), nullptr); }

// The mean square of ||A (x_t - mean x)||_q over the tokens that query j attends to.
double token_square(const Dataset& data, std::ptrdiff_t j, const Matrix& key_weights,
                    const Norm& vector_norm) {
  const ConstMatrixView tokens = data.tokens(data.sequence_of(j));
  const auto row = [&](std::ptrdiff_t t) {
    return Eigen::Map<const Vector>(tokens.data + t * tokens.stride, tokens.cols);
  };
  Vector mean = Vector::Zero(tokens.cols);
  std::ptrdiff_t count = 0;
  for (std::ptrdiff_t t = 0; t < data.attended_length(j); ++t) {
    if (!data.allows(j, t)) continue;
    mean += row(t);
    ++count;
  }
  if (count < 2) return 0;
  mean /= static_cast<double>(count);
  double sum = 0;
  for (std::ptrdiff_t t = 0; t < data.attended_length(j); ++t) {
    if (!data.allows(j, t)) continue;
    Matrix difference = row(t) - mean;
    if (key_weights.size() > 0) difference = key_weights * difference;
    const double length = norm(difference, vector_norm);
    sum += length * length;
  }
  return sum / static_cast<double>(count);
}

double query_length(const Dataset& data, std::ptrdiff_t j, const Norm& vector_norm) {
  const ConstMatrixView queries = data.queries();
  const ConstMatrixView one{queries.data + j * queries.stride, 1, queries.cols, queries.stride};
  return norm(one, vector_norm);
}

struct Scaling {
  double s, reach;

  void operator()(MirrorDescent& md) const {
    const double more = md.normalized ? 1 : s;
    if (md.geometry == Geometry::hyperbolic_entropy) {
      // W = beta sinh(y): the size of the weights is that of beta, and y has none.
      md.beta = three_digits(md.beta / s);
      md.lr = three_digits(reach / more);
      return;
    }
    if (md.schedule.kind == ScheduleKind::polyak) {
      md.lr = 1;
      return;
    }
    md.lr = three_digits(reach * std::pow(100, std::max(md.p - 2, 0.0)) / std::pow(s, md.p - 1) / more);
  }
  void operator()(GradientDescent& gd) const { gd.lr = plain(gd); }
  void operator()(SteepestDescent& sd) const { sd.lr = plain(sd); }
  void operator()(Adam& adam) const { adam.lr = three_digits(reach / s); }
  void operator()(Lion& lion) const { lion.lr = three_digits(reach / s); }
  void operator()(AdaGrad& adagrad) const { adagrad.lr = three_digits(reach / s); }

 private:
  // Polyak's step length is made from loss and gradient, which have the scale of the data themselves.
  template <class Options>
  double plain(const Options& options) const {
    if (options.schedule.kind == ScheduleKind::polyak) return 1;
    return three_digits(reach / s / (options.normalized ? 1 : s));
  }
};

// The norm in which a step has the length lr.
struct StepNorm {
  Norm operator()(const MirrorDescent& md) const {
    if (md.geometry == Geometry::lp) return Norm::l(md.p);
    return md.geometry == Geometry::schatten ? Norm::schatten(md.p) : Norm::l(1);
  }
  Norm operator()(const GradientDescent&) const { return Norm::frobenius(); }
  Norm operator()(const SteepestDescent& sd) const { return sd.norm; }
  Norm operator()(const Adam&) const { return Norm::l(infinity); }
  Norm operator()(const Lion&) const { return Norm::l(infinity); }
  Norm operator()(const AdaGrad&) const { return Norm::l(infinity); }
};

struct Reach {
  double operator()(const MirrorDescent& md) const { return averaged(md.momentum); }
  double operator()(const GradientDescent& gd) const { return averaged(gd.momentum); }
  double operator()(const SteepestDescent& sd) const { return averaged(sd.momentum); }
  double operator()(const Adam&) const { return 0.1; }
  double operator()(const Lion&) const { return 0.02; }
  double operator()(const AdaGrad&) const { return 0.3; }

 private:
  static double averaged(const Momentum& momentum) { return momentum.kind == MomentumKind::none ? 0.3 : 0.1; }
};

}  // namespace

double logit_scale(const Attention& model, const Norm& norm) {
  const Dataset& data = model.data();
  const Norm vector_norm = Norm::l(factor_exponent(norm.dual()));
  const auto* prompt = std::get_if<Prompt>(&model.parameterization());
  const Matrix key_weights = prompt == nullptr ? Matrix() : prompt->key_weights;
  double sum = 0;
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    const double query = prompt == nullptr ? query_length(data, j, vector_norm) : 1;
    sum += query * query * token_square(data, j, key_weights, vector_norm);
  }
  const double scale = model.logit_scale() * std::sqrt(sum / static_cast<double>(data.total_queries()));
  return std::holds_alternative<KQ>(model.parameterization()) ? std::sqrt(scale) : scale;
}

double score_scale(const Dataset& data) {
  if (!data.has_decoder()) return 0;
  const ConstMatrixView tokens = data.all_tokens(), v = data.decoder();
  const Eigen::Map<const Vector> decoder(v.data, v.cols);
  double sum = 0;
  for (std::ptrdiff_t t = 0; t < tokens.rows; ++t) {
    const double score = decoder.dot(Eigen::Map<const Vector>(tokens.data + t * tokens.stride, tokens.cols));
    sum += score * score;
  }
  return std::sqrt(sum / static_cast<double>(tokens.rows));
}

double default_reach(const Optimizer& optimizer) { return std::visit(Reach{}, optimizer); }

Optimizer scaled_to(const Attention& model, Optimizer optimizer) {
  const double s = logit_scale(model, std::visit(StepNorm{}, optimizer));
  if (!(s > 0))
    throw bad_input(
        "the data have no scale to take a step size from: all tokens of each sequence are equal, or all queries are 0");
  std::visit(Scaling{s, default_reach(optimizer)}, optimizer);
  return optimizer;
}

double lr_of(const Optimizer& optimizer) {
  return std::visit([](const auto& options) { return options.lr; }, optimizer);
}

Optimizer with_lr(Optimizer optimizer, double lr) {
  std::visit([lr](auto& options) { options.lr = lr; }, optimizer);
  return optimizer;
}

double start_deviation(const Attention& model) {
  const double s = logit_scale(model, Norm::frobenius());
  if (!(s > 0))
    throw bad_input(
        "the data have no scale to take a start from: all tokens of each sequence are equal, or all queries are 0");
  return three_digits(1 / s);
}

}  // namespace attmirror
