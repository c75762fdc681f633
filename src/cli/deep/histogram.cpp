// attmirror deep histogram: how the weights of K, Q and V are spread.
#include "cli/console.hpp"
#include "cli/deep/deep_options.hpp"
#include "cli/deep/deep_subcommands.hpp"
#include "cli/deep/model_files.hpp"
#include "cli/page_output.hpp"
#include "deep/views/weight_statistics.hpp"
#include <attmirror/deep/weights_file.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

namespace fs = std::filesystem;

struct HistogramOptions {
  CommonOptions common;
  std::vector<fs::path> models;
  PageOutput output;
};

// Bins of one width for every network, so that histograms of different ones can be laid over each other: the middle
// one is about 0, and what lies beyond the outermost counts there.
Json histogram_json(std::span<const float> weights, double largest) {
  constexpr double width = 0.01;
  constexpr double most = 200;  // bins on either side of the middle one
  const auto side = static_cast<std::size_t>(std::min(std::ceil(largest / width), most));
  const double limit = (static_cast<double>(side) + 0.5) * width;
  return {{"bin", width}, {"counts", deep::weight_histogram(weights, limit, 2 * side + 1)}};
}

Json statistics_json(const deep::WeightModel& model) {
  Json maps = Json::array();
  for (const char map : std::string_view("KQV")) {
    const std::vector<float> weights = deep::map_weights(*model.network, map);
    const deep::WeightStatistics s =
        deep::weight_statistics(weights, fmt::format("{} of {}", map, model.name));
    Json quantiles = Json::array();
    for (std::size_t i = 0; i < s.quantiles.size(); ++i)
      quantiles.push_back({{"level", s.levels[i]}, {"size", s.quantiles[i]}});
    maps.push_back({{"map", std::string(1, map)},
                    {"weights", s.count},
                    {"above_0.06", s.large},
                    {"largest", s.largest},
                    {"share_below_0.001", s.small_share},
                    {"standard_deviation", s.standard_deviation},
                    {"kurtosis", s.kurtosis},
                    {"effective_share", s.effective_share},
                    {"quantiles", std::move(quantiles)},
                    {"histogram", histogram_json(weights, s.largest)}});
  }
  return {{"model", model.name}, {"kind", model.network->kind()}, {"maps", std::move(maps)}};
}

int run_histogram(const HistogramOptions& options) {
  if (!options.output.path.empty()) check_page_output(options.output);
  std::vector<deep::WeightModel> models;
  for (const ModelFile& file : model_files(options.models))
    models.push_back({file.name, deep::load_network(file.path)});
  std::vector<fs::path> files;
  const Table table = deep::weight_table(models);
  if (!options.output.path.empty()) files = write_output_page(deep::weight_page(models), options.output);
  if (options.common.json) {
    Json answer = files.empty() ? Json{{"status", "done"}} : written_json(files);
    answer["models"] = Json::array();
    for (const deep::WeightModel& model : models) answer["models"].push_back(statistics_json(model));
    print_json(answer);
    return done;
  }
  std::string text = to_text(table);
  if (!files.empty() && !options.common.quiet) text += fmt::format("\nreport   {}\n", written_text(files));
  print(text);
  return done;
}

}  // namespace

Subcommand add_histogram(CLI::App& parent) {
  auto options = std::make_shared<HistogramOptions>();
  CLI::App& app = *parent.add_subcommand("histogram", std::string(deep_description("histogram")));
  app.add_option("models", options->models, "weights (.safetensors) or folders of attmirror deep train")
      ->type_name("FILE")
      ->required();
  add_page_options(app, options->output, "write a page with histograms and the statistics of each block");
  add_common_options(app, options->common);
  app.footer("Example:\n  attmirror deep histogram l1.1/ gd/ -o weights.html");
  return {&app, &options->common, [options] { return run_histogram(*options); }};
}

}  // namespace attmirror::cli
