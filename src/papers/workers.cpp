#include "papers/workers.hpp"

#include <attmirror/base/thread_pool.hpp>

#include <algorithm>
#include <cmath>
#include <mutex>

namespace attmirror {

std::vector<DescentRun> train_all(const ExperimentContext& context, std::span<const DescentTask> tasks) {
  std::vector<DescentRun> runs = descend_many(
      tasks, {.threads = context.threads, .on_pulse = context.on_progress, .stop = context.stop});
  if (context.stop.requested()) throw Interrupted{};
  return runs;
}

std::vector<MarginSolution> solve_all(const ExperimentContext& context, std::span<const MarginTask> tasks,
                                      MarginOptions options) {
  options.threads = context.threads;
  // In pieces, so that there is progress in between; long enough that the threads end at about the same time.
  const std::size_t piece = 512;
  std::vector<MarginSolution> solutions;
  solutions.reserve(tasks.size());
  for (std::size_t first = 0; first < tasks.size(); first += piece) {
    context.progress(static_cast<double>(first) / static_cast<double>(tasks.size()));
    std::vector<MarginSolution> part =
        max_margins(tasks.subspan(first, std::min(piece, tasks.size() - first)), options);
    std::ranges::move(part, std::back_inserter(solutions));
  }
  return solutions;
}

void for_all(const ExperimentContext& context, std::ptrdiff_t count,
             const std::function<void(std::ptrdiff_t)>& work) {
  ThreadPool pool(context.threads);
  std::ptrdiff_t finished = 0;
  std::mutex one_at_a_time;
  pool.run(count, [&](std::ptrdiff_t i) {
    if (context.stop.requested()) return;
    work(i);
    const std::scoped_lock lock(one_at_a_time);
    ++finished;
    if (context.on_progress) context.on_progress(static_cast<double>(finished) / static_cast<double>(count));
  });
  if (context.stop.requested()) throw Interrupted{};
}

Mean mean_of(std::span<const double> values) {
  Mean mean;
  double sum = 0;
  for (const double value : values)
    if (std::isfinite(value)) {
      sum += value;
      ++mean.count;
    }
  const auto n = static_cast<double>(mean.count);
  mean.value = sum / n;  // NaN where there is none
  if (mean.count < 2) return mean;
  double squares = 0;
  for (const double value : values)
    if (std::isfinite(value)) squares += (value - mean.value) * (value - mean.value);
  mean.deviation = std::sqrt(squares / (n - 1));
  mean.error = mean.deviation / std::sqrt(n);
  return mean;
}

Mean share_of(std::ptrdiff_t hits, std::ptrdiff_t count) {
  const auto n = static_cast<double>(count);
  Mean share{.value = static_cast<double>(hits) / n, .count = count, .is_share = true};
  share.deviation = std::sqrt(share.value * (1 - share.value));
  share.error = std::max(share.deviation / std::sqrt(n), 1 / n);
  return share;
}

}  // namespace attmirror
