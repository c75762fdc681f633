// The words for the choices of a gradient engine.
#include "base/words.hpp"
#include <attmirror/attention/gradient.hpp>
#include <attmirror/base/error.hpp>

#include <array>
#include <span>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::array<std::string_view, 2> jacobians{"safe", "textbook"};
constexpr std::array<std::string_view, 3> paths{"auto", "block", "stream"};
constexpr std::array<std::string_view, 2> storages{"float64", "float32"};

template <class Enum>
Enum parse(std::string_view what, std::string_view name, std::span<const std::string_view> names) {
  for (std::size_t k = 0; k < names.size(); ++k)
    if (names[k] == name) return static_cast<Enum>(k);
  throw bad_value(what, name, expected_choice(name, {names.begin(), names.end()}));
}

void check(std::string_view what, int value, std::size_t count) {
  if (value < 0 || static_cast<std::size_t>(value) >= count)
    throw bad_input(fmt::format("{} is {}: expected one of its {} values", what, value, count));
}

}  // namespace

std::string_view to_string(Jacobian jacobian) { return jacobians[static_cast<std::size_t>(jacobian)]; }
std::string_view to_string(DataPath path) { return paths[static_cast<std::size_t>(path)]; }
std::string_view to_string(TokenStorage storage) { return storages[static_cast<std::size_t>(storage)]; }

Jacobian parse_jacobian(std::string_view name) { return parse<Jacobian>("jacobian", name, jacobians); }
DataPath parse_data_path(std::string_view name) { return parse<DataPath>("path", name, paths); }
TokenStorage parse_token_storage(std::string_view name) {
  return parse<TokenStorage>("storage", name, storages);
}

void EngineOptions::validate() const {
  check("jacobian", static_cast<int>(jacobian), jacobians.size());
  check("path", static_cast<int>(path), paths.size());
  check("storage", static_cast<int>(storage), storages.size());
}

}  // namespace attmirror
