// attmirror deep report: the curves of trainings as one page. `attmirror report` shows the same folders without loading
// LibTorch; whoever has typed `attmirror deep train` looks for it here.
#include "cli/console.hpp"
#include "cli/deep/deep_options.hpp"
#include "cli/deep/deep_subcommands.hpp"
#include "cli/page_output.hpp"
#include <attmirror/pages/run_page.hpp>

#include <filesystem>
#include <memory>
#include <vector>

#include <fmt/format.h>

namespace attmirror::cli {

Subcommand add_deep_report(CLI::App& parent) {
  struct Options {
    CommonOptions common;
    std::vector<std::filesystem::path> runs;
    PageOutput output;
  };
  auto options = std::make_shared<Options>();
  CLI::App& app = *parent.add_subcommand("report", std::string(deep_description("report")));
  app.add_option("runs", options->runs, "folders of attmirror deep train")->type_name("FOLDER")->required();
  add_page_options(app, options->output,
                   "the page; its figures (SVG) and tables (CSV, LaTeX) go into folders beside it")
      ->required();
  add_common_options(app, options->common);
  app.footer("Example:\n  attmirror deep report l1.1/ gd/ -o report.html");
  return {&app, &options->common, [options] {
            check_page_output(options->output);
            const auto files = write_output_page(page_of(options->runs), options->output);
            if (options->common.json)
              print_json(written_json(files));
            else if (!options->common.quiet)
              print(fmt::format("report   {}\n", written_text(files)));
            return static_cast<int>(done);
          }};
}

}  // namespace attmirror::cli
