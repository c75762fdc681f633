#include "base/and_list.hpp"
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

std::string adam_rates(const DepthStudy& study) {
  std::string text = "Adam has the rate that was chosen on held-out reviews for 3 blocks";
  if (study.group(adam_rows[1], largest_depth))
    text += fmt::format(
        "; at {} blocks trainings with a third of it, 0.0001, were added after those with the whole of it had collapsed{}",
        largest_depth,
        study.group(adam_rows[1], 4) ? ", and at 4 blocks it was trained with the third alone" : "");
  return text + ".";
}

// The second training with the configuration and the seed of another, where it came to its end and was scored on
// reviews; null: there is none.
const TrainingRecord* scored_repeat(const TrainingRecord& record, std::span<const TrainingRecord> all) {
  const auto found = std::ranges::find_if(all, [&](const TrainingRecord& other) {
    return other.role == TrainingRole::repeat && other.config == record.config && other.seed == record.seed &&
           other.lr == record.lr && other.is_comparable() && other.review_score;
  });
  return found == all.end() ? nullptr : &*found;
}

TrainingRecord with_review_scores(TrainingRecord record, const TrainingRecord& other) {
  record.review_score = other.review_score;
  record.review_lift = other.review_lift;
  record.review_top = other.review_top;
  return record;
}

// How many networks of each size were scored on reviews.
std::string review_counts(const DepthStudy& study) {
  std::vector<std::string> sizes;
  bool any = false;
  for (const int blocks : depth_sizes) {
    std::int64_t scored = 0, ended = 0;
    for (const TrainingRecord& record : study.records)
      if (counts_in_means(record) && training_optimizer(record.config).blocks == blocks) {
        ++ended;
        scored += record.review_score.has_value();
      }
    if (ended > 0) sizes.push_back(fmt::format("{} of {} with {} blocks", scored, ended, blocks));
    any = any || scored > 0;
  }
  if (!any) return "No training was scored on reviews.";
  std::string text = fmt::format("Of the trainings that count, {} were scored on reviews", and_list(sizes));
  if (study.scored_again > 0)
    text += fmt::format(
        "; for {} of them it was a second training with the same seed, because the weights of the first were gone",
        study.scored_again);
  return text + ".";
}

// The training accuracy of the epoch with the best test accuracy; nothing where the curve lacks it.
std::optional<double> accuracy_at_best(const TrainingRecord& record) {
  const auto best = std::ranges::find(record.curve, record.best_epoch.value_or(0), &EpochRecord::epoch);
  return best == record.curve.end() ? std::nullopt : best->train_accuracy;
}

// Which trainings were stopped late, and why they count.
std::string late_remark(const DepthStudy& study) {
  std::vector<std::string> late;
  std::int64_t ended = 0;
  double highest = 0;
  for (const TrainingRecord& record : study.records)
    if (stopped_late(record)) {
      late.push_back(fmt::format("{} ({} epochs, {:.1f} % training accuracy)", record.run, record.epochs,
                                 100 * *record.train_accuracy));
    } else if (record.is_comparable() && !training_optimizer(record.config).p.empty()) {
      if (const auto accuracy = accuracy_at_best(record)) {
        ++ended;
        highest = std::max(highest, *accuracy);
      }
    }
  if (late.empty()) return "";
  std::string text = fmt::format(
      "Cut off before 99.5 % training accuracy: {}. Mirror descents that got to {:g} % count in means nevertheless, like those that stopped at their limit of epochs; we made this rule when these had been cut off, and tables mark the means with an asterisk. Their last epochs come before those of the others.",
      and_list(late), 100 * late_accuracy);
  if (ended > 0 && highest < late_accuracy)
    text += fmt::format(
        " Their best epochs are likely the best of the whole training, too: in the {} other trainings of mirror descent the best epoch came at {:.1f} % training accuracy or below.",
        ended, std::ceil(1000 * highest) / 10);
  return text;
}

