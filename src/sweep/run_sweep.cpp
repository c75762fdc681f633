// The work queue of a sweep. Threads take batches and hand back rows; other processes are given batches and send
// rows; the thread that called run_sweep() gives, takes and writes, and computes nothing itself, so that a long batch
// never keeps finished rows from the disk.
#include "base/stopwatch.hpp"
#include "sweep/batches.hpp"
#include "sweep/compute.hpp"
#include "sweep/sources.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/sweep/sweep.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

using namespace std::chrono_literals;

// Finished rows wait at most this long, and not at all once there are many.
constexpr auto write_interval = 50ms;
constexpr std::size_t many_rows = 256;
// A helper has a batch to go on with while its answer travels.
constexpr int batches_ahead = 2;

// What threads and the writer share.
class WorkQueue {
 public:
  explicit WorkQueue(std::vector<Batch> batches)
      : batches_(std::make_move_iterator(batches.begin()), std::make_move_iterator(batches.end())) {}

  std::optional<Batch> next() {
    const std::lock_guard lock(mutex_);
    if (batches_.empty()) return std::nullopt;
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    return batch;
  }

  void add(std::vector<RunRow> rows) {
    const std::lock_guard lock(mutex_);
    std::ranges::move(rows, std::back_inserter(rows_));
    changed_.notify_one();
  }

  void leave(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (failure && !failure_) failure_ = failure;
    --workers_;
    changed_.notify_one();
  }

  void join() {
    const std::lock_guard lock(mutex_);
    ++workers_;
  }

  struct State {
    std::vector<RunRow> rows;
    bool working = false;  // threads are at work
    bool waiting = false;  // batches are left that nobody has taken
  };

  // What has been finished since the last call, after waiting for something or for `patience`.
  State take(Clock::duration patience) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [this] { return !rows_.empty() || (workers_ == 0 && !told_of_end_); });
    told_of_end_ =
        workers_ == 0;  // from then on only other processes are waited for, at the pace of `patience`
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return {std::exchange(rows_, {}), workers_ > 0, !batches_.empty()};
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Batch> batches_;
  std::vector<RunRow> rows_;
  int workers_ = 0;
  bool told_of_end_ = false;
  std::exception_ptr failure_;
};

// Threads that work the queue off. They are stopped and joined at the end, also where one could not be started.
class Workers {
 public:
  Workers(const SweepPlan& plan, WorkQueue& queue, const SweepOptions& options, int count) {
    for (int i = 0; i < count; ++i) {
      queue.join();
      threads_.emplace_back([&plan, &queue, engine = options.engine, stop = stop_] {
        std::exception_ptr failure;
        try {
          while (!stop.requested()) {
            const std::optional<Batch> batch = queue.next();
            if (!batch) break;
            queue.add(compute_batch(plan, *batch, engine, stop));
          }
        } catch (...) {  // out of memory: a failure of a run is a row
          failure = std::current_exception();
        }
        queue.leave(failure);
      });
    }
  }

  void stop() { stop_.request(); }

 private:
  struct StopAtEnd {
    const StopRequest& stop;
    ~StopAtEnd() { stop.request(); }
  };
  StopRequest stop_ = StopRequest::make();
  std::vector<std::jthread> threads_;
  StopAtEnd before_joining_{stop_};
};

// The other processes, each with up to `batches_ahead` batches to work on.
class Helpers {
 public:
  explicit Helpers(SweepTeam* team)
      : team_(team), open_(team == nullptr ? 0 : static_cast<std::size_t>(team->helpers())) {}

  int count() const { return static_cast<int>(open_.size()); }
  bool working() const {
    return std::ranges::any_of(open_, [](int open) { return open > 0; });
  }

  std::vector<RunRow> take() {
    std::vector<RunRow> rows;
    if (team_ == nullptr) return rows;
    for (SweepTeam::Answer& answer : team_->take()) {
      --open_.at(static_cast<std::size_t>(answer.helper));
      std::ranges::move(answer.rows, std::back_inserter(rows));
    }
    return rows;
  }

