// Record schedules: which steps, and that they do not depend on the length of the run.
#include "support/files.hpp"
#include <attmirror/descent/record.hpp>

#include <limits>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::expect_bad_input;

std::vector<std::int64_t> steps_of(const RecordSchedule& schedule, std::int64_t last) {
  std::vector<std::int64_t> result;
  for (std::int64_t step = schedule.next(0); step >= 0 && step <= last; step = schedule.next(step + 1))
    result.push_back(step);
  return result;
}

TEST(RecordSchedule, Kinds) {
  EXPECT_TRUE(steps_of(RecordSchedule::none(), 100).empty());
  EXPECT_EQ(steps_of(RecordSchedule::every(30), 100), (std::vector<std::int64_t>{0, 30, 60, 90}));
  EXPECT_EQ(steps_of(RecordSchedule::at({50, 0, 50, 7}), 100), (std::vector<std::int64_t>{0, 7, 50}));
  EXPECT_EQ(steps_of(RecordSchedule::log_spaced(3), 100),
            (std::vector<std::int64_t>{0, 1, 2, 5, 10, 22, 46, 100}));
  const std::vector<std::int64_t> fine = steps_of(RecordSchedule::log_spaced(100), 1000);
  for (std::size_t i = 1; i < fine.size(); ++i) EXPECT_GT(fine[i], fine[i - 1]);
  EXPECT_EQ(fine.back(), 1000);
  EXPECT_EQ(RecordSchedule::log_spaced(10).count(1'000'000'000'000),
            static_cast<std::int64_t>(steps_of(RecordSchedule::log_spaced(10), 1'000'000'000'000).size()));
  EXPECT_EQ(RecordSchedule::every(7).count(70), 11);
}

TEST(RecordSchedule, KnowsTheEndOfTime) {
  const std::int64_t end = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(RecordSchedule::log_spaced(10).next(end), -1);
  EXPECT_EQ(RecordSchedule::log_spaced(1).count(end), 19);  // 0, 1, 10, ..., 10^17
  EXPECT_EQ(RecordSchedule::every(1).count(end), end);
  EXPECT_EQ(RecordSchedule::every(1).next(end), end);
  EXPECT_EQ(RecordSchedule::every(end).next(1), end);
  EXPECT_EQ(RecordSchedule::every(1000).next(end), -1);
}

TEST(RecordSchedule, ParsesWhatItPrints) {
  for (const char* text : {"none", "every:100", "log:10", "log:20", "0,10,100"})
    EXPECT_EQ(RecordSchedule::parse(text).to_string(), text);
  EXPECT_EQ(RecordSchedule::parse("log").to_string(), "log:10");
  for (const char* text : {"", "sometimes", "every:", "every:x", "1,,2", "3.5", "log:1e3", "1 "})
    expect_bad_input({"record is", "expected none, every:K"}, [&] { RecordSchedule::parse(text); });
  expect_bad_input({"every 0 steps"}, [] { RecordSchedule::parse("every:0"); });
  expect_bad_input({"log:0"}, [] { RecordSchedule::parse("log:0"); });
  expect_bad_input({"record[1] is -3"}, [] { RecordSchedule::parse("0,-3"); });
}

}  // namespace
}  // namespace attmirror
