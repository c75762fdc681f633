#include "data/torch_random.hpp"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

// What torch itself prints for these calls, to its four decimals.
void expect_starts_with(const std::vector<float>& values, const std::vector<float>& expected) {
  ASSERT_GE(values.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(values[i], expected[i], 0.5001e-4f) << i;
}

TEST(TorchGenerator, ShortDraws) {
  expect_starts_with(TorchGenerator(0).randn(5), {1.5410f, -0.2934f, -2.1788f, 0.5684f, -1.0845f});
  expect_starts_with(TorchGenerator(1).randn(5), {0.6614f, 0.2669f, 0.0617f, 0.6213f, -0.4519f});
}

TEST(TorchGenerator, LongDraws) {
  expect_starts_with(TorchGenerator(0).randn(16),
                     {-1.1258f, -1.1524f, -0.2506f, -0.4339f, 0.8487f, 0.6920f, -0.3160f, -2.1152f});
}

TEST(TorchGenerator, TheSecondOfAPairWaitsForTheNextShortCall) {
  const std::vector<float> whole = TorchGenerator(0).randn(5);
  TorchGenerator generator(0);
  std::vector<float> pieces = generator.randn(1);
  for (const std::size_t count : {0u, 2u, 1u, 1u}) {
    const std::vector<float> more = generator.randn(count);
    pieces.insert(pieces.end(), more.begin(), more.end());
  }
  EXPECT_EQ(pieces, whole);
}

TEST(TorchGenerator, LongDrawsLeaveTheWaitingNormalAlone) {
  const float second = TorchGenerator(3).randn(2)[1];
  TorchGenerator generator(3);
  generator.randn(1);
  generator.randn(32);
  EXPECT_EQ(generator.randn(1)[0], second);
}

TEST(TorchGenerator, WholeBlocksAreDrawnInOrder) {
  const std::vector<float> both = TorchGenerator(5).randn(32);
  TorchGenerator generator(5);
  // The uniforms of a block are drawn before any is transformed, so two blocks in one call are two calls.
  std::vector<float> blocks = generator.randn(16);
  const std::vector<float> more = generator.randn(16);
  blocks.insert(blocks.end(), more.begin(), more.end());
  EXPECT_EQ(blocks, both);
}

// 20 numbers: 20 uniforms are drawn, the first block is transformed, then the last 16 are drawn again.
// Numbers 0..3 are those of the first block; 4..19 are those of a block that begins at the 21st uniform.
TEST(TorchGenerator, ARemainderRefillsTheLastSixteen) {
  const std::vector<float> ragged = TorchGenerator(9).randn(20);
  const std::vector<float> first = TorchGenerator(9).randn(16);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(ragged[i], first[i]);

  std::mt19937 engine(9);
  engine.discard(20);
  std::vector<double> u(16);
  for (double& value : u) value = static_cast<double>(engine() & 0xFFFFFF) / 16777216.0;
  for (std::size_t j = 0; j < 8; ++j) {
    const double radius = std::sqrt(-2 * std::log(1 - u[j])), angle = 2 * M_PI * u[j + 8];
    EXPECT_NEAR(ragged[4 + j], radius * std::cos(angle), 2e-6);
    EXPECT_NEAR(ragged[12 + j], radius * std::sin(angle), 2e-6);
  }
}

TEST(TorchGenerator, TakesTheLowerHalfOfTheSeed) {
  EXPECT_EQ(TorchGenerator((std::uint64_t{7} << 32) + 1).randn(5), TorchGenerator(1).randn(5));
  EXPECT_NE(TorchGenerator(2).randn(5), TorchGenerator(1).randn(5));
}

TEST(TorchGenerator, LongDrawsAreFiniteAndNormal) {
  const std::vector<float> x = TorchGenerator(11).randn(100'003);
  double mean = 0, variance = 0;
  for (const float value : x) {
    ASSERT_TRUE(std::isfinite(value));
    mean += value / static_cast<double>(x.size());
    variance += static_cast<double>(value) * value / static_cast<double>(x.size());
  }
  EXPECT_NEAR(mean, 0, 4 / std::sqrt(x.size()));
  EXPECT_NEAR(variance, 1, 4 * std::sqrt(2.0 / static_cast<double>(x.size())));
}

}  // namespace
}  // namespace attmirror
