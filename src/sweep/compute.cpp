// The runs of a batch, from settings to rows. Whatever goes wrong with one of them becomes its row.
#include "sweep/compute.hpp"

#include "base/stopwatch.hpp"
#include "sweep/batches.hpp"
#include "sweep/measure.hpp"
#include "sweep/record_plan.hpp"
#include "sweep/run_groups.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/base/isa.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/sweep/many.hpp>
#include <attmirror/sweep/sweep.hpp>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <new>
#include <optional>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace attmirror {

namespace {

std::string now_text() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

constexpr const char* no_memory = "there is not enough memory for its data";

class BatchRun {
 public:
  BatchRun(const SweepPlan& plan, const Batch& batch, SweepOptions::Engine engine, StopRequest stop)
      : plan_(plan),
        batch_(batch),
        stop_(std::move(stop)),
        prepared_(batch.runs.size()),
        tasks_(batch.runs.size()),
        rows_(batch.runs.size()) {
    for (std::size_t i = 0; i < batch.runs.size() && !stop_.requested(); ++i) prepare(i, engine);
  }

  // Those rows that are complete, in the order of the batch.
  std::vector<RunRow> take() {
    for (const RunPiece& piece : cut_into_pieces(std::move(grouped_)))
      if (!stop_.requested()) run_piece(piece);
    std::vector<RunRow> done;
    for (std::optional<RunRow>& row : rows_)
      if (row) done.push_back(std::move(*row));
    return done;
  }

 private:
  // A row joins the others when it is whole: memory may end on the way.
  RunRow begin_row(std::size_t i) const {
    const auto run = static_cast<std::size_t>(batch_.runs[i]);
    RunRow row;
    row.key = plan_.runs[run].key;
    row.run = batch_.runs[i];
    row.settings = plan_.runs[run].cells;
    row.isa = to_string(active_isa());
    row.version = version();
    row.commit = commit();
    row.finished = now_text();
    return row;
  }

  void add_failed(std::size_t i, const std::string& reason) {
    RunRow row = begin_row(i);
    row.status = "error";
    row.reason = reason;
    row.metrics.assign(metric_columns(plan_.record).size(), Cell{});
    row.engine = "none";
    if (prepared_[i]) row.config = prepared_[i]->config;
    rows_[i] = std::move(row);
  }

  void prepare(std::size_t i, SweepOptions::Engine engine) {
    try {
      prepared_[i] = plan_.prepare(static_cast<std::size_t>(batch_.runs[i]));
      for (const SolutionPlan& solution : plan_.record.solutions)
        norm_of(solution, prepared_[i]->optimizer);  // throws before the run where there is none
      tasks_[i] = {prepared_[i]->model.get(), prepared_[i]->optimizer, prepared_[i]->descent};
      grouped_.push_back(engine == SweepOptions::Engine::automatic ? grouped(i, tasks_[i])
                                                                   : ungrouped(i, tasks_[i]));
    } catch (const Error& error) {
      add_failed(i, error.what());
    } catch (const std::bad_alloc&) {
      prepared_[i].reset();
      add_failed(i, no_memory);
    }
  }

  void run_piece(const RunPiece& piece) {
    try {
      const std::vector<DescentRun> runs = train_piece(tasks_, piece, {.stop = stop_});
      const std::string engine = piece.engine == RunPiece::Engine::single
                                     ? std::string("single")
                                     : fmt::format("lanes:{}", lane_width());
      for (std::size_t k = 0; k < runs.size(); ++k) add_row(piece.indices[k], runs[k], engine);
    } catch (const Error& error) {
      // Training checks its input before it begins: it is the same for all lanes.
      fail_all(piece.indices, error.what());
    } catch (const std::bad_alloc&) {
      fail_all(piece.indices, no_memory);
    }
  }

  void fail_all(std::span<const std::size_t> members, const std::string& reason) {
    for (const std::size_t i : members)
      if (!rows_[i]) add_failed(i, reason);
  }

  void add_row(std::size_t i, const DescentRun& run, const std::string& engine) {
    if (run.status == RunStatus::interrupted) return;
    const Clock::time_point start = Clock::now();
    Measured measured;
    try {
      measured = measure(plan_.record, *prepared_[i], run);
    } catch (const Error& error) {
      return add_failed(i, error.what());
    }
    RunRow row = begin_row(i);
    row.config = prepared_[i]->config;
    row.status = std::move(measured.status);
    row.reason = std::move(measured.reason);
    row.metrics = std::move(measured.metrics);
    row.arrays = std::move(measured.arrays);
    row.seconds = run.seconds + seconds_since(start);
    row.engine = engine;
    rows_[i] = std::move(row);
    prepared_[i].reset();
  }

  const SweepPlan& plan_;
  const Batch& batch_;
  StopRequest stop_;
  std::vector<std::optional<PreparedRun>> prepared_;
  std::vector<DescentTask> tasks_;  // of what is prepared
  std::vector<GroupedRun> grouped_;
  std::vector<std::optional<RunRow>> rows_;
};

}  // namespace

std::vector<RunRow> compute_batch(const SweepPlan& plan, const Batch& batch, SweepOptions::Engine engine,
                                  const StopRequest& stop) {
  return BatchRun(plan, batch, engine, stop).take();
}

std::vector<RunRow> compute_rows(const SweepPlan& plan, std::span<const std::int64_t> runs,
                                 const SweepOptions& options, const StopRequest& stop) {
  options.validate();
  for (const std::int64_t run : runs)
    if (run < 0 || run >= static_cast<std::int64_t>(plan.runs.size()))
      throw bad_input(fmt::format("run {} is not one of the sweep's {} runs", run, plan.runs.size()));
  ThreadPool pool(options.threads);
  const std::vector<Batch> batches = make_batches(plan, runs, pool.threads());
  std::vector<std::vector<RunRow>> parts(batches.size());
  pool.run(static_cast<std::ptrdiff_t>(batches.size()), [&](std::ptrdiff_t b) {
    const auto at = static_cast<std::size_t>(b);
    parts[at] = compute_batch(plan, batches[at], options.engine, stop);
  });
  std::map<std::int64_t, RunRow> by_run;
  for (std::vector<RunRow>& part : parts)
    for (RunRow& row : part) by_run.emplace(row.run, std::move(row));
  std::vector<RunRow> rows;
  for (const std::int64_t run : runs)
    if (const auto found = by_run.find(run); found != by_run.end()) rows.push_back(std::move(found->second));
  return rows;
}

}  // namespace attmirror
