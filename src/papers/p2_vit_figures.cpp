// How concentrated attention is during training, in figures and a table: what p2-vit shows.
#include "papers/cifar_study.hpp"
#include "papers/shorthand.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

using AttentionNumber = std::function<double(const AttentionRecord&)>;

// A number by epoch, one curve an optimizer: means over blocks and trainings.
Figure epoch_figure(const std::vector<VitGroup>& groups, const char* id, const char* title, const char* label,
                    const char* format, const AttentionNumber& number) {
  Figure figure{.id = id, .title = title};
  figure.x.label = "epoch";
  figure.y.label = label;
  std::vector<std::string> changes;
  for (const VitGroup& group : groups) {
    Series series{.name = group.name};
    for (const std::int64_t epoch : group.epochs()) {
      series.x.push_back(static_cast<double>(epoch));
      series.y.push_back(number(group.mean_at(epoch)));
    }
    const auto text = [&](double value) { return fmt::format(fmt::runtime(format), value); };
    std::string change =
        fmt::format("{} goes from {} to {}", group.name, text(series.y.front()), text(series.y.back()));
    // A path that turns is not told by its ends.
    const auto highest = std::ranges::max_element(series.y), lowest = std::ranges::min_element(series.y);
    if (series.y.back() < kept_of_peak * *highest && highest != series.y.begin())
      change += fmt::format(" after {} in epoch {}", text(*highest),
                            series.x[static_cast<std::size_t>(highest - series.y.begin())]);
    else if (kept_of_peak * series.y.back() > *lowest && lowest != series.y.begin())
      change += fmt::format(" after {} in epoch {}", text(*lowest),
                            series.x[static_cast<std::size_t>(lowest - series.y.begin())]);
    changes.push_back(std::move(change));
    figure.series.push_back(std::move(series));
  }
  figure.caption = fmt::format("{}. Means over blocks and seeds.", fmt::join(changes, ", "));
  figure.description = fmt::format("Curves by epoch, one an optimizer: {}.", fmt::join(changes, ", "));
  return figure;
}

// Both axes grow with training where P2's claim holds.
Figure norm_figure(const std::vector<VitGroup>& groups) {
  Figure figure{.id = "norm", .title = "The share of the top token against the norm of K Qᵀ"};
  figure.x.label = "norm of K Qᵀ (Frobenius)";
  figure.y.label = "share of attention on the top token";
  std::vector<std::string> parts;
  for (const VitGroup& group : groups) {
    Series series{.name = group.name};
    series.mark = Series::Mark::both;
    for (const std::int64_t epoch : group.epochs()) {
      const AttentionRecord mean = group.mean_at(epoch);
      series.x.push_back(mean.product_norm);
      series.y.push_back(mean.all.top_share);
      series.labels.push_back(fmt::format("epoch {}", epoch));
    }
    parts.push_back(
        fmt::format("from {:.3g} to {:.3g} with {}", series.x.front(), series.x.back(), group.name));
    figure.series.push_back(std::move(series));
  }
  const std::string norms = fmt::format("The norm of K Qᵀ goes {}.", fmt::join(parts, ", "));
  figure.caption = fmt::format(
      "{} A point is an epoch in which attention was measured, and training goes along the line; means over blocks.",
      norms);
  figure.description = fmt::format("Paths of optimizers over epochs. {}", norms);
  return figure;
}

