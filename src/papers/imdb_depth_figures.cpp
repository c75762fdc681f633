// The trainings of all sizes in figures: accuracy by size, and by epoch at each size; token selection of each training.
#include "papers/imdb_depth.hpp"
#include "papers/imdb_published.hpp"
#include "papers/training_views.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

// Epochs at most, as in the configurations of docs/results.
int epoch_limit(int blocks) { return blocks == 3 ? 130 : 200; }

// Which optimizer leads at each size that has two or more: "The highest means: 85.20 % at 6 blocks (Adam)."
std::string leaders_text(const DepthStudy& study) {
  std::vector<std::string> leaders;
  for (const int blocks : depth_sizes) {
    std::vector<std::pair<double, const char*>> means;
    for (const char* row : depth_rows)
      if (const TrainingGroup* group = study.group_of_at_least(1, row, blocks))
        means.emplace_back(group->percent(&TrainingRecord::best_test).mean, row);
    if (means.size() < 2) continue;
    const auto& [mean, row] = *std::ranges::max_element(means, {}, &std::pair<double, const char*>::first);
    leaders.push_back(fmt::format("{:.2f} % at {} blocks ({})", mean, blocks, optimizer_name(row)));
  }
  return leaders.empty() ? "No size has two optimizers yet."
                         : fmt::format("The highest means: {}.", fmt::join(leaders, ", "));
}

}  // namespace

Figure depth_size_figure(const DepthStudy& study) {
  Figure figure{.id = "sizes", .title = "Best test accuracy by the number of blocks: ours and P1's"};
  figure.x = {.label = "blocks, with as many heads each", .whole = true};
  figure.y.label = "best test accuracy, %";
  figure.description = "Best test accuracy against blocks, a curve for each optimizer, ours and P1's:";
  int color = 0;
  double bottom = 100, top = 0;
  for (const char* row : depth_rows) {
    Series ours{.name = optimizer_name(row)}, theirs{.name = optimizer_name(row) + ", P1"};
    ours.mark = theirs.mark = Series::Mark::both;
    theirs.dash = Series::Dash::dashed;
    ours.color = theirs.color = color++;
    for (const int blocks : depth_sizes) {
      if (const TrainingGroup* group = study.group_of_at_least(1, row, blocks)) {
        const SampleSummary best = group->percent(&TrainingRecord::best_test);
        const auto [low, high] = std::ranges::minmax(group->runs, {}, &TrainingRecord::best_test);
        ours.x.push_back(blocks);
        ours.y.push_back(best.mean);
        ours.low.push_back(100 * *low->best_test);
        ours.high.push_back(100 * *high->best_test);
        ours.labels.push_back(fmt::format("{} over {}", mean_text(best, 2),
                                          counted(static_cast<std::uint64_t>(best.count), "seed")));
      }
      if (const PublishedRow* published = published_row(depth_config(row, blocks))) {
        theirs.x.push_back(blocks);
        theirs.y.push_back(published->best.mean);
      }
    }
    for (Series* series : {&ours, &theirs}) {
      if (series->x.empty()) continue;
      std::vector<std::string> points;
      for (std::size_t i = 0; i < series->x.size(); ++i) {
        points.push_back(fmt::format("{:.2f} % at {:g}", series->y[i], series->x[i]));
        bottom = std::min(bottom, series->y[i]), top = std::max(top, series->y[i]);
      }
      figure.description += fmt::format(" {} has {};", series->name, fmt::join(points, ", "));
      for (const double value : series->high) top = std::max(top, value);
      figure.series.push_back(std::move(*series));
    }
  }
  figure.description.back() = '.';
  // By means, because the band of a size with a training that never learnt goes down to 50 %.
  figure.y.range = {std::floor(bottom) - 1, std::ceil(top)};
  figure.caption =
      leaders_text(study) +
      " Points are means over seeds, bands their range, dashed lines P1's means; mirror descents have P1's learning rates.";
  return figure;
}

