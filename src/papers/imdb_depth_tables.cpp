// The trainings of all sizes in tables: P1's table of p by size, differences, collapses, attention and weights.
#include "papers/imdb_depth.hpp"
#include "papers/imdb_published.hpp"

#include <array>

#include <fmt/format.h>

namespace attmirror {

namespace {

// "83.01 ± 0.33 (5)": mean, half of its 95 % interval, number of trainings.
std::string mean_and_count(const SampleSummary& sample, int decimals = 2) {
  return sample.count == 0 ? "–" : fmt::format("{} ({})", mean_text(sample, decimals), sample.count);
}

}  // namespace

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
  for (const char* row : depth_rows) {
    std::vector<std::string> ours{imdb_name(row), "ours"}, theirs{imdb_name(row), "P1"};
    bool is_published = false;
    for (const int blocks : depth_sizes) {
      const ImdbGroup* group = study.group(row, blocks);
      ours.push_back(group ? mean_and_count(group->percent(member)) : "–");
      const PublishedRow* found = published_row(depth_config(row, blocks));
      const SampleSummary* sample = found ? published(*found) : nullptr;
      is_published |= sample != nullptr;
      theirs.push_back(sample ? mean_and_count(*sample) : "–");
    }
    table.rows.push_back(std::move(ours));
    if (is_published) table.rows.push_back(std::move(theirs));
  }
  return table;
}

Table depth_difference_table(const DepthStudy& study) {
  Table table;
  table.title =
      "Differences of test accuracy, in points, with 95 % intervals: at each size, and over all in one model";
  table.columns = {{"optimizers", Align::left}, {"measure", Align::left}, {"blocks", Align::left}};
  for (Column& column : comparison_columns()) table.columns.push_back(std::move(column));
  constexpr std::pair<const char*, const char*> pairs[] = {
      {"md-1.1", "md-2"}, {"md-3", "md-2"}, {"md-1.1", "md-3"}, {"adam", "md-1.1"}};
  constexpr std::pair<const char*, RecordedNumber> measures[] = {
      {"best epoch", &TrainingRecord::best_test}, {"mean of the last ten", &TrainingRecord::last_ten_test}};
  for (const auto& [first, second] : pairs)
    for (const auto& [name, member] : measures) {
      const auto add = [&](std::string blocks, const WelchComparison& comparison) {
        table.rows.push_back({fmt::format("{} minus {}", imdb_name(first), imdb_name(second)), name, blocks});
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
                            percent_cell(record.train_accuracy), record.is_comparable() ? "yes" : "no"});
  return table;
}

Table depth_attention_table(const DepthStudy& study) {
  Table table;
  table.title =
      "Token selection on P1's sentences, and weights of K, Q and V after the last epoch: means over seeds, with half of their 95 % intervals";
  table.columns = {{"optimizer", Align::left}, {"trainings"}, {"score"}, {"score by words"}};
  for (const char* map : map_names) table.columns.push_back({fmt::format("{}: above 0.06", map)});
  for (const char* map : map_names) table.columns.push_back({fmt::format("{}: largest", map)});
  table.columns.push_back({"Hoyer sparsity"});
  for (const ImdbGroup& group : study.groups) {
    std::vector<std::string> row{group.name, trainings_cell(group),
                                 mean_text(group.numbers(&TrainingRecord::score), 3),
                                 mean_text(group.numbers(&TrainingRecord::word_score), 3)};
    for (std::size_t map = 0; map < map_names.size(); ++map)
      row.push_back(mean_text(group.map_count(map), 0));
    for (std::size_t map = 0; map < map_names.size(); ++map)
      row.push_back(mean_text(group.map_largest(map), 3));
    row.push_back(mean_text(group.mean_sparsity(), 3));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table depth_equal_table(const DepthStudy& study) {
  Table table;
  table.title =
      "Hoyer sparsity of K, Q and V at the end, and at equal training accuracy: the highest that every training of a size reached";
  table.columns = {{"optimizer", Align::left},
                   {"training accuracy, %"},
                   {"epoch"},
                   {"sparsity there"},
                   {"sparsity at the end"}};
  for (const int blocks : depth_sizes)
    if (const std::optional<EqualAccuracy> equal = equal_accuracy(study, blocks))
      for (const auto& [group, summaries] : equal->groups)
        table.rows.push_back({group->name, fmt::format("{:.1f}", 100 * equal->accuracy),
                              mean_text(summaries[0], 1), mean_text(summaries[1], 3),
                              mean_text(group->mean_sparsity(), 3)});
  return table;
}

Table depth_claims_table(const DepthClaims& claims) {
  Table table;
  table.title =
      "At 6 blocks, ℓ1.1 mirror descent and gradient descent: P1's numbers, of one network each, our means, and Welch's 95 % interval of their difference";
  table.columns = {
      {"quantity", Align::left}, {"P1: ℓ1.1"}, {"P1: ℓ2"}, {"ℓ1.1"}, {"ℓ2"}, {"difference"}, {"interval"},
      {"verdict", Align::left}};
  constexpr std::array verdicts{"lower", "not decided", "higher"};
  for (const DepthClaim* claim : claims.all()) {
    if (claim->ours[0].count == 0 && claim->ours[1].count == 0) continue;
    std::vector<std::string> row{claim->quantity};
    for (std::size_t i = 0; i < 2; ++i)
      row.push_back(claim->published ? fmt::format("{:g}", (*claim->published)[i]) : "–");
    for (const SampleSummary& sample : claim->ours) row.push_back(mean_and_count(sample, claim->decimals));
    if (const auto comparison = claim->comparison()) {
      const int decimals = claim->decimals;
      row.push_back(fmt::format("{:+.{}f}", comparison->difference, decimals));
      row.push_back(
          fmt::format("{:+.{}f} to {:+.{}f}", comparison->low, decimals, comparison->high, decimals));
      row.push_back(verdicts[static_cast<std::size_t>(sign_of(*comparison) + 1)]);
    } else {
      row.insert(row.end(), {"–", "–", verdicts[1]});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace attmirror
