#include "sweep/batches.hpp"

#include "sweep/run_groups.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

// What lanes of one vector may differ in.
constexpr std::array<std::string_view, 6> free_settings{"seed",      "lr",    "init",
                                                        "init_seed", "steps", "saturation"};

// A batch of less than this (about ten milliseconds) is not worth a thread's attention.
constexpr double least_work = 1e8;
constexpr double batches_per_worker = 8;

double number(const SweepPlan& plan, std::int64_t run, std::string_view name, double otherwise) {
  const auto column = std::ranges::find(plan.columns, name, &RowColumn::name);
  if (column == plan.columns.end()) return otherwise;
  const Cell& cell =
      plan.runs[static_cast<std::size_t>(run)].cells[static_cast<std::size_t>(column - plan.columns.begin())];
  if (const auto* count = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*count);
  if (const auto* value = std::get_if<double>(&cell)) return *value;
  return otherwise;
}

}  // namespace

double steps_of(const SweepPlan& plan, std::int64_t run) { return number(plan, run, "steps", 1000); }

double work_of(const RunSize& size, const RecordPlan& record) {
  // Two products with the tokens and two with the queries; the rest of a step is about as much; and the solutions.
  const double step = 4 * size.samples * size.dim * (size.tokens + size.dim);
  return size.steps * step + 2e6 * static_cast<double>(record.solutions.size());
}

double work_of(const SweepPlan& plan, std::int64_t run) {
  const RunSize usual;
  return work_of({.samples = number(plan, run, "samples", usual.samples),
                  .tokens = number(plan, run, "tokens", usual.tokens),
                  .dim = number(plan, run, "dim", usual.dim),
                  .steps = steps_of(plan, run)},
                 plan.record);
}

bool is_free_setting(std::string_view name) {
  return std::ranges::find(free_settings, name) != free_settings.end();
}

std::string shape_text(const SweepPlan& plan, std::int64_t run) {
  std::string text;
  const std::vector<Cell>& cells = plan.runs[static_cast<std::size_t>(run)].cells;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (is_free_setting(plan.columns[i].name)) continue;
    std::visit(
        [&](const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>)
            text += '|';
          else
            text += fmt::format("{}|", value);
        },
        cells[i]);
  }
  return text;
}

std::vector<Batch> make_batches(const SweepPlan& plan, std::span<const std::int64_t> runs, int workers) {
  std::vector<GroupedRun> all;
  double total = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    all.push_back({.index = i, .group = shape_text(plan, runs[i]), .work = work_of(plan, runs[i])});
    total += all.back().work;
  }
  const double share = total / (std::max(1, workers) * batches_per_worker);
  const double wanted = std::max(least_work, std::min(share, 50 * least_work));
  std::vector<Batch> batches;
  for (const RunPiece& piece : cut_into_pieces(std::move(all), wanted)) {
    Batch& batch = batches.emplace_back();
    for (const std::size_t i : piece.indices) batch.runs.push_back(runs[i]);
    batch.work = piece.work;
  }
  return batches;
}

}  // namespace attmirror
