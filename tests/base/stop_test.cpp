#include <attmirror/base/stop.hpp>

#include <thread>
#include <type_traits>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

TEST(StopRequest, WithoutMakeIsNeverRequested) {
  const StopRequest none;
  EXPECT_FALSE(none.requested());
  none.request();
  EXPECT_FALSE(none.requested());
}

TEST(StopRequest, CopiesStandForTheSameRequest) {
  const StopRequest stop = StopRequest::make(), copy = stop, other = StopRequest::make();
  EXPECT_FALSE(copy.requested());
  stop.request();
  stop.request();
  EXPECT_TRUE(stop.requested());
  EXPECT_TRUE(copy.requested());
  EXPECT_FALSE(other.requested());
  const StopRequest late = copy;
  EXPECT_TRUE(late.requested());
}

TEST(StopRequest, OutlivesWhoMadeIt) {
  StopRequest kept;
  {
    const StopRequest made = StopRequest::make();
    kept = made;
  }
  kept.request();
  EXPECT_TRUE(kept.requested());
}

TEST(StopRequest, FollowsAFlagOfOnesOwn) {
  std::atomic<bool> flag = false;
  const StopRequest stop = StopRequest::of(flag);
  EXPECT_FALSE(stop.requested());
  flag = true;
  EXPECT_TRUE(stop.requested());
  flag = false;
  stop.request();
  EXPECT_TRUE(flag);
}

// What the asker wrote before is seen by whoever notices.
TEST(StopRequest, CrossesThreads) {
  const StopRequest stop = StopRequest::make();
  int written = 0;
  std::thread asker([&] {
    written = 7;
    stop.request();
  });
  while (!stop.requested()) std::this_thread::yield();
  EXPECT_EQ(written, 7);
  asker.join();
}

static_assert(std::is_nothrow_default_constructible_v<StopRequest>);
static_assert(std::is_nothrow_copy_constructible_v<StopRequest>);

}  // namespace
}  // namespace attmirror
