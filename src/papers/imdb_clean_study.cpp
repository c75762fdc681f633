// The records of docs/results/imdb_clean: what is looked up in them, and what a reader should know of them.
#include "papers/imdb_clean.hpp"
#include "papers/shorthand.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

constexpr double interval_level = 0.95;

// The kinds that speed.csv has, where it has no row for the configuration itself.
std::string_view speed_name(OptimizerFamily family) {
  switch (family) {
    case OptimizerFamily::plain:
      return "md";
    case OptimizerFamily::momentum:
    case OptimizerFamily::sgd_momentum:
      return "md-momentum";
    case OptimizerFamily::normalized:
      return "md-normalized";
    case OptimizerFamily::normalized_momentum:
    case OptimizerFamily::two_p:
      return "md-normalized-momentum";
    case OptimizerFamily::adam:
      return "adam";
    case OptimizerFamily::adamw:
      return "adamw";
    case OptimizerFamily::muon:
      return "muon-adamw";
    case OptimizerFamily::signum:
      return "signum";
    case OptimizerFamily::unknown:
      break;
  }
  return "";
}

// The group with the highest value among those of at least two trainings that `is_meant`.
const TrainingGroup* highest(const std::vector<TrainingGroup>& groups,
                             const std::function<bool(const TrainingOptimizer&)>& is_meant,
                             const std::function<double(const TrainingGroup&)>& value) {
  const TrainingGroup* best = nullptr;
  for (const TrainingGroup& group : groups)
    if (group.percent(clean_test).count >= 2 && is_meant(training_optimizer(group.config)) &&
        (!best || value(group) > value(*best)))
      best = &group;
  return best;
}

double mean_test(const TrainingGroup& group) { return group.percent(clean_test).mean; }

bool is_mirror(const TrainingOptimizer& optimizer) { return optimizer.is_mirror_descent(); }
bool is_other(const TrainingOptimizer& optimizer) { return !optimizer.is_mirror_descent(); }

std::string counted_searches(std::size_t count) {
  return count == 1 ? "1 search" : fmt::format("{} searches", count);
}

// How many tuning runs each side had, and how many of its budget a search used.
std::string budget_remark(const CleanStudy& study) {
  std::size_t mirror_trials = 0, mirror_searches = 0, other_trials = 0, other_searches = 0, adamw_trials = 0,
              least = std::numeric_limits<std::size_t>::max(), most = 0, diverged = 0, earlier = 0;
  for (const ImdbSearch& search : study.searches) {
    const std::size_t trials = search.counted_trials();
    earlier += search.trials.size() - trials;
    (is_mirror(search.optimizer) ? mirror_trials : other_trials) += trials;
    (is_mirror(search.optimizer) ? mirror_searches : other_searches) += 1;
    if (search.optimizer.family == OptimizerFamily::adamw) adamw_trials += trials;
    least = std::min(least, trials);
    most = std::max(most, trials);
    diverged += static_cast<std::size_t>(
        std::ranges::count(search.trials, RecordStatus::diverged, &TrainingRecord::status));
  }
  if (study.searches.empty()) return "The records have no tuning run: how settings were chosen is not known.";
  std::string text = fmt::format(
      "Every search had the same steps and at most {} trainings, of which {} were used; {} diverged and lost.",
      search_budget, least == most ? std::to_string(least) : fmt::format("{} to {}", least, most),
      counted(diverged, "trial"));
  text += fmt::format(
      " Mirror descent as a whole had {} in {}, the other optimizers, gradient descent (p = 2) included, {} in {}, AdamW alone {}: the best of many searches has an advantage over the best of few.",
      counted(mirror_trials, "trial"), counted_searches(mirror_searches), other_trials,
      counted_searches(other_searches), adamw_trials);
  if (earlier > 0)
    text += fmt::format(
        " {} more {} of searches that never left chance and were begun again, with smaller learning rates.",
        counted(earlier, "trial"), earlier == 1 ? "is" : "are");
  std::vector<std::string> at_end;
  for (const ImdbSearch& search : study.searches)
    if (search.winner && rate_place(search) != RatePlace::inside)
      at_end.push_back(fmt::format("{} ({})", search.optimizer.name, to_string(rate_place(search))));
  if (!at_end.empty())
    text += fmt::format(
        " The chosen learning rate is at the end of those tried, so that a better one may lie beyond, for: {}.",
        fmt::join(at_end, ", "));
  return text;
}

