#include "sweep/settings.hpp"

#include "base/words.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/fingerprint.hpp>

#include <algorithm>
#include <array>
#include <type_traits>
#include <unordered_map>

#include <fmt/format.h>

namespace attmirror {

Cell to_cell(const FieldValue& value) {
  return std::visit(
      [](const auto& v) -> Cell {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::monostate> || std::is_same_v<T, std::array<double, 2>>)
          return {};
        else if constexpr (std::is_integral_v<T>)
          return static_cast<std::int64_t>(v);
        else
          return v;
      },
      value);
}

namespace {

CellType cell_type(FieldKind kind) {
  switch (kind) {
    case FieldKind::number:
    case FieldKind::pair:
      return CellType::real;
    case FieldKind::word:
    case FieldKind::norm:
    case FieldKind::path:
      return CellType::text;
    case FieldKind::flag:
    case FieldKind::count:
    case FieldKind::seed:
      return CellType::integer;
  }
  return CellType::text;
}

std::string type_text(const FieldInfo& field) {
  switch (field.kind) {
    case FieldKind::count:
      return "whole number";
    case FieldKind::seed:
      return "seed";
    case FieldKind::number:
    case FieldKind::pair:
      return "number";
    case FieldKind::flag:
      return "true or false";
    case FieldKind::word:
    case FieldKind::path:
      return "text";
    case FieldKind::norm:
      return "norm";
  }
  return "";
}

FieldValue to_value(FieldKind kind, const Cell& cell) {
  switch (kind) {
    case FieldKind::flag:
      return std::get<std::int64_t>(cell) != 0;
    case FieldKind::count:
      return std::get<std::int64_t>(cell);
    case FieldKind::seed:
      return static_cast<std::uint64_t>(std::get<std::int64_t>(cell));
    case FieldKind::number:
    case FieldKind::pair:
      return std::get<double>(cell);
    case FieldKind::word:
    case FieldKind::norm:
    case FieldKind::path:
      return std::get<std::string>(cell);
  }
  return {};
}

Setting plain_setting(const char* table, FieldInfo field, std::string default_text) {
  Setting setting;
  setting.info = {field.name, table, type_text(field), std::move(default_text), field.help, field.choices};
  setting.type = cell_type(field.kind);
  setting.field = std::move(field);
  return setting;
}

// ---- data

Setting data_setting(const Field<GeneratorSettings>& field) {
  Setting setting = plain_setting("data", field, generator_default(field));
  if (setting.type == CellType::text)
    setting.check = [&field](const std::string& word) {
      GeneratorSettings given;
      field.write(given, word);
      for (const GeneratorKind& kind : generator_kinds())
        if (kind.takes(field.name)) kind.resolve(given);
    };
  setting.put = [&field](RunWords& words, const Cell& cell) {
    field.write(words.data, to_value(field.kind, cell));
  };
  setting.get = [&field](const RunWords& words) { return to_cell(field.read(words.data)); };
  return setting;
}

Setting source_setting(std::optional<std::string> RunWords::*member, FieldInfo field,
                       std::string default_text, std::function<void(const std::string&)> check) {
  Setting setting = plain_setting("data", std::move(field), std::move(default_text));
  setting.check = std::move(check);
  setting.put = [member](RunWords& words, const Cell& cell) { words.*member = std::get<std::string>(cell); };
  setting.get = [member](const RunWords& words) { return words.*member ? Cell(*(words.*member)) : Cell{}; };
  return setting;
}

void check_generator(const std::string& name) {
  std::vector<std::string_view> names;
  for (const GeneratorKind& kind : generator_kinds()) names.push_back(kind.name);
  if (std::ranges::find(names, name) == names.end())
    throw bad_value("generator", name, expected_choice(name, names));
}

void check_file(const std::string& name) {
  if (name.empty()) throw bad_value("file", name, "the path of an .npz file");
}

void add_data_settings(std::vector<Setting>& all) {
  std::string kinds;
  for (const GeneratorKind& kind : generator_kinds()) kinds += (kinds.empty() ? "" : "|") + kind.name;
  all.push_back(source_setting(
      &RunWords::generator,
      {.name = "generator", .help = "what `attmirror generate --kind` makes", .choices = kinds}, "sphere",
      check_generator));
  all.push_back(source_setting(
      &RunWords::file,
      {.name = "file", .help = "a dataset instead of a generator: .npz, relative to the sweep file"}, "",
      check_file));
  for (const Field<GeneratorSettings>& field : generator_fields()) all.push_back(data_setting(field));
}

// ---- training

// A field of a training. A word is checked by the table that it is of.
Setting training_setting(const FieldInfo& field, std::string default_text,
                         std::function<void(const Given&)> check) {
  Setting setting = plain_setting("train", field, std::move(default_text));
  if (setting.type == CellType::text)
    setting.check = [name = field.name, check = std::move(check)](const std::string& text) {
      check({{name, text}});
    };
  setting.put = [name = std::string_view(field.name), kind = field.kind](RunWords& words, const Cell& cell) {
    words.training.append(name, to_value(kind, cell));
  };
  setting.get = [name = std::string_view(field.name)](const RunWords& words) {
    const FieldValue* value = words.training.find(name);
    return value == nullptr ? Cell{} : to_cell(*value);
  };
  return setting;
}

// Each word of an optimizer by itself, whichever method takes it.
void check_optimizer_word(const Given& given) {
  if (given.has("optimizer")) {
    method_given(given);
    return;
  }
  const auto& [name, value] = *given.begin();
  for (const OptimizerMethod& method : optimizer_methods()) {
    if (!method.preset) continue;
    Optimizer preset = *method.preset;
    const bool found = std::visit(
        [&name = name, &value = value](auto& options) {
          for (const auto& field : fields_of(options))
            if (field.name == name) {
              field.write(options, value);
              return true;
            }
          return false;
        },
        preset);
    if (found) return;
  }
}

// A number, or how to find one.
void may_be_word(Setting& setting) {
  setting.info.type = "seed or text";
  setting.info.default_text = "seed";
  setting.info.meaning =
      "seed of random starts: a number; \"seed\" for the seed of the run's data, 0 where they have none; \"own\" for a different one for each run, made from its other settings";
  setting.field.choices = "seed|own";
  setting.field.listed = true;
  setting.put = [put = setting.put](RunWords& words, const Cell& cell) {
    if (const auto* word = std::get_if<std::string>(&cell))
      words.init_seed = *word;
    else
      put(words, cell);
  };
}

std::vector<Setting> make_settings() {
  std::vector<Setting> all;
  add_data_settings(all);
  for (const FieldInfo* field : optimizer_fields())
    all.push_back(training_setting(*field, optimizer_default(*field), check_optimizer_word));
  for (const Field<ModelPlan>& field : model_fields()) {
    all.push_back(
        training_setting(field, default_text(field), [](const Given& given) { plan_model(given); }));
    if (field.name == "key_weights") all.back().check = {};
    if (field.name == "init_seed") may_be_word(all.back());
  }
  for (const Field<DescentOptions>& field : descent_fields()) {
    if (field.name == "max_seconds") break;  // this and the following are the sweep's own business
    all.push_back(training_setting(field, default_text(field), [](const Given& given) {
      DescentOptions options;
      apply(descent_fields(), given, options);
    }));
  }
  return all;
}

}  // namespace

