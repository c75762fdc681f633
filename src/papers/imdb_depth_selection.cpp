#include "papers/imdb_depth_selection.hpp"

#include "papers/imdb_published.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

// Who is compared: P1's claim first.
constexpr std::pair<const char*, const char*> selection_pairs[] = {
    {"md-1.1", "md-2"}, {"md-1.1", "md-3"}, {adam_rows[0], "md-1.1"}, {adam_rows[1], "md-1.1"}};

// What trainings have of token selection. Shares are shown in percent.
struct SelectionMeasure {
  const char* name;
  RecordedNumber member;
  int decimals = 3;
  double unit = 1;
};
constexpr SelectionMeasure selection_measures[] = {
    {"score", &TrainingRecord::score},
    {"score by words", &TrainingRecord::word_score},
    {"tokens attended, %", &TrainingRecord::attended_share, 1, 100},
    {"score on reviews", &TrainingRecord::review_score},
    {"lift on reviews", &TrainingRecord::review_lift, 2},
    {"reviews with such a word on top, %", &TrainingRecord::review_top, 1, 100}};

SampleSummary selection_sample(const TrainingGroup& group, const SelectionMeasure& measure) {
  return measure.unit == 100 ? group.percent(measure.member) : group.numbers(measure.member);
}

// At one size; nothing unless both have two trainings with this number.
std::optional<WelchComparison> over_seeds(const DepthStudy& study, int blocks, const char* first,
                                          const char* second, const SelectionMeasure& measure) {
  const TrainingGroup *one = study.group(first, blocks), *other = study.group(second, blocks);
  if (!one || !other) return {};
  const SampleSummary ours = selection_sample(*one, measure), theirs = selection_sample(*other, measure);
  return ours.count < 2 || theirs.count < 2 ? std::nullopt : std::optional(welch(ours, theirs));
}

std::string pair_text(const char* first, const char* second, const char* between) {
  return fmt::format("{} {} {}", optimizer_name(first), between, optimizer_name(second));
}

// "ℓ1.1", "Adam": for columns.
std::string short_name(const char* row) {
  const TrainingOptimizer optimizer = training_optimizer(row);
  return optimizer.p.empty() ? optimizer.name : fmt::format("ℓ{:g}", optimizer.p[0]);
}

std::string winner_cell(const std::optional<double>& first, const std::optional<double>& second) {
  if (!first || !second) return "–";
  return *first > *second ? short_name("md-1.1") : *first < *second ? short_name("md-2") : "tie";
}

}  // namespace

std::vector<std::optional<double>> sentence_means(const TrainingGroup& group, SentenceScore member) {
  std::vector<std::vector<double>> scores;
  for (const TrainingRecord* run : group.runs) {
    scores.resize(std::max(scores.size(), run->sentences.size()));
    for (std::size_t i = 0; i < run->sentences.size(); ++i)
      if (const std::optional<double>& score = run->sentences[i].*member) scores[i].push_back(*score);
  }
  std::vector<std::optional<double>> means;
  for (const std::vector<double>& one : scores)
    means.push_back(one.empty() ? std::nullopt : std::optional(summarize(one).mean));
  return means;
}

std::optional<SignTest> sentence_wins(const DepthStudy& study, int blocks, std::string_view first,
                                      std::string_view second, SentenceScore member) {
  const TrainingGroup *one = study.group(first, blocks), *other = study.group(second, blocks);
  if (!one || !other) return {};
  const auto ours = sentence_means(*one, member), theirs = sentence_means(*other, member);
  return ours.empty() || theirs.empty() ? std::nullopt : std::optional(sign_test(ours, theirs));
}

std::optional<std::pair<std::vector<int>, WelchComparison>> selection_over_sizes(const DepthStudy& study,
                                                                                 std::string_view first,
                                                                                 std::string_view second,
                                                                                 RecordedNumber member) {
  std::vector<int> sizes;
  std::vector<SamplePair> pairs;
  for (const int blocks : study.sizes_of(first, second)) {
    const SamplePair pair{study.group(first, blocks)->numbers(member),
                          study.group(second, blocks)->numbers(member)};
    if (pair.first.count == 0 || pair.second.count == 0) continue;
    sizes.push_back(blocks);
    pairs.push_back(pair);
  }
  if (pairs.empty()) return {};
  const WelchComparison pooled = pooled_difference(pairs);
  if (std::isnan(pooled.freedom)) return {};
  return std::pair(std::move(sizes), pooled);
}

Table depth_selection_table(const DepthStudy& study) {
  Table table;
  table.title =
      "Token selection on P1's sentences and on test reviews: means over seeds, with half of their 95 % intervals";
  table.columns = {{"optimizer", Align::left}, {"blocks"}, {"trainings"}, {"score, P1"}};
  for (const SelectionMeasure& measure : selection_measures) table.columns.push_back({measure.name});
  for (const int blocks : depth_sizes)
    for (const char* name : depth_rows) {
      const TrainingGroup* group = study.group(name, blocks);
      if (!group) continue;
      const PublishedPicture* published = published_picture(group->config);
      std::vector<std::string> row{optimizer_name(name), fmt::format("{}", blocks), trainings_cell(*group),
                                   published ? fmt::format("{:.4f}", published->score) : "–"};
      for (const SelectionMeasure& measure : selection_measures)
        row.push_back(mean_text(selection_sample(*group, measure), measure.decimals));
      table.rows.push_back(std::move(row));
    }
  return table;
}

