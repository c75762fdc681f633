#include "base/numbers.hpp"
#include "descent/data_scale.hpp"
#include "descent/optimizer_words.hpp"
#include "descent/saved_model.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/descent/run_folder.hpp>
#include <attmirror/sweep/many.hpp>
#include <attmirror/sweep/which_margin.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr double decided =
    0.99;  // the mean largest probability above which attention is decided, as in sweeps
constexpr double rising_by = 0.01;      // of the largest margin, in the second half of the steps
constexpr double close_to_one = 0.98;   // from here on there is little left to rise
constexpr double training_share = 0.9;  // of the whole work, for progress

// The weights at about half of the steps, if the run kept any.
const Record* halfway_record(const DescentRun& run) {
  const Record* best = nullptr;
  for (const Record& record : run.records) {
    const bool has_weights = attention_weights(record.parameters).size() > 0;
    if (has_weights && 2 * record.step <= run.steps && record.step > 0) best = &record;
  }
  // A record from long before says nothing about the second half.
  return best != nullptr && 4 * best->step >= run.steps ? best : nullptr;
}

// The column in which a row is watched: the predicted one, else that of its largest share.
std::optional<std::size_t> watched_column(const MarginRow& row, std::span<const Norm> norms) {
  const std::optional<std::size_t> predicted = row.predicted_column(norms);
  return predicted ? predicted : row.largest_column();
}

void judge_row(MarginRow& row, const MarginRun& from, std::span<const Norm> norms) {
  const DescentRun& run = from.run;
  const auto set = [&row](RowState state, std::string remark) {
    row.state = state;
    row.remark = std::move(remark);
  };
  if (run.status == RunStatus::diverged)
    return set(RowState::diverged,
               fmt::format("diverged at step {}: its weights have no direction", run.steps));
  for (const MarginShare& share : row.shares)
    if (share.status == MarginStatus::infeasible)
      return set(RowState::infeasible,
                 "no weights separate the tokens that it selects from the others, so no margin is largest: "
                 "two tokens of a sequence are equal, or nearly so");
  if (std::ranges::any_of(row.shares,
                          [](const MarginShare& s) { return s.status != MarginStatus::certified; }))
    return set(RowState::uncertified, "a max-margin problem could not be certified; its cell is left empty");
  if (!(run.max_softmax > decided))
    return set(
        RowState::unsaturated,
        fmt::format("its attention is not decided: the mean largest probability is {:.3f} after {} steps",
                    run.max_softmax, run.steps));
  const std::optional<std::size_t> column = watched_column(row, norms);
  if (!column) return;
  if (std::isnan(row.halfway)) {
    row.remark =
        "the run kept no weights from half of its steps, so whether its margin still rises is not known";
    return;
  }
  const double end = row.shares[*column].share;
  if (end < close_to_one && end - row.halfway > rising_by)
    set(RowState::rising,
        fmt::format("its margin still rises: from {:.3f} of the largest at half of the steps to {:.3f}",
                    row.halfway, end));
}

}  // namespace

std::string_view to_string(RowState state) {
  switch (state) {
    case RowState::near_limit:
      return "near_limit";
    case RowState::unsaturated:
      return "unsaturated";
    case RowState::rising:
      return "rising";
    case RowState::diverged:
      return "diverged";
    case RowState::infeasible:
      return "infeasible";
    case RowState::uncertified:
      return "uncertified";
  }
  return "unknown";
}

std::optional<std::size_t> MarginRow::predicted_column(std::span<const Norm> norms) const {
  if (!predicted) return std::nullopt;
  const auto found = std::ranges::find(norms, *predicted);
  if (found == norms.end()) return std::nullopt;
  return static_cast<std::size_t>(found - norms.begin());
}

std::optional<std::size_t> MarginRow::largest_column() const {
  std::optional<std::size_t> best;
  for (std::size_t c = 0; c < shares.size(); ++c)
    if (!std::isnan(shares[c].share) && (!best || shares[c].share > shares[*best].share)) best = c;
  return best;
}

void WhichMarginOptions::validate() const {
  if (steps < 1) throw bad_value("steps", steps, "1 or more");
}

std::vector<MarginOptimizer> default_margin_optimizers() {
  static const std::vector<std::string> words{
      "md:1.1", "md:1.75", "gd", "md:3", "coordinate", "sign", "adam:0.95", "spectral", "steepest:nuclear"};
  std::vector<MarginOptimizer> all;
  for (NamedOptimizer& one : parse_optimizer_words(words, {}))
    all.push_back({std::move(one.word), std::move(one.title), std::move(one.optimizer)});
  return all;
}

