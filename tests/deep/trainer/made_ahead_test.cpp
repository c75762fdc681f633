#include "deep/trainer/made_ahead.hpp"

#include <atomic>
#include <stdexcept>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

TEST(MadeAhead, ComesInOrderAndNotTooFarAhead) {
  std::atomic<std::int64_t> made = 0;
  MadeAhead<std::int64_t> ahead(3, 1000, 4, [&](std::int64_t i) {
    ++made;
    return i * i;
  });
  for (std::int64_t i = 3; i < 1000; ++i) {
    ASSERT_EQ(ahead.next(), i * i);
    ASSERT_LE(made.load(), i - 2 + 5);  // four waiting, one being made
  }
}

TEST(MadeAhead, WhatIsThrownComesAfterWhatWasMade) {
  MadeAhead<int> ahead(0, 10, 4, [](std::int64_t i) {
    if (i == 2) throw std::runtime_error("two");
    return static_cast<int>(i);
  });
  EXPECT_EQ(ahead.next(), 0);
  EXPECT_EQ(ahead.next(), 1);
  EXPECT_THROW(ahead.next(), std::runtime_error);
}

TEST(MadeAhead, EndsThoughNobodyTakesTheRest) {
  for (int i = 0; i < 50; ++i) {
    MadeAhead<int> ahead(0, 1'000'000, 2, [](std::int64_t) { return 1; });
    EXPECT_EQ(ahead.next(), 1);
  }
}

}  // namespace
}  // namespace attmirror