Table depth_wins_table(const DepthStudy& study) {
  Table table;
  table.title =
      "Who gives the pivotal word of a sentence the higher score, averaged over seeds: sentences won, with the sign test, and the difference of mean scores over seeds beside it";
  table.columns = {{"optimizers", Align::left},
                   {"blocks"},
                   {"first wins"},
                   {"second wins"},
                   {"ties"},
                   {"p, sign test"},
                   {"by words: first wins"},
                   {"by words: second wins"},
                   {"by words: ties"},
                   {"by words: p, sign test"},
                   {"difference over seeds"},
                   {"its 95 % interval"},
                   {"p, Welch"}};
  for (const auto& [first, second] : selection_pairs)
    for (const int blocks : depth_sizes) {
      const std::optional<SignTest> wins = sentence_wins(study, blocks, first, second),
                                    by_words = sentence_wins(study, blocks, first, second,
                                                             &SentenceRecord::word_score);
      if (!wins || !by_words) continue;
      std::vector<std::string> row{pair_text(first, second, "against"), fmt::format("{}", blocks),
                                   fmt::format("{}", wins->first),      fmt::format("{}", wins->second),
                                   fmt::format("{}", wins->ties),       fmt::format("{:.2g}", wins->p),
                                   fmt::format("{}", by_words->first),  fmt::format("{}", by_words->second),
                                   fmt::format("{}", by_words->ties),   fmt::format("{:.2g}", by_words->p)};
      if (const auto seeds = over_seeds(study, blocks, first, second, selection_measures[0]))
        row.insert(row.end(), {fmt::format("{:+.3f}", seeds->difference),
                               fmt::format("{:+.3f} to {:+.3f}", seeds->low, seeds->high),
                               fmt::format("{:.2g}", seeds->probability)});
      else
        row.insert(row.end(), {"–", "–", "–"});
      table.rows.push_back(std::move(row));
    }
  return table;
}

Table depth_selection_difference_table(const DepthStudy& study) {
  Table table;
  table.title =
      "Differences of token selection over seeds, with 95 % intervals: at each size, and over all in one model";
  table.columns = {{"optimizers", Align::left}, {"measure", Align::left}, {"blocks", Align::left}};
  for (Column& column : comparison_columns()) table.columns.push_back(std::move(column));
  for (const auto& [first, second] : selection_pairs)
    for (const SelectionMeasure& measure : selection_measures) {
      const auto add = [&](std::string blocks, const WelchComparison& comparison) {
        table.rows.push_back({pair_text(first, second, "minus"), measure.name, std::move(blocks)});
        for (std::string& cell : comparison_cells(comparison, measure.decimals))
          table.rows.back().push_back(std::move(cell));
      };
      for (const int blocks : depth_sizes)
        if (const auto comparison = over_seeds(study, blocks, first, second, measure))
          add(fmt::format("{}", blocks), *comparison);
      const auto together = selection_over_sizes(study, first, second, measure.member);
      if (together && together->first.size() > 1) {
        WelchComparison comparison = together->second;
        for (double* number : {&comparison.difference, &comparison.low, &comparison.high})
          *number *= measure.unit;
        const std::string all = blocks_text(together->first);
        add(all.substr(0, all.rfind(' ')) + " together", comparison);
      }
    }
  return table;
}

Table depth_sentence_table(const DepthStudy& study) {
  Table table;
  table.title = fmt::format(
      "Each sentence of P1's: scores of its pivotal word at {} blocks, averaged over seeds, and whose is larger at each size, that of ℓ1.1 mirror descent or that of gradient descent (ℓ2)",
      largest_depth);
  table.columns = {{"sentence"}, {"pivotal word", Align::left}};
  std::vector<std::vector<std::optional<double>>> scores;
  for (const char* row : depth_rows) {
    const TrainingGroup* group = study.group_of_at_least(1, row, largest_depth);
    if (!group) continue;
    scores.push_back(sentence_means(*group, &SentenceRecord::score));
    table.columns.push_back({short_name(row)});
  }
  std::vector<std::pair<std::vector<std::optional<double>>, std::vector<std::optional<double>>>> rivals;
  for (const int blocks : depth_sizes) {
    const TrainingGroup *one = study.group("md-1.1", blocks), *other = study.group("md-2", blocks);
    if (!one || !other) continue;
    rivals.emplace_back(sentence_means(*one, &SentenceRecord::score),
                        sentence_means(*other, &SentenceRecord::score));
    table.columns.push_back({fmt::format("higher at {} blocks", blocks), Align::left});
  }
  const auto named = std::ranges::find_if(
      study.records, [](const TrainingRecord& record) { return !record.sentences.empty(); });
  if (named == study.records.end()) return table;
  const auto at = [](const std::vector<std::optional<double>>& list, std::size_t i) {
    return i < list.size() ? list[i] : std::nullopt;
  };
  for (std::size_t i = 0; i < named->sentences.size(); ++i) {
    std::vector<std::string> row{fmt::format("{}", i + 1), named->sentences[i].pivotal};
    for (const auto& list : scores) row.push_back(cell_of(at(list, i), "{:.3f}"));
    for (const auto& [first, second] : rivals) row.push_back(winner_cell(at(first, i), at(second, i)));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace attmirror
