// What the optimizers in this room have in common: they are LibTorch optimizers whose step is one call of
// fused_step() for all parameters of a group that have the same type and device.
//
// LibTorch hands an optimizer tensors: of any type, with or without a gradient, with gaps in memory, possibly
// changed by others between two steps. The kernels need arrays. FusedOptimizer mediates: it checks every
// parameter before it writes to any, keeps what a parameter needs from one step to the next (FusedParamState),
// and tells autograd what was changed. Each optimizer describes the step of a group by a GroupRule.
//
// If no kernel is built for a device, the same step is made of tensor operations; it is many times slower,
// and a warning says so once. Set `fused` to false to ask for that without a warning. CPU steps run on
// at::get_num_threads() threads and have the same bits for any number of them.
#pragma once

#include <attmirror/mirror/fused_step.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>
#include <torch/types.h>

namespace attmirror::deep {

// Whether a parameter has a 32-bit (or 64-bit) master, from which steps continue instead of from the
// parameter. A parameter with 8 or 11 significant bits cannot take small steps: adding 0.001 to 1 leaves a
// bfloat16 at 1. So `automatic` means on for bfloat16 and float16 and off for float32 and float64.
enum class MasterState { automatic, on, off };
std::string_view to_string(MasterState state);

// What is kept of one parameter between steps.
struct FusedParamState : public torch::optim::OptimizerCloneableParamState<FusedParamState> {
  // Steps so far. A GPU decides on its own to skip a step with infinite gradients; such a step still counts.
  TORCH_ARG(std::int64_t, step) = 0;
  // The master, if there is one: the mirror image y = sign(w) |w|^{p-1} for mirror descent, w for steepest descent.
  TORCH_ARG(at::Tensor, master);
  TORCH_ARG(double, master_p) = 0;  // the p of that mirror image; 2 if the master is w
  TORCH_ARG(at::Tensor, momentum);

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;

  // The parameter as the last step left it, to detect changes made by others. Not saved.
  static constexpr std::int64_t unknown = -1;
  std::int64_t seen_version = unknown;
  const void* seen_data = nullptr;
};

// What a step does to the parameters of one group.
struct GroupRule {
  StepOptions step;
  MasterState masters = MasterState::automatic;
  bool fused = true;
  // If defined: the rate, a float on the device, in place of step.rate. For steps on a GPU.
  at::Tensor device_rate = {};
  // If set: w <- (1 - rate weight_decay) w - rate direction(d), by tensor operations.
  std::function<at::Tensor(const at::Tensor&)> direction;
  // If greater than 0: `direction` is the polar factor after so many Newton-Schulz iterations. On a GPU, matrices
  // of one shape are then multiplied together, in float32.
  std::int64_t newton_schulz = 0;
};

// An optimizer whose steps on a GPU can be recorded into a CUDA graph: nothing that changes from step to step
// comes from the host.
class RecordableOptimizer {
 public:
  virtual ~RecordableOptimizer() = default;
  // Parameters on a GPU take the lr of group g from rates[g], floats on their device, instead of from its options. An
  // undefined tensor: from the options again.
  virtual void set_device_rates(at::Tensor rates) = 0;
  // After a recorded step was repeated, of which the host has seen nothing.
  virtual void count_repeated_step() = 0;
};

// What the optimizers for LibTorch share: groups, masters, momentum, archives, the fused step.
class FusedOptimizer : public torch::optim::Optimizer, public RecordableOptimizer {
 public:
  // Throws Error (bad input) with one sentence, naming the group and the index of the parameter, before
  // anything is written: for invalid options, for parameters that are sparse, complex, of integer type or given
  // twice, and for gradients of another type, device or shape. Parameters without a gradient are left alone.
  at::Tensor step(LossClosure closure = nullptr) override;

  // The step with gradients of `scale` times the loss (in addition to the groups' gradient_scale), skipped as
  // a whole if one of them is infinite or NaN. GradScaler uses it.
  void step_scaled(double scale);

  void set_device_rates(at::Tensor rates) override;
  void count_repeated_step() override;

  // Whether the last step found a gradient that was not finite and therefore changed nothing
  // (skip_nonfinite). Waits for the GPU.
  bool last_step_skipped() const;

  // Options of every group, and the state of every parameter by its position. Loaded state continues with the same
  // bits. load() throws Error (bad input) and changes nothing if groups, shapes or the kind of optimizer differ.
  //
  // A loaded master is used if it rounds to the parameter at the next step; otherwise the parameter is used,
  // with a warning. The same happens, without a warning, whenever a parameter has been changed since the last
  // step: by an in-place operation that autograd knows about, or by new memory (Module::to()). Changes
  // through Tensor::data() go unnoticed.
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;

  // The state of a parameter; null before its first step. (The keys of state() differ between versions of LibTorch.)
  const FusedParamState* state_of(const at::Tensor& parameter) const;

 protected:
  using torch::optim::Optimizer::Optimizer;

  // Throws Error (bad input) for invalid options.
  virtual GroupRule rule(const torch::optim::OptimizerOptions& options) const = 0;
  virtual std::string_view name() const = 0;  // as archives record it

  void validate_groups() const;  // called by constructors

 private:
  GroupRule group_rule(std::size_t group) const;
  void step_all(double scale, bool skip_nonfinite);
  void check_distinct();
  FusedParamState& state_for(const at::Tensor& parameter);

  std::vector<const void*> checked_;  // the parameters, as check_distinct() last saw them
  at::Tensor device_rates_;
  mutable bool skipped_ = false;       // the last step, as far as the host knows
  mutable at::Tensor device_skipped_;  // the same on the GPU, until someone asks
};

}  // namespace attmirror::deep
