// Where a page goes: the options that every subcommand which writes one has, and the care not to write over what
// is somebody's.
#pragma once

#include "base/json.hpp"
#include "cli/options.hpp"
#include <attmirror/report/page.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace attmirror::cli {

struct PageOutput {
  std::filesystem::path path;  // empty: no page is asked for
  std::string title;           // empty: the page's own
  bool overwrite = false;
};

// -o, --title, --overwrite. Returns -o, which may be required.
CLI::Option* add_page_options(CLI::App& app, PageOutput& output, const std::string& description);

// Refuses what can be refused before the work begins: a folder, a file that is not a page of ours, one that is
// there already.
void check_page_output(const PageOutput& output);

// check_page_output() again, for the files beside the page, too; then writes. Returns all files, the page first.
std::vector<std::filesystem::path> write_output_page(Page page, const PageOutput& output);

// "report.html (3 figures, 1 table; figures are static: built without Plotly)"
std::string written_text(const std::vector<std::filesystem::path>& files);
// The same for --json, with "status": "done".
Json written_json(const std::vector<std::filesystem::path>& files);

}  // namespace attmirror::cli
