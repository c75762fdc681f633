#include "descent/run_progress.hpp"

#include <attmirror/base/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

// Metrics stand in trace.npz beside the blocks and what every run has.
void check_metric_names(const Objective& objective, const std::vector<Metric>& metrics) {
  constexpr std::array<std::string_view, 5> common{"format_version", "step", "loss", "max_softmax", "norm"};
  const std::vector<BlockShape> blocks = objective.blocks();
  for (const Metric& metric : metrics) {
    const auto is_name = [&](const BlockShape& shape) { return shape.name.name() == metric.name; };
    if (std::ranges::find(common, metric.name) != common.end() || std::ranges::any_of(blocks, is_name) ||
        std::ranges::count(metrics, metric.name, &Metric::name) > 1)
      throw bad_input(fmt::format(
          "a metric of the model is called \"{}\", which is also the name of a block, of another metric or of a column of every run",
          metric.name));
  }
}

}  // namespace

RunProgress::RunProgress(const Objective& objective, const Optimizer& optimizer,
                         const DescentOptions& options)
    : value{std::numeric_limits<double>::quiet_NaN(), 0},
      objective_(&objective),
      optimizer_(optimizer),
      options_(options) {}

void RunProgress::begin() { next_record_ = options_.record.next(step); }

Decision RunProgress::decide(Request request) {
  if (!std::isfinite(value.loss)) return {Decision::Keep::nothing, RunStatus::diverged};
  Decision decision;
  if (step == next_record_) {
    decision.keep = Decision::Keep::scheduled_record;
    next_record_ = options_.record.next(step + 1);
  }
  if (request == Request::stop) {
    decision.status = RunStatus::interrupted;
    return decision;
  }
  if (step < options_.steps && !saturated() && request != Request::time_over) return decision;
  if (decision.keep == Decision::Keep::nothing) decision.keep = Decision::Keep::last_record;
  decision.status = saturated()              ? RunStatus::saturated
                    : step >= options_.steps ? RunStatus::completed
                                             : RunStatus::out_of_time;
  return decision;
}

const Record& RunProgress::record(const Decision& decision, const ParameterBlocks& weights,
                                  std::vector<Metric> metrics) {
  Record record;
  record.step = step;
  record.loss = value.loss;
  record.max_softmax = value.max_softmax;
  record.scheduled = decision.keep == Decision::Keep::scheduled_record;
  Parameters now = weights.parameters();
  record.norm = objective_->weight_norm(now, measuring_norm(optimizer_));
  if (records.empty()) check_metric_names(*objective_, metrics);
  // By name, as files have them: a resumed run must not differ in the order of keys.
  std::ranges::sort(metrics, {}, &Metric::name);
  record.metrics = std::move(metrics);
  if (options_.keep == Keep::parameters) record.parameters = std::move(now);
  records.push_back(std::move(record));
  return records.back();
}

DescentRun RunProgress::finish(RunStatus status, const ParameterBlocks& weights, double seconds) const {
  DescentRun run;
  run.status = status;
  run.steps = step;
  run.loss = value.loss;
  run.max_softmax = value.max_softmax;
  run.final_parameters = weights.parameters();
  run.norm = objective_->weight_norm(run.final_parameters, measuring_norm(optimizer_));
  if (status != RunStatus::diverged) run.selected = objective_->selected(run.final_parameters);
  run.records = records;
  run.seconds = seconds;
  return run;
}

}  // namespace attmirror