// A training that was stopped was not measured after its last epoch, but shares of large weights are in its curve, with
// enough digits to give back the counts.
void count_weights_of_shares(TrainingRecord& record) {
  for (MapRecord& map : record.maps)
    if (!map.above && map.share)
      map.above = large_weights(*map.share, training_optimizer(record.config).blocks);
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
      if (record.role == TrainingRole::main && wanted.contains(record.config)) {
        const bool lacks_scores = record.is_comparable() && !record.review_score;
        const TrainingRecord* again = lacks_scores ? scored_repeat(record, list) : nullptr;
        scored_again += again != nullptr;
        records.push_back(again ? with_review_scores(record, *again) : record);
        if (stopped_late(records.back())) count_weights_of_shares(records.back());
      }
  std::ranges::stable_sort(
      records, {}, [](const TrainingRecord& record) { return training_optimizer(record.config).blocks; });
  groups = training_groups(records);
  for (TrainingGroup& group : groups) group.count_also(stopped_late);
}

bool stopped_late(const TrainingRecord& record) {
  return record.status == RecordStatus::unfinished && !training_optimizer(record.config).p.empty() &&
         record.train_accuracy.value_or(0) >= late_accuracy && record.best_test && !collapse_of(record);
}

bool counts_in_means(const TrainingRecord& record) { return record.is_comparable() || stopped_late(record); }

const TrainingGroup* DepthStudy::group(std::string_view row, int blocks) const {
  const auto found = std::ranges::find(groups, depth_config(row, blocks), &TrainingGroup::config);
  return found == groups.end() ? nullptr : &*found;
}

