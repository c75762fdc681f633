// The trainings of all sizes in tables: P1's table of p by size, differences, collapses.
#include "papers/imdb_depth.hpp"
#include "papers/imdb_published.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace attmirror {

std::string mean_and_count(const SampleSummary& sample, int decimals) {
  return sample.count == 0 ? "–" : fmt::format("{} ({})", mean_text(sample, decimals), sample.count);
}

Table depth_size_table(const DepthStudy& study, std::string_view measure, RecordedNumber member) {
  Table table;
  table.title = fmt::format(
      "Test accuracy by p and size, {}, in %: means with half of their 95 % intervals (number of trainings)",
      measure);
  table.columns = {{"optimizer", Align::left}, {"by", Align::left}};
  for (const int blocks : depth_sizes) table.columns.push_back({fmt::format("{} blocks", blocks)});
  // P1 has the best epoch and the last one.
  const auto published = [&](const PublishedRow& row) -> const SampleSummary* {
    return member == &TrainingRecord::best_test   ? &row.best
           : member == &TrainingRecord::last_test ? &row.last
                                                  : nullptr;
  };
  bool is_marked = false;
  for (const char* row : depth_rows) {
    std::vector<std::string> ours{optimizer_name(row), "ours"}, theirs{optimizer_name(row), "P1"};
    bool is_published = false, is_trained = false;
    for (const int blocks : depth_sizes) {
      const TrainingGroup* group = study.group(row, blocks);
      is_trained |= group != nullptr;
      ours.push_back(group ? mean_and_count(group->percent(member)) : "–");
      if (group && std::ranges::any_of(group->runs, [](const auto* run) { return stopped_late(*run); })) {
        ours.back() += "*";
        is_marked = true;
      }
      const PublishedRow* found = published_row(depth_config(row, blocks));
      const SampleSummary* sample = found ? published(*found) : nullptr;
      is_published |= sample != nullptr;
      theirs.push_back(sample ? mean_and_count(*sample) : "–");
    }
    if (is_trained || is_published) table.rows.push_back(std::move(ours));
    if (is_published) table.rows.push_back(std::move(theirs));
  }
  if (is_marked) table.title += ". * Some or all of these were cut off before 99.5 % training accuracy";
  return table;
}

Table depth_difference_table(const DepthStudy& study) {
  Table table;
  table.title =
      "Differences of test accuracy, in points, with 95 % intervals: at each size, and over all in one model";
  table.columns = {{"optimizers", Align::left}, {"measure", Align::left}, {"blocks", Align::left}};
  for (Column& column : comparison_columns()) table.columns.push_back(std::move(column));
  constexpr std::pair<const char*, const char*> pairs[] = {{"md-1.1", "md-2"},
                                                           {"md-3", "md-2"},
                                                           {"md-1.1", "md-3"},
                                                           {adam_rows[0], "md-1.1"},
                                                           {adam_rows[1], "md-1.1"}};
  constexpr std::pair<const char*, RecordedNumber> measures[] = {
      {"best epoch", &TrainingRecord::best_test}, {"mean of the last ten", &TrainingRecord::last_ten_test}};
  for (const auto& [first, second] : pairs)
    for (const auto& [name, member] : measures) {
      const auto add = [&](std::string blocks, const WelchComparison& comparison) {
        table.rows.push_back(
            {fmt::format("{} minus {}", optimizer_name(first), optimizer_name(second)), name, blocks});
        for (std::string& cell : comparison_cells(comparison)) table.rows.back().push_back(std::move(cell));
      };
      const std::vector<int> sizes = study.sizes_of(first, second);
      for (const int blocks : sizes)
        add(std::to_string(blocks),
            welch(study.group(first, blocks)->percent(member), study.group(second, blocks)->percent(member)));
      if (sizes.size() > 1) {
        const std::string all = blocks_text(sizes);
        add(all.substr(0, all.rfind(' ')) + " together", *study.pooled(first, second, member));
      }
    }
  return table;
}

Table depth_collapse_table(const DepthStudy& study) {
  Table table;
  table.title = "Trainings that collapsed";
  table.columns = {{"run", Align::left},
                   {"what happened", Align::left},
                   {"status", Align::left},
                   {"training accuracy, %"},
                   {"counts in means", Align::left}};
  for (const TrainingRecord& record : study.records)
    if (const std::optional<std::string> collapse = collapse_of(record))
      table.rows.push_back({record.run, *collapse, std::string(to_string(record.status)),
                            percent_cell(record.train_accuracy), counts_in_means(record) ? "yes" : "no"});
  return table;
}

}  // namespace attmirror
