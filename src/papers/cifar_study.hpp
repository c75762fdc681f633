// What p1-cifar and p2-vit make of the records of docs/results/cifar: p1_cifar.cpp judges accuracies, p2_vit.cpp
// attention; p1_cifar_figures.cpp and p2_vit_figures.cpp draw them. Internal.
#pragma once

#include "papers/training_groups.hpp"
#include <attmirror/base/figure.hpp>
#include <attmirror/papers/experiment.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace attmirror {

// All of the experiments but reading. Both take what there is: trainings that were stopped count as far as they got.
ExperimentResult cifar_result(std::span<const TrainingRecord> records);
ExperimentResult vit_result(std::span<const TrainingRecord> records);

// What can be read off P1's figure, in percent.
struct PublishedAccuracy {
  const char* config;
  std::int64_t epoch;
  double accuracy;
};
inline constexpr PublishedAccuracy cifar_published[] = {
    {"adam", 50, 79}, {"adam", 150, 80.5}, {"md-1.1", 150, 80}};
// The two optimizers that P1 compares.
inline bool is_of_p1(const TrainingGroup& group) {
  return group.config == "md-1.1" || group.config == "adam";
}
inline constexpr double cifar_reading = 1;  // points, either way

// Test accuracy by epoch beside P1's. `begun` are the groups with unfinished trainings.
Figure cifar_curves(std::vector<TrainingGroup> groups, const std::vector<TrainingGroup>& begun);
// The share of the weights of K, Q or V within 0.005 of 0, which is a bin of the histograms; none without a histogram.
std::optional<double> share_near_zero(const TrainingRecord& run, char map);
// Of K, Q or V, for one training of each optimizer, the first that has a histogram.
Figure weight_histograms(const std::vector<TrainingGroup>& groups, char map);
// Of K, for l1.1 mirror descent and Adam alone, around 0 and on a linear scale, as P1's figure.
Figure near_zero_histograms(const std::vector<TrainingGroup>& groups);

// The same groups, where trainings that were stopped are among those that came to their end: a curve is right as far as
// it goes.
std::vector<TrainingGroup> with_unfinished(std::vector<TrainingGroup> groups);

// Of the longest main training.
std::int64_t main_epochs(std::span<const TrainingRecord> records);

// Where the records come from, and how a training is made again.
std::string cifar_records_remark(std::span<const TrainingRecord> records);
// Which main trainings count in part, and which not at all.
std::vector<std::string> cifar_left_out_remarks(const std::vector<TrainingGroup>& groups);
// Data, network and training, then every group.
std::vector<std::pair<std::string, std::string>> cifar_configuration(
    std::span<const TrainingRecord> records, const std::vector<TrainingGroup>& groups);

// What keeps less than this of its peak has fallen.
inline constexpr double kept_of_peak = 0.9;

// One block of one training, from the first to the last epoch in which attention was measured.
struct BlockTrend {
  const TrainingRecord* run = nullptr;
  AttentionRecord first, last;
  double class_token_peak = 0;  // the largest share of the class token's top token
  double correlation =
      0;  // Spearman's, over epochs, of |K Q^T| and the share of the top token; NaN: one is constant

  bool grew() const { return last.product_norm > first.product_norm; }
  // Less spread by both measures: the attention of all queries, or of the class token's.
  bool sparsified(AttentionSpreadRecord AttentionRecord::*queries = &AttentionRecord::all) const {
    return (last.*queries).top_share > (first.*queries).top_share &&
           (last.*queries).entropy < (first.*queries).entropy;
  }
  // What P2 describes: weights grow, attention concentrates, and the two go together.
  bool as_claimed() const { return grew() && sparsified() && correlation > 0; }
};
// None for a training in which attention was measured less than twice.
std::vector<BlockTrend> block_trends(const TrainingRecord& run);

// The trainings of an optimizer whose attention was measured at least twice.
struct VitGroup {
  std::string name;
  std::vector<const TrainingRecord*> longest;  // those that were measured last: what means are over
  std::vector<BlockTrend> trends;              // training by training, block by block

  std::int64_t blocks() const;               // of the network
  std::vector<std::int64_t> epochs() const;  // in which all of its trainings were measured
  // Means over trainings and blocks after one of these epochs.
  AttentionRecord mean_at(std::int64_t epoch) const;
};

// Optimizers that P2's claim is judged for, in the order of tables.
std::vector<VitGroup> vit_groups(const std::vector<TrainingGroup>& groups);
// Top share (of all queries and of the class token's), entropy, tokens and |K Q^T| by epoch, top share against
// |K Q^T|, correlations by block. None without groups.
std::vector<Figure> vit_figures(const std::vector<VitGroup>& groups);
Table vit_block_table(const std::vector<VitGroup>& groups);

}  // namespace attmirror