// Optimizers stand side by side at each size.
Figure depth_score_figure(const DepthStudy& study) {
  Figure figure{.id = "scores", .title = "Token-selection score of every training, and P1's two networks"};
  figure.x = {.label = "blocks, with as many heads each", .whole = true};
  figure.y.label = "score on P1's sentences";
  figure.y.range = {0, 1};
  figure.description = "Token-selection score against blocks, a point for each training:";
  std::vector<Series> published;  // one network each
  std::vector<std::string> spans;
  for (std::size_t i = 0; i < depth_rows.size(); ++i) {
    constexpr double step = 0.12;
    const double aside = step * (static_cast<double>(i) - 0.5 * static_cast<double>(depth_rows.size() - 1));
    Series ours{
        .name = optimizer_name(depth_rows[i]), .mark = Series::Mark::points, .color = static_cast<int>(i)};
    for (const int blocks : depth_sizes) {
      const TrainingGroup* group = study.group_of_at_least(1, depth_rows[i], blocks);
      if (!group) continue;
      const std::size_t before = ours.y.size();
      for (const TrainingRecord* run : group->runs) {
        if (!run->score) continue;
        ours.x.push_back(blocks + aside);
        ours.y.push_back(*run->score);
        ours.labels.push_back(run->run);
      }
      if (ours.y.size() == before) continue;
      const auto [low, high] =
          std::minmax_element(ours.y.begin() + static_cast<std::ptrdiff_t>(before), ours.y.end());
      spans.push_back(fmt::format("{} {:.2f} to {:.2f}", group->name, *low, *high));
      if (const PublishedPicture* picture = published_picture(group->config)) {
        Series one{.name = fmt::format("P1's network, {}", optimizer_name(depth_rows[i])),
                   .mark = Series::Mark::points};
        one.x.push_back(blocks + aside + step / 3);  // beside ours
        one.y.push_back(picture->score);
        one.labels.push_back(group->name);
        published.push_back(std::move(one));
      }
    }
    if (!ours.y.empty()) figure.series.push_back(std::move(ours));
  }
  if (figure.series.empty()) return figure;
  std::ranges::move(published, std::back_inserter(figure.series));
  figure.description += fmt::format(" {}.", fmt::join(spans, "; "));
  // What seeds do beside what P1 shows.
  const auto scores = [&](const char* row) {
    const TrainingGroup* group = study.group_of_at_least(2, row, largest_depth);
    return group ? group->numbers(&TrainingRecord::score) : SampleSummary{};
  };
  const SampleSummary first = scores("md-1.1"), second = scores("md-2");
  if (first.count > 1 && second.count > 1)
    figure.caption = fmt::format(
        "At {} blocks, scores have a standard deviation of {:.2f} over the seeds of ℓ1.1 mirror descent and {:.2f} over those of gradient descent; P1's two networks differ by {:.2f}. ",
        largest_depth, first.deviation, second.deviation,
        published_picture(depth_config("md-1.1", largest_depth))->score -
            published_picture(depth_config("md-2", largest_depth))->score);
  figure.caption += "Optimizers stand side by side at each size, and a point is a training.";
  return figure;
}

Figure depth_curves(const DepthStudy& study, int blocks) {
  std::vector<TrainingGroup> groups;
  for (const char* row : depth_rows)
    if (const TrainingGroup* group = study.group_of_at_least(1, row, blocks)) groups.push_back(*group);
  const bool stopped = std::ranges::any_of(study.records, [&](const TrainingRecord& record) {
    return training_optimizer(record.config).blocks == blocks && stopped_late(record);
  });
  Figure figure = accuracy_curves(
      groups, fmt::format(", at 99.5 % training accuracy{} after {} epochs{}", stopped ? "," : " or",
                          epoch_limit(blocks), stopped ? " or when it was stopped" : ""));
  // One that collapsed stands alone: as far as it got, below the axis once it has fallen.
  bool collapsed = false;
  for (const TrainingRecord& record : study.records) {
    if (training_optimizer(record.config).blocks != blocks || !collapse_of(record)) continue;
    Series fallen{.name = fmt::format("{}, collapsed", record.run)};
    fallen.dash = Series::Dash::dashed;
    for (const EpochRecord& epoch : record.curve)
      if (epoch.test_accuracy) {
        fallen.x.push_back(static_cast<double>(epoch.epoch));
        fallen.y.push_back(100 * *epoch.test_accuracy);
      }
    if (fallen.x.empty()) continue;
    if (figure.y.range)
      figure.y.range->second = std::max(figure.y.range->second, std::ceil(std::ranges::max(fallen.y)));
    figure.series.push_back(std::move(fallen));
    collapsed = true;
  }
  if (collapsed) figure.caption += " Dashed lines are single trainings that collapsed.";
  figure.id = fmt::format("curves-{}", blocks);
  figure.title = fmt::format("Test accuracy by epoch with {} blocks: mean and range over seeds", blocks);
  return figure;
}

}  // namespace attmirror
