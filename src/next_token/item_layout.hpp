// The data of a stage as the fast engine goes through them. Internal.
//
// An item is what has a loss of its own: a sentence with its label, or a token with one of its successors, which is a
// sentence of one token. Sentences come first, those of one query side by side; collocations follow.
//
// All sentences of a query share the scores of their tokens, x^T W_kq x_q. So the different pairs (query, token) are
// numbered, query after query; a sentence knows its pairs, a query knows its range of them.
#pragma once

#include <attmirror/next_token/model.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace attmirror {

struct ItemLayout {
  std::ptrdiff_t sentences = 0, items = 0;  // items: sentences and collocations
  std::vector<std::int64_t> begins;         // item i has the positions begins[i] to begins[i + 1] - 1
  std::vector<std::int32_t> tokens;         // of each position
  std::vector<std::int32_t> pairs;          // of each position of a sentence
  std::vector<std::int32_t> labels;         // of each item
  AlignedVector weights,
      log_weights;  // of each item; those of the sentences sum to 1, and those of the collocations

  std::vector<std::int32_t> queries;      // the tokens that are queries, ascending
  std::vector<std::int64_t> query_items;  // sentences of the q-th query: from query_items[q] on
  std::vector<std::int64_t> query_pairs;  // its pairs: from query_pairs[q] on, tokens ascending
  std::vector<std::int32_t> pair_tokens, pair_queries;

  // For the readout attention: the tokens that could come next, by the tokens of the sentence. Item i has
  // `slot_counts[i]` of them, 0 being its label; a vote (position, slot) says that a position speaks for one. Votes
  // of item i are from vote_begins[i] on.
  std::vector<std::int64_t> vote_begins;
  std::vector<std::int32_t> vote_positions, vote_slots, slot_counts;
  std::vector<std::uint8_t> followed;  // of each position: does the label follow it?

  explicit ItemLayout(const NextTokenModel& model);
  std::ptrdiff_t positions() const { return static_cast<std::ptrdiff_t>(tokens.size()); }
  std::ptrdiff_t pair_count() const { return static_cast<std::ptrdiff_t>(pair_tokens.size()); }

 private:
  void add_sentences(const Sentences& sentences);
  void add_collocations(const Collocations& collocations);
  void number_pairs();
  void count_votes(const Collocations& collocations);
};

}  // namespace attmirror
