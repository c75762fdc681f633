// Tables and figures of the experiments that read records of trainings: p1-imdb, p1-imdb-depth, imdb-clean and
// p1-cifar. training_tables.cpp and training_figures.cpp make them. Internal.
#pragma once

#include "papers/training_groups.hpp"
#include <attmirror/papers/experiment.hpp>

#include <span>
#include <string_view>
#include <vector>

namespace attmirror {

Table training_optimizer_table(const std::vector<TrainingGroup>& groups);
// Every other optimizer against l1.1 mirror descent.
Table training_comparison_table(const std::vector<TrainingGroup>& groups);
// On which rows: "5,000 held-out training reviews".
Table training_tuning_table(std::span<const TrainingRecord> records, std::string_view held_out);
Table training_runs_table(std::span<const TrainingRecord> records);
Table training_weights_table(
    std::span<const TrainingRecord> records);  // without those that choose learning rates
// By which accuracy: "best test", best_test.
Table training_repeat_table(std::span<const TrainingRecord> records, const std::vector<TrainingGroup>& groups,
                            std::string_view measure, RecordedNumber member);

// Where curves end, after a comma: ", after 150 epochs".
Figure accuracy_curves(const std::vector<TrainingGroup>& groups, std::string_view ends);
// By which accuracy: "last ten epochs", last_ten_test.
Figure sparsity_figure(const std::vector<TrainingGroup>& groups, std::string_view measure,
                       RecordedNumber member);

}  // namespace attmirror
