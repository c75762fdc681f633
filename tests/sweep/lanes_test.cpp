#include "sweep/lane_cases.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/isa.hpp>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

attmirror::Run alone(const LaneTask& task) { return descend(*task.model, task.optimizer, task.options); }

// Compares a group in lanes with descend() of each.
void expect_same_bits(const LaneCase& group, const LaneOptions& options, std::uint64_t seed) {
  const std::vector<attmirror::Run> runs = descend_in_lanes(group.tasks, options);
  ASSERT_EQ(runs.size(), group.tasks.size());
  for (std::size_t i = 0; i < runs.size(); ++i)
    EXPECT_EQ(difference(runs[i], alone(group.tasks[i])), "")
        << "seed " << seed << ", lane " << i << " of width " << options.width << ": "
        << lane_group(group.tasks[i]);
}

TEST(Lanes, RandomTrainingsHaveTheBitsOfSingleRuns) {
  std::int64_t configurations = 0;
  for (std::uint64_t seed = 1; configurations < 1000; ++seed) {
    Draw draw(seed);
    LaneGroup group = draw_group(draw);
    group.steps = draw.one_of<std::int64_t>({1, 60, 60, 60});
    if (draw.once_in(20)) group.steps = 500;
    std::ptrdiff_t width = 1;
    while (2 * width <= lane_width() && !draw.once_in(3)) width *= 2;
    LaneCase tasks;
    for (std::int64_t count = draw.whole(1, width); count > 0; --count) add_task(tasks, group, draw);
    expect_same_bits(tasks, {.width = width}, seed);
    configurations += static_cast<std::int64_t>(tasks.tasks.size());
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace attmirror
