// softmax(Q K^T / sqrt(width)) V for samples that lie end to end, each attending to itself alone.
//
// Three ways to the same numbers:
//   plain   tensor operations, sample by sample: what the others are checked against, and what shows the probabilities
//   packed  our own loops over samples and heads on the CPU: nothing of the size length x length is kept for the
//           backward pass, which computes it anew
//   fused   LibTorch's flash attention with variable lengths, on GPUs in bfloat16 and float16 (LibTorch 2)
//
// Dropout of probabilities: plain and packed draw number (query row's key, site, head, key's place), the same in
// both. The fused kernel draws for itself, from the step's seed and the sample's place in the batch of all processes:
// other numbers, as independent of how many processes share the batch. Internal.
#pragma once

#include <attmirror/deep/transformer.hpp>

#include <cstdint>

#include <torch/types.h>

namespace attmirror::deep {

struct AttentionDropout {
  double probability = 0;  // 0: none
  at::Tensor keys;         // int64 [query rows]
  std::uint32_t site = 0;  // which of the network's dropouts
  // What the fused kernel draws from: the step's seed, and the places of this block and of its samples in what all
  // blocks draw for the samples of all processes.
  std::uint64_t seed = 0;
  std::int64_t first_sample = 0;
  std::int64_t block = 0;
  std::int64_t all_samples = 0;  // 0: those that are here
};

struct PackedRows {
  at::Tensor offsets;        // int32 [samples + 1]
  std::int64_t longest = 0;  // rows of the longest sample
};

// query: [query rows, heads, width], key and value: [key rows, heads, width]; samples' queries lie at `queries`,
// their keys at `keys`. Returns [query rows, heads, width], with a gradient. Scores are scaled by 1/sqrt(width).
//
// `automatic`: fused where it can be, packed on the CPU, otherwise plain. Throws Error (bad input) where what is
// asked for cannot be.
at::Tensor packed_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const PackedRows& queries, const PackedRows& keys,
                            const AttentionDropout& dropout, AttentionKind kind = AttentionKind::automatic);

}  // namespace attmirror::deep
