// What attention learns from: n token sequences of any lengths, one or more queries for each, a label of -1
// or +1 for each query, and (optionally) the fixed head that turns the attended token into a prediction.
//
// The tokens of all sequences are stored in one matrix, one after the other, so that a pass over the data
// reads memory front to back and sequences of different lengths cost no padding rows. Rows are padded to
// whole vectors (see base/matrix.hpp), as the kernels of room `attention` need them. The queries are stored
// the same way in a second matrix. Most of the papers' data have one query per sequence; then query i belongs
// to sequence i.
//
// A Dataset is checked once, when it is made, and never changes, so code that holds one can rely on finite
// numbers, labels of +-1 and matching sizes. Copies are deep; models are views of a Dataset and do not copy it.
#pragma once

#include <attmirror/base/matrix.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// Plain arrays, as users have them.
struct DatasetArrays {
  Matrix tokens;                      // (sum of lengths, d): the sequences one after the other
  std::vector<std::int64_t> lengths;  // n, tokens per sequence, each >= 1
  Matrix queries;                     // (number of queries, d); leave empty when query_index is given
  std::vector<double> labels;  // each -1 or +1: one per sequence (for all its queries) or one per query
  Vector decoder;              // d, or empty if the decoder is trained or unknown

  // The number of queries of each sequence, each >= 1. Empty: one each.
  std::vector<std::int64_t> query_counts{};
  // Self-attention: query j is this token of its sequence, from 0. Empty: the queries are given.
  std::vector<std::int64_t> query_index{};
  // The tokens that each query may attend to, 1 or 0: for each query in turn, as many entries as its sequence
  // has tokens. Empty: all of them.
  std::vector<std::uint8_t> mask{};
  // The weights V (d, m) of the ReLU head 1^T ReLU(V^T u), or empty.
  Matrix head{};
};

// Which tokens a query may attend to.
enum class Mask {
  none,    // every query attends to all tokens of its sequence
  causal,  // the query at token k attends to the tokens up to k
  custom,  // as given in DatasetArrays::mask
};

std::string_view to_string(Mask mask);

// Sequences of tokens, each with queries and labels, and a decoder where there is one.
class Dataset {
 public:
  // Checks all arrays, then copies them; throws Error (bad input) that names the first wrong entry.
  explicit Dataset(const DatasetArrays& arrays);

  std::ptrdiff_t samples() const { return static_cast<std::ptrdiff_t>(offsets_.size()) - 1; }
  std::ptrdiff_t dim() const { return tokens_.view().cols; }
  std::ptrdiff_t total_tokens() const { return offsets_.back(); }
  std::ptrdiff_t max_length() const { return max_length_; }

  // Sequence i has length(i) tokens; they start at row offset(i) of all_tokens(). offset(samples()) is the end.
  std::ptrdiff_t length(std::ptrdiff_t i) const { return offset(i + 1) - offset(i); }
  std::ptrdiff_t offset(std::ptrdiff_t i) const { return offsets_[static_cast<std::size_t>(i)]; }
  bool equal_lengths() const { return max_length_ * samples() == total_tokens(); }

  // False where X was an array (n, T, d) and nobody said how long its sequences are: suspected_padding() below.
  bool lengths_given() const { return lengths_given_; }

  ConstMatrixView all_tokens() const { return tokens_.view(); }  // (total_tokens, d), starts on a cache line
  ConstMatrixView tokens(std::ptrdiff_t i) const {               // (length(i), d)
    const ConstMatrixView all = tokens_.view();
    return {all.data + offset(i) * all.stride, length(i), all.cols, all.stride};
  }

  // The queries of sequence i are the rows first_query(i) to first_query(i + 1) - 1 of queries(); query j belongs
  // to sequence_of(j) and has the label labels()[j].
  std::ptrdiff_t total_queries() const { return query_offsets_.back(); }
  std::ptrdiff_t first_query(std::ptrdiff_t i) const { return query_offsets_[static_cast<std::size_t>(i)]; }
  std::ptrdiff_t query_count(std::ptrdiff_t i) const { return first_query(i + 1) - first_query(i); }
  std::ptrdiff_t sequence_of(std::ptrdiff_t j) const { return sequence_of_[static_cast<std::size_t>(j)]; }
  bool one_query_each() const { return total_queries() == samples(); }
  bool equal_query_counts() const;
  ConstMatrixView queries() const { return queries_.view(); }  // (total_queries, d)
  std::span<const double> labels() const { return labels_; }   // total_queries

  // Self-attention: the token that query j is. Empty if the queries are separate vectors.
  std::span<const std::int64_t> query_index() const { return query_index_; }