const TrainingGroup* DepthStudy::group_of_at_least(std::ptrdiff_t count, std::string_view row,
                                                   int blocks) const {
  const TrainingGroup* found = group(row, blocks);
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
  const auto sample = [&](const TrainingGroup& all) {
    TrainingGroup some = all;
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
  const TrainingGroup *one = group_of_at_least(2, first, blocks),
                      *other = group_of_at_least(2, second, blocks);
  return one && other ? std::optional(welch(one->percent(member), other->percent(member))) : std::nullopt;
}

std::optional<std::string> collapse_of(const TrainingRecord& record) {
  if (record.status == RecordStatus::diverged)
    return fmt::format("diverged after {}", counted(static_cast<std::uint64_t>(record.epochs), "epoch"));
  if (!record.best_test || !record.last_test) return {};
  if (*record.best_test < chance_share && record.epochs >= patience_epochs)
    return fmt::format("never above chance: {:.1f} % at best", 100 * *record.best_test);
  if (100 * (*record.best_test - *record.last_test) <= collapse_points) return {};
  // Where the curve knows it, the epoch in which it fell.
  const std::int64_t best_epoch = record.best_epoch.value_or(0);
  const auto fallen = std::ranges::find_if(record.curve, [&](const EpochRecord& epoch) {
    return epoch.epoch > best_epoch && epoch.test_accuracy &&
           100 * (*record.best_test - *epoch.test_accuracy) > collapse_points;
  });
  const std::string best = fmt::format("from {:.1f} % in epoch {}", 100 * *record.best_test, best_epoch),
                    last = fmt::format("{:.1f} % in epoch {}", 100 * *record.last_test, record.epochs);
  if (fallen == record.curve.end() || fallen->epoch == record.epochs)
    return fmt::format("{} to {}", best, last);
  return fmt::format("{} to {:.1f} % in epoch {}, and {}", best, 100 * *fallen->test_accuracy, fallen->epoch,
                     last);
}

std::vector<const TrainingRecord*> sound_runs(const TrainingGroup& group) {
  std::vector<const TrainingRecord*> runs;
  std::ranges::copy_if(group.runs, std::back_inserter(runs),
                       [](const TrainingRecord* run) { return !collapse_of(*run); });
  return runs;
}

std::string blocks_text(const std::vector<int>& sizes) {
  if (sizes.size() < 2) return fmt::format("{} blocks", fmt::join(sizes, ""));
  return fmt::format("{} and {} blocks", fmt::join(sizes.begin(), sizes.end() - 1, ", "), sizes.back());
}

std::vector<std::string> depth_remarks(const DepthStudy& study) {
  std::vector<std::string> remarks{
      fmt::format(
          "These numbers are records: the {} trainings behind them ran on a GPU ({}; {}), and this command computes only the tables, intervals and verdicts. Those of 3 blocks are in docs/results/imdb, where p1-imdb reads them, too; those of 4 and 6 blocks are in docs/results/imdb_depth, with the configurations and the plan. scripts/training_study.py --study docs/results/imdb_depth run --trainer attmirror --data DATA -o RUNS trains them again.",
          study.records.size(), distinct_text(study.records, &TrainingRecord::device),
          distinct_text(study.records, &TrainingRecord::date)),
      "P1 reports the best test accuracy of a run: the largest over its epochs, chosen on the test set itself, which makes it optimistic, and the more so the longer a run is. The last epoch, and the mean of the last ten (of all, where there are fewer), choose nothing. Trainings stop at 99.5 % training accuracy or at a limit: 130 epochs at 3 blocks, 200 at 4 and 6, 1000 in P1.",
      "P1's ten trials share one initialization, so that their deviations are those of order and dropout alone; ours have independent initializations. The mirror descents have P1's learning rates, most of them another one at each size (gradient descent: 0.0004 at 3 and 4 blocks, 0.001 at 6), so that sizes differ in more than their blocks. " +
          adam_rates(study),
      "Over all sizes, one model has a mean for each size, one difference of the two optimizers and one variance, fitted by least squares; its interval is Student's. What the difference varies by from size to size counts as scatter, and a size counts by its trainings, of which P1 has as many at each. Differences at one size have Welch's intervals. Each interval is for one comparison.",
      fmt::format(
          "A training collapses if it diverges, if it stays at chance (below 51 %) for all of ten epochs or more, or if its last test accuracy is more than {:g} points below its best. One that collapsed and came to its end is in all means, as in P1; one that diverged, or was stopped because it had collapsed, is in none.",
          collapse_points),
      "Token selection has two units. A training: means over seeds, whose intervals say what new trainings would do. A sentence: its score, which is the attention that the classifier's token pays to the pivotal word, scaled as P1 scales it, is averaged over the seeds of an optimizer, the larger mean wins the sentence, and the sign test says how likely so uneven a count would be if both were equally good. The same networks judge all sentences, so that the second is about these networks on new sentences of this kind, not about new trainings. By words: the word has the attention of all its pieces, and special tokens are left out.",
      fmt::format(
          "44 of P1's 50 sentences have a score: in three the pivotal word does not occur, and in three WordPiece splits it. So few decide little, and networks were also scored on 1,000 test reviews. These have no pivotal words; listed sentiment words stand in, which a rule takes from the training reviews: single WordPieces of two or more letters that occur in at least 300 of them, at least 75 % of which have the same label (22 positive words, such as superb, and 37 negative ones, such as awful). The 1,000 reviews are evenly spaced over those that have a listed word of their own label. Score: the scaled attention to such words, as in P1. Lift: their share of the attention to words, divided by their share of the words; 1 means that attention does not tell them apart. On top: one of them has more attention than any other word. {}",
          review_counts(study)),
      "Weights are counted as P1 counts them: those of K, of Q and of V, over all blocks, that exceed 0.06 in size. Larger networks have more, so that counts compare within a size. Weights grow as long as a training lasts; at equal training accuracy, a training is looked at after its first epoch at or above the highest accuracy that all trainings of its size reached, apart from those that collapsed. This accuracy is the mean over an epoch, with dropout.",
      left_out_remark(study.groups)};
  if (std::string late = late_remark(study); !late.empty()) remarks.push_back(std::move(late));
  return remarks;
}

std::vector<std::pair<std::string, std::string>> depth_configuration(const DepthStudy& study) {
  std::vector<std::pair<std::string, std::string>> entries{
      {"data",
       "Stanford Large Movie Reviews: 25,000 for training, 25,000 for testing, 512 WordPieces at most"},
      {"network", "3, 4 and 6 blocks, with as many heads each, width 384, dropout 0.2"},
      {"training",
       "batches of 100, summed losses; until 99.5 % training accuracy, 130 epochs at most with 3 blocks and 200 with 4 and 6"}};
  for (const TrainingGroup& group : study.groups) entries.push_back(group_configuration(group));
  entries.emplace_back("device", distinct_text(study.records, &TrainingRecord::device));
  entries.emplace_back("date", distinct_text(study.records, &TrainingRecord::date));
  entries.emplace_back("commit", distinct_text(study.records, &TrainingRecord::commit));
  return entries;
}

}  // namespace attmirror
