// Which samples a step trains on, as a function of (seed, epoch, step): nothing has to be remembered. Internal.
#pragma once

#include "deep/corpus/rows.hpp"
#include <attmirror/deep/train_config.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace attmirror {

struct TrialSeeds {
  std::uint64_t init = 0, order = 0, dropout = 0;
};

// Trial 0 has the seeds of the configuration, the others numbers drawn from them.
TrialSeeds trial_seeds(const LoopConfig& config, std::int64_t trial);

// A permutation of 0..rows-1, all equally likely (Fisher and Yates).
std::vector<std::int64_t> epoch_order(std::uint64_t order_seed, std::int64_t epoch, std::int64_t rows);

// The samples [begin, end) of a batch that one of `size` processes computes: contiguous, and cut so that each has about
// as many tokens. May be empty.
struct BatchPart {
  std::size_t begin = 0, end = 0;
};
BatchPart batch_part(std::span<const std::int64_t> lengths, std::int64_t rank, std::int64_t size);

}  // namespace attmirror
