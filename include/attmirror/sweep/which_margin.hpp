// Which margin does an optimizer maximize? Every direction that separates the selected tokens from the others
// drives the loss down; the optimizer decides which of them the weights take. For trained weights W and each
// norm
//
//   share = (min (x_alpha - x_t)^T W z / ||W||) / (1 / ||W_mm||)
//
// with W_mm the certified max-margin solution in that norm for the tokens alpha that these weights select: 1
// where no direction has a larger margin. Theory says that 1 is approached, and in one column only: that of
// the optimizer's own norm.
//
//   const Attention model{data};
//   const WhichMargin table = which_margin(model, default_margin_optimizers(), default_margin_norms());
//   table.rows[0].shares[3].share
#pragma once

#include <attmirror/base/stop.hpp>
#include <attmirror/descent/descend.hpp>
#include <attmirror/margin/max_margin.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace attmirror {

// ---- shares of trained weights

// The end of a training, or of anything else that has weights.
struct TrainedWeights {
  const Attention* model = nullptr;  // not owned
  Parameters weights{};              // without W, K and p: no direction, and hence no shares
  Selection selected{};              // the tokens of its max-margin problems
};

// The margin of trained weights in one norm, as a share of the largest possible one.
struct MarginShare {
  // NaN where the largest margin is not certified, or there are no weights.
  double share = std::numeric_limits<double>::quiet_NaN();
  MarginStatus status = MarginStatus::stopped;  // of the max-margin problem
  double largest_norm =
      std::numeric_limits<double>::quiet_NaN();           // ||W_mm||, the reciprocal of the largest margin
  double gap = std::numeric_limits<double>::quiet_NaN();  // of its certificate
};

// How the max-margin problems are worked on.
struct MarginWork {
  int threads = 0;  // 0: as many as the machine runs at once; results do not depend on it
  std::function<void(double share)> on_progress{};
  // Ends the work early; what was not solved is `stopped`.
  StopRequest stop{};
};

// The shares of several trained weights in several norms.
struct MarginShares {
  std::vector<std::vector<MarginShare>> rows;  // [weights][norm]
  // Of the max-margin problems behind them: how many, how many without a certificate, and the largest gap of
  // a certificate.
  std::int64_t problems = 0, uncertified = 0;
  double worst_gap = 0;
};

// Each problem (data, tokens, norm) is solved once, whoever selected the tokens.
MarginShares margin_shares(std::span<const TrainedWeights> weights, std::span<const Norm> norms,
                           const MarginWork& work = {});

// ---- the table

// A row to be trained.
struct MarginOptimizer {
  std::string name;   // as in `attmirror which-margin --optimizers`: md:1.1
  std::string title;  // for people: ℓ1.1 mirror descent
  Optimizer optimizer;
};

// Nine optimizers, one or more for each of the norms below, and those norms: 1, 1.1, 1.75, 2, 3, inf,
// nuclear, spectral.
std::vector<MarginOptimizer> default_margin_optimizers();
std::vector<Norm> default_margin_norms();

// A run whose margins are asked for.
struct MarginRun {
  std::string name, title;
  const Attention* model = nullptr;  // not owned
  Optimizer optimizer;
  DescentRun run;  // records with weights tell whether its margin still rises
};

// Why a row's shares are not those of its limit.
enum class RowState {
  near_limit,  // its attention is decided, and its margin no longer rises
  // The mean largest softmax probability is at most 0.99: which tokens it selects is not decided.
  unsaturated,
  // Its own margin is below 0.98 of the largest, and grew by more than 0.01 in the second half of the steps.
  rising,
  diverged,     // there are no shares
  infeasible,   // no weights separate the tokens that it selects: two tokens of a sequence are equal
  uncertified,  // a max-margin problem of the row was not solved to its tolerance
};
std::string_view to_string(RowState state);

// A row of the table: an optimizer or a run, and its margins.
struct MarginRow {
  std::string name, title;
  Optimizer optimizer;
  std::int64_t steps = 0;
  double max_softmax = 0;
  std::optional<Norm> predicted;  // the norm whose margin theory says it maximizes
  std::vector<MarginShare> shares;
  // Its share in the predicted norm (without one, in that of its largest share) at half of the steps; NaN
  // where the run kept no weights from there.
  double halfway = std::numeric_limits<double>::quiet_NaN();
  bool globally_optimal = false;
  RowState state = RowState::near_limit;
  std::string remark{};  // a sentence on the state, where there is something to say

  std::optional<std::size_t> predicted_column(std::span<const Norm> norms) const;
  // Where the share is largest; none where the row has no shares.
  std::optional<std::size_t> largest_column() const;
};

// The whole table.
struct WhichMargin {
  std::vector<Norm> norms;
  std::vector<MarginRow> rows;
  std::int64_t problems = 0, uncertified = 0;
  double worst_gap = 0;
  bool interrupted = false;
};

// How the optimizers of the table are trained.
struct WhichMarginOptions {
  std::int64_t steps = 20'000;  // with the step sizes below, near the limit on data of the papers' size
  // Step sizes by the data's scale, as docs/study.md says: then the table does not depend on the units of
  // tokens and queries. Otherwise those of the optimizers.
  bool scaled_lr = true;
  // The decoder divided by the root mean square of the scores v^T x: then it does not depend on their units
  // either.
  bool scaled_scores = true;
  MarginWork work{};

  void validate() const;
};

// Trains each optimizer from W = 0 and measures it. Interrupted, the table has no rows.
WhichMargin which_margin(const Attention& model, std::span<const MarginOptimizer> optimizers,
                         std::span<const Norm> norms, const WhichMarginOptions& options = {});

// The trainings alone, to be measured together with other runs.
std::vector<MarginRun> train_margin_runs(const Attention& model, std::span<const MarginOptimizer> optimizers,
                                         const WhichMarginOptions& options = {});
WhichMargin which_margin(std::span<const MarginRun> runs, std::span<const Norm> norms,
                         const MarginWork& work = {});

}  // namespace attmirror
