// Adam: m <- b1 m + (1 - b1) g, v <- b2 v + (1 - b2) g^2, w <- w - lr_t m^ / (sqrt(v^) + eps), with m^ and v^
// corrected for their start at 0 (m / (1 - b1^t) and v / (1 - b2^t) at step t = 1, 2, ...).
//
// Both moments of a block are kept relative to one logarithmic scale: m e^a, and r e^a with r = sqrt(v). The
// root instead of v itself because v would square the range: entries at 1e-160 of the block's largest have a
// v below the smallest double, and m / sqrt(0) is no step. Then m^ / sqrt(v^) does not know the scale at all,
// which is what EpsPolicy::exact takes; EpsPolicy::paper adds eps e^{-a} to r.
#include "base/numbers.hpp"
#include "descent/rules.hpp"
#include "descent/scaled_blocks.hpp"
#include "descent/step_size.hpp"

#include <cmath>

namespace attmirror {

namespace {

// sqrt(b2 r^2 + (1 - b2) g^2), also where the squares leave the range of doubles.
double next_root(double root, double g, double beta2) {
  const double square = beta2 * root * root + (1 - beta2) * g * g;
  if (square > 0x1p-900 && square < 0x1p900) return std::sqrt(square);
  return std::hypot(std::sqrt(beta2) * root, std::sqrt(1 - beta2) * g);
}

class AdamRule final : public UpdateRule {
 public:
  AdamRule(const Adam& options, std::span<const BlockShape> trained, const ParameterBlocks& weights)
      : options_(options),
        size_(options),
        trained_(trained, weights),
        first_({trained.begin(), trained.end()}),
        root_({trained.begin(), trained.end()}),
        log_scale_(trained.size(), 0.0) {}

  void step(const Gradient& gradient, const StepContext& context, ParameterBlocks& weights) override {
    const double lr = size_.begin(context);
    const double t = static_cast<double>(context.step) + 1;
    const double first_weight = 1 - std::pow(options_.beta1, t);
    const double root_weight = std::sqrt(1 - std::pow(options_.beta2, t));
    for (std::ptrdiff_t b = 0; b < trained_.count(); ++b) {
      const ScaledBlock g = scaled_block(gradient, b);
      MatrixView m = first_.view(b), r = root_.view(b), w = trained_.of(weights, b);
      double& scale = log_scale_[static_cast<std::size_t>(b)];
      const double factor = align_scale(g, scale, {m, r});
      for (std::ptrdiff_t j = 0; j < m.flat_size(); ++j) {
        const double entry = factor * g.values.data[j];
        m.data[j] = options_.beta1 * m.data[j] + (1 - options_.beta1) * entry;
        r.data[j] = next_root(r.data[j], entry, options_.beta2);
      }
      recenter(scale, {m, r});
      const bool has_eps = options_.eps == EpsPolicy::paper && options_.eps_value > 0;
      const double eps = has_eps ? options_.eps_value * std::exp(-scale) : 0.0;
      for (std::ptrdiff_t j = 0; j < m.flat_size(); ++j) {
        const double size = r.data[j] / root_weight + eps;
        if (size != 0) w.data[j] -= lr * (m.data[j] / first_weight / size);
      }
    }
  }

  std::vector<std::pair<std::string, ParameterBlocks*>> state() override {
    return {{"first_moment", &first_}, {"root_of_second_moment", &root_}};
  }
  std::vector<std::pair<std::string, std::span<double>>> numbers() override {
    return {{"moments.log_scale", std::span(log_scale_)}};
  }

 private:
  Adam options_;
  StepSize size_;
  TrainedBlocks trained_;
  ParameterBlocks first_, root_;
  std::vector<double> log_scale_;
};

}  // namespace

std::optional<Norm> Adam::geometry_norm() const { return Norm::l(infinity); }

std::unique_ptr<UpdateRule> Adam::make_rule(std::span<const BlockShape> trained,
                                            const ParameterBlocks& weights) const {
  return std::make_unique<AdamRule>(*this, trained, weights);
}

}  // namespace attmirror
