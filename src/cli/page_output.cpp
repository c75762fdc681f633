#include "cli/page_output.hpp"

#include "base/atomic_file.hpp"
#include "report/page_html.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

namespace fs = std::filesystem;

void refuse_existing(const fs::path& file) {
  if (std::error_code error; fs::exists(file, error))
    throw bad_input(
        fmt::format("{} already exists: give --overwrite to replace it, or another file", file.string()));
}

std::ptrdiff_t count(const std::vector<fs::path>& files, const char* ending) {
  return std::ranges::count_if(files, [&](const fs::path& file) { return file.extension() == ending; });
}

}  // namespace

CLI::Option* add_page_options(CLI::App& app, PageOutput& output, const std::string& description) {
  CLI::Option* option = add_path(app, "-o,--output", output.path, "FILE", description);
  add_text(app, "--title", output.title, "TEXT", "title of the page; by default made from the sources");
  add_flag(app, "--overwrite", output.overwrite, "replace the page and the files beside it");
  return option;
}

void check_page_output(const PageOutput& output) {
  if (output.path.filename().empty() || fs::is_directory(output.path))
    throw bad_input(
        fmt::format("output is {}, a folder: expected a file such as report.html", output.path.string()));
  // A slip of the hand must not put a page in the place of a database or of weights.
  if (std::error_code error; fs::exists(output.path, error) && !page_title(output.path))
    throw bad_input(fmt::format("{} already exists and is not a page of attmirror: give another file",
                                output.path.string()));
  if (!output.overwrite) refuse_existing(output.path);
}

std::vector<fs::path> write_output_page(Page page, const PageOutput& output) {
  if (!output.title.empty()) page.title = output.title;
  const std::vector<fs::path> files = page_files(page, output.path);
  check_page_output(output);
  if (!output.overwrite)
    for (const fs::path& file : files) refuse_existing(file);
  for (const fs::path& file : files) {
    refuse_link(file);
    if (file.parent_path() != output.path.parent_path()) refuse_link(file.parent_path());
  }
  check_writable(output.path);
  return write_page(page, output.path);
}

std::string written_text(const std::vector<fs::path>& files) {
  const auto counted = [&](const char* ending, const char* what) {
    const auto number = count(files, ending);
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
  };
  return fmt::format("{} ({}, {}{})", files.front().string(), counted(".svg", "figure"),
                     counted(".csv", "table"),
                     has_plotly() ? "" : "; figures are static: built without Plotly");
}

Json written_json(const std::vector<fs::path>& files) {
  Json names = Json::array();
  for (const fs::path& file : files) names.push_back(file.string());
  return {{"status", "done"},
          {"output", files.front().string()},
          {"figures", count(files, ".svg")},
          {"tables", count(files, ".csv")},
          {"plotly", has_plotly()},
          {"files", std::move(names)}};
}

}  // namespace attmirror::cli
