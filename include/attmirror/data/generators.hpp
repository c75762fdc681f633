// The random data of the papers, from their seeds, and data of the same kind in other sizes.
#pragma once

#include <attmirror/data/dataset.hpp>

#include <cstdint>
#include <optional>

namespace attmirror {

// Points on the unit sphere, as in the experiments of "Optimizing Attention with Mirror Descent" and
// "Transformers as Support Vector Machines": with torch's generator, in this order,
//   decoder v = randn(d) / norm, labels Y = sign of randn(n), tokens X = randn(n, T, d) and queries Z =
//   randn(n, d) with rows of norm 1.
// Drawn and normalised in single precision, as there, then widened to double. The golden data of the first
// paper's sizes come back to the last bit (see data/torch_random.hpp).
struct SphereData {
  std::int64_t samples = 6;  // n; 6, 8, 10 and seeds 1 to 100 are the first paper's figure
  std::int64_t tokens = 8;   // T, tokens per sequence, or the most there are when min_tokens is set
  std::int64_t dim = 10;     // d
  std::uint64_t seed = 1;    // of torch's generator; its lower 32 bits count

  // Ragged data (ours, not the papers'): the length of each sequence is uniform in min_tokens..tokens, and it
  // keeps the first tokens of those the rectangular data set of the same seed has.
  std::optional<std::int64_t> min_tokens = std::nullopt;

  // Cross-attention from several queries to each sequence: Z = randn(n, K, d) with rows of norm 1, one label for
  // all queries of a sequence. The papers' runs have one query each.
  std::int64_t queries = 1;  // K

  // Self-attention: the queries are tokens of their sequence, and no Z is drawn.
  enum class QueryFrom {
    draw,         // cross-attention
    first_token,  // one query each
    last_token,   // one query each; P3's default outside of its experiments
    all_tokens,   // as many queries as tokens; with_causal_mask() makes it causal
  };
  QueryFrom query_from = QueryFrom::draw;

  // Throws Error (bad input) for sizes below 1, min_tokens above tokens, more than one query to draw in
  // self-attention, or sizes that no memory holds.
  void validate() const;
};

Dataset generate(const SphereData& options);

// The two sequences of the first paper's joint training of decoder and attention (n = 2, T = 3, d = 2). The
// query is the first token of each; there is no decoder, because the run trains it from zero. Nothing is
// random here.
struct JointData {};

Dataset generate(const JointData& options);

}  // namespace attmirror
