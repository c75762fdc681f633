// P4's Algorithm 1 and its single-stage variant.
//
//   stage 1   W_ov <- W_ov - eta0 grad L0 / |grad L0|     from 0, on the collocations
//   stage 2   W_kq <- W_kq - eta  grad L  / |grad L|      from 0, on the sentences, W_ov frozen
//
// with any optimizer of room `descent` instead of normalized gradient descent. Joint training moves both
// blocks at once on L + L0.
#pragma once

#include <attmirror/next_token/objective.hpp>

namespace attmirror {

// The optimizer and length of a stage. The trained weights start at 0 unless a start is given.
struct StageOptions {
  Optimizer optimizer;
  DescentOptions descent{};
  DescentCallbacks callbacks{};  // reports of this stage, and its stop request
};

// P4's step sizes: 0.2 / sqrt(d) in stage 1 and 0.05 / sqrt(d) in stage 2, normalized.
StageOptions paper_stage(Stage stage, std::ptrdiff_t dim, std::int64_t steps);

// The runs of both stages.
struct TwoStageRun {
  DescentRun collocation, attention;
  // Both trained blocks.
  Parameters last() const;
};

// Stage 2 is not started if stage 1 was stopped or diverged: `attention` then has no records and no weights.
TwoStageRun train_two_stage(const NextTokenData& data, const StageOptions& collocation,
                            const StageOptions& attention, const NextTokenMeasures& measures = {});

// Both blocks at once, on one loss.
DescentRun train_joint(const NextTokenData& data, const StageOptions& options,
                       const NextTokenMeasures& measures = {});

}  // namespace attmirror
