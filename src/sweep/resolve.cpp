// From what a file says of a run to all that its settings are.
//
// Words are made into objects (optimizer, model, generator) and back into words: whatever spelling and whichever
// defaults were used, equal runs have equal settings then, and a setting that does not matter for a run has no value.
#include "sweep/settings.hpp"
#include <attmirror/base/error.hpp>

#include <fmt/format.h>

namespace attmirror {

namespace {

// A file has its sizes and no seed.
void refuse_generator_settings(const Values& given) {
  const std::vector<Setting>& all = settings();
  const std::string file = std::get<std::string>(given[*find_setting("file")]);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].is_data() && all[i].info.name != "file" && !std::holds_alternative<std::monostate>(given[i]))
      throw bad_input(
          fmt::format("{} is given, but the data are those of the file {}", all[i].info.name, file));
}

void resolve_data(RunWords& words) {
  if (words.file) return;
  if (!words.generator) words.generator = "sphere";
  words.data = resolved(find_generator(*words.generator), words.data);
}

void resolve_training(RunWords& words) {
  Given& given = words.training;
  const OptimizerMethod& method = method_given(given);
  const Optimizer optimizer = make_optimizer(given);
  if (words.init_seed)
    given.put("init_seed", std::uint64_t{0});  // so that a start that is not random refuses it
  const ModelPlan model = plan_model(given);
  validate(optimizer, model.loss);
  DescentOptions descent;
  apply(descent_fields(), given, descent);
  given = given_of(optimizer, method);
  add_values(model_fields(), model, given);
  add_values(descent_fields(), descent, given);
}

Values to_values(const RunWords& words) {
  Values values(settings().size());
  for (std::size_t i = 0; i < values.size() && settings()[i].is_data(); ++i)
    values[i] = settings()[i].get(words);
  for (const auto& [name, value] : words.training)
    if (const auto setting = find_setting(name)) values[*setting] = to_cell(value);
  return values;
}

}  // namespace

RunWords to_words(const Values& values) {
  RunWords words;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::holds_alternative<std::monostate>(values[i])) settings()[i].put(words, values[i]);
  return words;
}

Values resolve(const Values& given) {
  RunWords words = to_words(given);
  if (words.file) refuse_generator_settings(given);
  resolve_data(words);
  resolve_training(words);
  const std::optional<std::string>& how = words.init_seed;
  static const std::size_t init_seed = *find_setting("init_seed");
  const bool random = words.training.has("init_seed");
  if (random && how == "own") {
    words.training.remove("init_seed");
    Values values = to_values(words);
    values[init_seed] =
        static_cast<std::int64_t>(fingerprint(values) >> 1);  // a column holds 63 bits of a seed
    return values;
  }
  if (random && (how || std::holds_alternative<std::monostate>(given[init_seed])))
    words.training.put("init_seed", words.data.seed.value_or(0));
  return to_values(words);
}

}  // namespace attmirror
