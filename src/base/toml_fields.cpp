#include "base/toml_fields.hpp"

#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace attmirror {

namespace {

std::optional<double> toml_number(const TomlValue& value) {
  if (const auto* integer = value.as<std::int64_t>()) return static_cast<double>(*integer);
  if (const auto* real = value.as<double>()) return *real + 0.0;  // -0 is 0
  return std::nullopt;
}

// 20000, or 2e4, which TOML calls a float.
std::optional<std::int64_t> toml_whole_number(const TomlValue& value) {
  if (const auto* integer = value.as<std::int64_t>()) return *integer;
  if (const auto* real = value.as<double>(); real && std::trunc(*real) == *real && std::abs(*real) < 0x1p53)
    return static_cast<std::int64_t>(*real);
  return std::nullopt;
}

// Nothing where the type is another.
FieldValue toml_value(const FieldInfo& info, const TomlValue& value) {
  const auto* text = value.as<std::string>();
  const std::optional<double> number = toml_number(value);
  const std::optional<std::int64_t> whole = toml_whole_number(value);
  switch (info.kind) {
    case FieldKind::flag:
      if (const auto* flag = value.as<bool>()) return *flag;
      break;
    case FieldKind::count:
      if (whole) return *whole;
      break;
    case FieldKind::seed:
      if (whole && *whole >= 0) return static_cast<std::uint64_t>(*whole);
      if (text != nullptr && info.listed) return *text;
      break;
    case FieldKind::number:
      if (number) return *number;
      break;
    case FieldKind::pair:
      if (const auto* list = value.as<TomlArray>(); list != nullptr && list->size() == 2)
        if (const auto first = toml_number((*list)[0]), second = toml_number((*list)[1]); first && second)
          return std::array<double, 2>{*first, *second};
      break;
    case FieldKind::norm:
      if (number) return fmt::format("{}", *number);
      [[fallthrough]];
    case FieldKind::word:
      if (text != nullptr) return *text;
      break;
    case FieldKind::path:
      if (text != nullptr && !text->empty() && text->find('\0') == std::string::npos) return *text;
      break;
  }
  return {};
}

}  // namespace

FieldValue read_toml(const FieldInfo& info, const TomlValue& value) {
  if (FieldValue read = toml_value(info, value); read.index() != 0) {
    if (is_allowed(info, read)) return read;
    // With the nearest right word.
    if (std::holds_alternative<std::string>(read)) check_value(info, read, info.name);
  }
  throw Error(ErrorKind::bad_input,
              fmt::format("{} is {}: expected {}", field_name(info.name), to_text(value), expected(info)),
              {.field = info.name, .index = std::nullopt, .value = to_text(value)});
}

}  // namespace attmirror
