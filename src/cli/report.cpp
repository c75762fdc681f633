// attmirror report: anything that attmirror left on disk as one page.
#include "cli/console.hpp"
#include "cli/options.hpp"
#include "cli/page_output.hpp"
#include <attmirror/pages/run_page.hpp>
#include <attmirror/report/page.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

namespace fs = std::filesystem;

struct ReportCommand {
  CommonOptions common;
  std::vector<fs::path> sources;
  PageOutput output;
};

int run_report(const ReportCommand& options) {
  check_page_output(options.output);
  const std::vector<fs::path> files = write_output_page(page_of(options.sources), options.output);
  if (options.common.json) {
    Json answer = written_json(files);
    answer["sources"] = Json::array();
    for (const fs::path& source : options.sources)
      answer["sources"].push_back({{"path", source.string()}, {"kind", source_kind(source)}});
    print_json(answer);
  } else if (!options.common.quiet) {
    print(fmt::format("report   {}\n", written_text(files)));
  }
  return done;
}

}  // namespace

Subcommand add_report(CLI::App& parent) {
  auto options = std::make_shared<ReportCommand>();
  CLI::App& app = *parent.add_subcommand("report", "make one page of runs, paths, sweeps and other results");
  app.add_option(
         "sources", options->sources,
         "folders of attmirror train, path, next-token, deep train and reproduce, databases of sweeps, "
         "max-margin solutions")
      ->type_name("FILE")
      ->required();
  add_page_options(
      app, options->output,
      "the page, such as report.html; its figures (SVG) and tables (CSV, LaTeX) go into folders beside it")
      ->required();
  add_common_options(app, options->common);
  app.footer(
      "Examples:\n"
      "  attmirror report run/ -o report.html\n"
      "  attmirror report p1.75/ p2/ p3/ --title \"Three geometries\" -o report.html\n"
      "  attmirror report results.db -o report.html\n"
      "  attmirror report path/ svm.npz -o report.html");
  return {&app, &options->common, [options] { return run_report(*options); }};
}

}  // namespace attmirror::cli
