// AdaGrad: s <- s + g^2, w <- w - lr_t g / (sqrt(s) + eps), entry by entry.
//
// What is kept is the root r = sqrt(s), relative to one logarithmic scale per block, r e^a, for the reason that Adam
// keeps a root: s itself would square the range of entries. Then g / sqrt(s) does not know the scale at all, which is
// what EpsPolicy::exact takes; EpsPolicy::paper adds eps e^{-a} to r. To go from r to sqrt(r^2 + g^2) instead of
// adding to a sum costs a rounding error a step, and none where g is 0: the root of a square is exact.
#include "descent/rules.hpp"
#include "descent/scaled_blocks.hpp"
#include "descent/step_size.hpp"

#include <cmath>

namespace attmirror {

namespace {

// sqrt(r^2 + g^2), also where the squares leave the range of doubles.
double root_with(double root, double g) {
  const double square = root * root + g * g;
  if (square > 0x1p-900 && square < 0x1p900) return std::sqrt(square);
  return std::hypot(root, g);
}

class AdaGradRule final : public UpdateRule {
 public:
  AdaGradRule(const AdaGrad& options, std::span<const BlockShape> trained, const ParameterBlocks& weights)
      : options_(options),
        size_(options),
        trained_(trained, weights),
        root_({trained.begin(), trained.end()}),
        log_scale_(trained.size(), 0.0) {}

  void step(const Gradient& gradient, const StepContext& context, ParameterBlocks& weights) override {
    const double lr = size_.begin(context);
    const bool has_eps = options_.eps == EpsPolicy::paper && options_.eps_value > 0;
    for (std::ptrdiff_t b = 0; b < trained_.count(); ++b) {
      const ScaledBlock g = scaled_block(gradient, b);
      MatrixView r = root_.view(b), w = trained_.of(weights, b);
      double& scale = log_scale_[static_cast<std::size_t>(b)];
      const double factor = align_scale(g, scale, {r});
      const double eps = has_eps ? options_.eps_value * std::exp(-scale) : 0.0;
      for (std::ptrdiff_t j = 0; j < r.flat_size(); ++j) {
        const double entry = factor * g.values.data[j];
        r.data[j] = root_with(r.data[j], entry);
        if (entry != 0) w.data[j] -= lr * (entry / (r.data[j] + eps));
      }
      recenter(scale, {r});
    }
  }

  std::vector<std::pair<std::string, ParameterBlocks*>> state() override {
    return {{"root_of_sum_of_squares", &root_}};
  }
  std::vector<std::pair<std::string, std::span<double>>> numbers() override {
    return {{"sums.log_scale", std::span(log_scale_)}};
  }

 private:
  AdaGrad options_;
  StepSize size_;
  TrainedBlocks trained_;
  ParameterBlocks root_;
  std::vector<double> log_scale_;
};

}  // namespace

// On separable data s converges, and from then on each entry has a step size h of its own: the direction is that of
// the largest margin for sum w^2 / h, a norm that depends on the data and the start (Qian and Qian 2019, "The
// implicit bias of AdaGrad on separable data").
std::optional<Norm> AdaGrad::geometry_norm() const { return std::nullopt; }

std::unique_ptr<UpdateRule> AdaGrad::make_rule(std::span<const BlockShape> trained,
                                               const ParameterBlocks& weights) const {
  return std::make_unique<AdaGradRule>(*this, trained, weights);
}

}  // namespace attmirror
