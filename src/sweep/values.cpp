// One value of a setting, checked where it stands: the message can name the axis then.
#include "sweep/axes.hpp"
#include <attmirror/base/error.hpp>

#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

struct Limits {
  const char* text;
  bool (*holds)(double);
};

Limits limits_of(Range range) {
  switch (range) {
    case Range::any:
      return {"", [](double) { return true; }};
    case Range::above_zero:
      return {"> 0", [](double x) { return x > 0; }};
    case Range::from_zero:
      return {">= 0", [](double x) { return x >= 0; }};
    case Range::above_one:
      return {"> 1", [](double x) { return x > 1; }};
    case Range::from_one:
      return {">= 1", [](double x) { return x >= 1; }};
    case Range::probability:
      return {"from 0 to 1", [](double x) { return x >= 0 && x <= 1; }};
    case Range::below_one:
      return {"from 0 to below 1", [](double x) { return x >= 0 && x < 1; }};
  }
  return {"", [](double) { return true; }};
}

void check_range(const Setting& setting, double number, const std::string& shown, const std::string& place) {
  const Limits limits = limits_of(setting.range);
  if (!limits.holds(number)) throw bad_input(fmt::format("{}: {} is not {}", place, shown, limits.text));
  if (!std::isfinite(number)) throw bad_input(fmt::format("{}: {} is not a finite number", place, shown));
}

[[noreturn]] void wrong_type(const Setting& setting, const TomlValue& value, const std::string& place) {
  const bool list = value.as<TomlArray>() != nullptr;
  std::string expected = fmt::format("no {}", setting.info.type);
  if (setting.kind == ValueKind::seed) expected = "no whole number";
  if (setting.kind == ValueKind::seed_or_word) expected = "no whole number, \"seed\" or \"own\"";
  if (setting.kind == ValueKind::flag) expected = "neither true nor false";
  throw bad_input(fmt::format("{}: {} is {}{}", place, to_text(value), expected,
                              list ? "; what varies stands under [grid]" : ""));
}

// 20000, or 2e4, which TOML calls a float.
std::optional<std::int64_t> whole_number(const TomlValue& value) {
  if (const auto* integer = value.as<std::int64_t>()) return *integer;
  if (const auto* real = value.as<double>(); real && std::trunc(*real) == *real && std::abs(*real) < 0x1p53)
    return static_cast<std::int64_t>(*real);
  return std::nullopt;
}

std::optional<double> any_number(const TomlValue& value) {
  if (const auto* integer = value.as<std::int64_t>()) return static_cast<double>(*integer);
  if (const auto* real = value.as<double>()) return *real + 0.0;  // -0 is 0
  return std::nullopt;
}

Cell read_text(const Setting& setting, const std::string& text, const std::string& place) {
  try {
    if (setting.check)
      setting.check(text);
    else if (text.empty())
      throw bad_input(fmt::format("{} is \"\": expected {}", setting.info.name, setting.info.meaning));
  } catch (const Error& error) {
    // "loss is "x": expected ..." after `axis "loss"` would say the name twice.
    std::string message = in_words_of_sweeps(error.what());
    const std::string begin = setting.info.name + " is ";
    if (message.starts_with(begin)) message.erase(0, begin.size());
    throw bad_input(fmt::format("{}: {}", place, message));
  }
  return text;
}

}  // namespace

Cell read_value(const Setting& setting, const TomlValue& value, const std::string& place) {
  switch (setting.kind) {
    case ValueKind::flag:
      if (const auto* flag = value.as<bool>()) return std::int64_t{*flag ? 1 : 0};
      break;
    case ValueKind::seed_or_word:
      if (const auto* text = value.as<std::string>()) return read_text(setting, *text, place);
      [[fallthrough]];
    case ValueKind::integer:
    case ValueKind::seed:
      if (const auto number = whole_number(value)) {
        check_range(setting, static_cast<double>(*number), to_text(value), place);
        return *number;
      }
      break;
    case ValueKind::real:
      if (const auto number = any_number(value)) {
        check_range(setting, *number, to_text(value), place);
        return *number;
      }
      break;
    case ValueKind::norm:
      if (const auto number = any_number(value)) return read_text(setting, fmt::format("{}", *number), place);
      [[fallthrough]];
    case ValueKind::text:
      if (const auto* text = value.as<std::string>()) return read_text(setting, *text, place);
      break;
  }
  wrong_type(setting, value, place);
}

}  // namespace attmirror
