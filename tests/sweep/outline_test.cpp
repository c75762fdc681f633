// A sweep told from its runs, and without them: the same numbers and the same refusals.
#include "sweep/outline.hpp"

#include "support/files.hpp"
#include "sweep/batches.hpp"
#include "sweep/parsed_sweep.hpp"
#include <attmirror/sweep/sweep.hpp>

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

SweepOutline outlined(const std::string& text, const std::vector<std::string>* finished = nullptr) {
  return outline_sweep(text, "sweep.toml", ".", finished);
}

void expect_same(const std::string& text) {
  const SweepPlan plan = test::parsed_sweep(text);
  const SweepOutline outline = outlined(text);
  EXPECT_EQ(outline.runs, static_cast<std::int64_t>(plan.runs.size())) << text;
  EXPECT_EQ(outline.missing, outline.runs) << text;
  EXPECT_EQ(outline.plan.axes, plan.axes) << text;
  EXPECT_EQ(outline.plan.columns, plan.columns) << text;
  double steps = 0, work = 0;
  for (std::int64_t run = 0; run < outline.runs; ++run) {
    steps += steps_of(plan, run);
    work += work_of(plan, run);
  }
  EXPECT_EQ(outline.steps, steps) << text;
  double outlined_work = outline.other_work;
  std::int64_t count = 0;
  for (const RunShape& shape : outline.shapes) {
    outlined_work += shape.work;
    count += shape.count;
    EXPECT_FALSE(shape.some.empty());
    for (const std::int64_t run : shape.some) outline.plan.prepare(static_cast<std::size_t>(run));
  }
  EXPECT_NEAR(outlined_work, work, 1e-9 * work) << text;
  if (outline.other_work == 0) EXPECT_EQ(count, outline.runs) << text;
}

TEST(SweepOutline, CountsWhatTheRunsAre) {
  expect_same("");
  expect_same("[grid]\nseed = \"1:100\"\np = [1.75, 2, 3]\nsteps = [10, 1000]\n");
  expect_same(
      "[train]\ninit = \"normal:0.1\"\n[grid]\nseed = \"1:40\"\ninit_seed = [\"seed\", 300, \"own\"]\n");
  expect_same("[train]\ninit = \"normal:0.1\"\n[grid]\nseed = \"1:2000\"\ninit_seed = \"1:3\"\n");
  expect_same("[[zip]]\nseed = \"1:30\"\ntokens = \"3:32\"\n");
  expect_same("[grid]\nlr = \"log:1e-3:1:50\"\np = \"lin:1.5:3:40\"\n");
  expect_same("[[list]]\np = 1.5\n[[list]]\np = 2\ndim = 4\n[grid]\nseed = \"1:20\"\n");
}

TEST(SweepOutline, RefusesWhatTheRunsWouldRefuse) {
  for (const std::string text :
       {"[data]\nfile = \"missing.npz\"\n", "[grid]\noptimizer = [\"sign\", \"md\"]\np = [2, 3]\n",
        "[train]\ninit = \"normal:1\"\n[grid]\nseed = \"1:500\"\ninit_seed = [\"seed\", 400]\n",
        "[grid]\nseed = \"1:50\"\nsamples = [3, 0]\n",
        "[train]\nparams = \"KQ\"\ninit = \"zero\"\n[grid]\nseed = \"1:90\"\n",
        "[grid]\nsteps = \"log:10:20:2000\"\n", "[grid]\nseed = \"1:20000000\"\n"}) {
    const std::string by_runs = test::refusal([&] { test::parsed_sweep(text); });
    EXPECT_EQ(test::refusal([&] { outlined(text); }), by_runs) << text;
    EXPECT_NE(by_runs, "accepted") << text;
  }
}

TEST(SweepOutline, TenMillionSeedsAreAFewRuns) {
  const SweepOutline outline =
      outlined("[train]\nsteps = 100\n[grid]\nseed = \"1:2500000\"\np = [1.5, 2, 3, 4]\n");
  EXPECT_EQ(outline.runs, 10'000'000);
  EXPECT_EQ(outline.missing, 10'000'000);
  EXPECT_EQ(outline.steps, 1e9);
  EXPECT_EQ(outline.shapes.size(), 4u);
  EXPECT_LE(outline.plan.runs.size(), 32u);
}

TEST(SweepOutline, KeepsAFewOfManyShapes) {
  const SweepOutline outline = outlined("[grid]\np = \"lin:1.1:4:3000\"\n");
  EXPECT_EQ(outline.runs, 3000);
  EXPECT_LE(outline.shapes.size(), 64u);
  EXPECT_GE(outline.shapes.size(), 8u);
  EXPECT_GT(outline.other_work, 0);
}

TEST(SweepOutline, KnowsWhatIsMissing) {
  const std::string text = "[train]\nsteps = 7\n[grid]\nseed = \"1:100\"\n";
  std::vector<std::string> finished;
  for (const RunSettings& run : test::parsed_sweep(text).runs) finished.push_back(run.key);
  finished.resize(60);
  std::ranges::sort(finished);
  const SweepOutline outline = outlined(text, &finished);
  EXPECT_EQ(outline.runs, 100);
  EXPECT_EQ(outline.missing, 40);
  EXPECT_EQ(outline.steps, 280);
}

}  // namespace
}  // namespace attmirror
