// A step in lanes allocates nothing. Sanitizers have a malloc of their own, so this file is empty under them.
#include "support/count_allocations.hpp"
#include "sweep/lane_cases.hpp"

#include <gtest/gtest.h>

#if defined(ATTMIRROR_COUNTS_ALLOCATIONS)

namespace attmirror {
namespace {

using test::allocations;

long allocations_of(std::vector<DescentTask> tasks, std::int64_t steps) {
  for (DescentTask& task : tasks) {
    task.options.steps = steps;
    task.options.saturation = 0;
    task.options.record = RecordSchedule::none();
  }
  const long before = allocations.load();
  descend_in_lanes(tasks);
  return allocations.load() - before;
}

TEST(LaneAllocation, NonePerStep) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Draw draw(seed);
    const LaneGroup group = draw_group(draw);
    LaneCase tasks;
    for (std::ptrdiff_t k = 0; k < lane_width(); ++k) add_task(tasks, group, draw);
    const long few = allocations_of(tasks.tasks, 10);
    EXPECT_GT(few, 0);  // the count counts
    // A run that diverges in between ends with other allocations than one that does not.
    bool diverged = false;
    for (const DescentTask& task : tasks.tasks) {
      DescentTask longer = task;
      longer.options.steps = 60;
      longer.options.saturation = 0;
      diverged |= descend(*task.model, task.optimizer, longer.options).status == RunStatus::diverged;
    }
    if (!diverged) {
      EXPECT_EQ(few, allocations_of(tasks.tasks, 60)) << lane_group(tasks.tasks.front());
    }
  }
}

}  // namespace
}  // namespace attmirror

#endif
