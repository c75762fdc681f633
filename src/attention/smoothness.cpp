#include <attmirror/attention/smoothness.hpp>

#include <algorithm>
#include <cmath>

#include <Eigen/SVD>

namespace attmirror {

namespace {

double spectral_norm(const Matrix& matrix) {
  return matrix.size() == 0 ? 0 : Eigen::JacobiSVD<Matrix>(matrix).singularValues()[0];
}

// sup |ell'| and sup |ell''|. The sigmoid loss has ell' = -s (1 - s) with s = 1 / (1 + e^m), hence |ell'| <= 1/4, and
// |ell''| = s (1 - s) |1 - 2 s| <= 1 / (6 sqrt(3)), attained at s = 1/2 +- 1 / (2 sqrt(3)).
struct BoundsOfLoss {
  double largest;
  std::optional<LossBounds> operator()(Logistic) const { return LossBounds{1, 0.25}; }
  std::optional<LossBounds> operator()(Exponential) const {
    return LossBounds{std::exp(largest), std::exp(largest)};
  }
  std::optional<LossBounds> operator()(LinearLoss) const { return LossBounds{1, 0}; }
  std::optional<LossBounds> operator()(Sigmoid) const { return LossBounds{0.25, 1 / (6 * std::sqrt(3.0))}; }
  std::optional<LossBounds> operator()(const std::shared_ptr<const CustomLoss>&) const {
    return std::nullopt;
  }
};

}  // namespace

std::optional<LossBounds> loss_bounds(const Loss& loss, double largest) {
  return std::visit(BoundsOfLoss{largest}, loss);
}

std::optional<double> gradient_lipschitz(const Attention& model) {
  const Dataset& data = model.data();
  const auto* prompt = std::get_if<Prompt>(&model.parameterization());
  const bool of_W = std::holds_alternative<W>(model.parameterization());
  if ((!of_W && !prompt) || model.is_trained(Block::v) || !data.has_decoder() ||
      !std::holds_alternative<LinearHead>(model.head()))
    return std::nullopt;
  const double v = data.decoder().eigen().norm();
  std::vector<double> sequence_norms;
  double longest = 0;
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i) {
    const Matrix X = data.tokens(i).eigen();
    sequence_norms.push_back(spectral_norm(X));
    longest = std::max(longest, X.rowwise().norm().maxCoeff());
  }
  const std::optional<LossBounds> bounds = loss_bounds(model.loss(), v * longest);
  if (!bounds) return std::nullopt;
  const double keys = prompt && prompt->key_weights.size() > 0 ? spectral_norm(prompt->key_weights) : 1;
  double sum = 0;
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    const double X = sequence_norms[static_cast<std::size_t>(data.sequence_of(j))];
    const double z = (prompt ? keys : data.queries().eigen().row(j).norm()) * model.logit_scale();
    sum += z * z * (bounds->second * v * v * std::pow(X, 4) + 3 * bounds->first * v * std::pow(X, 3));
  }
  return sum / static_cast<double>(data.total_queries()) + 2 * model.penalty();
}

}  // namespace attmirror