std::vector<Norm> default_margin_norms() {
  return {Norm::l(1), Norm::l(1.1),      Norm::l(1.75),   Norm::l(2),
          Norm::l(3), Norm::l(infinity), Norm::nuclear(), Norm::spectral()};
}

std::vector<MarginRun> train_margin_runs(const Attention& model, std::span<const MarginOptimizer> optimizers,
                                         const WhichMarginOptions& options) {
  options.validate();
  std::vector<DescentTask> tasks;
  const double score = options.scaled_scores ? score_scale(model.data()) : 0;
  for (const MarginOptimizer& entry : optimizers) {
    DescentTask task{.model = &model,
                     .optimizer = options.scaled_lr ? scaled_to(model, entry.optimizer) : entry.optimizer};
    task.options = {.steps = options.steps, .record = RecordSchedule::at({options.steps / 2})};
    if (score > 0 && model.has_block(Block::v) && !model.is_trained(Block::v))
      task.options.init.given.v = model.zero_parameters().v / score;
    if (std::holds_alternative<KQ>(model.parameterization())) {
      // K = Q = 0 is a stationary point; a start near it is forgotten.
      task.options.init.kind = InitKind::normal;
      task.options.init.std = 0.001 * start_deviation(model);
    }
    tasks.push_back(std::move(task));
  }
  const auto& progress = options.work.on_progress;
  std::vector<DescentRun> runs =
      descend_many(tasks, {.threads = options.work.threads,
                           .on_pulse = progress ? [&](double share) { progress(training_share * share); }
                                                : std::function<void(double)>(),
                           .stop = options.work.stop});
  std::vector<MarginRun> result;
  for (std::size_t i = 0; i < runs.size(); ++i)
    result.push_back(
        {optimizers[i].name, optimizers[i].title, &model, std::move(tasks[i].optimizer), std::move(runs[i])});
  return result;
}

WhichMargin which_margin(std::span<const MarginRun> runs, std::span<const Norm> norms,
                         const MarginWork& work) {
  WhichMargin table;
  table.norms.assign(norms.begin(), norms.end());
  std::vector<TrainedWeights> ends;
  for (const MarginRun& run : runs) {
    if (run.run.status == RunStatus::interrupted && work.stop.requested()) table.interrupted = true;
    const bool lost = run.run.status == RunStatus::diverged;
    ends.push_back(
        {run.model, lost ? Parameters{} : run.run.final_parameters, lost ? Selection{} : run.run.selected});
  }
  if (table.interrupted) return table;
  // Half of the way, each run is held against the same solutions as at its end.
  const std::size_t count = ends.size();
  std::vector<std::size_t> halves;
  for (std::size_t i = 0; i < count; ++i)
    if (const Record* half = halfway_record(runs[i].run);
        half != nullptr && !ends[i].selected.tokens.empty()) {
      halves.push_back(i);
      ends.push_back({runs[i].model, half->parameters, ends[i].selected});
    }
  MarginWork rest = work;
  if (work.on_progress)
    rest.on_progress = [&](double share) { work.on_progress(training_share + (1 - training_share) * share); };
  MarginShares shares = margin_shares(ends, norms, rest);
  if (work.stop.requested()) {
    table.interrupted = true;
    return table;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const MarginRun& from = runs[i];
    MarginRow row{.name = from.name,
                  .title = from.title,
                  .optimizer = from.optimizer,
                  .steps = from.run.steps,
                  .max_softmax = from.run.max_softmax,
                  .predicted = limit_norm(from.optimizer, from.model->parameterization()),
                  .shares = std::move(shares.rows[i])};
    if (const auto half = std::ranges::find(halves, i); half != halves.end()) {
      const std::vector<MarginShare>& then =
          shares.rows[count + static_cast<std::size_t>(half - halves.begin())];
      if (const auto column = watched_column(row, norms)) row.halfway = then[*column].share;
    }
    row.globally_optimal =
        from.run.status != RunStatus::diverged && result_of(*from.model, from.run).globally_optimal();
    judge_row(row, from, norms);
    table.rows.push_back(std::move(row));
  }
  table.problems = shares.problems;
  table.uncertified = shares.uncertified;
  table.worst_gap = shares.worst_gap;
  return table;
}

WhichMargin which_margin(const Attention& model, std::span<const MarginOptimizer> optimizers,
                         std::span<const Norm> norms, const WhichMarginOptions& options) {
  return which_margin(train_margin_runs(model, optimizers, options), norms, options.work);
}

}  // namespace attmirror
