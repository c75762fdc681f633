// Tasks by lane group, the longest first, in pieces of one vector each; a piece is what a thread takes at a time.
#include <attmirror/base/error.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/sweep/many.hpp>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include <fmt/format.h>

namespace attmirror {

namespace {

struct Piece {
  std::vector<std::size_t> tasks;
  bool single = false;
  double work = 0;  // multiplications, roughly
};

double work_of(const LaneTask& task) {
  const Dataset& data = task.model->data();
  const auto d = static_cast<double>(data.dim());
  return static_cast<double>(task.options.steps) * d *
         (static_cast<double>(data.total_tokens()) + static_cast<double>(data.total_queries()) * d);
}

std::vector<Piece> make_pieces(std::span<const LaneTask> tasks) {
  std::map<std::string, std::vector<std::size_t>> groups;
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].model == nullptr) throw bad_input(fmt::format("tasks[{}] has no model", i));
    if (why_not_in_lanes(tasks[i]).empty())
      groups[lane_group(tasks[i])].push_back(i);
    else
      pieces.push_back({{i}, true, work_of(tasks[i])});
  }
  const auto width = static_cast<std::size_t>(lane_width());
  for (auto& [name, members] : groups) {
    // Lanes of one vector end together where runs of equal length stand together.
    std::ranges::stable_sort(members, std::greater{}, [&](std::size_t i) { return tasks[i].options.steps; });
    for (std::size_t first = 0; first < members.size(); first += width) {
      Piece piece;
      for (std::size_t k = first; k < std::min(first + width, members.size()); ++k) {
        piece.tasks.push_back(members[k]);
        piece.work += work_of(tasks[members[k]]) / static_cast<double>(width);
      }
      pieces.push_back(std::move(piece));
    }
  }
  std::ranges::stable_sort(pieces, std::greater{}, &Piece::work);
  return pieces;
}

// Adds up the steps of all threads and asks the user now and then.
class Pulse {
 public:
  Pulse(const ManyOptions& options, double total) : options_(options), total_(total) {}

  Command at(double new_steps) {
    const double done = steps_ += new_steps;
    if (!options_.on_pulse) return Command::proceed;
    const std::scoped_lock lock(one_at_a_time_);
    if (!stopped_ && options_.on_pulse(std::min(1.0, done / total_)) == Command::stop) stopped_ = true;
    return stopped_ ? Command::stop : Command::proceed;
  }
  bool stopped() const { return stopped_; }

 private:
  const ManyOptions& options_;
  const double total_;
  std::atomic<double> steps_ = 0;
  std::atomic<bool> stopped_ = false;
  std::mutex one_at_a_time_;
};

}  // namespace

void ManyOptions::validate() const {
  if (threads < 0 || threads > ThreadPool::max_threads)
    throw bad_input(fmt::format("threads is {}: expected 0 to {}", threads, ThreadPool::max_threads));
}

std::vector<Run> descend_many(std::span<const LaneTask> tasks, const ManyOptions& options) {
  options.validate();
  const std::vector<Piece> pieces = make_pieces(tasks);
  double total = 0;
  for (const LaneTask& task : tasks) total += static_cast<double>(task.options.steps);
  Pulse pulse(options, std::max(1.0, total));
  std::vector<Run> runs(tasks.size());
  for (Run& run : runs) run.status = RunStatus::interrupted;
  ThreadPool pool(options.threads);
  pool.run(static_cast<std::ptrdiff_t>(pieces.size()), [&](std::ptrdiff_t at) {
    const Piece& piece = pieces[static_cast<std::size_t>(at)];
    if (pulse.stopped()) return;
    double counted = 0, taken = 0;
    const auto report = [&](double steps) {
      const double more = steps - counted;
      counted = steps;
      return pulse.at(more);
    };
    if (piece.single) {
      const std::size_t i = piece.tasks.front();
      DescentOptions how = tasks[i].options;
      how.threads = 1;
      runs[i] =
          descend(*tasks[i].model, tasks[i].optimizer, how,
                  {.on_pulse = [&](const Descent& run) { return report(static_cast<double>(run.step())); }});
    } else {
      std::vector<LaneTask> lanes;
      for (const std::size_t i : piece.tasks) lanes.push_back(tasks[i]);
      std::vector<Run> ended = descend_in_lanes(
          lanes, {.on_pulse = [&](std::int64_t steps) { return report(static_cast<double>(steps)); }});
      for (std::size_t k = 0; k < ended.size(); ++k) runs[piece.tasks[k]] = std::move(ended[k]);
    }
    for (const std::size_t i : piece.tasks) taken += static_cast<double>(tasks[i].options.steps);
    report(taken);
  });
  return runs;
}

}  // namespace attmirror
