#include "deep/views/weight_statistics.hpp"

#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace attmirror::deep {

namespace {

template <class Wanted>
std::vector<float> gathered_weights(const Network& network, const Wanted& wanted) {
  std::vector<float> weights;
  for (const Projection& projection : network.projections()) {
    if (!wanted(projection)) continue;
    const at::Tensor here = projection.weight.detach().to(at::kCPU, at::kFloat).contiguous();
    const float* numbers = here.data_ptr<float>();
    weights.insert(weights.end(), numbers, numbers + here.numel());
  }
  return weights;
}

}  // namespace

std::vector<float> map_weights(const Network& network, char map) {
  return gathered_weights(network, [&](const Projection& one) { return one.map == map; });
}

std::vector<float> map_weights(const Network& network, char map, std::int64_t block) {
  return gathered_weights(network,
                          [&](const Projection& one) { return one.map == map && one.block == block; });
}

std::int64_t block_count(const Network& network) {
  std::int64_t blocks = 0;
  for (const Projection& projection : network.projections()) blocks = std::max(blocks, projection.block + 1);
  return blocks;
}

WeightStatistics weight_statistics(std::span<const float> weights, const std::string& name) {
  if (weights.empty()) throw bad_input(fmt::format("{} has no weights", name));
  WeightStatistics result;
  const auto n = static_cast<double>(weights.size());
  result.count = static_cast<std::int64_t>(weights.size());
  double sum = 0, absolute_sum = 0, squares = 0;
  std::int64_t small = 0;
  std::vector<float> sizes;
  sizes.reserve(weights.size());
  for (const float weight : weights) {
    if (!std::isfinite(weight))
      throw bad_input(fmt::format("{} has weights that are not finite: its training diverged", name));
    const double w = static_cast<double>(weight), size = std::abs(w);
    sum += w;
    absolute_sum += size;
    squares += w * w;
    result.large += size > large_weight ? 1 : 0;
    small += size < small_weight ? 1 : 0;
    sizes.push_back(std::abs(weight));
  }
  const double mean = sum / n;
  double second = 0, fourth = 0;
  for (const float weight : weights) {
    const double square = (static_cast<double>(weight) - mean) * (static_cast<double>(weight) - mean);
    second += square / n;
    fourth += square * square / n;
  }
  std::ranges::sort(sizes);
  result.small_share = static_cast<double>(small) / n;
  result.largest = static_cast<double>(sizes.back());
  result.standard_deviation = std::sqrt(second);
  result.kurtosis = second > 0 ? fourth / (second * second) : 0;
  result.effective_share = squares > 0 ? absolute_sum * absolute_sum / squares / n : 0;
  for (std::size_t i = 0; i < result.levels.size(); ++i) {
    // The smallest number that at least this share does not exceed.
    const auto at = static_cast<std::size_t>(std::ceil(result.levels[i] * n)) - 1;
    result.quantiles[i] = static_cast<double>(sizes[std::min(at, sizes.size() - 1)]);
  }
  return result;
}

std::vector<std::int64_t> weight_histogram(std::span<const float> weights, double limit, std::size_t bins) {
  if (!(limit > 0) || !std::isfinite(limit) || bins == 0)
    throw bad_input(fmt::format("a histogram of {} bins to {}: expected at least one, and a positive limit",
                                bins, limit));
  std::vector<std::int64_t> counts(bins);
  for (const float weight : weights) {
    if (!std::isfinite(weight)) throw bad_input("a histogram of weights that are not finite");
    const double place = (static_cast<double>(weight) + limit) / (2 * limit) * static_cast<double>(bins);
    ++counts[static_cast<std::size_t>(std::clamp(std::floor(place), 0.0, static_cast<double>(bins - 1)))];
  }
  return counts;
}

}  // namespace attmirror::deep
