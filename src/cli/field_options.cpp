#include "cli/field_options.hpp"

#include <attmirror/base/error.hpp>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

std::string spoken(const FieldInfo& field) { return option_name(field).substr(2); }

FieldValue parse_text(const FieldInfo& field, const std::string& text) {
  switch (field.kind) {
    case FieldKind::count:
      return parse_count(spoken(field), text);
    case FieldKind::seed:
      return parse_seed(spoken(field), text);
    case FieldKind::number:
      return parse_number(spoken(field), text);
    case FieldKind::word:
    case FieldKind::norm:
    case FieldKind::path:
      // An unset variable of a script must not pass for an option that was not given.
      if (text.empty())
        throw bad_value(field.name, text, field.kind == FieldKind::path ? "FILE" : field.choices);
      return text;
    case FieldKind::flag:
    case FieldKind::pair:
      break;
  }
  throw bad_input(fmt::format("{} takes no text", field_name(field.name)));
}

std::string type_name(const FieldInfo& field) {
  switch (field.kind) {
    case FieldKind::count:
      return "COUNT";
    case FieldKind::seed:
      return "SEED";
    case FieldKind::number:
      return "NUMBER";
    case FieldKind::path:
      return "FILE";
    case FieldKind::word:
    case FieldKind::norm:
    case FieldKind::flag:
    case FieldKind::pair:
      return field.choices;
  }
  return "";
}

void add_flag_options(CLI::App& app, const FieldInfo& field, Given& given, const std::string& group) {
  const auto add = [&](const FieldInfo& option, const std::string& help, bool value) {
    app.add_flag_function(
           option_name(option),
           [&field, &given, value](std::int64_t) {
             if (given.has(field.name) && given.get<bool>(field.name) != value)
               throw bad_input(fmt::format("both {} and {} are given: expected one of them",
                                           option_name(field), option_name({.name = field.opposite})));
             given.put(field.name, value);
           },
           help)
        ->disable_flag_override()
        ->group(group);
  };
  add(field, field.help, true);
  if (!field.opposite.empty())
    add({.name = field.opposite}, fmt::format("not {}", option_name(field)), false);
}

}  // namespace

void add_field_options(CLI::App& app, const std::vector<const FieldInfo*>& fields, Given& given,
                       const std::string& group, const DefaultText& default_text) {
  for (const FieldInfo* field : fields) {
    if (field->kind == FieldKind::flag) {
      add_flag_options(app, *field, given, group);
      continue;
    }
    CLI::Option* option = app.add_option_function<std::string>(
        option_name(*field),
        [field, &given](const std::string& text) { given.put(field->name, parse_text(*field, text)); },
        field->help);
    option->type_name(type_name(*field));
    if (!group.empty()) option->group(group);
    if (const std::string text = default_text(*field); !text.empty()) option->default_str(text);
  }
}

void add_optimizer_options(CLI::App& app, Given& given) {
  add_field_options(app, optimizer_fields(), given, "Descent", optimizer_default);
}

Optimizer optimizer_given(const Given& given) {
  const OptimizerMethod& method = method_given(given);
  const bool plain = std::visit(
      [](const auto& preset) {
        if constexpr (requires { preset.normalized; })
          return !preset.normalized;
        else
          return false;
      },
      *method.preset);
  if (plain && given.get<bool>("normalized") == false)
    throw bad_input(fmt::format("{} is given, but {} is {}: its steps are not normalized unless {} is given",
                                field_name("unnormalized"), field_name("optimizer"), method.name,
                                field_name("normalized")));
  return make_optimizer(given);
}

}  // namespace attmirror::cli
