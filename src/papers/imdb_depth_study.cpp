#include "papers/imdb_depth.hpp"
#include "papers/shorthand.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

// A network that answers at random has 50 % of 25,000 test reviews right, with a deviation of 0.3.
constexpr double chance_share = 0.51;
// Some trainings take a few epochs to leave it.
constexpr std::int64_t patience_epochs = 10;
constexpr double accuracy_step = 0.001;

double highest_training_accuracy(const TrainingRecord& record) {
  double highest = 0;
  for (const EpochRecord& epoch : record.curve) highest = std::max(highest, epoch.train_accuracy.value_or(0));
  return highest;
}

// The mean of K, Q and V, where all three are known.
std::optional<double> epoch_sparsity(const EpochRecord& epoch) {
  double sum = 0;
  for (const std::optional<double>& one : epoch.sparsity) {
    if (!one) return {};
    sum += *one / static_cast<double>(epoch.sparsity.size());
  }
  return sum;
}

std::vector<const TrainingRecord*> sound_runs(const ImdbGroup& group) {
  std::vector<const TrainingRecord*> runs;
  std::ranges::copy_if(group.runs, std::back_inserter(runs),
                       [](const TrainingRecord* run) { return !collapse_of(*run); });
  return runs;
}

}  // namespace

std::string depth_config(std::string_view row, int blocks) {
  return blocks == 3 ? std::string(row) : fmt::format("{}-{}blocks", row, blocks);
}

DepthStudy::DepthStudy(std::span<const TrainingRecord> deep, std::span<const TrainingRecord> shallow) {
  std::set<std::string> wanted;
  for (const int blocks : depth_sizes)
    for (const char* row : depth_rows) wanted.insert(depth_config(row, blocks));
  for (const auto& list : {shallow, deep})
    for (const TrainingRecord& record : list)
      if (record.role == TrainingRole::main && wanted.contains(record.config)) records.push_back(record);
  std::ranges::stable_sort(records, {},
                           [](const TrainingRecord& record) { return imdb_optimizer(record.config).blocks; });
  groups = imdb_groups(records);
}

const ImdbGroup* DepthStudy::group(std::string_view row, int blocks) const {
  const auto found = std::ranges::find(groups, depth_config(row, blocks), &ImdbGroup::config);
  return found == groups.end() ? nullptr : &*found;
}

const ImdbGroup* DepthStudy::group_of_at_least(std::ptrdiff_t count, std::string_view row, int blocks) const {
  const ImdbGroup* found = group(row, blocks);
  return found && std::ssize(found->runs) >= count ? found : nullptr;
}

std::vector<int> DepthStudy::sizes_of(std::string_view first, std::string_view second) const {
  std::vector<int> sizes;
  for (const int blocks : depth_sizes)
    if (group_of_at_least(1, first, blocks) && group_of_at_least(1, second, blocks)) sizes.push_back(blocks);
  return sizes;
}

std::optional<WelchComparison> DepthStudy::pooled(std::string_view first, std::string_view second,
                                                  RecordedNumber member, Collapsed collapsed) const {
  std::vector<SamplePair> pairs;
  const auto sample = [&](const ImdbGroup& all) {
    ImdbGroup some = all;
    if (collapsed == Collapsed::left_out) some.runs = sound_runs(all);
    return some.percent(member);
  };
  for (const int blocks : sizes_of(first, second)) {
    const SamplePair pair{sample(*group(first, blocks)), sample(*group(second, blocks))};
    if (pair.first.count > 0 && pair.second.count > 0) pairs.push_back(pair);
  }
  return pairs.empty() ? std::nullopt : std::optional(pooled_difference(pairs));
}

std::optional<WelchComparison> DepthStudy::compared_at(int blocks, std::string_view first,
                                                       std::string_view second, RecordedNumber member) const {
  const ImdbGroup *one = group_of_at_least(2, first, blocks), *other = group_of_at_least(2, second, blocks);
  return one && other ? std::optional(welch(one->percent(member), other->percent(member))) : std::nullopt;
}

