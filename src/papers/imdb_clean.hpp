// What imdb-clean makes of the records of docs/results/imdb_clean: imdb_clean.cpp judges, imdb_clean_study.cpp says
// what a reader should know, imdb_clean_tables.cpp and imdb_clean_figures.cpp show. Internal.
#pragma once

#include "papers/imdb_search.hpp"
#include "papers/training_groups.hpp"
#include <attmirror/papers/experiment.hpp>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// The test set is read once, after the last epoch.
inline constexpr RecordedNumber clean_test = &TrainingRecord::last_test;

// How fast a training is: its epochs to this share of a final accuracy.
inline constexpr double goal_share = 0.95;

// Which reviews chose the settings: every fifth, or blocks of 500 neighbors. imdb_clean.cpp says what that changes.
enum class HeldOut { reviews, blocks };

// The records, and what is looked up in them. The records must outlive it.
struct CleanStudy {
  std::span<const TrainingRecord> records;  // all of them
  std::span<const SpeedRecord> speeds;
  std::vector<TrainingGroup>
      groups;  // of main trainings, and searches: those whose settings were chosen in one way
  std::vector<ImdbSearch> searches;

  CleanStudy(std::span<const TrainingRecord> trainings, std::span<const SpeedRecord> measured,
             HeldOut held_out = HeldOut::reviews);

  // The highest mean test accuracy among groups of at least two trainings: of the mirror descents, and of the others,
  // gradient descent included. None where there is no such group.
  const TrainingGroup* best_mirror() const;
  const TrainingGroup* best_other() const;
  const TrainingGroup* best() const;
  // Of at least two trainings, too.
  const TrainingGroup* adamw() const;

  // Bytes of the optimizer's state for each parameter of the network.
  std::optional<double> state_per_parameter(const TrainingGroup& group) const;
  // Of an epoch of a tuning run: by the configuration or by its kind of optimizer.
  std::optional<double> epoch_seconds(std::string_view config) const;
  // goal_share of AdamW's final accuracy on held-out reviews: one goal for all.
  std::optional<double> common_goal() const;
};

// Test accuracies after the last epoch, the first minus the second, in points.
WelchComparison compare_tests(const TrainingGroup& first, const TrainingGroup& second);

Table clean_optimizer_table(const CleanStudy& study);
Table clean_blocks_table(const CleanStudy& study, const CleanStudy& blocks);  // both ways to choose settings
Table clean_attention_table(const CleanStudy& study);                         // token selection and sparsity
Table clean_comparison_table(const CleanStudy& study);  // against AdamW and against the best
Table clean_exponent_table(const CleanStudy& study);  // p and variants of mirror descent, on held-out reviews
Table clean_search_table(const CleanStudy& study);    // a row for each search
Table clean_trial_table(const CleanStudy& study);     // a row for each tuning run
Table clean_ablation_table(const CleanStudy& study);
Table clean_longer_table(const CleanStudy& study);
Table clean_transfer_table(const CleanStudy& study);
Table clean_runs_table(const CleanStudy& study);

// The main trainings that ablations change one thing of: those that share most settings with them; among several the
// most accurate mirror descent. None where there is no ablation or nothing to compare it with.
const TrainingGroup* ablated_recipe(const CleanStudy& study);

Figure clean_curves(const CleanStudy& study);           // held-out accuracy of the winners by epoch
Figure clean_memory_figure(const CleanStudy& study);    // test accuracy against the optimizer's state
Figure clean_exponent_figure(const CleanStudy& study);  // a heat map of clean_exponent_table()
Figure clean_rate_figure(const CleanStudy& study);      // held-out accuracy by learning rate and p

std::vector<std::string> clean_remarks(const CleanStudy& study);
std::vector<std::pair<std::string, std::string>> clean_configuration(const CleanStudy& study);

// All of the experiment but reading.
ExperimentResult imdb_clean_result(std::span<const TrainingRecord> records,
                                   std::span<const SpeedRecord> speeds);

}  // namespace attmirror
