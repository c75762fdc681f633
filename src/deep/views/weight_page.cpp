// Histograms and measures of the weights of K, Q and V.
#include "deep/views/view_pages.hpp"
#include "deep/views/weight_statistics.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace attmirror::deep {

namespace {

constexpr std::string_view all_maps = "KQV";

// Number |w| > 0.06 in P1's figures, size 6: mirror descent and gradient descent.
struct PublishedCounts {
  char map;
  int md, gd;
};
constexpr std::array<PublishedCounts, 3> published_counts{
    {{'K', 18206, 27224}, {'Q', 13964, 14654}, {'V', 7643, 10127}}};

Table empty_weight_table(std::string title) {
  Table table;
  table.title = std::move(title);
  table.columns = {{"network", Align::left}, {"map", Align::left}};
  for (const char* name :
       {"weights", "|w| > 0.06", "largest |w|", "|w| < 0.001", "std", "kurtosis", "effective share"})
    table.columns.push_back({name});
  for (const double level : WeightStatistics::levels)
    table.columns.push_back({fmt::format("{:g} %", 100 * level)});
  return table;
}

std::vector<std::string> weight_row(const std::string& model, const std::string& map,
                                    const WeightStatistics& s) {
  std::vector<std::string> row{model,
                               map,
                               fmt::format("{}", s.count),
                               fmt::format("{}", s.large),
                               fmt::format("{:.4f}", s.largest),
                               fmt::format("{:.2f} %", 100 * s.small_share),
                               fmt::format("{:.5f}", s.standard_deviation),
                               fmt::format("{:.2f}", s.kurtosis),
                               fmt::format("{:.3f}", s.effective_share)};
  for (const double quantile : s.quantiles) row.push_back(fmt::format("{:.4f}", quantile));
  return row;
}

// Outlines of the histograms, all over the same bins.
Figure weight_figure(std::span<const WeightModel> models, char map) {
  std::vector<std::vector<float>> weights;
  double limit = 0;
  for (const WeightModel& model : models) {
    weights.push_back(map_weights(*model.network, map));
    for (const float weight : weights.back()) limit = std::max(limit, std::abs(static_cast<double>(weight)));
  }
  if (limit == 0) limit = 1;
  // Some forty weights a bin where there are few; an odd number, so that one bin is about 0.
  std::size_t fewest = weights.front().size();
  for (const auto& one : weights) fewest = std::min(fewest, one.size());
  const std::size_t bins = std::clamp<std::size_t>(fewest / 40, 10, 60) * 2 + 1;
  Figure figure;
  figure.id = fmt::format("weights-{}", map);
  figure.title = fmt::format("How the weights of {} are distributed", map);
  figure.x.label = fmt::format("value of a weight of {}", map);
  figure.y = {.label = fmt::format("number of weights in a bin of width {:.2g}",
                                   2 * limit / static_cast<double>(bins)),
              .scale = Axis::Scale::log};
  figure.description = fmt::format("Histograms of the weights of {}.", map);
  for (std::size_t m = 0; m < models.size(); ++m) {
    const std::vector<std::int64_t> counts = weight_histogram(weights[m], limit, bins);
    Series series;
    series.name = models[m].name;
    series.color = static_cast<int>(m);
    if (m % 2 == 1) series.dash = Series::Dash::dashed;  // not by color alone
    for (std::size_t b = 0; b < bins; ++b)
      for (const std::size_t edge : {b, b + 1}) {
        series.x.push_back(limit * (2 * static_cast<double>(edge) / static_cast<double>(bins) - 1));
        series.y.push_back(static_cast<double>(counts[b]));
      }
    figure.series.push_back(std::move(series));
    const WeightStatistics s = weight_statistics(weights[m], models[m].name);
    figure.description += fmt::format(" {}: {} of {} above 0.06, largest {:.4f}, kurtosis {:.2f}.",
                                      models[m].name, s.large, s.count, s.largest, s.kurtosis);
    figure.caption += fmt::format(
        "{}{:.2g} % of the weights of {} are larger than 0.06 in absolute value", m == 0 ? "" : ", ",
        100 * static_cast<double>(s.large) / static_cast<double>(s.count), models[m].name);
  }
  figure.caption += fmt::format(". All entries of {} in all blocks, in {} equal bins.", map, bins);
  return figure;
}

}  // namespace

