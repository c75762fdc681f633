// descend_many(): lanes, single runs and threads change nothing.
#include "support/bilinear_objective.hpp"
#include "support/same_bits.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/sweep/many.hpp>

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

struct Tasks {
  std::vector<std::unique_ptr<Dataset>> data;
  std::vector<std::unique_ptr<Attention>> models;
  std::vector<DescentTask> tasks;
};

Tasks mixed_tasks() {
  Tasks all;
  for (std::uint64_t seed = 1; seed <= 19; ++seed) {
    all.data.push_back(
        std::make_unique<Dataset>(generate(SphereData{.samples = 3, .tokens = 4, .dim = 5, .seed = seed})));
    all.models.push_back(std::make_unique<Attention>(*all.data.back()));
    DescentOptions options{.steps = 50 + static_cast<std::int64_t>(seed)};
    options.init = {.kind = InitKind::normal, .std = 1, .seed = seed};
    Optimizer optimizer = MirrorDescent{.p = seed % 2 ? 3.0 : 1.5, .lr = 0.1, .normalized = true};
    if (seed % 5 == 0) optimizer = Adam{.lr = 0.01};  // not in lanes
    all.tasks.push_back({all.models.back().get(), optimizer, options});
  }
  return all;
}

TEST(DescendMany, HasTheBitsOfEachRunAlone) {
  const Tasks all = mixed_tasks();
  for (const int threads : {1, 3}) {
    const std::vector<DescentRun> runs = descend_many(all.tasks, {.threads = threads});
    ASSERT_EQ(runs.size(), all.tasks.size());
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const DescentTask& task = all.tasks[i];
      const DescentRun alone = descend(*task.model, task.optimizer, task.options);
      EXPECT_TRUE(test::same_bits(runs[i].last().W, alone.last().W)) << i;
      EXPECT_EQ(runs[i].steps, alone.steps);
      EXPECT_EQ(runs[i].selected, alone.selected);
      EXPECT_EQ(runs[i].records.size(), alone.records.size());
    }
  }
}

TEST(DescendMany, TakesObjectivesOfOnesOwn) {
  Tasks all = mixed_tasks();
  const test::BilinearObjective objective;
  for (const double lr : {0.01, 0.02, 0.05})
    all.tasks.push_back({.optimizer = MirrorDescent{.p = 1.5, .lr = lr},
                         .options = {.steps = 40, .init = {.kind = InitKind::normal, .std = 1, .seed = 2}},
                         .objective = &objective});
  EXPECT_EQ(why_not_in_lanes(all.tasks.back()), "an objective of its own");
  for (const int threads : {1, 3}) {
    const std::vector<DescentRun> runs = descend_many(all.tasks, {.threads = threads});
    for (std::size_t i = runs.size() - 3; i < runs.size(); ++i) {
      const DescentRun alone = descend(objective, all.tasks[i].optimizer, all.tasks[i].options);
      EXPECT_TRUE(test::same_bits(runs[i].last().matrix("U"), alone.last().matrix("U"))) << i;
      EXPECT_EQ(runs[i].last().vector("w"), alone.last().vector("w"));
      EXPECT_EQ(runs[i].loss, alone.loss);
    }
  }
  all.tasks.back().model = all.models.front().get();
  EXPECT_THROW(descend_many(all.tasks), Error);
}

TEST(DescendMany, ProgressGrowsToOne) {
  const Tasks all = mixed_tasks();
  double last = 0;
  descend_many(all.tasks, {.threads = 2, .on_pulse = [&](double share) {
                             EXPECT_LE(share, 1);
                             last = std::max(last, share);
                           }});
  EXPECT_DOUBLE_EQ(last, 1);
}

TEST(DescendMany, StopEndsTheRunsNotBegun) {
  const Tasks all = mixed_tasks();
  const StopRequest stop = StopRequest::make();
  const std::vector<DescentRun> runs =
      descend_many(all.tasks, {.threads = 1, .on_pulse = [&](double) { stop.request(); }, .stop = stop});
  EXPECT_EQ(std::ranges::count(runs, RunStatus::interrupted, &DescentRun::status) > 0, true);
  EXPECT_EQ(runs.size(), all.tasks.size());

  // One that came before: nothing is begun.
  for (const DescentRun& run : descend_many(all.tasks, {.threads = 2, .stop = stop})) {
    EXPECT_EQ(run.status, RunStatus::interrupted);
    EXPECT_EQ(run.steps, 0);
  }
}

TEST(DescendMany, NothingToDoAndWrongTasks) {
  EXPECT_TRUE(descend_many({}).empty());
  std::vector<DescentTask> none(1);
  EXPECT_THROW(descend_many(none), Error);
  EXPECT_THROW(descend_many({}, {.threads = -1}), Error);
  Tasks all = mixed_tasks();
  all.tasks[3].optimizer = MirrorDescent{.p = 0.5};
  EXPECT_THROW(descend_many(all.tasks), Error);
}

}  // namespace
}  // namespace attmirror
