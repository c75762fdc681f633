#include "pages/sources.hpp"

#include "base/atomic_file.hpp"
#include "data/npz_reader.hpp"
#include "margin/solution_summary.hpp"
#include <attmirror/base/error.hpp>

#include <map>
#include <system_error>

#include <fmt/format.h>

namespace attmirror {

namespace {

namespace fs = std::filesystem;

}  // namespace

ResultKind result_kind(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    throw bad_input(fmt::format("cannot read {}: {}", path.string(),
                                error ? error.message() : "No such file or directory"));
  if (fs::is_directory(status)) return folder_kind(path);
  // The content says what a file is, whatever its name.
  const std::string bytes = beginning_of_file(path, 8);
  if (bytes == "SQLite f") return ResultKind::sweep;
  if (bytes.starts_with("PK")) {
    const NpzReader file(path);
    NamedArrays names;  // by which a solution is told; its numbers are read by who wants them
    for (const NpzReader::Entry& entry : file.entries()) names.emplace(entry.key, Array());
    if (is_solution(names)) return ResultKind::solution;
  }
  return ResultKind::none;
}

std::vector<std::string> short_names(const std::vector<fs::path>& paths) {
  const auto last_part = [](const fs::path& path) {
    return (path.filename().empty() ? path.parent_path() : path).filename().string();
  };
  std::map<std::string, int> times;
  for (const fs::path& path : paths) ++times[last_part(path)];
  std::vector<std::string> names;
  for (const fs::path& path : paths) {
    const std::string name = last_part(path);
    names.push_back(name.empty() || name == "." || times[name] > 1 ? path.string() : name);
  }
  return names;
}

}  // namespace attmirror
