// LibTorch's Adam and AdamW, whose step on a GPU is one launch for all parameters of a group.
//
// Options, states and archives are LibTorch's own, and so is the step wherever the kernel does not serve: on a CPU, for
// parameters that are not float32, with amsgrad, and where the parameters of a group have not taken the same number of
// steps. The kernel takes lr and the number of steps from device memory, so that its steps can be recorded into a CUDA
// graph; what it computes is LibTorch's step up to rounding.
#pragma once

#include <attmirror/deep/fused_optimizer.hpp>

#include <utility>
#include <vector>

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

namespace attmirror::deep {

// `Base` is torch::optim::Adam or AdamW.
template <class Base, class Options>
class FusedAdamOf : public Base, public RecordableOptimizer {
 public:
  FusedAdamOf(std::vector<at::Tensor> parameters, Options options)
      : Base(std::move(parameters), std::move(options)) {}

  at::Tensor step(torch::optim::Optimizer::LossClosure closure = nullptr) override;
  void load(torch::serialize::InputArchive& archive) override;

  // Whether the last step was the kernel's.
  bool last_step_was_fused() const { return fused_; }
  void set_device_rates(at::Tensor rates) override { device_rates_ = std::move(rates); }
  void count_repeated_step() override;

 private:
  at::Tensor device_rates_;
  at::Tensor device_steps_;  // double [groups]: steps so far, as the kernel counts them
  bool fused_ = false;
};

// Adam, in one launch on a GPU.
using FusedAdam = FusedAdamOf<torch::optim::Adam, torch::optim::AdamOptions>;
// AdamW, in one launch on a GPU.
using FusedAdamW = FusedAdamOf<torch::optim::AdamW, torch::optim::AdamWOptions>;
extern template class FusedAdamOf<torch::optim::Adam, torch::optim::AdamOptions>;
extern template class FusedAdamOf<torch::optim::AdamW, torch::optim::AdamWOptions>;

}  // namespace attmirror::deep
