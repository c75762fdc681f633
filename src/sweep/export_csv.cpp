#include "base/atomic_file.hpp"
#include "base/csv.hpp"
#include "sweep/export_target.hpp"
#include <attmirror/sweep/export.hpp>

#include <type_traits>
#include <variant>

#include <fmt/format.h>

namespace attmirror {
namespace {

void append(std::string& line, const Cell& cell) {
  std::visit(
      [&line](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::string>)
          append_csv_cell(line, value);
        else if constexpr (!std::is_same_v<Value, std::monostate>)
          line += fmt::format("{}", value);  // the shortest text that reads as the same number
      },
      cell);
}

}  // namespace

void export_csv(const SweepDatabase& database, const std::filesystem::path& path) {
  // The whole configuration is JSON: in a table it would bury the rest.
  std::vector<std::string> names{"run", "key"};
  for (const auto& column : database.columns())
    if (column.name != "run" && column.name != "key" && column.name != "config") names.push_back(column.name);

  check_export_target(database, path);
  AtomicFile file(path);
  std::string lines;
  constexpr std::size_t piece = 1 << 16;
  const auto end_line = [&] {
    lines += "\r\n";
    if (lines.size() < piece) return;
    file.write(lines);
    lines.clear();
  };
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) lines += ',';
    append_csv_cell(lines, names[i]);
  }
  end_line();
  database.for_each_run(names, [&](std::span<const Cell> cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) lines += ',';
      append(lines, cells[i]);
    }
    end_line();
  });
  file.write(lines);
  file.commit();
}

}  // namespace attmirror
