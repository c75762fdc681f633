// From what a user gave to an optimizer and back, whichever optimizer it is.
#include "base/field_json.hpp"
#include "base/words.hpp"
#include "descent/optimizer_fields.hpp"

#include <algorithm>
#include <map>

#include <fmt/ranges.h>

namespace attmirror {

namespace {

// A method of SteepestDescent that has a name has its norm, too.
bool takes_norm(const OptimizerMethod& method) { return method.name == "steepest"; }

bool takes(const OptimizerMethod& method, std::string_view field) {
  if (!method.preset || (field == "norm" && !takes_norm(method))) return false;
  return std::visit(
      [field](const auto& preset) {
        return std::ranges::any_of(fields_of(preset),
                                   [&](const FieldInfo& info) { return info.name == field; });
      },
      *method.preset);
}

std::vector<std::string_view> methods_that_take(std::string_view field) {
  std::vector<std::string_view> names;
  for (const OptimizerMethod& method : optimizer_methods())
    if (takes(method, field)) names.push_back(method.name);
  return names;
}

// "md, gd and steepest"
std::string listed(const std::vector<std::string_view>& names) {
  if (names.size() < 2) return fmt::format("{}", fmt::join(names, ""));
  return fmt::format("{} and {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

void refuse_foreign_fields(const Given& given, const OptimizerMethod& method) {
  for (const FieldInfo* field : optimizer_fields()) {
    const FieldValue* value = given.find(field->name);
    if (value == nullptr || field->name == "optimizer" || takes(method, field->name)) continue;
    const auto takers = methods_that_take(field->name);
    const auto* flag = std::get_if<bool>(value);
    throw Error(ErrorKind::bad_input,
                fmt::format("{} is {}, but {} is {}: only {} {} it{}{}", field_name(field->name),
                            flag == nullptr ? "given"
                            : *flag         ? "true"
                                            : "false",
                            field_name("optimizer"), method.name, listed(takers),
                            takers.size() == 1 ? "takes" : "take", field->instead.empty() ? "" : "; ",
                            field->instead),
                {.field = field->name, .index = std::nullopt, .value = to_text(*value)});
  }
}

// What makes a named method that method.
void check_named(const OptimizerMethod& method, const SteepestDescent& preset, const SteepestDescent& made) {
  if (takes_norm(method)) return;
  if (!made.normalized)
    throw bad_input(fmt::format(
        "{} is false, but {} is {}: its steps are normalized by definition; steepest takes any norm and need not be",
        field_name("normalized"), field_name("optimizer"), method.name));
  if (preset.momentum.kind != MomentumKind::none && made.momentum.kind == MomentumKind::none)
    throw bad_input(fmt::format("{} is none, but {} is {}: without momentum it is {} {}",
                                field_name("momentum"), field_name("optimizer"), method.name,
                                field_name("optimizer"), method_of(made).name));
}

// Fields in the order of all tables: each after the one that stands before it in its own table.
std::vector<const FieldInfo*> merged_fields() {
  std::vector<const FieldInfo*> merged;
  const auto position = [&merged](std::string_view name) {
    return std::ranges::find_if(merged, [name](const FieldInfo* field) { return field->name == name; });
  };
  const auto add = [&](const auto& fields) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (position(fields[i].name) != merged.end()) continue;
      auto place = i > 0 ? position(fields[i - 1].name) + 1 : merged.begin();
      if (i == 0 && fields.size() > 1 && position(fields[1].name) != merged.end())
        place = position(fields[1].name);
      merged.insert(place, &fields[i]);
    }
  };
  for (const OptimizerMethod& method : optimizer_methods())
    if (method.preset) std::visit([&](const auto& preset) { add(fields_of(preset)); }, *method.preset);
  return merged;
}

FieldValue default_of(const OptimizerMethod& method, std::string_view name) {
  return std::visit(
      [name](const auto& preset) -> FieldValue {
        for (const auto& field : fields_of(preset))
          if (field.name == name) return field.read(preset);
        return {};
      },
      *method.preset);
}

// The first method of an optimizer's type: md, gd, steepest, adam.
const OptimizerMethod& kind_of(const Optimizer& optimizer) {
  return *std::ranges::find_if(optimizer_methods(), [&](const OptimizerMethod& method) {
    return method.preset && method.preset->index() == optimizer.index();
  });
}

}  // namespace

const OptimizerMethod& method_given(const Given& given, std::string_view otherwise) {
  const std::string name = given.word("optimizer", otherwise);
  std::vector<std::string_view> names;
  for (const OptimizerMethod& method : optimizer_methods()) {
    if (!method.preset) continue;
    if (method.name == name) return method;
    names.push_back(method.name);
  }
  throw bad_value("optimizer", name, expected_choice(name, names));
}

const OptimizerMethod& method_of(const Optimizer& optimizer) {
  if (const auto* made = std::get_if<SteepestDescent>(&optimizer); made != nullptr && made->normalized)
    for (const OptimizerMethod& method : optimizer_methods()) {
      const auto* preset = method.preset ? std::get_if<SteepestDescent>(&*method.preset) : nullptr;
      if (preset != nullptr && !takes_norm(method) && preset->norm == made->norm &&
          preset->momentum.kind == made->momentum.kind)
        return method;
    }
  return kind_of(optimizer);
}

std::string_view method_name(const Optimizer& optimizer) { return method_of(optimizer).name; }

const std::vector<const FieldInfo*>& optimizer_fields() {
  static const FieldInfo method = [] {
    FieldInfo info{
        .name = "optimizer",
        .help =
            "md is mirror descent, gd gradient descent, steepest is steepest descent in a norm, and the others are methods with names of their own"};
    for (const OptimizerMethod& each : optimizer_methods())
      if (each.preset) info.choices += fmt::format("{}{}", info.choices.empty() ? "" : "|", each.name);
    return info;
  }();
  static const std::vector<const FieldInfo*> all = [] {
    std::vector<const FieldInfo*> list = merged_fields();
    list.insert(list.begin(), &method);
    return list;
  }();
  return all;
}

std::string optimizer_default(const FieldInfo& field) {
  if (field.name == "optimizer") return "md";
  if (field.needed || !field.shown_default.empty()) return field.shown_default;
  std::vector<std::pair<std::string_view, FieldValue>> values;
  for (const OptimizerMethod& method : optimizer_methods())
    if (takes(method, field.name)) values.emplace_back(method.name, default_of(method, field.name));
  return grouped_defaults(values);
}

Optimizer make_optimizer(const Given& given) {
  const OptimizerMethod& method = method_given(given);
  return make_optimizer(given, method, *method.preset);
}

Optimizer make_optimizer(const Given& given, const OptimizerMethod& method, Optimizer optimizer) {
  refuse_foreign_fields(given, method);
  std::visit(
      [&](auto& options) {
        for (const auto& field : fields_of(options))
          if (field.needed && takes(method, field.name) && !given.has(field.name))
            throw bad_input(fmt::format("{} is missing: {} {} takes {} {}", field_name(field.name),
                                        field_name("optimizer"), method.name, field_name(field.name),
                                        choices_text(field)));
        apply(fields_of(options), given, options);
        if constexpr (std::is_same_v<std::decay_t<decltype(options)>, SteepestDescent>)
          check_named(method, std::get<SteepestDescent>(*method.preset), options);
        options.validate();
      },
      optimizer);
  return optimizer;
}

Given given_of(const Optimizer& optimizer, const OptimizerMethod& method) {
  Given given{{"optimizer", std::string(method.name)}};
  std::visit([&](const auto& options) { add_values(fields_of(options), options, given); }, optimizer);
  if (!takes_norm(method)) given.remove("norm");
  return given;
}

Json optimizer_json(const Optimizer& optimizer) {
  Json json{{"kind", kind_of(optimizer).name}};
  std::visit([&](const auto& options) { put_fields(fields_of(options), options, json); }, optimizer);
  return json;
}

Optimizer parse_optimizer(const Json& json) {
  const std::string kind = json.at("kind");
  std::vector<std::string_view> kinds;
  for (const OptimizerMethod& method : optimizer_methods()) {
    if (!method.preset || &kind_of(*method.preset) != &method) continue;
    kinds.push_back(method.name);
    if (method.name != kind) continue;
    Optimizer optimizer = *method.preset;
    std::visit([&](auto& options) { get_fields(fields_of(options), json, options); }, optimizer);
    return optimizer;
  }
  throw bad_value("optimizer", kind, expected_choice(kind, kinds));
}

}  // namespace attmirror
