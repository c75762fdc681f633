#include "deep/trainer/optimizer_set.hpp"

#include "base/words.hpp"
#include "deep/host_tensor.hpp"
#include "deep/trainer/config_fields.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/fused_adam.hpp>
#include <attmirror/deep/mirror_descent.hpp>
#include <attmirror/deep/steepest_descent.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <tuple>

#include <fmt/format.h>
#include <torch/serialize/archive.h>

namespace attmirror::deep {

namespace {

torch::optim::AdamWOptions adamw_options(const OptimizerConfig& config, double lr) {
  return torch::optim::AdamWOptions(lr)
      .betas(std::make_tuple(config.betas[0], config.betas[1]))
      .eps(config.eps)
      .weight_decay(config.weight_decay);
}

SteepestDescentOptions steepest_options(const OptimizerConfig& config, const char* norm) {
  return SteepestDescentOptions(config.lr)
      .norm(std::string(norm))
      .momentum(config.momentum)
      .nesterov(config.nesterov)
      .weight_decay(config.weight_decay);
}

// Parameters of blocks are named "block0_up", "blocks.0.up": whatever comes after.
bool is_matrix_of_block(const std::string& name, const at::Tensor& parameter) {
  return name.starts_with("block") && parameter.dim() >= 2;
}

}  // namespace

OptimizerSet::OptimizerSet(const OptimizerConfig& config, const Network& network)
    : parameters_(network.parameters()) {
  const std::string_view name = current_method(config.name);
  if (name == "md" || name == "gd") {
    const MirrorDescentOptions options = MirrorDescentOptions(config.lr)
                                             .p(name == "gd" ? 2 : config.p)
                                             .momentum(config.momentum)
                                             .nesterov(config.nesterov)
                                             .normalized(config.normalized)
                                             .weight_decay(config.weight_decay);
    if (config.attention_p == 0 && config.attention_lr == 0) {
      add("mirror_descent", std::make_unique<MirrorDescent>(parameters_, options));
      return;
    }
    MirrorDescentOptions for_attention = options;
    if (config.attention_p != 0) for_attention.p(config.attention_p);
    if (config.attention_lr != 0) for_attention.lr(config.attention_lr);
    std::vector<at::Tensor> attention, others;
    for (const auto& item : network.named_parameters())
      (item.key().ends_with("query_key_value") ? attention : others).push_back(item.value());
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(std::move(attention), std::make_unique<MirrorDescentOptions>(for_attention));
    groups.emplace_back(std::move(others), std::make_unique<MirrorDescentOptions>(options));
    add("mirror_descent", std::make_unique<MirrorDescent>(std::move(groups), options));
  } else if (name == "sign" || name == "signum") {
    add("steepest_descent", std::make_unique<SteepestDescent>(parameters_, steepest_options(config, "linf")));
  } else if (name == "adam") {
    add("adam",
        std::make_unique<FusedAdam>(parameters_, torch::optim::AdamOptions(config.lr)
                                                     .betas(std::make_tuple(config.betas[0], config.betas[1]))
                                                     .eps(config.eps)
                                                     .weight_decay(config.weight_decay)));
  } else if (name == "adamw") {
    add("adamw", std::make_unique<FusedAdamW>(parameters_, adamw_options(config, config.lr)));
  } else if (name == "muon-adamw") {
    std::vector<torch::optim::OptimizerParamGroup> matrices;
    std::vector<at::Tensor> others;
    for (const auto& item : network.named_parameters()) {
      const at::Tensor& parameter = item.value();
      if (!is_matrix_of_block(item.key(), parameter)) {
        others.push_back(parameter);
        continue;
      }
      SteepestDescentOptions options = steepest_options(config, "spectral");
      const auto rows = static_cast<double>(parameter.size(0));
      const double columns = static_cast<double>(parameter.numel()) / rows;
      options.lr(config.lr * std::sqrt(std::max(1.0, rows / columns)));
      matrices.emplace_back(std::vector<at::Tensor>{parameter},
                            std::make_unique<SteepestDescentOptions>(options));
    }
    if (matrices.empty())
      throw bad_input("optimizer.name is \"muon-adamw\", and the network has no matrices in blocks");
    add("muon", std::make_unique<SteepestDescent>(std::move(matrices), steepest_options(config, "spectral")));
    if (!others.empty())
      add("adamw", std::make_unique<FusedAdamW>(others, adamw_options(config, config.other_lr)));
  } else {
    throw bad_value("optimizer.name", name,
                    expected_choice(name, {"md", "gd", "sign", "signum", "adam", "adamw", "muon-adamw"}));
  }
}

void OptimizerSet::add(std::string name, std::unique_ptr<torch::optim::Optimizer> optimizer) {
  Part part{std::move(name), std::move(optimizer), {}, nullptr};
  part.recordable = dynamic_cast<RecordableOptimizer*>(part.optimizer.get());
  for (const auto& group : part.optimizer->param_groups()) part.rates.push_back(group.options().get_lr());
  parts_.push_back(std::move(part));
}

void OptimizerSet::scale_lr(double factor) {
  const bool changed = factor != factor_;
  factor_ = factor;
  if (device_rates_.defined() && changed) send_rates();
  for (Part& part : parts_)
    for (std::size_t g = 0; g < part.rates.size(); ++g)
      part.optimizer->param_groups()[g].options().set_lr(part.rates[g] * factor);
}

bool OptimizerSet::can_be_recorded() const {
  return std::ranges::all_of(parts_, [](const Part& part) { return part.recordable != nullptr; });
}

void OptimizerSet::keep_rates_on(at::Device device) {
  std::int64_t groups = 0;
  for (const Part& part : parts_) groups += static_cast<std::int64_t>(part.rates.size());
  device_rates_ = at::empty({groups}, at::TensorOptions(at::kFloat).device(device));
  send_rates();
  std::int64_t next = 0;
  for (Part& part : parts_) {
    const auto count = static_cast<std::int64_t>(part.rates.size());
    if (part.recordable != nullptr) part.recordable->set_device_rates(device_rates_.narrow(0, next, count));
    next += count;
  }
}

void OptimizerSet::send_rates() {
  const at::Tensor host = host_tensor(device_rates_.size(0), at::kFloat);
  auto* rate = host.data_ptr<float>();
  for (const Part& part : parts_)
    for (const double unscaled : part.rates) *rate++ = static_cast<float>(unscaled * factor_);
  device_rates_.copy_(host, /*non_blocking=*/true);
}

void OptimizerSet::count_repeated_step() {
  for (Part& part : parts_)
    if (part.recordable != nullptr) part.recordable->count_repeated_step();
}

void OptimizerSet::step() {
  for (Part& part : parts_) part.optimizer->step();
}

void OptimizerSet::forget_gradients() {
  for (at::Tensor& parameter : parameters_) parameter.mutable_grad() = at::Tensor();
}

NamedArrays OptimizerSet::state() const {
  NamedArrays arrays;
  for (const Part& part : parts_) {
    torch::serialize::OutputArchive archive;
    part.optimizer->save(archive);
    std::vector<std::byte> bytes;
    archive.save_to([&](const void* data, std::size_t size) {
      const auto* first = static_cast<const std::byte*>(data);
      bytes.insert(bytes.end(), first, first + size);
      return size;
    });
    const auto size = static_cast<std::int64_t>(bytes.size());
    arrays.emplace(part.name, Array(DType::uint8, {size}, std::move(bytes), part.name));
  }
  return arrays;
}

void OptimizerSet::load(const NamedArrays& arrays, at::Device device) {
  for (Part& part : parts_) {
    const auto found = arrays.find(part.name);
    if (found == arrays.end())
      throw bad_input(fmt::format("it lacks the state of the optimizer {}", part.name));
    const std::span<const std::byte> bytes = found->second.bytes();
    torch::serialize::InputArchive archive;
    try {
      archive.load_from(reinterpret_cast<const char*>(bytes.data()), bytes.size(), device);
      part.optimizer->load(archive);
    } catch (const c10::Error& error) {
      throw bad_input(fmt::format("the state of the optimizer {} cannot be read: {}", part.name,
                                  error.what_without_backtrace()));
    }
  }
}

double schedule_factor(const OptimizerConfig& config, std::int64_t step, std::int64_t steps_per_epoch,
                       std::int64_t epochs) {
  const auto at = static_cast<double>(step), total = static_cast<double>(steps_per_epoch * epochs);
  const double warmup = std::min(config.warmup * static_cast<double>(steps_per_epoch), total);
  if (at < warmup) return (at + 1) / (warmup + 1);
  if (config.schedule == "constant" || total <= warmup) return 1;
  const double gone = (at - warmup) / (total - warmup);  // 0 up to just below 1
  return config.schedule == "linear" ? 1 - gone : 0.5 * (1 + std::cos(std::numbers::pi * gone));
}

}  // namespace attmirror::deep
