// attmirror report: run folders, databases of sweeps and reproductions as one page.
#include "cli/console.hpp"
#include "cli/options.hpp"
#include <attmirror/base/atomic_file.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/papers/run_page.hpp>
#include <attmirror/report/page.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

namespace fs = std::filesystem;

struct ReportCommand {
  CommonOptions common;
  std::vector<fs::path> sources;
  fs::path output;
  std::string title;
  bool overwrite = false;
};

// By the line that every page of ours has near its beginning.
bool is_page(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string head(2048, '\0');
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  return head.find("<meta name=\"generator\" content=\"attmirror") != std::string::npos;
}

// What is there already is somebody's, also beside the page.
void check_targets(const Page& page, const ReportCommand& options) {
  const std::vector<fs::path> files = page_files(page, options.output);
  // A slip of the hand must not put a page in the place of a database or of weights.
  if (std::error_code error; fs::exists(options.output, error) && !is_page(options.output))
    throw bad_input(fmt::format("{} is there already and is no page of attmirror: give another file",
                                options.output.string()));
  if (!options.overwrite)
    for (const fs::path& file : files)
      if (std::error_code error; fs::exists(file, error))
        throw bad_input(fmt::format("{} is there already: give --overwrite to replace it, or another file",
                                    file.string()));
  check_writable(options.output);
}

int run_report(const ReportCommand& options) {
  if (options.output.filename().empty() || fs::is_directory(options.output))
    throw bad_input(
        fmt::format("output is {}, a folder: expected a file such as report.html", options.output.string()));
  Page page = page_of(options.sources);
  if (!options.title.empty()) page.title = options.title;
  check_targets(page, options);
  const std::vector<fs::path> files = write_page(page, options.output);

  const auto count = [&](const char* ending) {
    return std::ranges::count_if(files, [&](const fs::path& file) { return file.extension() == ending; });
  };
  const auto figures = count(".svg"), tables = count(".csv");
  if (options.common.json) {
    Json sources = Json::array(), names = Json::array();
    for (const fs::path& source : options.sources)
      sources.push_back({{"path", source.string()}, {"kind", to_string(source_kind(source))}});
    for (const fs::path& file : files) names.push_back(file.string());
    print_json({{"status", "done"},
                {"output", options.output.string()},
                {"sources", std::move(sources)},
                {"figures", figures},
                {"tables", tables},
                {"plotly", has_plotly()},
                {"files", std::move(names)}});
  } else if (!options.common.quiet) {
    print(fmt::format("report   {} ({} figures, {} tables{})\n", options.output.string(), figures, tables,
                      has_plotly() ? "" : "; figures are static: built without Plotly"));
  }
  return done;
}

}  // namespace

Subcommand add_report(CLI::App& parent) {
  auto options = std::make_shared<ReportCommand>();
  CLI::App& app = *parent.add_subcommand("report", "make one page of runs and sweeps");
  app.add_option("sources", options->sources,
                 "folders of runs, databases of sweeps, a folder of attmirror reproduce")
      ->type_name("FILE")
      ->required();
  add_path(
      app, "-o,--output", options->output, "FILE",
      "the page, such as report.html; its figures (SVG) and tables (CSV, LaTeX) go into folders beside it")
      ->required();
  add_text(app, "--title", options->title, "TEXT", "of the page; by default it says what the sources are");
  add_flag(app, "--overwrite", options->overwrite, "replace the page and the files beside it");
  add_common_options(app, options->common);
  app.footer(
      "Examples:\n"
      "  attmirror report run/ -o report.html\n"
      "  attmirror report p1.75/ p2/ p3/ --title \"Three geometries\" -o report.html\n"
      "  attmirror report results.db -o report.html");
  return {&app, &options->common, [options] { return run_report(*options); }};
}

}  // namespace attmirror::cli
