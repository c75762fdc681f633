// l_p mirror descent as a LibTorch optimizer: P1's update for networks of any size.
//
//   y <- y - lr d,   y = sign(w) |w|^{p-1},   w = sign(y) |y|^{1/(p-1)}
//
// p = 2 is torch::optim::SGD. p near 1 makes most weights small and a few large; p > 2 evens them out. The step
// is in the space of y: a weight of size s moves by about lr d s^{2-p}/(p-1), so choose lr anew for each p.
//
//   attmirror::deep::MirrorDescent optimizer(model->parameters(),
//                                            attmirror::deep::MirrorDescentOptions(8e-4).p(1.1));
//
// p, lr and the rest may differ between parameter groups; StepLR and ReduceLROnPlateau work as usual.
#pragma once

#include <attmirror/deep/fused_optimizer.hpp>

#include <string_view>
#include <utility>
#include <vector>

namespace attmirror::deep {

// The settings of mirror descent, for all parameters or for a group.
struct MirrorDescentOptions : public torch::optim::OptimizerCloneableOptions<MirrorDescentOptions> {
  MirrorDescentOptions(double lr) : lr_(lr) {}  // NOLINT: a number will do, as in LibTorch

  TORCH_ARG(double, lr);
  TORCH_ARG(double, p) = 2;
  TORCH_ARG(double, momentum) = 0;
  TORCH_ARG(bool, nesterov) = false;
  TORCH_ARG(double, weight_decay) = 0;    // decoupled, as in AdamW: w <- (1 - lr weight_decay) w
  TORCH_ARG(bool, normalized) = false;    // d / ||d||_q of each tensor, q = p/(p-1)
  TORCH_ARG(bool, maximize) = false;      // steps go up the gradient
  TORCH_ARG(double, gradient_scale) = 1;  // gradients are those of the loss times this
  TORCH_ARG(bool,
            skip_nonfinite) = false;  // a step with an infinite or NaN gradient anywhere does nothing
  // Keep y in 32 bits (64 for float64). Costs 4 bytes per parameter and saves one power per step; without it,
  // bfloat16 weights lose small steps.
  TORCH_ARG(MasterState, dual_state) = MasterState::automatic;
  TORCH_ARG(bool, exact) = false;  // correctly rounded steps, a microsecond or two per number, for checking
  TORCH_ARG(bool, fused) = true;   // off: tensor operations, for checking

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
  double get_lr() const override { return lr_; }
  void set_lr(double lr) override { lr_ = lr; }
};

// Mirror descent as an optimizer for LibTorch.
class MirrorDescent : public FusedOptimizer {
 public:
  // Both throw Error (bad input) for invalid options.
  MirrorDescent(std::vector<torch::optim::OptimizerParamGroup> groups, MirrorDescentOptions defaults);
  MirrorDescent(std::vector<at::Tensor> parameters, MirrorDescentOptions defaults);

 protected:
  GroupRule rule(const torch::optim::OptimizerOptions& options) const override;
  std::string_view name() const override { return "MirrorDescent"; }
};

}  // namespace attmirror::deep
