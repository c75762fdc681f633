// A sweep that is asked to stop keeps what is finished, drops what is under way, and says so.
#include "support/files.hpp"
#include "sweep/parsed_sweep.hpp"
#include <attmirror/sweep/sweep.hpp>

#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

// Two that end at once and two that never do, in lanes and alone. They differ in what decides who shares a batch.
const char* short_and_endless = R"(
[[list]]
steps = 10
normalized = true
[[list]]
steps = 10
optimizer = "adam"
[[list]]
steps = 1000000000000
normalized = true
p = 1.5
[[list]]
steps = 1000000000000
optimizer = "adam"
beta2 = 0.99
)";

TEST(SweepStop, FinishedRunsAreWrittenAndOthersDropped) {
  const TemporaryFolder folder;
  const SweepPlan plan = parsed_sweep(short_and_endless);
  SweepDatabase database(folder / "results.db", SweepDatabase::Mode::create, header_of(plan));
  const StopRequest stop = StopRequest::make();
  const auto ask_after_two = [&](const SweepProgress& now) {
    EXPECT_EQ(now.total, 4);
    if (now.done >= 2) stop.request();
  };
  const SweepOutcome outcome =
      run_sweep(plan, database, {.threads = 4}, {.on_pulse = ask_after_two, .stop = stop});
  EXPECT_TRUE(outcome.interrupted);
  EXPECT_EQ(outcome.computed, 2);
  EXPECT_EQ(missing_runs(plan, database), (std::vector<std::int64_t>{2, 3}));
}

TEST(SweepStop, NeedsNoCallback) {
  const TemporaryFolder folder;
  const SweepPlan plan = parsed_sweep(short_and_endless);
  SweepDatabase database(folder / "results.db", SweepDatabase::Mode::create, header_of(plan));
  const StopRequest stop = StopRequest::make();
  std::thread asker([stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop.request();
  });
  EXPECT_TRUE(run_sweep(plan, database, {.threads = 1}, {.stop = stop}).interrupted);
  asker.join();
}

TEST(SweepStop, RowsOfRunsThatWereNotBegunAreMissing) {
  const SweepPlan plan = parsed_sweep(short_and_endless);
  const std::vector<std::int64_t> all{0, 1, 2, 3}, few{1, 0};
  const StopRequest stop = StopRequest::make();
  EXPECT_EQ(compute_rows(plan, few, {.threads = 1}, stop).size(), 2u);
  stop.request();
  EXPECT_TRUE(compute_rows(plan, all, {.threads = 1}, stop).empty());
}

}  // namespace
}  // namespace attmirror::test
