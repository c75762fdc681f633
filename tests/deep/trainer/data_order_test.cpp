#include "deep/trainer/data_order.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

TEST(EpochOrder, IsAPermutationThatDependsOnSeedAndEpoch) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed, std::uint32_t epoch) {
    const auto rows = *rc::gen::inRange<std::int64_t>(0, 300);
    std::vector<std::int64_t> order = epoch_order(seed, epoch, rows);
    RC_ASSERT(order == epoch_order(seed, epoch, rows));
    if (rows > 50) {
      RC_ASSERT(order != epoch_order(seed, epoch + 1, rows));
      RC_ASSERT(order != epoch_order(seed + 1, epoch, rows));
    }
    std::ranges::sort(order);
    for (std::int64_t i = 0; i < rows; ++i) RC_ASSERT(order[static_cast<std::size_t>(i)] == i);
  }));
}

// Each of the 24 orders of four rows about as often as any other: chi-squared with 23 degrees of freedom, 49.7 at
// 0.1 %.
TEST(EpochOrder, AllOrdersAreEquallyLikely) {
  std::map<std::vector<std::int64_t>, int> seen;
  constexpr int draws = 24 * 400;
  for (int epoch = 0; epoch < draws; ++epoch) ++seen[epoch_order(3, epoch, 4)];
  EXPECT_EQ(seen.size(), 24u);
  double chi = 0;
  for (const auto& [order, count] : seen) chi += (count - 400.0) * (count - 400.0) / 400.0;
  EXPECT_LT(chi, 49.7);
}

TEST(LimitedRows, AreEvenlySpaced) {
  EXPECT_EQ(limited_rows(10, 5), (std::vector<std::int64_t>{0, 2, 4, 6, 8}));
  EXPECT_EQ(limited_rows(10, 3), (std::vector<std::int64_t>{0, 3, 6}));
  EXPECT_EQ(limited_rows(3, 0), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(limited_rows(3, 7), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_TRUE(limited_rows(0, 7).empty());
  // Test images may lie in the order of their classes, a thousand of each: no class is missed.
  std::vector<int> classes(10);
  for (const std::int64_t row : limited_rows(10'000, 64)) ++classes[static_cast<std::size_t>(row / 1'000)];
  EXPECT_GE(std::ranges::min(classes), 6);
  EXPECT_LE(std::ranges::max(classes), 7);
  EXPECT_TRUE(rc::check([] {
    const auto rows = *rc::gen::inRange<std::int64_t>(1, 500),
               limit = *rc::gen::inRange<std::int64_t>(1, 500);
    const auto chosen = limited_rows(rows, limit);
    RC_ASSERT(std::ssize(chosen) == std::min(rows, limit));
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      RC_ASSERT(chosen[i] >= 0 && chosen[i] < rows);
      if (i > 0) RC_ASSERT(chosen[i] > chosen[i - 1]);
    }
  }));
}

TEST(BatchPart, PartsAreContiguousAndBalanced) {
  EXPECT_TRUE(rc::check([] {
    const auto lengths =
        *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, 513));
    const auto size = *rc::gen::inRange<std::int64_t>(1, 9);
    const std::int64_t total = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    std::size_t at = 0;
    for (std::int64_t rank = 0; rank < size; ++rank) {
      const BatchPart part = batch_part(lengths, rank, size);
      RC_ASSERT(part.begin == at);
      RC_ASSERT(part.end >= part.begin);
      std::int64_t tokens = 0;
      for (std::size_t i = part.begin; i < part.end; ++i) tokens += lengths[i];
      // Each cut is off by half a text at most.
      RC_ASSERT(tokens * size <= total + 513 * size);
      at = part.end;
    }
    RC_ASSERT(at == lengths.size());
  }));
}

TEST(TrialSeeds, DifferAndTheFirstIsTheConfiguration) {
  LoopConfig config;
  config.init_seed = 5;
  config.order_seed = 5;
  config.dropout_seed = 5;
  std::set<std::uint64_t> all;
  for (std::int64_t trial = 0; trial < 20; ++trial) {
    const TrialSeeds seeds = trial_seeds(config, trial);
    if (trial == 0) {
      EXPECT_EQ(seeds.init, 5u);
      EXPECT_EQ(seeds.order, 5u);
      EXPECT_EQ(seeds.dropout, 5u);
      continue;
    }
    all.insert({seeds.init, seeds.order, seeds.dropout});
  }
  EXPECT_EQ(all.size(), 57u);
}

}  // namespace
}  // namespace attmirror
