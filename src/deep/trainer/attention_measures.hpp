// How a network's attention is spread over tokens, as a training goes on. Internal.
#pragma once

#include "deep/trainer/batch_source.hpp"
#include <attmirror/deep/network.hpp>
#include <attmirror/deep/trainer.hpp>

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace attmirror::deep {

inline constexpr std::int64_t attention_samples = 64;  // evenly spaced over the rows of a source

// Of each block.
std::vector<AttentionMeasures> measured_attention(Network& network, const BatchSource& source,
                                                  at::Device device);

// The means over heads and queries of probabilities [heads, queries, tokens].
AttentionSpread attention_spread(const at::Tensor& probabilities);

}  // namespace attmirror::deep
