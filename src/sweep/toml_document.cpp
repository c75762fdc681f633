#include "sweep/toml_document.hpp"

#include <attmirror/base/error.hpp>

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

// The parser is compiled in here: whoever links the library need not have toml++.
#undef TOML_HEADER_ONLY
#undef TOML_SHARED_LIB
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace attmirror {

namespace {

TomlValue convert(const toml::node& node);

TomlTable convert_table(const toml::table& table) {
  std::vector<std::pair<toml::source_position, std::string>> order;
  for (const auto& [key, node] : table) order.emplace_back(key.source().begin, std::string(key.str()));
  std::ranges::stable_sort(order, [](const auto& a, const auto& b) {
    return std::tie(a.first.line, a.first.column) < std::tie(b.first.line, b.first.column);
  });
  TomlTable result;
  result.reserve(order.size());
  for (auto& [position, key] : order) {
    const toml::node& node = *table.get(key);
    result.push_back({std::move(key), convert(node)});
    if (result.back().value.line == 0) result.back().value.line = position.line;
  }
  return result;
}

TomlArray convert_array(const toml::array& array) {
  TomlArray result;
  result.reserve(array.size());
  for (const toml::node& node : array) result.push_back(convert(node));
  return result;
}

TomlValue convert(const toml::node& node) {
  TomlValue result;
  result.line = node.source().begin.line;
  if (const auto* flag = node.as_boolean())
    result.value = flag->get();
  else if (const auto* integer = node.as_integer())
    result.value = std::int64_t{integer->get()};
  else if (const auto* real = node.as_floating_point())
    result.value = real->get();
  else if (const auto* text = node.as_string())
    result.value = text->get();
  else if (const auto* array = node.as_array())
    result.value = convert_array(*array);
  else if (const auto* table = node.as_table())
    result.value = convert_table(*table);
  else
    result.value = TomlDate{};
  return result;
}

}  // namespace

TomlTable parse_toml(std::string_view text, const std::string& name) {
  try {
    return convert_table(toml::parse(text));
  } catch (const toml::parse_error& error) {
    std::string what(error.description());
    std::ranges::replace(what, '\n', ' ');
    throw bad_input(fmt::format("{}: line {}: {}", name, error.source().begin.line, what));
  }
}

std::string in_double_quotes(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string result = "\"";
  for (const char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 32 || byte == 127)
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  return result + (text.size() > longest ? "...\"" : "\"");
}

std::string to_text(const TomlValue& value) {
  if (const auto* flag = value.as<bool>()) return *flag ? "true" : "false";
  if (const auto* integer = value.as<std::int64_t>()) return fmt::format("{}", *integer);
  if (const auto* real = value.as<double>()) return fmt::format("{}", *real);
  if (const auto* text = value.as<std::string>()) return in_double_quotes(*text);
  if (value.as<TomlArray>()) return "a list";
  if (value.as<TomlTable>()) return "a table";
  return "a date";
}

}  // namespace attmirror