  // Which tokens a query may attend to. You need only look at the first attended_length(j).
  Mask mask() const { return mask_; }
  bool allows(std::ptrdiff_t j, std::ptrdiff_t t) const;
  std::ptrdiff_t attended_length(std::ptrdiff_t j) const;
  std::span<const std::uint8_t> mask_row(
      std::ptrdiff_t j) const;  // of a custom mask: length(sequence_of(j)) entries

  bool has_decoder() const { return decoder_.view().rows == 1; }
  ConstMatrixView decoder() const { return decoder_.view(); }  // (1, d); no rows when has_decoder() is false

  // The ReLU head's weights, stored transposed (m, d); no rows if there are none.
  ConstMatrixView head_weights() const { return head_.view(); }

  // 64 bits from all sizes and values. Runs store it, so that resuming or comparing with other data is noticed.
  std::uint64_t fingerprint() const { return fingerprint_; }

  // The same data with a causal mask. Throws Error (bad input) when the queries are not tokens of their
  // sequence or the data already have a mask.
  friend Dataset with_causal_mask(Dataset data);

 private:
  friend class DatasetReader;  // reads large files without a second copy of their tokens

  // Checks the arrays, whose tokens and queries are stored elsewhere, and takes everything except these.
  void take(const DatasetArrays& arrays, ConstMatrixView tokens, ConstMatrixView queries);
  void take_mask(const std::vector<std::uint8_t>& mask);
  void gather_queries();  // those of self-attention, from the tokens
  std::uint64_t compute_fingerprint() const;
  // The same if the tokens and queries are stored elsewhere: the functions add their sizes and entries.
  template <class AddTokens, class AddQueries>
  std::uint64_t fingerprint_with(AddTokens add_tokens, AddQueries add_queries) const;
  Dataset() = default;

  PaddedMatrix tokens_, queries_, decoder_, head_;
  std::vector<std::ptrdiff_t> offsets_, query_offsets_;  // n + 1
  std::vector<std::ptrdiff_t> sequence_of_;              // one per query
  AlignedVector labels_;                                 // one per query
  std::vector<std::int64_t> query_index_;
  Mask mask_ = Mask::none;
  std::vector<std::uint8_t> mask_values_;
  std::vector<std::size_t> mask_offsets_;  // of each query's row in mask_values_
  std::ptrdiff_t max_length_ = 0;
  std::uint64_t fingerprint_ = 0;
  bool lengths_given_ = true;
};

Dataset with_causal_mask(Dataset data);

// "6 sequences of 8 tokens, dimension 10, with decoder"
std::string to_string(const Dataset& data);

// Reads an .npz file with the arrays
//   X (n, T, d); padded, with `lengths` (n): the first lengths[i] rows of X[i] are tokens, and what stands in the
//     others, NaN even, does not matter; or (sum of lengths, d) with `lengths`, one sequence after the other
//   Z (n, d) for one query each or (n, K, d) for K; or instead query_index (n) or (n, K): the query is that token
//     of the sequence. With an array query_counts (n) their first axis runs over all queries instead: Z (N, d),
//     query_index (N)
//   Y (n), each -1 or +1; or one per query: (n, K), and (N) with query_counts
//   mask (n, K, T), optional: 1 where query k of a sequence may attend to token t; (n, T) for one query each, (N, T)
//     with query_counts. T is that of X, or the longest length; what lies beyond a shorter sequence's end is ignored
//   v (d), V (d, m), optional: the linear head, the weights of the ReLU head
// Lower-case names are accepted for X, Y and Z. Throws Error (bad input) when the arrays do not fit, naming
// the file and the array.
Dataset load_dataset(const std::filesystem::path& path);

// Sequences that may have been padded without `lengths` to say so: they end in rows of zeros, which are tokens like any
// other, and so become support tokens of max-margin problems. Rows that a mask hides from all queries do not count.
struct SuspectedPadding {
  std::ptrdiff_t sequence = 0, rows = 0;         // the first such sequence, and how many rows of zeros end it
  std::ptrdiff_t sequences = 0, total_rows = 0;  // all of them
};

// Nothing where the lengths were given, because then the rows are tokens.
std::optional<SuspectedPadding> suspected_padding(const Dataset& data);

// "sequence 3 ends in 2 rows of zeros (...)": what was found and what to do, in a sentence or two.
std::string to_string(const SuspectedPadding& padding);

// Writes what load_dataset() reads, as doubles, whole or not at all: X rectangular when all lengths are equal, else
// ragged; `lengths` where they differ, or where rows of zeros that end a sequence are known to be tokens; a causal
// mask as the array it stands for; and `format_version`, which load_dataset() checks.
void save_dataset(const std::filesystem::path& path, const Dataset& data);

}  // namespace attmirror
