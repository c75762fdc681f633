// What p1-imdb makes of the records of docs/results/imdb: p1_imdb.cpp judges, imdb_tables.cpp and imdb_figures.cpp
// show. p1-imdb-depth and imdb-clean share some of the tables and figures. Internal.
#pragma once

#include "papers/imdb_groups.hpp"
#include <attmirror/papers/experiment.hpp>

#include <span>
#include <string_view>
#include <vector>

namespace attmirror {

Table imdb_optimizer_table(const std::vector<ImdbGroup>& groups);
// Every other optimizer against l1.1 mirror descent.
Table imdb_comparison_table(const std::vector<ImdbGroup>& groups);
Table imdb_tuning_table(std::span<const TrainingRecord> records);
Table imdb_runs_table(std::span<const TrainingRecord> records);
Table imdb_weights_table(
    std::span<const TrainingRecord> records);  // without those that choose learning rates
// By which accuracy: "best test", best_test.
Table imdb_repeat_table(std::span<const TrainingRecord> records, const std::vector<ImdbGroup>& groups,
                        std::string_view measure, RecordedNumber member);

// Trainings end at 99.5 % training accuracy or after so many epochs.
Figure imdb_curves(const std::vector<ImdbGroup>& groups, int limit = 130);
// By which accuracy: "last ten epochs", last_ten_test.
Figure imdb_sparsity_figure(const std::vector<ImdbGroup>& groups, std::string_view measure,
                            RecordedNumber member);

// All of the experiment but reading. Throws Error (bad input) for records without md-1.1 and md-2.
ExperimentResult imdb_result(std::span<const TrainingRecord> records);

}  // namespace attmirror
