// From the settings of a run to its objects, and to the commands that repeat it.
#include "base/json.hpp"
#include "descent/run_text.hpp"
#include "sweep/cache.hpp"
#include "sweep/settings.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/descent/run_config.hpp>
#include <attmirror/sweep/plan.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace attmirror {

namespace {

// The words of a run, from its cells.
RunWords words_of_run(const SweepPlan& plan, std::size_t run) {
  if (run >= plan.runs.size())
    throw bad_input(fmt::format("run is {}: the sweep has {} runs", run, plan.runs.size()));
  Values values(settings().size());
  for (std::size_t i = 0; i < plan.columns.size(); ++i) {
    const auto setting = find_setting(plan.columns[i].name);
    if (!setting) throw bad_input(fmt::format("column {} is not a setting of a sweep", plan.columns[i].name));
    values[*setting] = plan.runs[run].cells.at(i);
  }
  return to_words(values);
}

Dataset make_data(const SweepPlan& plan, const RunWords& words) {
  Dataset data = words.file ? load_dataset(plan.folder / *words.file)
                            : generate(find_generator(*words.generator), words.data);
  if (words.training.word("mask") != "causal") return data;
  return with_causal_mask(std::move(data));
}

// What decides the data.
std::string data_name(const RunWords& words) {
  std::string name = words.training.word("mask");
  for (const Setting& setting : settings())
    if (const Cell value = setting.get(words);
        setting.is_data() && !std::holds_alternative<std::monostate>(value))
      name += fmt::format("\n{}={}", setting.info.name, to_text(setting, value));
  return name;
}

std::size_t bytes_of(const Dataset& data) {
  const ConstMatrixView tokens = data.all_tokens(), queries = data.queries();
  return 8 * static_cast<std::size_t>(tokens.rows * tokens.stride + queries.rows * queries.stride) + 1024;
}

std::shared_ptr<const Dataset> data_of(const SweepPlan& plan, const RunWords& words) {
  const auto make = [&] { return std::make_shared<const Dataset>(make_data(plan, words)); };
  return plan.cache ? plan.cache->data.get(data_name(words), make, bytes_of) : make();
}

ModelPlan model_of(const SweepPlan& plan, const RunWords& words) {
  ModelPlan model = plan_model(words.training);
  if (model.key_weights_path.empty() && model.init_path.empty()) return model;
  const std::string name =
      fmt::format("{}\n{}\n{}\n{}", words.training.word("params"), words.training.word("train"),
                  model.key_weights_path.string(), model.init_path.string());
  if (!model.key_weights_path.empty()) model.key_weights_path = plan.folder / model.key_weights_path;
  if (!model.init_path.empty()) model.init_path = plan.folder / model.init_path;
  const auto make = [&] { return std::make_shared<const ModelPlan>(load_files(model)); };
  const auto bytes = [](const ModelPlan& loaded) {
    std::size_t entries = 128;
    for (const Block& block : attention_blocks)
      visit_block(loaded.init.given, block,
                  [&](const auto& values) { entries += static_cast<std::size_t>(values.size()); });
    return 8 * entries;
  };
  const auto loaded = plan.cache ? plan.cache->models.get(name, make, bytes) : make();
  model.parameterization = loaded->parameterization;
  model.init.given = loaded->init.given;
  return model;
}

DescentOptions descent_of(const RunWords& words, const RecordPlan& record, const Initialization& init) {
  DescentOptions options;
  apply(descent_fields(), words.training, options);
  options.record = record.schedule;
  const bool of_weights = std::ranges::any_of(record.curves, [](const std::string& curve) {
    return curve != "loss" && curve != "max_softmax" && curve != "norm";
  });
  options.keep = of_weights || record.keep_path ? Keep::parameters : Keep::metrics;
  options.init = init;
  options.threads = 1;  // there are as many runs as threads
  return options;
}

// config.json of the run, and under "data" how to make them again.
std::string config_of(const RunWords& words, const RunConfig& config) {
  Json json = Json::parse(to_json(config));
  if (words.generator) {
    Json generator{{"kind", *words.generator}};
    for (const Setting& setting : settings()) {
      if (!setting.is_data() || setting.info.name == "generator") continue;
      const Cell value = setting.get(words);
      if (const auto* integer = std::get_if<std::int64_t>(&value)) generator[setting.info.name] = *integer;
      if (const auto* real = std::get_if<double>(&value)) generator[setting.info.name] = *real;
      if (const auto* text = std::get_if<std::string>(&value)) generator[setting.info.name] = *text;
    }
    json["data"]["generator"] = generator;
  }
  return dump(json, 2) + "\n";
}

}  // namespace

PreparedRun SweepPlan::prepare(std::size_t run) const {
  const RunWords words = words_of_run(*this, run);
  try {
    PreparedRun prepared;
    prepared.data = data_of(*this, words);
    const ModelPlan model_plan = model_of(*this, words);
    prepared.model = std::make_unique<const Attention>(make_attention(*prepared.data, model_plan));
    prepared.optimizer = make_optimizer(words.training);
    prepared.descent = descent_of(words, record, model_plan.init);
    initial_parameters(*prepared.model, prepared.descent.init);  // throws where the start does not fit
    const RunSources sources{.data = words.file ? folder / *words.file : std::filesystem::path(),
                             .key_weights = model_plan.key_weights_path,
                             .init = model_plan.init_path};
    prepared.config =
        config_of(words, describe_run(*prepared.model, prepared.optimizer, prepared.descent, sources));
    return prepared;
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("run {}: {}", run, error.message(setting_spelling)));
  }
}

std::vector<std::string> commands_of(const SweepPlan& plan, std::size_t run) {
  const RunWords words = words_of_run(plan, run);
  std::string generate = "attmirror generate";
  for (const Setting& setting : settings()) {
    const Cell value = setting.get(words);
    if (!setting.is_data() || setting.info.name == "file" || std::holds_alternative<std::monostate>(value))
      continue;
    const FieldInfo named{.name = setting.info.name == "generator" ? "kind" : setting.info.name};
    generate += option_text(named, to_text(setting, value));
  }
  ModelPlan model = plan_model(words.training);
  if (!model.key_weights_path.empty()) model.key_weights_path = plan.folder / model.key_weights_path;
  if (!model.init_path.empty()) model.init_path = plan.folder / model.init_path;
  DescentOptions descent;
  apply(descent_fields(), words.training, descent);
  const std::string train =
      fmt::format("attmirror train {}{}", words.file ? shell_path(plan.folder / *words.file) : "data.npz",
                  training_options(make_optimizer(words.training), model, descent));
  std::vector<std::string> commands;
  if (words.generator) commands.push_back(generate + " -o data.npz");
  commands.push_back(train);
  return commands;
}

}  // namespace attmirror
