// Runs a sweep: thousands of small trainings, each followed by its max-margin problems, over lanes, threads and
// processes, into a database.
//
//   const SweepPlan plan = load_sweep("sweep.toml");
//   SweepDatabase results("results.db", SweepDatabase::Mode::create, header_of(plan));
//   SweepOutcome outcome = run_sweep(plan, results);
//
// A row depends only on the run's own settings: its bits are the same for any number of lanes, threads and
// processes, and after any resume (on one instruction set).
#pragma once

#include <attmirror/base/stop.hpp>
#include <attmirror/sweep/database.hpp>
#include <attmirror/sweep/plan.hpp>
#include <attmirror/sweep/row.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace attmirror {

// The columns that the records of this plan fill.
std::vector<RowColumn> metric_columns(const RecordPlan& record);
SweepHeader header_of(const SweepPlan& plan);

// The runs that the database lacks, including those that could not be made: what run_sweep() will compute.
std::vector<std::int64_t> missing_runs(const SweepPlan& plan, const SweepDatabase& results);

// How a sweep is run.
struct SweepOptions {
  int threads = 0;  // 0: as many as the machine runs at once
  // Whether trainings share vector registers.
  enum class Engine {
    automatic,
    single
  } engine = Engine::automatic;  // single: every run by descend(), for comparison

  void validate() const;
};

// How far a sweep is.
struct SweepProgress {
  std::int64_t done = 0, total = 0;  // runs; both include those of an earlier part
  std::int64_t failed = 0;           // of those done now
  double seconds = 0;
};

// What is called while a sweep runs.
struct SweepCallbacks {
  // Called from the thread that called run_sweep(), about ten times a second.
  std::function<void(const SweepProgress&)> on_pulse{};
  StopRequest stop{};  // current runs are dropped, finished ones are written, and run_sweep() returns
};

// What became of a sweep.
struct SweepOutcome {
  std::int64_t total = 0;                         // runs of the sweep
  std::int64_t computed = 0;                      // now; the others existed already
  std::map<std::string, std::int64_t> by_status;  // of those computed now
  bool interrupted = false;
  double seconds = 0, database_seconds = 0;
};

// Other processes that compute batches for this one: the ranks of the command under mpirun. All calls come
// from the thread that called run_sweep(). Batches are answered in the order in which a helper received them.
class SweepTeam {
 public:
  virtual ~SweepTeam() = default;
  virtual int helpers() const = 0;                                        // processes beside this one
  virtual void give(int helper, std::span<const std::int64_t> runs) = 0;  // helper: 0 to helpers() - 1
  // Rows, and who computed them.
  struct Answer {
    int helper = 0;
    std::vector<RunRow> rows;
  };
  virtual std::vector<Answer> take() = 0;  // what has come back since; does not wait
};

// Computes the runs that the database lacks.
SweepOutcome run_sweep(const SweepPlan& plan, SweepDatabase& results, const SweepOptions& options = {},
                       const SweepCallbacks& callbacks = {}, SweepTeam* team = nullptr);

// The rows of some runs of the plan, in order, computed with options.threads threads: what a helper does with
// a batch. A run that fails in any way is a row that says so. Rows of runs that `stop` prevented are missing.
std::vector<RunRow> compute_rows(const SweepPlan& plan, std::span<const std::int64_t> runs,
                                 const SweepOptions& options = {}, const StopRequest& stop = {});

// Seconds of processor time that the missing runs will take, estimated from a few steps of each kind of run.
double estimate_seconds(const SweepPlan& plan, std::span<const std::int64_t> runs);

}  // namespace attmirror
