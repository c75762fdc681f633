#include "deep/trainer/data_order.hpp"

#include "base/random.hpp"

#include <numeric>
#include <utility>

namespace attmirror {

namespace {

// Numbers of a seed that nothing else asks for: from the end. Of 63 bits, as configurations hold them, so that a
// trial can be repeated alone.
std::uint64_t seed_of_trial(std::uint64_t seed, RandomStream stream, std::int64_t trial) {
  if (trial == 0) return seed;
  return CounterRandom(seed, stream).bits(~static_cast<std::uint64_t>(trial)) >> 1;
}

}  // namespace

TrialSeeds trial_seeds(const LoopConfig& config, std::int64_t trial) {
  return {seed_of_trial(config.init_seed, RandomStream::deep_init, trial),
          seed_of_trial(config.order_seed, RandomStream::deep_order, trial),
          seed_of_trial(config.dropout_seed, RandomStream::deep_dropout, trial)};
}

std::vector<std::int64_t> epoch_order(std::uint64_t order_seed, std::int64_t epoch, std::int64_t rows) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const CounterRandom random(
      CounterRandom(order_seed, RandomStream::deep_order).bits(static_cast<std::uint64_t>(epoch)),
      RandomStream::deep_order);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i, i)]);
  return order;
}

BatchPart batch_part(std::span<const std::int64_t> lengths, std::int64_t rank, std::int64_t size) {
  std::int64_t total = 0;
  for (const std::int64_t length : lengths) total += length;
  // The first sample whose middle lies behind the share of the processes before `which`.
  const auto cut = [&](std::int64_t which) {
    if (which == size) return lengths.size();
    std::int64_t before = 0;
    std::size_t at = 0;
    while (at < lengths.size() && (2 * before + lengths[at]) * size <= 2 * total * which)
      before += lengths[at++];
    return at;
  };
  return {cut(rank), cut(rank + 1)};
}

}  // namespace attmirror
