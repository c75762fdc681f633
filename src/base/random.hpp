// Random numbers by address instead of by order.
//
// A run must give the same bits on any number of threads and after any resume. A generator with a state
// cannot promise that: what it returns depends on how often it was asked before. A counter-based one is a
// function: number `index` of stream `stream` under `seed` is Philox4x32-10 (Salmon et al., SC 2011) of these
// three, so any thread may compute any of them at any time and nothing has to be saved.
//
// normal() uses the log, sin and cos of the C library: the last bit may differ between C libraries.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace attmirror {

// What the numbers are for; streams of one seed are independent. The values are part of what a seed means:
// add new ones at the end, never renumber.
enum class RandomStream : std::uint32_t {
  init_W = 1,
  init_K = 2,
  init_Q = 3,
  init_prompt = 4,
  init_decoder = 5,
  lengths = 6,
  selection = 7,
  embedding = 8,
  successors = 9,
  rankings = 10,
  sentences = 11,
  unseen_sentences = 12,
  deep_init = 13,
  deep_order = 14,
  deep_dropout = 15,
  deep_augment = 16,
  init_own = 17,
  attractor_directions = 18,
  attractor_noise = 19,
};

std::string_view to_string(RandomStream stream);

class CounterRandom {
 public:
  CounterRandom(std::uint64_t seed, RandomStream stream) : seed_(seed), stream_(stream) {}

  std::uint64_t seed() const { return seed_; }
  RandomStream stream() const { return stream_; }

  std::uint64_t bits(std::uint64_t index) const;   // 64 uniform bits
  double uniform(std::uint64_t index) const;       // [0, 1), a multiple of 2^-53
  double uniform_open(std::uint64_t index) const;  // (0, 1), neither end, 52 bits
  double normal(std::uint64_t index) const;        // mean 0, variance 1; at most 8.6 in magnitude
  std::uint64_t below(std::uint64_t limit, std::uint64_t index) const;  // 0..limit-1; limit >= 1

 private:
  std::uint64_t seed_;
  RandomStream stream_;
};

// The bare block function, for those who want other distributions: 128 bits from a counter of 128 and a key
// of 64.
std::array<std::uint32_t, 4> philox_block(const std::array<std::uint32_t, 4>& counter,
                                          const std::array<std::uint32_t, 2>& key);

}  // namespace attmirror
