#include "papers/imdb_depth_weights.hpp"

#include "papers/imdb_published.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr double accuracy_step = 0.001;

double highest_training_accuracy(const TrainingRecord& record) {
  double highest = 0;
  for (const EpochRecord& epoch : record.curve) highest = std::max(highest, epoch.train_accuracy.value_or(0));
  return highest;
}

// Over epochs of several trainings; what an epoch has not is left out.
template <class Value>
SampleSummary summary_of_epochs(const std::vector<const EpochRecord*>& epochs, const Value& value) {
  std::vector<double> values;
  for (const EpochRecord* epoch : epochs)
    if (const std::optional<double> number = value(*epoch)) values.push_back(*number);
  return summarize(values);
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

WeightSummary weights_in_epochs(const std::vector<const EpochRecord*>& epochs, int blocks) {
  WeightSummary weights;
  for (std::size_t map = 0; map < map_names.size(); ++map) {
    // Curves have shares with enough digits to give back the counts.
    weights.above[map] = summary_of_epochs(epochs, [&](const EpochRecord& epoch) {
      return epoch.share[map] ? std::optional(static_cast<double>(large_weights(*epoch.share[map], blocks)))
                              : std::nullopt;
    });
    weights.largest[map] =
        summary_of_epochs(epochs, [&](const EpochRecord& epoch) { return epoch.largest[map]; });
    weights.sparsity[map] =
        summary_of_epochs(epochs, [&](const EpochRecord& epoch) { return epoch.sparsity[map]; });
  }
  weights.mean_sparsity = summary_of_epochs(epochs, epoch_sparsity);
  return weights;
}

std::vector<std::string> weight_cells(const WeightSummary& weights) {
  std::vector<std::string> cells;
  for (const SampleSummary& sample : weights.above) cells.push_back(mean_text(sample, 0));
  for (const SampleSummary& sample : weights.largest) cells.push_back(mean_text(sample, 3));
  for (const SampleSummary& sample : weights.sparsity) cells.push_back(mean_text(sample, 3));
  return cells;
}

}  // namespace

std::int64_t large_weights(double share, int blocks) {
  constexpr double width = 384;
  return std::llround(share * width * width * blocks);
}

WeightSummary weights_at_end(const TrainingGroup& group) {
  WeightSummary weights;
  for (std::size_t map = 0; map < map_names.size(); ++map) {
    weights.above[map] = group.map_count(map);
    weights.largest[map] = group.map_largest(map);
    weights.sparsity[map] = group.map_sparsity(map);
  }
  weights.mean_sparsity = group.mean_sparsity();
  return weights;
}

const EqualAccuracy::Group* EqualAccuracy::of(const TrainingGroup* group) const {
  const auto found = std::ranges::find(groups, group, &Group::group);
  return found == groups.end() ? nullptr : &*found;
}

std::optional<EqualAccuracy> equal_accuracy(const DepthStudy& study, int blocks) {
  EqualAccuracy equal{.accuracy = 1, .groups = {}};
  for (const char* row : depth_rows) {
    const TrainingGroup* group = study.group(row, blocks);
    if (!group || sound_runs(*group).empty()) continue;
    equal.groups.push_back({group, {}, {}});
    for (const TrainingRecord* run : sound_runs(*group))
      equal.accuracy = std::min(equal.accuracy, highest_training_accuracy(*run));
  }
  if (equal.groups.size() < 2) return {};
  // A hair more, so that 0.996 is 996 steps and not 995.
  equal.accuracy = std::floor(equal.accuracy / accuracy_step + 1e-9) * accuracy_step;
  for (EqualAccuracy::Group& one : equal.groups) {
    std::vector<const EpochRecord*> epochs;
    for (const TrainingRecord* run : sound_runs(*one.group)) {
      const auto there = std::ranges::find_if(run->curve, [&](const EpochRecord& epoch) {
        return epoch.train_accuracy.value_or(0) >= equal.accuracy - 1e-12;
      });
      if (there != run->curve.end()) epochs.push_back(&*there);  // not so for a training without curve
    }
    one.epoch = summary_of_epochs(
        epochs, [](const EpochRecord& epoch) { return std::optional(static_cast<double>(epoch.epoch)); });
    one.weights = weights_in_epochs(epochs, blocks);
  }
  return equal;
}

Table depth_weights_table(const DepthStudy& study) {
  Table table;
  table.title =
      "Weights of K, Q and V at the end, and at equal training accuracy, the highest that every training of a size reached: means over seeds, with half of their 95 % intervals";
  table.columns = {{"optimizer", Align::left}, {"blocks"}, {"when", Align::left}, {"epoch"}};
  for (const char* what : {"above 0.06", "largest", "Hoyer sparsity"})
    for (const char* map : map_names) table.columns.push_back({fmt::format("{}: {}", map, what)});
  for (const int blocks : depth_sizes) {
    const std::optional<EqualAccuracy> equal = equal_accuracy(study, blocks);
    for (const char* row : depth_rows) {
      const TrainingGroup* group = study.group_of_at_least(1, row, blocks);
      if (!group) continue;
      const auto add = [&](std::string when, std::string epoch, const std::vector<std::string>& cells) {
        table.rows.push_back(
            {optimizer_name(row), fmt::format("{}", blocks), std::move(when), std::move(epoch)});
        table.rows.back().insert(table.rows.back().end(), cells.begin(), cells.end());
      };
      std::vector<double> epochs;
      for (const TrainingRecord* run : group->runs) epochs.push_back(static_cast<double>(run->epochs));
      add("at the end", mean_text(summarize(epochs), 1), weight_cells(weights_at_end(*group)));
      if (const EqualAccuracy::Group* there = equal ? equal->of(group) : nullptr)
        add(fmt::format("at {:.1f} %", 100 * equal->accuracy), mean_text(there->epoch, 1),
            weight_cells(there->weights));
      if (const PublishedPicture* published = published_picture(group->config))
        add("P1, one network", "–",
            {fmt::format("{:.0f}", published->above[0]), fmt::format("{:.0f}", published->above[1]),
             fmt::format("{:.0f}", published->above[2]), fmt::format("{:.2f}", published->largest_key), "–",
             "–", "–", "–", "–"});
    }
  }
  return table;
}

}  // namespace attmirror
