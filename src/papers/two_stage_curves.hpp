// The curves of P4's two stages over seeds: loss, direction, norm and accuracy, and what theory says of where they
// end. Internal.
#pragma once

#include "papers/next_token_study.hpp"

#include <vector>

namespace attmirror::next_token_study {

// One stage of all seeds of a setting: [seed][record].
struct StageCurves {
  std::vector<std::int64_t> steps;
  std::vector<std::vector<double>> loss, direction;
  std::vector<std::vector<double>> norm;  // over t times the step size; NaN at t = 0
  std::vector<std::vector<double>> accuracy;
};

struct TwoStageColumn {
  Setting setting;
  StageCurves first, second;
  std::vector<double> ov_norm, kq_norm;  // of the targets
  std::vector<double> floor;             // what is left of L when all attention is right
  std::vector<double> worst_direction;   // stage 1: over all steps
  std::vector<ExtendedOrder> target_order, trained_order;
  std::vector<double> touched;  // largest score of a token that was never compared, over the largest of all
  std::ptrdiff_t uncertified = 0, unfinished = 0;
};

// Each seed through 3,000 steps of stage 1 and so many of stage 2.
TwoStageColumn train_column(const ExperimentContext& context, const Setting& setting, std::size_t seeds,
                            std::uint64_t first_seed, std::int64_t steps2);

// 1 - cos at the given steps of a long stage 1, and of a long stage 2 after 3,000 steps of stage 1: [seed][step].
struct LongStages {
  std::vector<std::vector<double>> first, second;
};
LongStages long_stages(const ExperimentContext& context, const Setting& setting, std::size_t seeds,
                       std::uint64_t first_seed, const std::vector<std::int64_t>& steps);

// The rate at which log L falls against t from a step on, over that which the margin gives, lr / |W*|; of each seed.
std::vector<double> loss_rates(const StageCurves& stage, const std::vector<double>& target_norm, double lr,
                               std::int64_t from);
// The same of log(log L - log floor).
std::vector<double> excess_rates(const StageCurves& stage, const std::vector<double>& floor,
                                 const std::vector<double>& target_norm, double lr, std::int64_t from);
// How straight log L is from 1/2 down to ten times the floor: the share of its variance that a line explains, of each
// seed that has three records there.
std::vector<double> straightness(const StageCurves& stage, const std::vector<double>& floor);
// (1 - cos) t: its largest value in the last two thirds of a run over its largest value before, from a 30th on.
std::vector<double> late_growth(const StageCurves& stage);
// Of all seeds and records; what is not a number does not count.
double least_of(const std::vector<std::vector<double>>& values);
double largest_of(const std::vector<std::vector<double>>& values);

// The six panels of P4's Figure 2, with a series for each setting.
std::vector<Figure> two_stage_panels(const std::vector<TwoStageColumn>& columns);

}  // namespace attmirror::next_token_study
