// Lion: c = b1 m + (1 - b1) g, w <- w - lr_t sign(c), m <- b2 m + (1 - b2) g.
//
// Every entry moves by lr_t or, where c is 0, not at all: the step has l_inf length lr_t, as that of sign descent.
// The step looks further back than b1 alone would have it, because m forgets at the rate b2. The average m of a block
// is kept relative to a logarithmic scale of its own (descent/scaled_blocks.hpp), and c is formed on that scale: its
// sign is right however small gradients are.
#include "base/numbers.hpp"
#include "descent/rules.hpp"
#include "descent/scaled_blocks.hpp"
#include "descent/step_size.hpp"

namespace attmirror {

namespace {

class LionRule final : public UpdateRule {
 public:
  LionRule(const Lion& options, std::span<const BlockShape> trained, const ParameterBlocks& weights)
      : options_(options),
        size_(options),
        trained_(trained, weights),
        average_({trained.begin(), trained.end()}),
        log_scale_(trained.size(), 0.0) {}

  void step(const Gradient& gradient, const StepContext& context, ParameterBlocks& weights) override {
    const double lr = size_.begin(context);
    for (std::ptrdiff_t b = 0; b < trained_.count(); ++b) {
      const ScaledBlock g = scaled_block(gradient, b);
      MatrixView m = average_.view(b), w = trained_.of(weights, b);
      double& scale = log_scale_[static_cast<std::size_t>(b)];
      const double factor = align_scale(g, scale, {m});
      const double to_step = (1 - options_.beta1) * factor, to_average = (1 - options_.beta2) * factor;
      for (std::ptrdiff_t j = 0; j < m.flat_size(); ++j) {
        const double c = options_.beta1 * m.data[j] + to_step * g.values.data[j];
        if (c > 0) w.data[j] -= lr;
        if (c < 0) w.data[j] += lr;
        m.data[j] = options_.beta2 * m.data[j] + to_average * g.values.data[j];
      }
      recenter(scale, {m});
    }
  }

  std::vector<std::pair<std::string, ParameterBlocks*>> state() override { return {{"average", &average_}}; }
  std::vector<std::pair<std::string, std::span<double>>> numbers() override {
    return {{"average.log_scale", std::span(log_scale_)}};
  }

 private:
  Lion options_;
  StepSize size_;
  TrainedBlocks trained_;
  ParameterBlocks average_;
  std::vector<double> log_scale_;
};

}  // namespace

// The theorem is about sign descent along an average (Fan, Schmidt and Thrampoulidis 2025), which Lion is for
// beta1 = beta2 only. For other weights it is an expectation, which `attmirror reproduce which-margin` measures.
std::optional<Norm> Lion::geometry_norm() const { return Norm::l(infinity); }

std::unique_ptr<UpdateRule> Lion::make_rule(std::span<const BlockShape> trained,
                                            const ParameterBlocks& weights) const {
  return std::make_unique<LionRule>(*this, trained, weights);
}

}  // namespace attmirror