namespace {

// By the effective share of K, which is small where few weights are large.
std::string weight_conclusion(std::span<const WeightModel> models) {
  std::vector<double> shares;
  for (const WeightModel& model : models)
    shares.push_back(weight_statistics(map_weights(*model.network, 'K'), model.name).effective_share);
  const auto least = static_cast<std::size_t>(std::ranges::min_element(shares) - shares.begin());
  const auto most = static_cast<std::size_t>(std::ranges::max_element(shares) - shares.begin());
  if (models.size() == 1)
    return fmt::format(
        "The key weights of {} have an effective share of {:.2f}: {} concentrated than normally distributed "
        "weights, which have 0.64.",
        models[0].name, shares[0], shares[0] < 0.64 ? "more" : "less");
  return fmt::format(
      "The key weights are most concentrated in {} (effective share {:.2f}) and least in {} ({:.2f}).",
      models[least].name, shares[least], models[most].name, shares[most]);
}

}  // namespace

Table weight_table(std::span<const WeightModel> models) {
  Table table = empty_weight_table("Weights of all blocks");
  for (const char map : all_maps)
    for (const WeightModel& model : models)
      table.rows.push_back(weight_row(
          model.name, std::string(1, map),
          weight_statistics(map_weights(*model.network, map), fmt::format("{} of {}", map, model.name))));
  return table;
}

Page weight_page(std::span<const WeightModel> models) {
  if (models.empty()) throw bad_input("no model is given");
  Page page;
  page.title = "Weights of K, Q and V";
  page.subtitle = fmt::format("{} network{}", models.size(), models.size() == 1 ? "" : "s");
  page.conclusion = weight_conclusion(models);
  page.footer = version_line();
  Section section{.id = "weights", .title = "How the weights are spread", .blocks = {}};
  section.blocks.push_back(Paragraph{
      "Kurtosis is 1.8 for uniform weights (as at the start), 3 for normal ones, and larger where a few large "
      "weights stand among many small ones. The effective share is ‖w‖₁² / ‖w‖₂² / n: 1 for weights of equal "
      "size, 0.64 for normal ones, near 0 for sparse ones. Percentages in the header are quantiles of |w|."});
  section.blocks.push_back(TableBlock{.id = "weights", .table = weight_table(models)});
  for (const char map : all_maps) section.blocks.push_back(weight_figure(models, map));
  Table published;
  published.title = "For scale, P1's network for IMDb (6 blocks of 6 heads): weights with |w| > 0.06";
  published.columns = {{"map", Align::left}, {"ℓ1.1 mirror descent"}, {"gradient descent"}};
  for (const PublishedCounts& counts : published_counts)
    published.rows.push_back(
        {std::string(1, counts.map), fmt::format("{}", counts.md), fmt::format("{}", counts.gd)});
  section.blocks.push_back(TableBlock{.id = "published-weights", .table = published});
  Table blocks = empty_weight_table("Weights block by block");
  for (const WeightModel& model : models)
    for (std::int64_t b = 0; b < block_count(*model.network); ++b)
      for (const char map : all_maps) {
        const std::string name = fmt::format("{} {}", map, b + 1);
        blocks.rows.push_back(weight_row(model.name, name,
                                         weight_statistics(map_weights(*model.network, map, b),
                                                           fmt::format("{} of {}", name, model.name))));
      }
  section.blocks.push_back(Folded{"Block by block", {TableBlock{.id = "blocks", .table = blocks}}});
  page.sections.push_back(std::move(section));
  return page;
}

}  // namespace attmirror::deep
