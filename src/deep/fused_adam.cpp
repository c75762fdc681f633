#include "deep/state_key.hpp"
#include <attmirror/deep/fused_adam.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>

#include <ATen/ATen.h>
#if ATTMIRROR_HAS_CUDA
#include "deep/cuda_bridge.hpp"
#endif

namespace attmirror::deep {

namespace {

template <class Base>
using AdamStateOf = std::conditional_t<std::is_same_v<Base, torch::optim::Adam>, torch::optim::AdamParamState,
                                       torch::optim::AdamWParamState>;

#if ATTMIRROR_HAS_CUDA

bool kernel_takes(const at::Tensor& parameter) {
  const at::Tensor& gradient = parameter.grad();
  return parameter.is_cuda() && parameter.scalar_type() == at::kFloat && parameter.is_contiguous() &&
         gradient.layout() == c10::kStrided && gradient.scalar_type() == at::kFloat &&
         gradient.device() == parameter.device() && gradient.is_contiguous();
}

// The parameters of a group with their states, where one launch can step all of them.
template <class State>
struct AdamGroup {
  std::vector<AdamTensors> tensors;
  std::vector<State*> states;
  std::int64_t steps = 0;  // of all, so far
};

template <class State>
std::optional<AdamGroup<State>> adam_group(const std::vector<at::Tensor>& parameters, StateMap& states) {
  AdamGroup<State> group;
  for (const at::Tensor& parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    if (!kernel_takes(parameter)) return std::nullopt;
    auto& kept = states[state_key(parameter)];
    if (kept == nullptr) {
      auto fresh = std::make_unique<State>();
      fresh->step(0);
      fresh->exp_avg(at::zeros_like(parameter));
      fresh->exp_avg_sq(at::zeros_like(parameter));
      kept = std::move(fresh);
    }
    auto& state = static_cast<State&>(*kept);
    const bool fits = state.exp_avg().is_contiguous() && state.exp_avg_sq().is_contiguous() &&
                      state.exp_avg().device() == parameter.device();
    if (!fits || (!group.states.empty() && state.step() != group.steps)) return std::nullopt;
    group.steps = state.step();
    group.tensors.push_back({parameter, parameter.grad(), state.exp_avg(), state.exp_avg_sq()});
    group.states.push_back(&state);
  }
  return group;
}

#endif

}  // namespace

template <class Base, class Options>
at::Tensor FusedAdamOf<Base, Options>::step(torch::optim::Optimizer::LossClosure closure) {
  fused_ = false;
#if ATTMIRROR_HAS_CUDA
  using State = AdamStateOf<Base>;
  at::Tensor loss;
  if (closure != nullptr) {
    const at::AutoGradMode with_gradients(true);
    loss = closure();
    closure = nullptr;
  }
  const at::NoGradGuard no_gradients;
  std::vector<AdamGroup<State>> groups;
  for (auto& group : this->param_groups()) {
    if (static_cast<const Options&>(group.options()).amsgrad()) break;
    auto taken = adam_group<State>(group.params(), this->state());
    if (!taken) break;
    groups.push_back(std::move(*taken));
  }
  if (groups.size() != this->param_groups().size()) {
    device_steps_ = at::Tensor();
    Base::step();
    return loss;
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    AdamGroup<State>& group = groups[g];
    if (group.tensors.empty()) continue;
    const at::Device device = group.tensors.front().weights.device();
    if (!device_steps_.defined()) {
      std::vector<double> so_far;
      for (const AdamGroup<State>& each : groups) so_far.push_back(static_cast<double>(each.steps));
      device_steps_ = at::tensor(so_far, at::kDouble).to(device);
    }
    const auto& options = static_cast<const Options&>(this->param_groups()[g].options());
    AdamNumbers numbers;
    numbers.rate = options.lr();
    numbers.beta1 = std::get<0>(options.betas());
    numbers.beta2 = std::get<1>(options.betas());
    numbers.eps = options.eps();
    numbers.weight_decay = options.weight_decay();
    numbers.decoupled = std::is_same_v<Base, torch::optim::AdamW>;
    const auto place = static_cast<std::int64_t>(g);
    adam_step_on_gpu(group.tensors, numbers, device_steps_[place],
                     device_rates_.defined() ? device_rates_[place] : at::Tensor());
    for (State* state : group.states) state->step(state->step() + 1);
    for (const AdamTensors& tensors : group.tensors) tensors.weights.unsafeGetTensorImpl()->bump_version();
  }
  fused_ = true;
  return loss;
#else
  return Base::step(closure);
#endif
}

template <class Base, class Options>
void FusedAdamOf<Base, Options>::load(torch::serialize::InputArchive& archive) {
  Base::load(archive);
  device_steps_ = at::Tensor();
}

template <class Base, class Options>
void FusedAdamOf<Base, Options>::count_repeated_step() {
  for (const auto& group : this->param_groups())
    for (const at::Tensor& parameter : group.params()) {
      const auto found = this->state().find(state_key(parameter));
      if (found == this->state().end()) continue;
      auto& state = static_cast<AdamStateOf<Base>&>(*found->second);
      state.step(state.step() + 1);
      parameter.unsafeGetTensorImpl()->bump_version();
    }
}

template class FusedAdamOf<torch::optim::Adam, torch::optim::AdamOptions>;
template class FusedAdamOf<torch::optim::AdamW, torch::optim::AdamWOptions>;

}  // namespace attmirror::deep
