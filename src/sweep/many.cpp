// Pieces of one vector each, spread over threads.
#include "sweep/run_groups.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/sweep/many.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

// Adds up the steps of all threads and tells the user now and then.
class Pulse {
 public:
  Pulse(const ManyOptions& options, double total) : options_(options), total_(total) {}

  void add(double new_steps) {
    const double done = steps_ += new_steps;
    if (!options_.on_pulse) return;
    const std::scoped_lock lock(one_at_a_time_);
    if (!options_.stop.requested()) options_.on_pulse(std::min(1.0, done / total_));
  }

 private:
  const ManyOptions& options_;
  const double total_;
  std::atomic<double> steps_ = 0;
  std::mutex one_at_a_time_;
};

}  // namespace

void ManyOptions::validate() const {
  if (threads < 0 || threads > ThreadPool::max_threads)
    throw bad_input(fmt::format("threads is {}: expected 0 to {}", threads, ThreadPool::max_threads));
}

std::vector<DescentRun> descend_many(std::span<const DescentTask> tasks, const ManyOptions& options) {
  options.validate();
  std::vector<GroupedRun> all;
  double total = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if ((tasks[i].model == nullptr) == (tasks[i].objective == nullptr))
      throw bad_input(
          fmt::format("tasks[{}] has {}", i, tasks[i].model ? "a model and an objective" : "no model"));
    all.push_back(grouped(i, tasks[i]));
    total += static_cast<double>(tasks[i].options.steps);
  }
  const std::vector<RunPiece> pieces = cut_into_pieces(std::move(all));
  Pulse pulse(options, std::max(1.0, total));
  std::vector<DescentRun> runs(tasks.size());
  for (DescentRun& run : runs) run.status = RunStatus::interrupted;
  ThreadPool pool(options.threads);
  pool.run(static_cast<std::ptrdiff_t>(pieces.size()), [&](std::ptrdiff_t at) {
    if (options.stop.requested()) return;
    const RunPiece& piece = pieces[static_cast<std::size_t>(at)];
    double counted = 0, asked = 0;
    const auto report = [&](double steps) { pulse.add(steps - std::exchange(counted, steps)); };
    std::vector<DescentRun> ended = train_piece(
        tasks, piece,
        {.on_pulse = [&](std::int64_t steps) { report(static_cast<double>(steps)); }, .stop = options.stop});
    for (std::size_t k = 0; k < ended.size(); ++k) runs[piece.indices[k]] = std::move(ended[k]);
    for (const std::size_t i : piece.indices) asked += static_cast<double>(tasks[i].options.steps);
    report(asked);
  });
  return runs;
}

}  // namespace attmirror
