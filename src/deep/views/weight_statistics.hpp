// How the weights of K, Q and V are spread: sparse or dense?
//
// P1 shows histograms of them and counts those above 0.06: mirror descent with p near 1 leaves fewer of them than
// gradient descent, and larger ones. One threshold says little about networks of other sizes and step sizes, so there
// are measures besides that do not depend on a scale: kurtosis and the effective count. Internal.
#pragma once

#include <attmirror/deep/network.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace attmirror::deep {

inline constexpr double large_weight = 0.06;  // P1's threshold
inline constexpr double small_weight = 1e-3;

struct WeightStatistics {
  std::int64_t count = 0;
  std::int64_t large = 0;         // |w| > 0.06
  double small_share = 0;         // of |w| < 1e-3
  double largest = 0;             // |w|
  double standard_deviation = 0;  // about the mean
  double kurtosis = 0;  // 3 for a normal distribution, 1.8 for a uniform one, more for a few large weights
  // |w|_1^2 / |w|_2^2 / count: 1 for equal weights, 2/pi for normal ones, near 0 for sparse.
  double effective_share = 0;
  static constexpr std::array<double, 4> levels = {0.5, 0.9, 0.99, 0.999};
  std::array<double, 4> quantiles = {};  // of |w|, at these levels
};

// Throws Error (bad input), naming `name`, for weights that are not finite, and for none at all.
WeightStatistics weight_statistics(std::span<const float> weights, const std::string& name);

// Counts in equal bins over -limit .. limit; what lies outside counts in the outermost.
std::vector<std::int64_t> weight_histogram(std::span<const float> weights, double limit, std::size_t bins);

// The weights of one map in all blocks, or in one.
std::vector<float> map_weights(const Network& network, char map);
std::vector<float> map_weights(const Network& network, char map, std::int64_t block);
std::int64_t block_count(const Network& network);

}  // namespace attmirror::deep