std::optional<std::string> collapse_of(const TrainingRecord& record) {
  if (record.status == RecordStatus::diverged)
    return fmt::format("diverged after {}", counted(static_cast<std::uint64_t>(record.epochs), "epoch"));
  if (!record.best_test || !record.last_test) return {};
  if (*record.best_test < chance_share && record.epochs >= patience_epochs)
    return fmt::format("never above chance: {:.1f} % at best", 100 * *record.best_test);
  if (100 * (*record.best_test - *record.last_test) > collapse_points)
    return fmt::format("from {:.1f} % in epoch {} to {:.1f} % in epoch {}", 100 * *record.best_test,
                       record.best_epoch.value_or(0), 100 * *record.last_test, record.epochs);
  return {};
}

std::optional<EqualAccuracy> equal_accuracy(const DepthStudy& study, int blocks) {
  EqualAccuracy equal{.accuracy = 1, .groups = {}};
  for (const char* row : depth_rows) {
    const ImdbGroup* group = study.group(row, blocks);
    if (!group || sound_runs(*group).empty()) continue;
    equal.groups.push_back({group, {}});
    for (const TrainingRecord* run : sound_runs(*group))
      equal.accuracy = std::min(equal.accuracy, highest_training_accuracy(*run));
  }
  if (equal.groups.size() < 2) return {};
  // A hair more, so that 0.996 is 996 steps and not 995.
  equal.accuracy = std::floor(equal.accuracy / accuracy_step + 1e-9) * accuracy_step;
  for (auto& [group, summaries] : equal.groups) {
    std::vector<double> epochs, sparsities;
    for (const TrainingRecord* run : sound_runs(*group)) {
      const auto there = std::ranges::find_if(run->curve, [&](const EpochRecord& epoch) {
        return epoch.train_accuracy.value_or(0) >= equal.accuracy - 1e-12;
      });
      if (there == run->curve.end()) continue;  // a training without curve
      epochs.push_back(static_cast<double>(there->epoch));
      if (const std::optional<double> sparsity = epoch_sparsity(*there)) sparsities.push_back(*sparsity);
    }
    summaries = {summarize(epochs), summarize(sparsities)};
  }
  return equal;
}

std::optional<WelchComparison> DepthClaim::comparison() const {
  return ours[0].count < 2 || ours[1].count < 2 ? std::nullopt : std::optional(welch(ours[0], ours[1]));
}

DepthClaims::DepthClaims(const DepthStudy& study) {
  constexpr std::array<std::array<double, 2>, 3> counts{{{18206, 27224}, {13964, 14654}, {7643, 10127}}};
  const int blocks = depth_sizes.back();
  const std::array groups{study.group("md-1.1", blocks), study.group("md-2", blocks)};
  const auto both = [&](const auto& sample_of) {
    return std::array{groups[0] ? sample_of(*groups[0]) : SampleSummary{},
                      groups[1] ? sample_of(*groups[1]) : SampleSummary{}};
  };
  score = {.quantity = "token-selection score",
           .published = {{0.4387, 0.3122}},
           .ours = both([](const ImdbGroup& group) { return group.numbers(&TrainingRecord::score); })};
  for (std::size_t map = 0; map < map_names.size(); ++map)
    above[map] = {.quantity = fmt::format("weights of {} above 0.06", map_names[map]),
                  .published = counts[map],
                  .ours = both([&](const ImdbGroup& group) { return group.map_count(map); }),
                  .decimals = 0};
  // Read off a figure to two digits.
  largest_key = {.quantity = "largest weight of K",
                 .published = {{0.70, 0.26}},
                 .reading = 0.005,
                 .ours = both([](const ImdbGroup& group) { return group.map_largest(0); })};
  sparsity = {.quantity = "Hoyer sparsity of K, Q and V at the end",
              .ours = both([](const ImdbGroup& group) { return group.mean_sparsity(); })};
  if (const std::optional<EqualAccuracy> equal = equal_accuracy(study, blocks))
    equal_sparsity = {.quantity = fmt::format("Hoyer sparsity of K, Q and V at {:.1f} % training accuracy",
                                              100 * equal->accuracy),
                      .ours = both([&](const ImdbGroup& group) {
                        const auto found = std::ranges::find_if(
                            equal->groups, [&](const auto& one) { return one.first == &group; });
                        return found == equal->groups.end() ? SampleSummary{} : found->second[1];
                      })};
}

