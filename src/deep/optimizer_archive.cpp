// Optimizers in LibTorch's archives. LibTorch's own layout names parameters by their addresses, and before 2.0 its
// load() leaves the options as they are, so that a decayed learning rate is lost; here a parameter is known by its
// place, and all that a step depends on comes back.
#include "deep/archive_fields.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/fused_optimizer.hpp>

#include <memory>
#include <utility>

#include <ATen/ATen.h>

namespace attmirror::deep {

namespace {

constexpr std::int64_t format_version = 1;

// Archives are modules to LibTorch, and the names of their parts identifiers.
std::string numbered(const char* name, std::size_t i) { return c10::str(name, "_", i); }

void fit_to(const at::Tensor& parameter, at::Tensor& tensor, const char* what, const std::string& where) {
  if (!tensor.defined()) return;
  if (tensor.sizes() != parameter.sizes())
    throw bad_input(c10::str("the archive's ", what, " of ", where, " has shape ", tensor.sizes(),
                             ", and the parameter ", parameter.sizes()));
  tensor = tensor.to(parameter.device());
}

}  // namespace

void FusedParamState::serialize(torch::serialize::OutputArchive& archive) const {
  write_field(archive, "step", step());
  write_field(archive, "master_p", master_p());
  if (master().defined()) write_field(archive, "master", master());
  if (momentum().defined()) write_field(archive, "momentum", momentum());
}

void FusedParamState::serialize(torch::serialize::InputArchive& archive) {
  step(read_field<std::int64_t>(archive, "step"));
  master_p(read_field<double>(archive, "master_p"));
  for (auto [name, tensor] : {std::pair{"master", &master()}, std::pair{"momentum", &momentum()}}) {
    at::Tensor loaded;
    *tensor = archive.try_read(name, loaded, /*is_buffer=*/true) ? loaded : at::Tensor();
  }
  seen_version = unknown;
  seen_data = nullptr;
}

void FusedOptimizer::save(torch::serialize::OutputArchive& archive) const {
  write_field(archive, "optimizer", std::string(name()));
  write_field(archive, "format", format_version);
  write_field(archive, "groups", static_cast<std::int64_t>(param_groups().size()));
  for (std::size_t g = 0; g < param_groups().size(); ++g) {
    torch::serialize::OutputArchive group(archive.compilation_unit());
    torch::serialize::OutputArchive options(archive.compilation_unit());
    param_groups()[g].options().serialize(options);
    group.write("options", options);
    const std::vector<at::Tensor>& parameters = param_groups()[g].params();
    write_field(group, "parameters", static_cast<std::int64_t>(parameters.size()));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const FusedParamState* state = state_of(parameters[i]);
      if (state == nullptr) continue;
      torch::serialize::OutputArchive part(archive.compilation_unit());
      state->serialize(part);
      write_field(part, "numbers", parameters[i].numel());
      group.write(numbered("parameter", i), part);
    }
    archive.write(numbered("group", g), group);
  }
}

void FusedOptimizer::load(torch::serialize::InputArchive& archive) {
  const auto expect = [](const std::string& what, auto found, auto expected) {
    if (found != expected)
      throw bad_input(c10::str("the archive's ", what, " is ", found, ": expected ", expected));
  };
  expect("optimizer", read_field<std::string>(archive, "optimizer"), std::string(name()));
  expect("format", read_field<std::int64_t>(archive, "format"), format_version);
  const auto groups = static_cast<std::int64_t>(param_groups().size());
  expect("number of groups", read_field<std::int64_t>(archive, "groups"), groups);

  // All is read and checked before anything is replaced.
  std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> options;
  std::vector<std::pair<at::Tensor, FusedParamState>> states;
  for (std::size_t g = 0; g < param_groups().size(); ++g) {
    torch::serialize::InputArchive group, part;
    if (!archive.try_read(numbered("group", g), group))
      throw bad_input(c10::str("the archive has no group ", g));
    if (!group.try_read("options", part))
      throw bad_input(c10::str("the archive has no options of group ", g));
    options.push_back(param_groups()[g].options().clone());
    options[g]->serialize(part);
    rule(*options[g]).step.validate();

    const std::vector<at::Tensor>& parameters = param_groups()[g].params();
    expect(c10::str("number of parameters of group ", g), read_field<std::int64_t>(group, "parameters"),
           static_cast<std::int64_t>(parameters.size()));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      torch::serialize::InputArchive saved;
      if (!group.try_read(numbered("parameter", i), saved)) continue;
      FusedParamState state;
      state.serialize(saved);
      const std::string where = c10::str("parameter ", i, " of group ", g);
      fit_to(parameters[i], state.master(), "master", where);
      fit_to(parameters[i], state.momentum(), "momentum", where);
      expect(c10::str("size of ", where), read_field<std::int64_t>(saved, "numbers"), parameters[i].numel());
      states.emplace_back(parameters[i], std::move(state));
    }
  }

  for (std::size_t g = 0; g < options.size(); ++g) param_groups()[g].set_options(std::move(options[g]));
  state_.clear();
  for (auto& [parameter, state] : states) state_for(parameter) = std::move(state);
  skipped_ = false;
  device_skipped_ = at::Tensor();
}

}  // namespace attmirror::deep
