// Mirror descent: y <- y - lr_t g, w = (grad psi)^{-1}(y).
//
// The dual image y is the state and w is derived from it: a step in w would lose the digits of entries near 0,
// which for p near 1 is most of them.
#include "descent/momentum_buffer.hpp"
#include "descent/rules.hpp"
#include "descent/step_size.hpp"
#include "mirror/hyperbolic_entropy_map.hpp"
#include "mirror/schatten_map.hpp"
#include <attmirror/mirror/lp_map.hpp>

namespace attmirror {

std::unique_ptr<MirrorMap> make_map(const MirrorDescent& options) {
  switch (options.geometry) {
    case Geometry::schatten:
      return std::make_unique<SchattenMap>(options.p);
    case Geometry::hyperbolic_entropy:
      return std::make_unique<HyperbolicEntropyMap>(options.beta);
    case Geometry::lp:
      break;
  }
  return std::make_unique<LpMap>(options.p, options.power_path);
}

namespace {

class MirrorDescentRule final : public UpdateRule {
 public:
  MirrorDescentRule(const MirrorDescent& options, std::span<const BlockShape> trained,
                    const ParameterBlocks& weights)
      : map_(make_map(options)),
        size_(options),
        momentum_(options.momentum, trained),
        trained_(trained, weights),
        dual_({trained.begin(), trained.end()}) {
    for (std::ptrdiff_t b = 0; b < dual_.count(); ++b) map_->map(trained_.of(weights, b), dual_.view(b));
  }

  void step(const Gradient& gradient, const StepContext& context, ParameterBlocks& weights) override {
    size_.begin(context);
    if (size_.wants_norms())
      for (std::ptrdiff_t b = 0; b < dual_.count(); ++b) {
        const ScaledBlock g = scaled_block(gradient, b);
        size_.add_block(map_->dual_norm(g.values), g.log_scale);
      }
    for (std::ptrdiff_t b = 0; b < dual_.count(); ++b) {
      const ScaledBlock g = momentum_.add(gradient, b);
      const double norm = size_.normalized() ? map_->dual_norm(g.values) : 0.0;
      map_->step(g.values, size_.factor(norm, g.log_scale), dual_.view(b), trained_.of(weights, b));
    }
  }

  std::vector<std::pair<std::string, ParameterBlocks*>> state() override {
    std::vector<std::pair<std::string, ParameterBlocks*>> state = momentum_.state();
    state.emplace_back("dual", &dual_);
    return state;
  }

  std::vector<std::pair<std::string, std::span<double>>> numbers() override { return momentum_.numbers(); }

 private:
  std::unique_ptr<MirrorMap> map_;
  StepSize size_;
  MomentumBuffer momentum_;
  TrainedBlocks trained_;
  ParameterBlocks dual_;
};

}  // namespace

std::optional<Norm> MirrorDescent::geometry_norm() const {
  if (geometry == Geometry::hyperbolic_entropy) return Norm::l(1);
  return geometry == Geometry::schatten ? Norm::schatten(p) : Norm::l(p);
}

std::unique_ptr<UpdateRule> MirrorDescent::make_rule(std::span<const BlockShape> trained,
                                                     const ParameterBlocks& weights) const {
  return std::make_unique<MirrorDescentRule>(*this, trained, weights);
}

}  // namespace attmirror
