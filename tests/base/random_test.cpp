#include "base/random.hpp"

#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using Words4 = std::array<std::uint32_t, 4>;

// The known answers that Random123 publishes for philox4x32 with 10 rounds.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox_block({0, 0, 0, 0}, {0, 0}), (Words4{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox_block({ones, ones, ones, ones}, {ones, ones}),
            (Words4{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox_block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// How seed, stream and index enter the block is part of what a seed means, and must not change between versions.
TEST(CounterRandom, AddressesArePinned) {
  const std::uint64_t seed = 0x0123456789abcdef, index = 0x0000000300000007;
  const Words4 block = philox_block({0x80000003, 1, 2, 0}, {0x89abcdef, 0x01234567});
  const CounterRandom random(seed, RandomStream::init_K);
  EXPECT_EQ(random.bits(index), (std::uint64_t{block[3]} << 32) | block[2]);
  EXPECT_EQ(random.bits(index - 1), (std::uint64_t{block[1]} << 32) | block[0]);
  EXPECT_EQ(random.uniform(index), std::ldexp(static_cast<double>(random.bits(index) >> 11), -53));

  const Words4 normal = philox_block({0x80000003, 1, 2, 1}, {0x89abcdef, 0x01234567});
  const double u1 =
      std::ldexp(static_cast<double>(((std::uint64_t{normal[1]} << 32) | normal[0]) >> 11) + 1, -53);
  const double u2 =
      std::ldexp(static_cast<double>(((std::uint64_t{normal[3]} << 32) | normal[2]) >> 11), -53);
  const double radius = std::sqrt(-2 * std::log(u1));
  EXPECT_NEAR(random.normal(index - 1), radius * std::cos(2 * M_PI * u2), 1e-14);
  EXPECT_NEAR(random.normal(index), radius * std::sin(2 * M_PI * u2), 1e-14);
}

TEST(CounterRandom, SeedsAndStreamsAndIndicesAllMatter) {
  std::set<std::uint64_t> seen;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 40}) {
    for (const RandomStream stream :
         {RandomStream::init_W, RandomStream::init_K, RandomStream::init_Q, RandomStream::init_prompt,
          RandomStream::init_decoder, RandomStream::lengths, RandomStream::selection}) {
      for (std::uint64_t i = 0; i < 100; ++i) seen.insert(CounterRandom(seed, stream).bits(i));
    }
  }
  EXPECT_EQ(seen.size(), 3u * 7u * 100u);
}

constexpr std::uint64_t draws = 200'000;

struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};

Moments moments(const std::vector<double>& x) {
  Moments m;
  const auto n = static_cast<double>(x.size());
  for (const double value : x) m.mean += value / n;
  for (const double value : x) m.variance += std::pow(value - m.mean, 2) / n;
  for (const double value : x) {
    const double z = (value - m.mean) / std::sqrt(m.variance);
    m.skewness += z * z * z / n;
    m.kurtosis += z * z * z * z / n;
  }
  return m;
}

// Kolmogorov-Smirnov distance times sqrt(n); above 1.95 with probability 0.001. The seeds here are fixed.
template <class Cdf>
double ks_statistic(std::vector<double> x, Cdf cdf) {
  std::sort(x.begin(), x.end());
  const auto n = static_cast<double>(x.size());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double f = cdf(x[i]);
    worst = std::max(
        {worst, std::abs(f - static_cast<double>(i) / n), std::abs(f - static_cast<double>(i + 1) / n)});
  }
  return worst * std::sqrt(n);
}

template <class Draw>
std::vector<double> drawn(Draw draw) {
  std::vector<double> x(draws);
  for (std::uint64_t i = 0; i < draws; ++i) x[i] = draw(i);
  return x;
}

TEST(CounterRandom, UniformsAreUniform) {
  const CounterRandom random(42, RandomStream::init_W);
  for (const auto& x : {drawn([&](std::uint64_t i) { return random.uniform(i); }),
                        drawn([&](std::uint64_t i) { return random.uniform_open(i); })}) {
    EXPECT_GE(*std::min_element(x.begin(), x.end()), 0.0);
    EXPECT_LT(*std::max_element(x.begin(), x.end()), 1.0);
    const Moments m = moments(x);
    EXPECT_NEAR(m.mean, 0.5, 4 * std::sqrt(1.0 / 12 / draws));
    EXPECT_NEAR(m.variance, 1.0 / 12, 4 * std::sqrt(1.0 / 180 / draws));
    EXPECT_LT(ks_statistic(x, [](double value) { return value; }), 1.95);
  }
}

TEST(CounterRandom, NormalsAreNormal) {
  const CounterRandom random(42, RandomStream::init_W);
  const std::vector<double> x = drawn([&](std::uint64_t i) { return random.normal(i); });
  const Moments m = moments(x);
  EXPECT_NEAR(m.mean, 0, 4 / std::sqrt(draws));
  EXPECT_NEAR(m.variance, 1, 4 * std::sqrt(2.0 / draws));
  EXPECT_NEAR(m.skewness, 0, 4 * std::sqrt(6.0 / draws));
  EXPECT_NEAR(m.kurtosis, 3, 4 * std::sqrt(24.0 / draws));
  EXPECT_LT(ks_statistic(x, [](double value) { return 0.5 * std::erfc(-value / std::sqrt(2.0)); }), 1.95);
  // Neighbours share a block and must not be correlated, nor their squares.
  double product = 0, squares = 0;
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    product += x[i] * x[i + 1] / draws;
    squares += (x[i] * x[i] - 1) * (x[i + 1] * x[i + 1] - 1) / draws;
  }
  EXPECT_NEAR(product, 0, 4 / std::sqrt(draws));
  EXPECT_NEAR(squares, 0, 8 / std::sqrt(draws));
}

TEST(CounterRandom, BelowReachesEveryNumberEquallyOften) {
  const CounterRandom random(7, RandomStream::lengths);
  std::vector<int> count(6, 0);
  for (std::uint64_t i = 0; i < 60'000; ++i) ++count[random.below(6, i)];
  for (const int c : count) EXPECT_NEAR(c, 10'000, 4 * std::sqrt(60'000 * (1.0 / 6) * (5.0 / 6)));
  EXPECT_EQ(random.below(1, 5), 0u);
  EXPECT_THROW(random.below(0, 5), Error);
}

TEST(CounterRandom, StreamsHaveNames) {
  EXPECT_EQ(to_string(RandomStream::init_W), "init_W");
  EXPECT_EQ(to_string(RandomStream::lengths), "lengths");
  EXPECT_EQ(to_string(RandomStream::selection), "selection");
  EXPECT_EQ(to_string(RandomStream::embedding), "embedding");
  EXPECT_EQ(to_string(RandomStream::unseen_sentences), "unseen_sentences");
}

}  // namespace
}  // namespace attmirror
