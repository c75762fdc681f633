// What p1-imdb makes of the records of docs/results/imdb: p1_imdb.cpp judges, imdb_tables.cpp and imdb_figures.cpp
// show. Internal.
#pragma once

#include "papers/records.hpp"
#include "papers/welch.hpp"
#include <attmirror/papers/experiment.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// A number that each training has, one of these two kinds.
using RecordedNumber = std::optional<double> TrainingRecord::*;
using RecordedCount = std::optional<std::int64_t> TrainingRecord::*;

// The main trainings of one configuration.
struct ImdbGroup {
  std::string config, name;                   // "md-1.1", "ℓ1.1 mirror descent"
  std::vector<const TrainingRecord*> runs;    // that came to their end: what means are over
  std::vector<const TrainingRecord*> others;  // that diverged, were stopped or failed

  // Accuracies in percent; what a training has not is left out.
  SampleSummary percent(RecordedNumber member) const;
  SampleSummary numbers(RecordedNumber member) const;
  SampleSummary counts(RecordedCount member) const;
  SampleSummary mean_sparsity() const;  // Hoyer's, mean of K, Q and V
  SampleSummary mean_above() const;     // weights above 0.06, share of K, Q and V together, in percent
};

// Mirror descents first, in the order of p, then the others by name. The records must outlive the groups.
std::vector<ImdbGroup> imdb_groups(std::span<const TrainingRecord> records);
// Throws Error (bad input) where there is none.
const ImdbGroup& group_of(const std::vector<ImdbGroup>& groups, std::string_view config);

std::string imdb_name(std::string_view config);

// "1.72 points (95 % interval 1.51 to 1.93)"
std::string difference_text(const WelchComparison& comparison);
// "83.41 ± 0.11": the mean, and half of its 95 % interval; "–" for nothing.
std::string mean_text(const SampleSummary& sample, int decimals);

Table imdb_optimizer_table(const std::vector<ImdbGroup>& groups);
// Every other optimizer against l1.1 mirror descent.
Table imdb_comparison_table(const std::vector<ImdbGroup>& groups);
Table imdb_tuning_table(std::span<const TrainingRecord> records);
Table imdb_runs_table(std::span<const TrainingRecord> records);
Table imdb_weights_table(
    std::span<const TrainingRecord> records);  // without those that choose learning rates
Table imdb_repeat_table(std::span<const TrainingRecord> records, const std::vector<ImdbGroup>& groups);

Figure imdb_curves(const std::vector<ImdbGroup>& groups);
Figure imdb_sparsity_figure(const std::vector<ImdbGroup>& groups);

// All of the experiment but reading. Throws Error (bad input) for records without md-1.1 and md-2.
ExperimentResult imdb_result(std::span<const TrainingRecord> records);

}  // namespace attmirror
