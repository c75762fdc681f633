// What p1-imdb-depth makes of the records of docs/results/imdb_depth (4 and 6 blocks) and docs/results/imdb (3 blocks):
// imdb_depth.cpp judges, imdb_depth_study.cpp says what a reader should know, imdb_depth_tables.cpp and
// imdb_depth_figures.cpp show; token selection is in imdb_depth_selection.hpp, weights in imdb_depth_weights.hpp, and
// what P1 claims of both in imdb_depth_claims.hpp. Internal.
#pragma once

#include "papers/pooled_difference.hpp"
#include "papers/training_groups.hpp"
#include <attmirror/papers/experiment.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attmirror {

// P1's sizes, the last of which its pictures are of: so many blocks, with as many heads each.
inline constexpr std::array depth_sizes{3, 4, 6};
inline constexpr int largest_depth = depth_sizes.back();
// How many weights of K, of Q or of V a share of them is: those of a block are matrices of P1's width, squared.
std::int64_t large_weights(double share, int blocks);
// Adam with its learning rate of 3 blocks, and with a third of it, for 4 and 6 blocks: at 6 the first collapsed.
inline constexpr std::array adam_rows{"adam", "adam-1e-4"};
// The rows of P1's table, and Adam beside them: configurations without their size.
inline constexpr std::array depth_rows{"md-1.1", "md-2", "md-3", adam_rows[0], adam_rows[1]};
// "md-1.1-6blocks"; at 3 blocks "md-1.1".
std::string depth_config(std::string_view row, int blocks);

// Whether trainings that collapsed are in a mean, as in P1's.
enum class Collapsed { counted, left_out };

// The trainings of P1's three mirror descents and of Adam at all sizes.
struct DepthStudy {
  std::vector<TrainingRecord> records;  // main trainings of the rows, by size; others are in no comparison
  std::vector<TrainingGroup> groups;    // of these; their runs are those that count in means
  // How many have the review scores of a second training with their seed, because the weights of the first were gone
  // before there was such a score.
  std::int64_t scored_again = 0;

  // Records of 4 and 6 blocks, and of 3.
  DepthStudy(std::span<const TrainingRecord> deep, std::span<const TrainingRecord> shallow);
  // The groups point at the records.
  DepthStudy(const DepthStudy&) = delete;
  DepthStudy& operator=(const DepthStudy&) = delete;

  // Null: not trained.
  const TrainingGroup* group(std::string_view row, int blocks) const;
  // Null unless at least so many trainings came to their end.
  const TrainingGroup* group_of_at_least(std::ptrdiff_t count, std::string_view row, int blocks) const;
  // The sizes at which both rows have a training that came to its end.
  std::vector<int> sizes_of(std::string_view first, std::string_view second) const;
  // Over those sizes in one model, in points; nothing without any.
  std::optional<WelchComparison> pooled(std::string_view first, std::string_view second,
                                        RecordedNumber member,
                                        Collapsed collapsed = Collapsed::counted) const;
  // At one size; nothing unless both have two trainings that came to their end.
  std::optional<WelchComparison> compared_at(int blocks, std::string_view first, std::string_view second,
                                             RecordedNumber member) const;
};

// A mirror descent that was stopped for want of time, with at least this training accuracy, counts like one that
// stopped at its limit of epochs: its test accuracy is best long before, below 92 % in all trainings here.
inline constexpr double late_accuracy = 0.98;
bool stopped_late(const TrainingRecord& record);
// It came to its end, or was stopped late.
bool counts_in_means(const TrainingRecord& record);

// A training collapses if it diverges, if it is at chance (below 51 % of the test reviews) in all of ten epochs or
// more, or if its last test accuracy is more than collapse_points below its best. Of P1's ten trainings of l1.1
// mirror descent at 6 blocks one did: all of its 1000 epochs did not bring it to 99.5 %. What happened, in words;
// nothing: it did not collapse.
inline constexpr double collapse_points = 10;
std::optional<std::string> collapse_of(const TrainingRecord& record);
// Those of a group that count and did not collapse.
std::vector<const TrainingRecord*> sound_runs(const TrainingGroup& group);

// "83.01 ± 0.33 (5)": mean, half of its 95 % interval, number of trainings.
std::string mean_and_count(const SampleSummary& sample, int decimals = 2);

// P1 by size, ours and published, by which accuracy: "best epoch", best_test.
Table depth_size_table(const DepthStudy& study, std::string_view measure, RecordedNumber member);
Table depth_difference_table(const DepthStudy& study);  // pairs of optimizers, by size and over all sizes
Table depth_collapse_table(const DepthStudy& study);

Figure depth_size_figure(const DepthStudy& study);
Figure depth_score_figure(const DepthStudy& study);  // token selection; no series where nothing was scored
Figure depth_curves(const DepthStudy& study, int blocks);

// "3, 4 and 6 blocks", "6 blocks"
std::string blocks_text(const std::vector<int>& sizes);

std::vector<std::string> depth_remarks(const DepthStudy& study);
std::vector<std::pair<std::string, std::string>> depth_configuration(const DepthStudy& study);

// All of the experiment but reading.
ExperimentResult imdb_depth_result(std::span<const TrainingRecord> deep,
                                   std::span<const TrainingRecord> shallow);

}  // namespace attmirror
