// Steepest descent in a norm: w <- w - length d(g), where d(g) is the direction of norm 1 along which the loss
// falls fastest, <g, d> = ||g||_*. Normalised steps have length lr_t, plain ones lr_t ||g||_*.
//
//   l_inf      d = sign(g)                  sign descent; with momentum, Signum
//   l_1        d = one signed coordinate    coordinate descent
//   spectral   d = U V^T of g = U S V^T     spectral descent; with momentum, Muon
//
// Some of these blocks are stored transposed. No norm here minds: an entrywise one does not see the shape, and
// the singular values of a matrix are those of its transpose.
#include "descent/momentum_buffer.hpp"
#include "descent/rules.hpp"
#include "descent/step_size.hpp"
#include "mirror/steepest.hpp"

namespace attmirror {

namespace {

class SteepestDescentRule final : public UpdateRule {
 public:
  SteepestDescentRule(const SteepestDescent& options, std::span<const BlockShape> trained,
                      const ParameterBlocks& weights)
      : size_(options),
        momentum_(options.momentum, trained),
        trained_(trained, weights),
        direction_({trained.begin(), trained.end()}),
        sizes_(trained.size()) {
    for (std::ptrdiff_t b = 0; b < trained_.count(); ++b) {
      const BlockShape& shape = direction_.shape(b);
      steepest_.emplace_back(options.norm, shape.rows, shape.cols, options.orthogonalization);
    }
  }

  void step(const Gradient& gradient, const StepContext& context, ParameterBlocks& weights) override {
    size_.begin(context);
    for (std::ptrdiff_t b = 0; b < trained_.count(); ++b) {
      const ScaledBlock g = momentum_.add(gradient, b);
      const double norm = steepest_[static_cast<std::size_t>(b)].find(g.values, direction_.view(b));
      sizes_[static_cast<std::size_t>(b)] = {norm, g.log_scale};
      if (size_.wants_norms()) size_.add_block(norm, g.log_scale);
    }
    for (std::ptrdiff_t b = 0; b < trained_.count(); ++b) {
      const Size& size = sizes_[static_cast<std::size_t>(b)];
      const double length = size_.length(size.dual_norm, size.log_scale);
      const MatrixView d = direction_.view(b), w = trained_.of(weights, b);
      for (std::ptrdiff_t j = 0; j < w.flat_size(); ++j) w.data[j] -= length * d.data[j];
    }
  }

  std::vector<std::pair<std::string, ParameterBlocks*>> state() override { return momentum_.state(); }

  std::vector<std::pair<std::string, std::span<double>>> numbers() override { return momentum_.numbers(); }

 private:
  struct Size {
    double dual_norm = 0, log_scale = 0;
  };

  StepSize size_;
  MomentumBuffer momentum_;
  TrainedBlocks trained_;
  std::vector<SteepestDirection> steepest_;  // each has scratch memory for the shape of its block
  ParameterBlocks direction_;
  std::vector<Size> sizes_;
};

}  // namespace

std::optional<Norm> SteepestDescent::geometry_norm() const { return norm; }

std::unique_ptr<UpdateRule> SteepestDescent::make_rule(std::span<const BlockShape> trained,
                                                       const ParameterBlocks& weights) const {
  return std::make_unique<SteepestDescentRule>(*this, trained, weights);
}

}  // namespace attmirror
