// From texts to token sets.
//
// Rows are independent, so they are divided among threads in chunks that depend only on their number, and
// joined in order: the result is the same for any number of threads.
#pragma once

#include <attmirror/deep/text_set.hpp>
#include <attmirror/deep/token_set.hpp>
#include <attmirror/deep/wordpiece.hpp>

#include <cstdint>
#include <span>

namespace attmirror {

// Throws Error (bad input) if length < 1 or threads < 0. threads = 0 means as many as the machine runs at once.
TokenSet make_token_set(const TextSet& texts, const WordPiece& wordpiece, std::int64_t length,
                        int threads = 1);

// The rows of all sets, one set after the other. Throws Error (bad input) for an empty list, and for sets that differ
// in vocabulary or length.
TokenSet join_token_sets(std::span<const TokenSet> sets);

// Statistics to check whether tokens are as expected.
struct TokenStatistics {
  std::int64_t rows = 0, tokens = 0;
  double mean_length = 0;                // tokens per row; 0 if there are no rows
  std::int64_t rows_of_full_length = 0;  // those of `length` ids, most of them cut
  std::int64_t unknown = 0;              // ids equal to the vocabulary's [UNK]
};
TokenStatistics token_statistics(const TokenSet& tokens, std::int32_t unknown_id);

}  // namespace attmirror