  // One batch to each in turn, so that the last ones are spread evenly.
  void feed(WorkQueue& queue) {
    for (int round = 1; round <= batches_ahead; ++round)
      for (std::size_t h = 0; h < open_.size(); ++h) {
        if (open_[h] >= round) continue;
        const std::optional<Batch> batch = queue.next();
        if (!batch) return;
        team_->give(static_cast<int>(h), batch->runs);
        ++open_[h];
      }
  }

 private:
  SweepTeam* team_;
  std::vector<int> open_;
};

}  // namespace

std::vector<std::int64_t> missing_runs(const SweepPlan& plan, const SweepDatabase& results) {
  const std::vector<std::string> finished = results.finished_keys();
  std::vector<std::int64_t> missing;
  for (std::size_t i = 0; i < plan.runs.size(); ++i)
    if (!std::ranges::binary_search(finished, plan.runs[i].key))
      missing.push_back(static_cast<std::int64_t>(i));
  return missing;
}

SweepHeader header_of(const SweepPlan& plan) {
  SweepHeader header;
  header.name = plan.name;
  header.description = plan.description;
  header.file_text = plan.text;
  header.record_text = plan.record_text;
  header.settings = plan.columns;
  header.metrics = metric_columns(plan.record);
  header.axes = plan.axes;
  return header;
}

void SweepOptions::validate() const {
  if (threads < 0 || threads > ThreadPool::max_threads)
    throw bad_input(fmt::format("threads is {}: expected 0 to {}", threads, ThreadPool::max_threads));
}

SweepOutcome run_sweep(const SweepPlan& plan, SweepDatabase& results, const SweepOptions& options,
                       const SweepCallbacks& callbacks, SweepTeam* team) {
  options.validate();
  const Clock::time_point start = Clock::now();
  const std::vector<std::int64_t> missing = missing_runs(plan, results);
  check_sources(plan, results);
  const int threads = options.threads > 0
                          ? options.threads
                          : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  Helpers helpers(team);
  WorkQueue queue(make_batches(plan, missing, threads + helpers.count()));

  SweepOutcome outcome;
  outcome.total = static_cast<std::int64_t>(plan.runs.size());
  SweepProgress progress;
  progress.total = outcome.total;
  progress.done = outcome.total - static_cast<std::int64_t>(missing.size());
  std::vector<RunRow> finished;
  const auto add = [&](std::vector<RunRow>&& rows) {
    for (RunRow& row : rows) {
      ++outcome.by_status[row.status];
      progress.failed += row.status == "ok" ? 0 : 1;
      finished.push_back(std::move(row));
    }
  };
  const auto write = [&] {
    if (finished.empty()) return;
    const Clock::time_point begin = Clock::now();
    results.write(finished);
    outcome.database_seconds += seconds_since(begin);
    outcome.computed += static_cast<std::int64_t>(finished.size());
    progress.done += static_cast<std::int64_t>(finished.size());
    finished.clear();
  };

  helpers.feed(queue);  // first: what travels takes longest
  Workers workers(plan, queue, options,
                  std::min(threads, static_cast<int>(std::max<std::size_t>(missing.size(), 1))));
  Clock::time_point last_write = start, last_pulse = start;
  for (bool working = true; working;) {
    WorkQueue::State state =
        queue.take(helpers.count() > 0 ? Clock::duration(500us) : Clock::duration(write_interval));
    add(std::move(state.rows));
    add(helpers.take());
    if (!outcome.interrupted) helpers.feed(queue);
    working = state.working || (!outcome.interrupted && (helpers.working() || state.waiting));
    const Clock::time_point now = Clock::now();
    if (finished.size() >= many_rows || now - last_write >= write_interval || !working) {
      write();
      last_write = now;
    }
    if (callbacks.on_pulse && !outcome.interrupted && (now - last_pulse >= 100ms || !working)) {
      last_pulse = now;
      progress.seconds = seconds_since(start);
      callbacks.on_pulse(progress);
    }
    if (working && !outcome.interrupted && callbacks.stop.requested()) {
      outcome.interrupted = true;
      workers.stop();
    }
  }
  results.require_in_place();
  outcome.seconds = seconds_since(start);
  return outcome;
}

}  // namespace attmirror
