// Loss scaling for float16, which LibTorch provides only in Python.
//
// Gradients below 6e-8 are 0 in float16. So the loss is multiplied by a scale before the backward pass, and gradients
// are divided by it within the step, in 32 bits. The largest scale that does not overflow is found by trial: if it
// gives an infinite gradient, it is halved and the step is skipped; after `growth_interval` good steps it is doubled.
//
//   scaler.scale(loss).backward();
//   scaler.step(optimizer);
//   scaler.update();
//
// Numbers and rules are those of torch.cuda.amp.GradScaler. bfloat16 has the range of float and does not need this.
#pragma once

#include <attmirror/deep/fused_optimizer.hpp>

#include <cstdint>

#include <torch/serialize/archive.h>

namespace attmirror::deep {

// How the scale of a loss in half precision grows and shrinks.
struct GradScalerOptions {
  double initial_scale = 65536;
  double growth_factor = 2;             // after growth_interval steps in a row without overflow
  double backoff_factor = 0.5;          // after an overflow
  std::int64_t growth_interval = 2000;  // steps; overflows then cost one step in 2000

  // Throws Error (bad input) naming the field and its value.
  void validate() const;
};

// Scales losses in half precision, so that small gradients do not round to 0.
class GradScaler {
 public:
  explicit GradScaler(GradScalerOptions options = {});

  // (In float if the loss is in half precision, whose largest number is soon reached.)
  at::Tensor scale(const at::Tensor& loss) const {
    return (loss.scalar_type() == at::kHalf ? loss.to(at::kFloat) : loss) * scale_;
  }
  double scale() const { return scale_; }

  // A step with the gradients of a scaled loss; skipped as a whole if one of them is not finite. Several
  // optimizers may step on the same loss.
  void step(FusedOptimizer& optimizer);

  // Call it after the steps on a loss; sets the scale for the next. Throws Error (bad input) if there was no step.
  void update();

  void save(torch::serialize::OutputArchive& archive) const;
  void load(torch::serialize::InputArchive& archive);

 private:
  GradScalerOptions options_;
  double scale_;
  std::int64_t good_steps_ = 0;  // in a row
  bool stepped_ = false, overflowed_ = false;
};

// So that torch::save(scaler, path) and torch::load(scaler, path) work.
torch::serialize::OutputArchive& operator<<(torch::serialize::OutputArchive& archive,
                                            const GradScaler& scaler);
// What torch::load() calls.
torch::serialize::InputArchive& operator>>(torch::serialize::InputArchive& archive, GradScaler& scaler);

}  // namespace attmirror::deep