std::vector<const DepthClaim*> DepthClaims::all() const {
  std::vector<const DepthClaim*> list{&score, &above[0], &above[1], &above[2], &largest_key, &sparsity};
  if (equal_sparsity) list.push_back(&*equal_sparsity);
  return list;
}

std::string blocks_text(const std::vector<int>& sizes) {
  if (sizes.size() < 2) return fmt::format("{} blocks", fmt::join(sizes, ""));
  return fmt::format("{} and {} blocks", fmt::join(sizes.begin(), sizes.end() - 1, ", "), sizes.back());
}

std::vector<std::string> depth_remarks(const DepthStudy& study) {
  return {
      fmt::format(
          "These numbers are records: the {} trainings behind them ran on a GPU ({}; {}), and this command computes only the tables, intervals and verdicts. Those of 3 blocks are in docs/results/imdb, where p1-imdb reads them, too; those of 4 and 6 blocks are in docs/results/imdb_depth, with the configurations and the plan. scripts/imdb_study.py --study docs/results/imdb_depth run --trainer attmirror --data DATA -o RUNS trains them again.",
          study.records.size(), distinct_text(study.records, &TrainingRecord::device),
          distinct_text(study.records, &TrainingRecord::date)),
      "P1 reports the best test accuracy of a run: the largest over its epochs, chosen on the test set itself, which makes it optimistic, and the more so the longer a run is. The last epoch, and the mean of the last ten (of all, where there are fewer), choose nothing. Trainings stop at 99.5 % training accuracy or at a limit: 130 epochs at 3 blocks, 200 at 4 and 6, 1000 in P1.",
      "P1's ten trials share one initialization, so that their deviations are those of order and dropout alone; ours have independent initializations. The mirror descents have P1's learning rates, another one at each size, so that sizes differ in more than their blocks. Adam has the rate that was chosen on held-out reviews for 3 blocks.",
      "Over all sizes, one model has a mean for each size, one difference of the two optimizers and one variance, fitted by least squares; its interval is Student's. What the difference varies by from size to size counts as scatter. Differences at one size have Welch's intervals. Each interval is for one comparison.",
      fmt::format(
          "A training collapses if it diverges, if it never gets above chance, or if its last test accuracy is more than {:g} points below its best. One that collapsed and came to its end is in all means, as in P1; one that diverged is in none.",
          collapse_points),
      left_out_remark(study.groups)};
}

std::vector<std::pair<std::string, std::string>> depth_configuration(const DepthStudy& study) {
  std::vector<std::pair<std::string, std::string>> entries{
      {"data",
       "Stanford Large Movie Reviews: 25,000 for training, 25,000 for testing, 512 WordPieces at most"},
      {"network", "3, 4 and 6 blocks, with as many heads each, width 384, dropout 0.2"},
      {"training",
       "batches of 100, summed losses; until 99.5 % training accuracy, 130 epochs at most with 3 blocks and 200 with 4 and 6"}};
  for (const ImdbGroup& group : study.groups) entries.push_back(group_configuration(group));
  entries.emplace_back("device", distinct_text(study.records, &TrainingRecord::device));
  entries.emplace_back("date", distinct_text(study.records, &TrainingRecord::date));
  entries.emplace_back("commit", distinct_text(study.records, &TrainingRecord::commit));
  return entries;
}

}  // namespace attmirror