// One reading of the test set, after the last epoch: that is in the curves.
std::string test_remark(const CleanStudy& study) {
  std::vector<std::string> more;
  for (const TrainingGroup& group : study.groups)
    for (const TrainingRecord* run : group.runs)
      if (std::ranges::count_if(run->curve,
                                [](const EpochRecord& epoch) { return epoch.test_accuracy.has_value(); }) > 1)
        more.push_back(run->run);
  return more.empty()
             ? "No setting was chosen on the test set: main trainings read it once, after the last epoch."
             : fmt::format(
                   "No setting was chosen on the test set: what counts is the accuracy after the last epoch. These trainings read it after other epochs, too: {}.",
                   fmt::join(more, ", "));
}

// Every optimizer is compared with AdamW: by Bonferroni, a p-value counts times the number of comparisons.
std::string corrected_text(const CleanStudy& study) {
  if (!study.adamw()) return "Each interval is for one comparison.";
  std::vector<const TrainingGroup*> others;
  for (const TrainingGroup& group : study.groups)
    if (&group != study.adamw() && group.percent(clean_test).count >= 2) others.push_back(&group);
  std::vector<std::string> above;
  for (const TrainingGroup* group : others) {
    const WelchComparison comparison = compare_tests(*group, *study.adamw());
    if (comparison.difference > 0 &&
        comparison.probability * static_cast<double>(others.size()) < 1 - interval_level)
      above.push_back(group->name);
  }
  return fmt::format(
      "Each interval is for one comparison: corrected for {} comparisons with AdamW, {}.", others.size(),
      above.empty() ? "no optimizer is more accurate"
                    : fmt::format("{} more accurate: {}", above.size() == 1 ? "one is" : "these are",
                                  fmt::join(above, ", ")));
}

// Means over test accuracies say which are the best; chosen on held-out reviews, it may be others.
std::string selection_remark(const CleanStudy& study) {
  const TrainingGroup *mirror = study.best_mirror(), *other = study.best_other();
  if (!mirror || !other) return "";
  const auto validation = [&](const TrainingGroup& group) {
    const ImdbSearch* search = search_of(study.searches, group.config);
    return search && search->winner ? search->accuracy() : -1.0;
  };
  std::string text =
      "The best mirror descent and the best other optimizer are those with the highest mean test accuracy, which favors the side that has more of them. " +
      corrected_text(study);
  const TrainingGroup* by_mirror = highest(study.groups, is_mirror, validation);
  const TrainingGroup* by_other = highest(study.groups, is_other, validation);
  if (by_mirror == mirror && by_other == other)
    return text + " The held-out reviews would have chosen the same two.";
  return fmt::format("{} The held-out reviews would have chosen {} and {}: {}.", text, by_mirror->name,
                     by_other->name, difference_text(compare_tests(*by_mirror, *by_other)));
}

// Where what was trained is not what the searches chose.
std::vector<std::string> doubt_remarks(const CleanStudy& study) {
  std::vector<std::string> missing, remarks;
  for (std::size_t f = 0; f < optimizer_family_count; ++f) {
    const auto family = static_cast<OptimizerFamily>(f);
    if (std::ranges::none_of(study.groups, [&](const TrainingGroup& group) {
          return training_optimizer(group.config).family == family && !group.runs.empty();
        }))
      missing.emplace_back(to_string(family));
  }
  if (!missing.empty())
    remarks.push_back(fmt::format("No main training came to its end of: {}.", fmt::join(missing, ", ")));
  for (const TrainingGroup& group : study.groups) {
    const TrainingOptimizer optimizer = training_optimizer(group.config);
    const ImdbSearch* search = search_of(study.searches, group.config);
    if (!search || !search->winner) {
      remarks.push_back(
          fmt::format("The records do not show how the settings of {} were chosen.", group.name));
      continue;
    }
    if (group.any().settings != search->winner->settings)
      remarks.push_back(fmt::format(
          "The main trainings of {} have other settings ({}) than the trial that won ({}).", group.name,
          settings_text(group.any().settings), settings_text(search->winner->settings)));
    if (const ImdbSearch* best = best_search(study.searches, optimizer.family); best != search)
      remarks.push_back(
          fmt::format("On held-out reviews {} is better than {}, which has main trainings, too.",
                      best->optimizer.name, group.name));
    else if (!optimizer.p.empty() && !optimizer.is_mirror_descent())
      remarks.push_back(fmt::format(
          "Of {}, p = 2 won on held-out reviews. That is gradient descent, which counts among the other optimizers.",
          to_string(optimizer.family)));
  }
  return remarks;
}

}  // namespace