// The mean over trainings; NaN where a correlation does not exist.
double mean_correlation(const VitGroup& group, std::int64_t block) {
  double sum = 0, count = 0;
  for (const BlockTrend& trend : group.trends)
    if (trend.first.block == block) {
      sum += trend.correlation;
      ++count;
    }
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

Figure correlation_figure(const std::vector<VitGroup>& groups) {
  Figure figure{.id = "correlation",
                .title = "Do the norm of K Qᵀ and the share of the top token rise together?"};
  figure.x.label = "block";
  figure.y.label = "optimizer";
  Heatmap map;
  map.digits = 2;
  std::int64_t blocks = 0, positive = 0, all = 0;
  for (const VitGroup& group : groups) blocks = std::max(blocks, group.blocks());
  for (std::int64_t block = 1; block <= blocks; ++block) map.columns.push_back(std::to_string(block));
  for (const VitGroup& group : groups) {
    map.rows.push_back(group.name);
    auto& row = map.values.emplace_back();
    for (std::int64_t block = 1; block <= blocks; ++block) {
      row.push_back(mean_correlation(group, block));
      if (!std::isnan(row.back())) ++all;
      if (row.back() > 0) ++positive;
    }
  }
  figure.caption = fmt::format(
      "{} of {} rank correlations over epochs are positive (Spearman; 1: the norm and the share always rise or fall together; means over seeds).",
      positive, all);
  figure.description = fmt::format(
      "A table of rank correlations, optimizers by blocks, of which {} of {} are positive.", positive, all);
  figure.heatmap = std::move(map);
  return figure;
}

std::string change_cell(double from, double to, const char* format) {
  return fmt::format("{} → {}", fmt::format(fmt::runtime(format), from),
                     fmt::format(fmt::runtime(format), to));
}

}  // namespace

std::vector<Figure> vit_figures(const std::vector<VitGroup>& groups) {
  if (groups.empty()) return {};
  return {epoch_figure(groups, "top-share", "How much attention the top token gets, by epoch",
                       "share of attention on the top token", "{:.3f}",
                       [](const AttentionRecord& mean) { return mean.all.top_share; }),
          epoch_figure(groups, "class-token",
                       "How much of the class token's attention its top token gets, by epoch",
                       "share of the class token's attention on its top token", "{:.3f}",
                       [](const AttentionRecord& mean) { return mean.class_token.top_share; }),
          norm_figure(groups),
          correlation_figure(groups),
          epoch_figure(groups, "entropy", "The entropy of attention by epoch", "entropy of attention, nats",
                       "{:.2f}", [](const AttentionRecord& mean) { return mean.all.entropy; }),
          epoch_figure(groups, "tokens", "How many tokens hold 90 % of attention, by epoch",
                       "tokens that hold 90 % of attention", "{:.1f}",
                       [](const AttentionRecord& mean) { return mean.all.tokens_90; }),
          epoch_figure(groups, "norms", "The norm of K Qᵀ by epoch", "Frobenius norm of K Qᵀ", "{:.3g}",
                       [](const AttentionRecord& mean) { return mean.product_norm; })};
}

Table vit_block_table(const std::vector<VitGroup>& groups) {
  Table table;
  table.title = "Every block, from the first measurement of attention to the last";
  table.columns = {{"run", Align::left}, {"block"}, {"epochs"}, {"as P2 describes", Align::left}};
  for (const char* name : {"rank correlation", "norm of K Qᵀ", "norm of K", "norm of Q", "top share",
                           "entropy", "tokens with 90 %", "class token: top share", "class token: entropy",
                           "class token: tokens with 90 %"})
    table.columns.push_back({name});
  for (const VitGroup& group : groups)
    for (const BlockTrend& trend : group.trends) {
      const AttentionRecord &a = trend.first, &b = trend.last;
      std::vector<std::string> row{
          trend.run->run, std::to_string(a.block), fmt::format("{} → {}", a.epoch, b.epoch),
          trend.as_claimed() ? "yes" : "no",
          std::isnan(trend.correlation) ? "–" : fmt::format("{:+.2f}", trend.correlation)};
      for (const auto norm :
           {&AttentionRecord::product_norm, &AttentionRecord::key_norm, &AttentionRecord::query_norm})
        row.push_back(change_cell(a.*norm, b.*norm, "{:.3g}"));
      for (const auto spread : {&AttentionRecord::all, &AttentionRecord::class_token}) {
        row.push_back(change_cell((a.*spread).top_share, (b.*spread).top_share, "{:.3f}"));
        row.push_back(change_cell((a.*spread).entropy, (b.*spread).entropy, "{:.2f}"));
        row.push_back(change_cell((a.*spread).tokens_90, (b.*spread).tokens_90, "{:.1f}"));
      }
      table.rows.push_back(std::move(row));
    }
  return table;
}

}  // namespace attmirror
