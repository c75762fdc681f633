// Steepest descent in a norm, as a LibTorch optimizer: w <- w - lr D, where D of norm 1 has the largest product with d.
//
//   "l1.5", "l2", "l3"    D = sign(d) (|d| / ||d||_q)^{1/(p-1)},  q = p/(p-1); l2 is normalized gradient descent
//   "linf", "sign"        D = sign(d): signSGD, and Lion's and Adam's step without their averages
//   "spectral"            D = U V^T of the singular value decomposition d = U S V^T: Muon
//
// Each parameter has its own norm and takes a step of length lr whatever the size of its gradient, so lr must
// decrease (a scheduler) for the loss to settle.
//
// Spectral steps are for matrices. A tensor with more dimensions (the filters of a convolution) is read as a
// matrix of its first dimension by the rest, as in Muon. A vector is a matrix with one column, whose spectral
// norm is its length, so biases take steps of normalized gradient descent. If you want another rule for them,
// put them into a group of their own.
#pragma once

#include <attmirror/deep/fused_optimizer.hpp>
#include <attmirror/mirror/norm.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror::deep {

// How U V^T is found. `newton_schulz`: Muon's polynomial (mirror/newton_schulz.hpp), three matrix products
// per iteration, as fast as a GPU multiplies; its singular values are between 0.68 and 1.14 after five
// iterations, not 1. `svd`: exactly, but slowly.
enum class PolarMethod { newton_schulz, svd };

// The settings of steepest descent, for all parameters or for a group.
struct SteepestDescentOptions : public torch::optim::OptimizerCloneableOptions<SteepestDescentOptions> {
  SteepestDescentOptions(double lr) : lr_(lr) {}  // NOLINT: a number will do, as in LibTorch

  TORCH_ARG(double, lr);
  TORCH_ARG(std::string, norm) = "l2";
  TORCH_ARG(double, momentum) = 0;
  TORCH_ARG(bool, nesterov) = false;
  TORCH_ARG(double, weight_decay) = 0;    // decoupled, as in AdamW: w <- (1 - lr weight_decay) w
  TORCH_ARG(bool, maximize) = false;      // steps go up the gradient
  TORCH_ARG(double, gradient_scale) = 1;  // gradients are those of the loss times this
  TORCH_ARG(bool,
            skip_nonfinite) = false;  // a step with an infinite or NaN gradient anywhere does nothing
  TORCH_ARG(PolarMethod, polar) = PolarMethod::newton_schulz;  // used only by "spectral"
  TORCH_ARG(std::int64_t, iterations) = 5;                     // of newton_schulz
  // Keep the weights in 32 bits (64 for float64) next to 16-bit ones, which lose small steps.
  TORCH_ARG(MasterState, master_weights) = MasterState::automatic;
  TORCH_ARG(bool, exact) = false;  // correctly rounded steps of l_p norms, a microsecond or two per number
  TORCH_ARG(bool, fused) = true;   // off: tensor operations, for checking

 public:
  SteepestDescentOptions& norm(const Norm& value) { return norm(to_string(value)); }
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
  double get_lr() const override { return lr_; }
  void set_lr(double lr) override { lr_ = lr; }
};

// Steepest descent in a norm as an optimizer for LibTorch.
class SteepestDescent : public FusedOptimizer {
 public:
  // Both throw Error (bad input) for invalid options and for norms that are not listed above.
  SteepestDescent(std::vector<torch::optim::OptimizerParamGroup> groups, SteepestDescentOptions defaults);
  SteepestDescent(std::vector<at::Tensor> parameters, SteepestDescentOptions defaults);

 protected:
  GroupRule rule(const torch::optim::OptimizerOptions& options) const override;
  std::string_view name() const override { return "SteepestDescent"; }
};

// U V^T of d = U S V^T for each tensor read as a matrix (see above), in the type of d (float for 16-bit types).
at::Tensor polar_factor(const at::Tensor& d, PolarMethod method, std::int64_t iterations = 5);

}  // namespace attmirror::deep
