// A configuration spelled as the command that gives it: whoever reads a report can make its run again.
//
// Only what differs from the command's defaults is said, so that the command reads like one that a person typed.
#include "descent/model_fields.hpp"
#include "descent/optimizer_fields.hpp"
#include "descent/run_text.hpp"

#include <fmt/format.h>

namespace attmirror {

namespace {

// The model and its start, from what was recorded.
ModelPlan model_plan(const RunConfig& config) {
  Given given{
      {"params", config.params},
      {"loss", config.loss},
      {"head", config.head},
      {"mask", config.mask == "causal" ? config.mask : "none"},  // one of the data's own comes with them
      {"scaled", config.scaled},
      {"penalty", config.penalty},
      {"train", to_string(config.train)}};
  if (config.params == "KQ") given.put("rank", config.rank == config.dim ? 0 : config.rank);
  if (!config.key_weights_path.empty()) given.put("key_weights", config.key_weights_path.string());
  ModelPlan plan = plan_model(given);
  plan.init = {.kind = config.init_kind, .std = config.init_std, .seed = config.init_seed};
  plan.init_path = config.init_path;
  return plan;
}

DescentOptions descent_options(const RunConfig& config) {
  return {.steps = config.steps,
          .saturation = config.saturation,
          .record = RecordSchedule::parse(config.record),
          .keep = config.keep,
          .path = config.path,
          .storage = config.storage};
}

}  // namespace

std::string training_options(const Optimizer& optimizer, const ModelPlan& model,
                             const DescentOptions& descent) {
  Given given;
  const OptimizerMethod& method = method_of(optimizer);
  if (method.name != "md") given.put("optimizer", std::string(method.name));
  std::visit(
      [&](const auto& options) {
        using Options = std::decay_t<decltype(options)>;
        add_changes(fields_of(options), options, std::get<Options>(*method.preset), given);
      },
      optimizer);
  if (method.name != "steepest") given.remove("norm");
  add_changes(descent_fields(), descent, DescentOptions{}, given);
  add_changes(model_fields(), model, ModelPlan{}, given);
  std::string text;
  for (const auto& [name, value] : given)
    for (const FieldInfo* field : training_fields())
      if (field->name == name) text += option_text(*field, value);
  return text;
}

std::string train_command(const RunConfig& config) {
  return fmt::format("attmirror train {}{} -o run/", shell_path(config.data_path),
                     training_options(config.optimizer, model_plan(config), descent_options(config)));
}

}  // namespace attmirror
