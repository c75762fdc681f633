// P1's vision transformer in figures: accuracy by epoch, and how weights are spread.
#include "papers/cifar_study.hpp"
#include "papers/training_views.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

// The outline of a histogram over bins of this width; a bin without weights is a gap.
Series histogram_outline(const TrainingRecord& run, char map) {
  Series outline;
  std::map<std::int64_t, std::int64_t> counts;
  for (const HistogramBin& bin : run.histogram)
    if (bin.map == map) counts[std::llround(bin.weight / histogram_bin_width)] += bin.count;
  if (counts.empty()) return outline;
  for (std::int64_t bin = counts.begin()->first; bin <= counts.rbegin()->first; ++bin)
    for (const double edge : {-0.5, 0.5}) {
      outline.x.push_back(histogram_bin_width * (static_cast<double>(bin) + edge));
      outline.y.push_back(counts.contains(bin) ? static_cast<double>(counts[bin]) : 0);
    }
  return outline;
}

}  // namespace

std::optional<double> share_near_zero(const TrainingRecord& run, char map) {
  std::int64_t all = 0, middle = 0;
  for (const HistogramBin& bin : run.histogram) {
    if (bin.map != map) continue;
    all += bin.count;
    if (std::abs(bin.weight) < histogram_bin_width / 2) middle += bin.count;
  }
  if (all == 0) return std::nullopt;
  return static_cast<double>(middle) / static_cast<double>(all);
}

// A curve ends with the first of its trainings, so those that were stopped are in it only where no other is there.
Figure cifar_curves(std::vector<TrainingGroup> groups, const std::vector<TrainingGroup>& begun) {
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (groups[g].runs.empty()) groups[g] = begun[g];
  Figure figure = accuracy_curves(groups, "");
  figure.x.scale = Axis::Scale::linear;  // as P1's
  if (figure.series.empty()) return figure;
  for (std::size_t s = 0; s < figure.series.size(); ++s) figure.series[s].color = static_cast<int>(s);
  for (const auto& [config, side] : {std::pair{"adam", -1.0}, std::pair{"md-1.1", 1.0}}) {
    Series points{.name = fmt::format("P1's figure, {}", optimizer_name(config))};
    points.mark = Series::Mark::points;
    if (const auto curve = std::ranges::find(figure.series, optimizer_name(config), &Series::name);
        curve != figure.series.end())
      points.color = curve->color;
    for (const PublishedAccuracy& published : cifar_published)
      if (std::string_view(published.config) == config) {
        // Beside the mark of the other one in this epoch, not on it.
        const bool alone =
            std::ranges::count(cifar_published, published.epoch, &PublishedAccuracy::epoch) == 1;
        points.x.push_back(static_cast<double>(published.epoch) + (alone ? 0 : side));
        points.y.push_back(published.accuracy);
        points.low.push_back(published.accuracy - cifar_reading);
        points.high.push_back(published.accuracy + cifar_reading);
        figure.y.range->first = std::min(figure.y.range->first, published.accuracy - 2 * cifar_reading);
        figure.y.range->second = std::max(figure.y.range->second, published.accuracy + 2 * cifar_reading);
      }
    figure.series.push_back(std::move(points));
  }
  figure.caption += " Marks with bars are what can be read off P1's figure, to about a point.";
  figure.description +=
      " P1's figure has Adam at about 79 % after 50 epochs, and both at 80 to 81 % from 150 on.";
  return figure;
}

Figure near_zero_histograms(const std::vector<TrainingGroup>& groups) {
  constexpr double shown = 0.1;
  std::vector<TrainingGroup> two;
  for (const TrainingGroup& group : groups)
    if (is_of_p1(group)) two.push_back(group);
  Figure figure = weight_histograms(two, 'K');
  figure.id = "weights-near-0";
  figure.title = "The weights of K of the two optimizers that P1 compares";
  figure.x.range = {-shown, shown};
  figure.y.scale = Axis::Scale::linear;
  // In the colors of the curves.
  for (Series& series : figure.series)
    series.color =
        static_cast<int>(std::ranges::find(groups, series.name, &TrainingGroup::name) - groups.begin());
  return figure;
}

Figure weight_histograms(const std::vector<TrainingGroup>& groups, char map) {
  Figure figure{.id = fmt::format("weights-{}", map),
                .title = fmt::format("How the weights of {} are spread after the last epoch", map)};
  figure.x.label = fmt::format("value of a weight of {}", map);
  figure.y = {.label = "number of weights in a bin of width 0.01", .scale = Axis::Scale::log};
  std::vector<std::string> shares;
  for (const TrainingGroup& group : groups) {
    const auto run =
        std::ranges::find_if(group.runs, [](const auto* one) { return !one->histogram.empty(); });
    if (run == group.runs.end()) continue;
    Series series = histogram_outline(**run, map);
    if (series.x.empty()) continue;
    series.name = group.name;
    if (figure.series.size() % 2 == 1) series.dash = Series::Dash::dashed;  // not by color alone
    shares.push_back(fmt::format("{:.1f} %{} with {}", 100 * share_near_zero(**run, map).value_or(0),
                                 shares.empty() ? " are within 0.005 of 0" : "", group.name));
    figure.series.push_back(std::move(series));
  }
  const std::string near = fmt::format("Of the weights of {}, {}.", map, fmt::join(shares, ", "));
  figure.caption = fmt::format("{} All blocks of the first training of each optimizer.", near);
  figure.description = fmt::format("Histograms of the weights of {}. {}", map, near);
  return figure;
}

}  // namespace attmirror
