// The trainings of a study in two figures: accuracy by epoch, and accuracy against sparsity.
#include "papers/rank_correlation.hpp"
#include "papers/training_views.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace attmirror {

namespace {

// Mean and range over the seeds, up to the epoch that all of them have.
Series accuracy_band(const TrainingGroup& group) {
  Series series{.name = group.name};
  std::size_t epochs = group.runs.empty() ? 0 : group.runs.front()->curve.size();
  for (const TrainingRecord* run : group.runs) epochs = std::min(epochs, run->curve.size());
  for (std::size_t e = 0; e < epochs; ++e) {
    std::vector<double> values;
    for (const TrainingRecord* run : group.runs)
      if (run->curve[e].test_accuracy) values.push_back(100 * *run->curve[e].test_accuracy);
    if (values.size() != group.runs.size()) continue;  // not every epoch need be tested
    const auto [least, most] = std::ranges::minmax(values);
    series.x.push_back(static_cast<double>(e + 1));
    series.y.push_back(summarize(values).mean);
    series.low.push_back(least);
    series.high.push_back(most);
  }
  if (series.x.size() == 1) series.mark = Series::Mark::both;
  return series;
}

}  // namespace

Figure accuracy_curves(const std::vector<TrainingGroup>& groups, std::string_view ends) {
  Figure figure{.id = "curves", .title = "Test accuracy by epoch: mean and range over seeds"};
  figure.x = {.label = "epoch", .scale = Axis::Scale::log, .whole = true};
  figure.y.label = "test accuracy, %";
  figure.description = "Test accuracy against epochs, a curve with a band for each optimizer:";
  double highest = -1, lowest_peak = 100, bottom = 100, top = 0;
  std::string leader;
  for (const TrainingGroup& group : groups) {
    Series series = accuracy_band(group);
    if (series.x.empty()) continue;
    const auto peak = std::ranges::max_element(series.y) - series.y.begin();
    const auto at = static_cast<std::size_t>(peak);
    figure.description +=
        fmt::format(" {} peaks at {:.2f} % in epoch {:.0f} and ends at {:.2f} % in epoch {:.0f};", group.name,
                    series.y[at], series.x[at], series.y.back(), series.x.back());
    if (series.y[at] > highest) {
      highest = series.y[at];
      leader = fmt::format("{} has the highest mean, {:.2f} % in epoch {:.0f}.", group.name, highest,
                           series.x[at]);
    }
    lowest_peak = std::min(lowest_peak, series.y[at]);
    bottom = std::min(bottom, std::ranges::min(series.low));
    top = std::max(top, std::ranges::max(series.high));
    figure.series.push_back(std::move(series));
  }
  figure.description.back() = '.';
  // The climb from 50 % would take most of the height, and what is compared is at the top.
  constexpr double shown_below = 6;
  figure.y.range = {std::max(std::floor(bottom), std::floor(lowest_peak) - shown_below), std::ceil(top)};
  figure.caption = fmt::format(
      "{} Lines are means over seeds, bands their range; a curve ends where the first of its trainings did{}.",
      leader, ends);
  return figure;
}

Figure sparsity_figure(const std::vector<TrainingGroup>& groups, std::string_view measure,
                       RecordedNumber member) {
  Figure figure{.id = "sparsity", .title = "Test accuracy against the sparsity of K, Q and V"};
  figure.x.label = "Hoyer sparsity, mean of K, Q and V (0 all equal, 1 a single weight)";
  figure.y.label = fmt::format("test accuracy, {}, %", measure);
  figure.description = "Points of trainings, test accuracy against sparsity:";
  std::vector<double> all_x, all_y;
  for (const TrainingGroup& group : groups) {
    Series series{.name = group.name};
    series.mark = Series::Mark::points;
    for (const TrainingRecord* run : group.runs) {
      TrainingGroup alone{.config = group.config, .name = group.name, .runs = {run}, .others = {}};
      const SampleSummary sparsity = alone.mean_sparsity();
      if (sparsity.count == 0 || !(run->*member)) continue;
      series.x.push_back(sparsity.mean);
      series.y.push_back(100 * *(run->*member));
      series.labels.push_back(fmt::format("seed {}", run->seed));
    }
    if (series.x.empty()) continue;
    all_x.insert(all_x.end(), series.x.begin(), series.x.end());
    all_y.insert(all_y.end(), series.y.begin(), series.y.end());
    figure.description += fmt::format(" {} has sparsity {:.3f} and {:.2f} % on average;", group.name,
                                      summarize(series.x).mean, summarize(series.y).mean);
    figure.series.push_back(std::move(series));
  }
  figure.description.back() = '.';
  const double correlation = rank_correlation(all_x, all_y);
  figure.caption =
      std::isnan(correlation)
          ? "There is too little scatter for a correlation."
          : fmt::format(
                "A point is a training, and its sparsity is the mean of K, Q and V. Over {} trainings of all optimizers the rank correlation of sparsity and accuracy is {:+.2f} (Spearman; trainings of one optimizer are not independent of each other).",
                all_x.size(), correlation);
  return figure;
}

}  // namespace attmirror
