#include "base/progress.hpp"

#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

namespace attmirror {
namespace {

TEST(FormatProgress, SaysHowFarHowFastAndHowLong) {
  const ProgressOptions options{.label = "train", .total = 2000};
  EXPECT_EQ(format_progress(options, 840, 2.0), "train   42%  840/2000  420 steps/s  0:03 left");
  EXPECT_EQ(format_progress(options, 2000, 1.0), "train  100%  2000/2000  2k steps/s  0:00 left");
}

TEST(FormatProgress, NothingIsGuessedBeforeThereIsASpeed) {
  const ProgressOptions options{.label = "train", .total = 2000};
  EXPECT_EQ(format_progress(options, 0, 0.0), "train    0%  0/2000");
  EXPECT_EQ(format_progress(options, 0, 5.0), "train    0%  0/2000");
}

TEST(FormatProgress, AHundredPercentMeansDone) {
  const ProgressOptions options{.label = "train", .total = 100'000};
  EXPECT_NE(format_progress(options, 99'999, 1.0).find(" 99%"), std::string::npos);
  EXPECT_NE(format_progress(options, 100'001, 1.0).find("100%  100000/100000"), std::string::npos);
}

TEST(FormatProgress, AResumedRunCountsItsOwnStepsOnly) {
  const ProgressOptions options{.label = "train", .total = 2000, .first = 1000};
  EXPECT_EQ(format_progress(options, 1010, 1.0), "train   50%  1010/2000  10 steps/s  1:39 left");
}

TEST(FormatProgress, WithoutATotalThereIsNoPercentage) {
  const ProgressOptions options{.label = "solve", .unit = "iterations"};
  EXPECT_EQ(format_progress(options, 7, 2.0), "solve  7 iterations  3.5 iterations/s");
}

TEST(FormatProgress, SpeedsHaveThreeDigits) {
  const auto speed = [](double per_second) {
    return format_progress({.label = ""}, static_cast<std::int64_t>(1e12), 1e12 / per_second);
  };
  EXPECT_NE(speed(0.0123).find(" 0.0123 steps/s"), std::string::npos);
  EXPECT_NE(speed(999.4).find(" 999 steps/s"), std::string::npos);
  EXPECT_NE(speed(999.6).find(" 1k steps/s"), std::string::npos);
  EXPECT_NE(speed(12345).find(" 12.3k steps/s"), std::string::npos);
  EXPECT_NE(speed(999.6e3).find(" 1M steps/s"), std::string::npos);
  EXPECT_NE(speed(4.5678e6).find(" 4.57M steps/s"), std::string::npos);
}

TEST(FormatDuration, GrowsWithTheTime) {
  EXPECT_EQ(format_duration(0), "0:00");
  EXPECT_EQ(format_duration(7.4), "0:07");
  EXPECT_EQ(format_duration(59.6), "1:00");
  EXPECT_EQ(format_duration(754), "12:34");
  EXPECT_EQ(format_duration(3723), "1:02:03");
  EXPECT_EQ(format_duration(3 * 86400.0), "3 days");
  EXPECT_EQ(format_duration(-1), "-");
  EXPECT_EQ(format_duration(std::nan("")), "-");
  EXPECT_EQ(format_duration(std::numeric_limits<double>::infinity()), "-");
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

// A terminal that nobody looks at: what is written to `slave` can be read from `master`.
class Terminal {
 public:
  Terminal() : master_(posix_openpt(O_RDWR | O_NOCTTY)) {
    if (master_ < 0 || grantpt(master_) != 0 || unlockpt(master_) != 0) return;
    slave_.reset(std::fopen(ptsname(master_), "w"));
  }
  ~Terminal() {
    if (master_ >= 0) close(master_);
  }
  std::FILE* stream() { return slave_.get(); }
  std::string shown() {
    std::string text;
    pollfd ready{master_, POLLIN, 0};
    char buffer[256];
    while (poll(&ready, 1, 50) == 1) {
      const ssize_t count = read(master_, buffer, sizeof buffer);
      if (count <= 0) break;
      text.append(buffer, static_cast<std::size_t>(count));
    }
    return text;
  }

 private:
  int master_;
  File slave_;
};

TEST(Progress, DrawsOneLineOnATerminalAndRemovesIt) {
  Terminal terminal;
  if (terminal.stream() == nullptr) GTEST_SKIP() << "this machine has no pseudo-terminals";
  Progress progress(terminal.stream(), {.label = "train", .total = 10});
  EXPECT_TRUE(progress.visible());
  for (int i = 0; i < 100'000; ++i) progress.update(5);  // far more often than ten times a second
  const std::string drawn = terminal.shown();
  EXPECT_EQ(drawn.rfind("\rtrain   50%  5/10", 0), 0u) << drawn;
  EXPECT_EQ(drawn.find('\n'), std::string::npos);
  EXPECT_LE(std::count(drawn.begin(), drawn.end(), '\r'), 20);
  progress.finish();
  EXPECT_EQ(terminal.shown(), "\r\x1b[K");
  progress.update(6);
  EXPECT_EQ(terminal.shown(), "");
}

TEST(Progress, QuietWritesNothingEvenOnATerminal) {
  Terminal terminal;
  if (terminal.stream() == nullptr) GTEST_SKIP() << "this machine has no pseudo-terminals";
  {
    Progress progress(terminal.stream(), {.total = 10, .quiet = true});
    EXPECT_FALSE(progress.visible());
    progress.update(5);
  }
  EXPECT_EQ(terminal.shown(), "");
}

TEST(Progress, AFileStaysEmpty) {
  const File file(std::tmpfile());
  ASSERT_NE(file, nullptr);
  {
    Progress progress(file.get(), {.total = 10});
    EXPECT_FALSE(progress.visible());
    progress.update(5);
    progress.finish();
  }
  EXPECT_EQ(std::ftell(file.get()), 0);
}

TEST(Progress, RefusesNegativeCounts) {
  EXPECT_THROW(Progress(stderr, {.total = -1}), Error);
  EXPECT_THROW(Progress(stderr, {.first = -1}), Error);
  EXPECT_FALSE(Progress(nullptr, {}).visible());
}

}  // namespace
}  // namespace attmirror
