// Gradient descent, w <- w - lr_t g: mirror descent with p = 2, where y is w and there is nothing else to keep.
#include "descent/momentum_buffer.hpp"
#include "descent/rules.hpp"
#include "descent/step_size.hpp"
#include <attmirror/mirror/lp_map.hpp>

namespace attmirror {

namespace {

class GradientDescentRule final : public UpdateRule {
 public:
  GradientDescentRule(const GradientDescent& options, std::span<const BlockShape> trained,
                      const ParameterBlocks& weights)
      : size_(options), momentum_(options.momentum, trained), trained_(trained, weights) {}

  void step(const Gradient& gradient, const StepContext& context, ParameterBlocks& weights) override {
    size_.begin(context);
    if (size_.wants_norms())
      for (std::ptrdiff_t b = 0; b < trained_.count(); ++b) {
        const ScaledBlock g = scaled_block(gradient, b);
        size_.add_block(euclid_.norm(g.values), g.log_scale);
      }
    for (std::ptrdiff_t b = 0; b < trained_.count(); ++b) {
      const ScaledBlock g = momentum_.add(gradient, b);
      const double norm = size_.normalized() ? euclid_.norm(g.values) : 0.0;
      MatrixView w = trained_.of(weights, b);
      euclid_.step(g.values, size_.factor(norm, g.log_scale), w, w);
    }
  }

  std::vector<std::pair<std::string, ParameterBlocks*>> state() override { return momentum_.state(); }

  std::vector<std::pair<std::string, std::span<double>>> numbers() override { return momentum_.numbers(); }

 private:
  LpMap euclid_{2};
  StepSize size_;
  MomentumBuffer momentum_;
  TrainedBlocks trained_;
};

}  // namespace

std::optional<Norm> GradientDescent::geometry_norm() const { return Norm::frobenius(); }

std::unique_ptr<UpdateRule> GradientDescent::make_rule(std::span<const BlockShape> trained,
                                                       const ParameterBlocks& weights) const {
  return std::make_unique<GradientDescentRule>(*this, trained, weights);
}

}  // namespace attmirror
