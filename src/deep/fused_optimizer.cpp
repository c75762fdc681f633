// A step, from options to kernels: all parameters are looked at (parameter_list), all gradients if a step may be
// skipped, masters are made where they are missing or out of date, and each batch is one call.
#include "deep/matrix_steps.hpp"
#include "deep/parameter_list.hpp"
#include "deep/state_key.hpp"
#include "deep/tensor_step.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/fused_optimizer.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <type_traits>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/util/C++17.h>
#include <c10/util/StringUtil.h>
#include <unistd.h>
#if ATTMIRROR_HAS_CUDA
#include "deep/cuda_bridge.hpp"
#endif

namespace attmirror::deep {

namespace {

// One pool for all optimizers, with as many threads as LibTorch uses itself; none for one thread.
std::shared_ptr<ThreadPool> shared_pool() {
  static std::mutex mutex;
  static std::shared_ptr<ThreadPool> pool;
  const int threads = std::clamp(at::get_num_threads(), 1, ThreadPool::max_threads);
  const std::lock_guard lock(mutex);
  if (threads == 1) return nullptr;
  // A forked process has the pool but not its threads: it is left as it is, since ending it would wait for them.
  static pid_t owner = ::getpid();
  if (owner != ::getpid()) {
    new std::shared_ptr<ThreadPool>(std::move(pool));
    pool = nullptr;
    owner = ::getpid();
  }
  if (pool == nullptr || pool->threads() != threads) pool = std::make_shared<ThreadPool>(threads);
  return pool;
}

bool wants_master(const StepBatch& batch) {
  if (batch.rule.masters != MasterState::automatic) return batch.rule.masters == MasterState::on;
  return batch.element == StepElement::bfloat16 || batch.element == StepElement::float16;
}

// The p whose mirror image the master is: w itself for p = 2.
double master_p(const GroupRule& rule) {
  return rule.step.rule == StepRule::mirror && !rule.direction ? rule.step.p : 2;
}

bool fits(const at::Tensor& state, const StepParameter& entry, StepElement element) {
  return state.defined() && state.scalar_type() == state_type(element) &&
         state.device() == entry.weights.device() && has_layout_of(entry.weights, state);
}

at::Tensor new_state(const StepParameter& entry, StepElement element) {
  return at::zeros_like(entry.weights, entry.weights.options().dtype(state_type(element)),
                        at::MemoryFormat::Preserve);
}

// Does the master still belong to the parameter?
bool is_current(const StepParameter& entry, const StepBatch& batch) {
  const FusedParamState& state = *entry.state;
  if (!fits(state.master(), entry, batch.element) || state.master_p() != master_p(batch.rule)) return false;
  if (state.seen_version != FusedParamState::unknown)
    return state.seen_version == static_cast<std::int64_t>(entry.parameter._version()) &&
           state.seen_data == entry.parameter.data_ptr();
  if (is_master_of(entry.weights, state.master(), batch.rule.step)) return true;
  TORCH_WARN_ONCE(
      "the master weights that attmirror's optimizer loaded are not those of its parameters: "
      "they are made anew from the parameters");
  return false;
}

// The parameter as we leave it, to notice what others do to it.
void remember(const StepParameter& entry) {
  entry.state->seen_version = static_cast<std::int64_t>(entry.parameter._version());
  entry.state->seen_data = entry.parameter.data_ptr();
}

std::vector<StepTensor> arrays(const StepBatch& batch) {
  std::vector<StepTensor> tensors;
  tensors.reserve(batch.parameters.size());
  for (const StepParameter& entry : batch.parameters) {
    StepTensor tensor;
    tensor.weights = entry.weights.data_ptr();
    tensor.gradient = entry.gradient.data_ptr();
    if (entry.state->master().defined()) tensor.master = entry.state->master().data_ptr();
    if (entry.state->momentum().defined()) tensor.momentum = entry.state->momentum().data_ptr();
    tensor.size = static_cast<std::ptrdiff_t>(entry.weights.numel());
    tensors.push_back(tensor);
  }
  return tensors;
}

void fill(const StepBatch& batch, std::span<const std::size_t> outdated) {
  if (outdated.empty()) return;
  if (batch.engine == StepEngine::tensors) {
    for (const std::size_t i : outdated)
      tensor_fill_master(batch.parameters[i].weights, batch.parameters[i].state->master(), batch.rule.step);
    return;
  }
  const std::vector<StepTensor> all = arrays(batch);
  std::vector<StepTensor> tensors;
  for (const std::size_t i : outdated) tensors.push_back(all[i]);
#if ATTMIRROR_HAS_CUDA
  if (batch.engine == StepEngine::cuda) return fill_masters_on_gpu(batch, tensors);
#endif
  fill_masters(batch.element, tensors, batch.rule.step, shared_pool().get());
}

// Masters and momentum of all parameters, made where they are missing.
void prepare_states(const StepBatch& batch) {
  const bool with_masters = wants_master(batch);
  std::vector<std::size_t> outdated;
  for (std::size_t i = 0; i < batch.parameters.size(); ++i) {
    const StepParameter& entry = batch.parameters[i];
    FusedParamState& state = *entry.state;
    if (batch.rule.step.momentum > 0 && !fits(state.momentum(), entry, batch.element)) {
      // Another type or layout: the parameter was moved, and its momentum goes with it.
      at::Tensor fresh = new_state(entry, batch.element);
      if (state.momentum().defined() && state.momentum().sizes() == fresh.sizes())
        fresh.copy_(state.momentum());
      state.momentum(fresh);
    }
    if (with_masters && state.master().defined() && state.master().sizes() == entry.weights.sizes() &&
        !fits(state.master(), entry, batch.element)) {
      at::Tensor moved = new_state(entry, batch.element);
      moved.copy_(state.master());
      state.master(moved);
    }
    if (!with_masters) {
      state.master(at::Tensor());
    } else if (!is_current(entry, batch)) {
      if (!fits(state.master(), entry, batch.element)) state.master(new_state(entry, batch.element));
      state.master_p(master_p(batch.rule));
      outdated.push_back(i);
    }
  }
  fill(batch, outdated);
  for (const StepParameter& entry : batch.parameters) remember(entry);
}

// After the arrays have changed: copies go back, and autograd is told.
void finish(const StepBatch& batch) {
  for (const StepParameter& entry : batch.parameters) {
    if (entry.is_copy())
      entry.parameter.copy_(entry.weights);
    else if (batch.engine != StepEngine::tensors)
      entry.parameter.unsafeGetTensorImpl()->bump_version();
    entry.state->step(entry.state->step() + 1);
    remember(entry);
  }
}

bool has_nonfinite(const std::vector<StepBatch>& batches) {
  for (const StepBatch& batch : batches)
    for (const StepParameter& entry : batch.parameters)
      if (!at::isfinite(entry.gradient).all().item<bool>()) return true;
  return false;
}

}  // namespace

std::string_view to_string(MasterState state) {
  switch (state) {
    case MasterState::automatic:
      return "automatic";
    case MasterState::on:
      return "on";
    case MasterState::off:
      return "off";
  }
  return "unknown";
}

at::Tensor FusedOptimizer::step(LossClosure closure) {
  at::Tensor loss;
  if (closure != nullptr) {
    const at::AutoGradMode with_gradients(true);
    loss = closure();
  }
  step_all(1, false);
  return loss;
}

void FusedOptimizer::step_scaled(double scale) { step_all(scale, true); }

void FusedOptimizer::step_all(double scale, bool skip_nonfinite) {
  const at::NoGradGuard no_gradients;
  check_distinct();
  std::vector<GroupRule> rules;
  for (std::size_t g = 0; g < param_groups().size(); ++g) {
    rules.push_back(group_rule(g));
    rules[g].step.gradient_scale *= scale;
    rules[g].step.validate();
    skip_nonfinite |= rules[g].step.skip_nonfinite;
    if (device_rates_.defined()) rules[g].device_rate = device_rates_[static_cast<std::int64_t>(g)];
  }
  std::vector<StepBatch> batches;
  for (std::size_t g = 0; g < rules.size(); ++g) {
    rules[g].step.skip_nonfinite = false;
    add_batches(g, param_groups()[g].params(), rules[g], batches);
  }
  skipped_ = false;
  device_skipped_ = at::Tensor();
  if (batches.empty()) return;

  // A step is skipped as a whole, for a gradient that is not finite; momentum does not count. One batch can look at
  // its gradients itself, on the GPU only where it has no momentum, which is measured along with them; where there are
  // more, all are looked at before the first moves, on the GPU if all are there, so that nobody waits.
  at::Tensor found;
  if (skip_nonfinite) {
    const StepBatch& first = batches.front();
    const bool looks_itself = first.engine == StepEngine::cpu ||
                              (first.engine == StepEngine::cuda && first.rule.step.momentum == 0);
    if (batches.size() == 1 && looks_itself) {
      batches.front().rule.step.skip_nonfinite = true;
      if (first.engine == StepEngine::cuda)
        found = at::zeros({1}, at::TensorOptions().dtype(at::kFloat).device(first.device));
#if ATTMIRROR_HAS_CUDA
    } else if (std::all_of(batches.begin(), batches.end(), [&](const StepBatch& batch) {
                 return batch.engine == StepEngine::cuda && batch.device == first.device;
               })) {
      found = found_nonfinite_on_gpu(batches);
#endif
    } else if (has_nonfinite(batches)) {
      skipped_ = true;
      return;
    }
  }
  device_skipped_ = found;

  std::vector<const StepBatch*> together;
  for (StepBatch& batch : batches) {
    for (StepParameter& entry : batch.parameters) entry.state = &state_for(entry.parameter);
    prepare_states(batch);
    if (takes_matrix_steps(batch)) {
      together.push_back(&batch);
      continue;
    }
    switch (batch.engine) {
      case StepEngine::cpu:
        skipped_ = fused_step(batch.element, arrays(batch), batch.rule.step, shared_pool().get()).skipped;
        break;
      case StepEngine::cuda:
#if ATTMIRROR_HAS_CUDA
        step_on_gpu(batch, arrays(batch), batch.rule.step, found);
#endif
        break;
      case StepEngine::tensors:
        for (const StepParameter& entry : batch.parameters)
          tensor_step(entry.weights, entry.gradient, entry.state->master(), entry.state->momentum(),
                      batch.rule);
        break;
    }
    if (!skipped_) finish(batch);
  }
  matrix_steps(together);
  for (const StepBatch* batch : together) finish(*batch);
}

void FusedOptimizer::set_device_rates(at::Tensor rates) {
  if (rates.defined() && (rates.scalar_type() != at::kFloat || rates.dim() != 1 ||
                          rates.size(0) != static_cast<std::int64_t>(param_groups().size())))
    throw bad_input(c10::str("rates have type ", rates.scalar_type(), " and shape ", rates.sizes(),
                             ": expected a Float for each of ", param_groups().size(), " groups"));
  device_rates_ = std::move(rates);
}

void FusedOptimizer::count_repeated_step() {
  for (const auto& group : param_groups())
    for (const at::Tensor& parameter : group.params()) {
      const auto found = state_.find(state_key(parameter));
      if (found == state_.end()) continue;
      auto& state = static_cast<FusedParamState&>(*found->second);
      state.step(state.step() + 1);
      parameter.unsafeGetTensorImpl()->bump_version();
      state.seen_version = static_cast<std::int64_t>(parameter._version());
    }
}

bool FusedOptimizer::last_step_skipped() const {
  if (device_skipped_.defined()) {
    skipped_ = device_skipped_.item<float>() != 0;
    device_skipped_ = at::Tensor();
  }
  return skipped_;
}

GroupRule FusedOptimizer::group_rule(std::size_t group) const {
  try {
    GroupRule result = rule(param_groups()[group].options());
    if (!(result.step.rate >= 0) || !std::isfinite(result.step.rate))
      throw bad_input(c10::str("lr is ", result.step.rate, ": expected a finite number, 0 or more"));
    result.step.validate();
    return result;
  } catch (const Error& error) {
    throw error.in(c10::str("group ", group));
  }
}

void FusedOptimizer::validate_groups() const {
  for (std::size_t g = 0; g < param_groups().size(); ++g) group_rule(g);
}

void FusedOptimizer::check_distinct() {
  std::vector<const void*> now;
  for (const auto& group : param_groups())
    for (const at::Tensor& parameter : group.params()) now.push_back(parameter.unsafeGetTensorImpl());
  if (now == checked_) return;
  std::vector<std::pair<const void*, std::string>> places;
  for (std::size_t g = 0; g < param_groups().size(); ++g)
    for (std::size_t i = 0; i < param_groups()[g].params().size(); ++i) {
      if (!param_groups()[g].params()[i].defined())
        throw bad_input(c10::str("parameter ", i, " of group ", g, " is an undefined tensor"));
      places.emplace_back(param_groups()[g].params()[i].unsafeGetTensorImpl(),
                          c10::str("parameter ", i, " of group ", g));
    }
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 1; i < places.size(); ++i)
    if (places[i].first == places[i - 1].first)
      throw bad_input(
          c10::str(places[i].second, " is the same tensor as ", places[i - 1].second, ": give it once"));
  checked_ = std::move(now);
}

FusedParamState& FusedOptimizer::state_for(const at::Tensor& parameter) {
  std::unique_ptr<torch::optim::OptimizerParamState>& state = state_[state_key(parameter)];
  if (state == nullptr) state = std::make_unique<FusedParamState>();
  return static_cast<FusedParamState&>(*state);
}

const FusedParamState* FusedOptimizer::state_of(const at::Tensor& parameter) const {
  const auto found = state_.find(state_key(parameter));
  return found == state_.end() ? nullptr : static_cast<const FusedParamState*>(found->second.get());
}

}  // namespace attmirror::deep
