// Optimizers by name, over the parameters of a network. Internal.
//
//   md     mirror descent, p of the configuration       gd     mirror descent with p = 2
//          (another for Q, K and V where attention_p says so)
//   sign, signum   steepest descent in the max norm             adam, adamw    LibTorch's, in one launch on GPUs
//   muon-adamw   steepest descent in the spectral norm for the matrices within blocks, and adamw for the rest:
//                embeddings
//                (whose rows are used one at a time), the head, norms and biases. lr of a matrix of r rows and c
//                columns is times sqrt(max(1, r / c)), so that one lr suits all shapes.
#pragma once

#include <attmirror/data/array.hpp>
#include <attmirror/deep/fused_optimizer.hpp>
#include <attmirror/deep/network.hpp>
#include <attmirror/deep/train_config.hpp>

#include <memory>
#include <string>
#include <vector>

#include <torch/optim/optimizer.h>

namespace attmirror::deep {

class OptimizerSet {
 public:
  OptimizerSet(const OptimizerConfig& config, const Network& network);

  // Multiplies what the configuration says: the schedule.
  void scale_lr(double factor);
  void step();

  // For steps that are recorded (step_graphs.hpp): whether they can be, that rates are read on the device from now on,
  // and that a recorded step was repeated.
  bool can_be_recorded() const;
  void keep_rates_on(at::Device device);
  void count_repeated_step();

  // Gradients are dropped, not filled with zeros: the next backward pass then writes them instead of adding to them.
  void forget_gradients();

  // Exactly, as bytes: one array per optimizer. load() throws Error (bad input) if they are another's.
  NamedArrays state() const;
  void load(const NamedArrays& arrays, at::Device device);

 private:
  struct Part {
    std::string name;
    std::unique_ptr<torch::optim::Optimizer> optimizer;
    std::vector<double> rates;                  // of its groups, unscaled
    RecordableOptimizer* recordable = nullptr;  // the optimizer, where it is one
  };
  void send_rates();
  void add(std::string name, std::unique_ptr<torch::optim::Optimizer> optimizer);

  std::vector<at::Tensor> parameters_;
  std::vector<Part> parts_;
  double factor_ = 1;
  at::Tensor device_rates_;  // of all groups of all parts; undefined: rates stay with the optimizers
};

// Of lr, at a step from 0: warm-up, then constant, linear or cosine down to 0.
double schedule_factor(const OptimizerConfig& config, std::int64_t step, std::int64_t steps_per_epoch,
                       std::int64_t epochs);

}  // namespace attmirror::deep