const std::vector<Setting>& settings() {
  static const std::vector<Setting> all = make_settings();
  return all;
}

const std::vector<SweepSetting>& sweep_settings() {
  static const std::vector<SweepSetting> all = [] {
    std::vector<SweepSetting> infos;
    for (const Setting& setting : settings()) infos.push_back(setting.info);
    return infos;
  }();
  return all;
}

std::optional<std::size_t> find_setting(std::string_view name) {
  static const std::unordered_map<std::string_view, std::size_t> positions = [] {
    std::unordered_map<std::string_view, std::size_t> all;
    for (std::size_t i = 0; i < settings().size(); ++i) all.emplace(settings()[i].info.name, i);
    return all;
  }();
  const auto found = positions.find(name);
  return found == positions.end() ? std::nullopt : std::optional(found->second);
}

std::string to_text(const Setting& setting, const Cell& value) {
  if (setting.field.kind == FieldKind::flag) return std::get<std::int64_t>(value) != 0 ? "true" : "false";
  return std::visit(
      [](const auto& v) -> std::string {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, std::monostate>)
          return "nothing";
        else
          return fmt::format("{}", v);
      },
      value);
}

std::string setting_spelling(std::string_view field) { return sweep_spelling(training_fields(), field); }

std::uint64_t fingerprint(const Values& resolved) {
  Fingerprint print;
  for (std::size_t i = 0; i < resolved.size(); ++i) {
    const Cell& value = resolved[i];
    if (std::holds_alternative<std::monostate>(value)) continue;
    print.add(std::string_view(settings()[i].info.name));
    if (const auto* number = std::get_if<std::int64_t>(&value))
      print.add(std::ptrdiff_t{*number});
    else if (const auto* real = std::get_if<double>(&value))
      print.add(*real);
    else
      print.add(std::string_view(std::get<std::string>(value)));
  }
  return print.value();
}

}  // namespace attmirror
