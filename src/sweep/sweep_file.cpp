#include "sweep/sweep_file.hpp"

#include "base/toml_document.hpp"
#include "base/words.hpp"
#include "sweep/record_plan.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace attmirror {

namespace {

void check_tables(const TomlTable& file, const std::string& name) {
  static const std::vector<std::string_view> tables{"sweep", "data", "train", "grid",
                                                    "zip",   "list", "record"};
  for (const auto& [key, value] : file) {
    if (std::ranges::find(tables, key) != tables.end()) continue;
    throw bad_input(fmt::format(
        "{}: line {}: there is no table {}: expected [sweep], [data], [train], [grid], [[zip]], [[list]] or "
        "[record]{}",
        name, value.line, in_double_quotes(key), did_you_mean(key, tables)));
  }
}

void read_names(const TomlTable& file, const std::string& name, SweepPlan& plan) {
  const auto found = std::ranges::find(file, "sweep", &TomlEntry::key);
  if (found == file.end()) return;
  const auto* table = found->value.as<TomlTable>();
  if (!table) throw bad_input(fmt::format("{}: sweep is {}: expected a table", name, to_text(found->value)));
  static const std::vector<std::string_view> keys{"name", "description"};
  for (const auto& [key, value] : *table) {
    if (key != "name" && key != "description")
      throw bad_input(
          fmt::format("{}: [sweep] has no key {}{}", name, in_double_quotes(key), did_you_mean(key, keys)));
    const auto* text = value.as<std::string>();
    if (!text) throw bad_input(fmt::format("{}: [sweep] {}: {} is not a text", name, key, to_text(value)));
    (key == "name" ? plan.name : plan.description) = *text;
  }
}

}  // namespace

SweepFile read_sweep_file(std::string_view text, const std::string& name, const std::filesystem::path& folder,
                          const SweepLimits& limits) {
  const TomlTable file = parse_toml(text, name);
  check_tables(file, name);
  SweepFile result;
  result.plan.text = text;
  result.plan.folder = folder;
  read_names(file, name, result.plan);
  result.plan.record = read_record(file, name);
  result.plan.record_text = to_text(result.plan.record);
  result.axes = read_axes(file, name, limits.max_runs);
  return result;
}

}  // namespace attmirror
