// How long a sweep will take, by trying: of each shape of run a vector full is trained for a few steps.
#include "sweep/batches.hpp"
#include "sweep/outline.hpp"
#include "sweep/run_groups.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/sweep/sweep.hpp>

#include <algorithm>
#include <ctime>
#include <limits>
#include <map>
#include <new>
#include <utility>

namespace attmirror {

namespace {

// Processor time of this one thread: what others do on the machine meanwhile does not count.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Of more shapes than this, a spread of them is tried; the others are taken to be as fast for their size.
constexpr std::size_t most_trials = 24;
constexpr std::int64_t trial_steps = 200, few_steps = 10;

// Of one run of a shape: what its beginning and end take, and what a step takes.
struct Cost {
  double fixed = 0, step = 0;
};

double seconds_of(const SweepPlan& plan, std::span<const std::int64_t> runs, std::int64_t most_steps) {
  const double start = processor_seconds();
  std::vector<PreparedRun> prepared;
  for (const std::int64_t run : runs) {
    prepared.push_back(plan.prepare(static_cast<std::size_t>(run)));
    prepared.back().descent.steps = most_steps;
    prepared.back().descent.saturation = 0;
  }
  std::vector<DescentTask> tasks;
  std::vector<GroupedRun> all;
  for (const PreparedRun& p : prepared) {
    tasks.push_back({p.model.get(), p.optimizer, p.descent});
    all.push_back(grouped(all.size(), tasks.back()));
  }
  for (const RunPiece& piece : cut_into_pieces(std::move(all))) train_piece(tasks, piece, {});
  return processor_seconds() - start;
}

// Two lengths tell what a step takes and what the rest does.
Cost try_shape(const SweepPlan& plan, const std::vector<std::int64_t>& runs) {
  const std::span some(runs.data(), std::min(static_cast<std::size_t>(lane_width()), runs.size()));
  const auto count = static_cast<double>(some.size());
  // Runs on large data tell as much by a few steps, and would make the estimate last as long as the sweep.
  const bool slow = seconds_of(plan, some, few_steps) > 0.02;
  const std::int64_t steps = slow ? few_steps : trial_steps;
  // The least of several: what else the machine does makes a trial longer, never shorter.
  double few = std::numeric_limits<double>::infinity(), more = few;
  for (int trial = 0; trial < (slow ? 1 : 4); ++trial) {
    few = std::min(few, seconds_of(plan, some, steps));
    more = std::min(more, seconds_of(plan, some, 2 * steps));
  }
  Cost cost;
  cost.step = std::max(0.0, more - few) / (static_cast<double>(steps) * count);
  cost.fixed = std::max(0.0, few / count - cost.step * static_cast<double>(steps));
  // A solution of the papers' size takes a tenth of a millisecond or two, a row in the database about half of that.
  cost.fixed += 1e-4 + 1.5e-4 * static_cast<double>(plan.record.solutions.size());
  return cost;
}

}  // namespace

double estimate_seconds(const SweepPlan& plan, std::span<const RunShape> shapes, double other_work) {
  double total = 0, tried_seconds = 0, tried_work = 0;
  std::size_t index = 0;
  const std::size_t stride = std::max<std::size_t>(1, (shapes.size() + most_trials - 1) / most_trials);
  for (const RunShape& shape : shapes) {
    if (index++ % stride != 0) {
      other_work += shape.work;
      continue;
    }
    try {
      const Cost cost = try_shape(plan, shape.some);
      const double seconds = cost.fixed * static_cast<double>(shape.count) + cost.step * shape.steps;
      tried_seconds += seconds;
      tried_work += shape.work;
      total += seconds;
    } catch (const Error&) {
      // A run that cannot even be prepared takes no time; its row will say why.
    } catch (const std::bad_alloc&) {
    }
  }
  if (tried_work > 0) total += other_work * tried_seconds / tried_work;
  return total;
}

double estimate_seconds(const SweepPlan& plan, std::span<const std::int64_t> runs) {
  std::map<std::string, RunShape> by_text;
  for (const std::int64_t run : runs) {
    RunShape& shape = by_text[shape_text(plan, run)];
    if (shape.some.size() < static_cast<std::size_t>(lane_width())) shape.some.push_back(run);
    ++shape.count;
    shape.work += work_of(plan, run);
    shape.steps += steps_of(plan, run);
  }
  std::vector<RunShape> shapes;
  for (auto& [text, shape] : by_text) shapes.push_back(std::move(shape));
  return estimate_seconds(plan, shapes, 0);
}

}  // namespace attmirror