CleanStudy::CleanStudy(std::span<const TrainingRecord> trainings, std::span<const SpeedRecord> measured,
                       HeldOut held_out)
    : records(trainings),
      speeds(measured),
      groups(training_groups(trainings)),
      searches(imdb_searches(trainings)) {
  const auto is_of_the_other = [&](const auto& part) {
    return training_optimizer(part.config).by_blocks != (held_out == HeldOut::blocks);
  };
  std::erase_if(groups, is_of_the_other);
  std::erase_if(searches, is_of_the_other);
}

const TrainingGroup* CleanStudy::best_mirror() const { return highest(groups, is_mirror, mean_test); }
const TrainingGroup* CleanStudy::best_other() const { return highest(groups, is_other, mean_test); }
const TrainingGroup* CleanStudy::best() const {
  return highest(
      groups, [](const TrainingOptimizer&) { return true; }, mean_test);
}

const TrainingGroup* CleanStudy::adamw() const {
  return highest(
      groups, [](const TrainingOptimizer& optimizer) { return optimizer.family == OptimizerFamily::adamw; },
      mean_test);
}

std::optional<double> CleanStudy::state_per_parameter(const TrainingGroup& group) const {
  const SampleSummary bytes = group.counts(&TrainingRecord::state_bytes);
  if (bytes.count == 0 || speeds.empty()) return {};
  return bytes.mean / static_cast<double>(speeds.front().parameters);
}

std::optional<double> CleanStudy::epoch_seconds(std::string_view config) const {
  for (const std::string_view name : {config, speed_name(training_optimizer(config).family)})
    if (const auto found = std::ranges::find(speeds, name, &SpeedRecord::optimizer); found != speeds.end())
      return found->epoch_seconds;
  return {};
}

std::optional<double> CleanStudy::common_goal() const {
  const ImdbSearch* search = best_search(searches, OptimizerFamily::adamw);
  return search ? std::optional(goal_share * search->accuracy()) : std::nullopt;
}

WelchComparison compare_tests(const TrainingGroup& first, const TrainingGroup& second) {
  return welch(first.percent(clean_test), second.percent(clean_test));
}

std::vector<std::string> clean_remarks(const CleanStudy& study) {
  std::vector<std::string> remarks{
      fmt::format(
          "These numbers are records: the {} trainings behind them ran on a GPU ({}; {}), and this command computes only the tables, intervals and sentences. scripts/training_study.py --study docs/results/imdb_clean run --trainer attmirror --data DATA -o RUNS --only RUN trains a row again, with RUN as in the table of all trainings. docs/results/imdb_clean has the configurations and the plan.",
          study.records.size(), distinct_text(study.records, &TrainingRecord::device),
          distinct_text(study.records, &TrainingRecord::date)),
      "In the table of optimizers, epochs are counted in the tuning run that won (20,000 reviews), and seconds are medians over epochs of tuning runs, while several trainings shared the GPU: read them as ratios. Embeddings are random at first, with the deviation that the settings name. Two-p mirror descent has the first p for Q, K and V and the second for the rest; it is normalized and has momentum.",
      budget_remark(study), test_remark(study), left_out_remark(training_groups(study.records))};
  if (std::string selection = selection_remark(study); !selection.empty())
    remarks.push_back(std::move(selection));
  for (std::string& doubt : doubt_remarks(study)) remarks.push_back(std::move(doubt));
  return remarks;
}

std::vector<std::pair<std::string, std::string>> clean_configuration(const CleanStudy& study) {
  std::vector<std::pair<std::string, std::string>> entries{
      {"data",
       "Stanford Large Movie Reviews: 25,000 for training, 25,000 for testing, 512 WordPieces at most; tuning on 20,000 of the former with 5,000 held out"},
      {"network", "3 blocks, 3 heads, width 384, dropout 0.2"},
      {"training", "batches of 100, mean losses; 6 epochs, warm-up over 0.6 of one, then a cosine"},
      {"search",
       fmt::format(
           "at most {} trainings with one seed; accuracy on held-out reviews after the last epoch decides",
           search_budget)}};
  for (const TrainingGroup& group : study.groups) {
    std::vector<std::string> seeds;
    for (const auto* list : {&group.runs, &group.others})
      for (const TrainingRecord* record : *list) seeds.push_back(std::to_string(record->seed));
    entries.emplace_back(group.name,
                         fmt::format("configs/{}.toml, {}, seeds {}", group.config,
                                     settings_text(group.any().settings), fmt::join(seeds, ", ")));
  }
  entries.emplace_back("device", distinct_text(study.records, &TrainingRecord::device));
  entries.emplace_back("date", distinct_text(study.records, &TrainingRecord::date));
  entries.emplace_back("commit", distinct_text(study.records, &TrainingRecord::commit));
  return entries;
}

}  // namespace attmirror
