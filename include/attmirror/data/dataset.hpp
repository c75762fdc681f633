// What attention learns from: n token sequences of any lengths, a query and a label of -1 or +1 for each, and
// (optionally) the fixed decoder v that turns the attended token into a prediction.
//
// The tokens of all sequences lie in one matrix, one after the other, so that a pass over the data reads
// memory front to back and sequences of different lengths cost no padding rows. Rows are padded to whole
// vectors (see base/aligned.hpp), which is how the kernels of room `attention` want them.
//
// A Dataset is checked once, when it is made, and never changes: everything that holds one may rely on finite
// numbers, labels of +-1 and matching sizes. Copies are deep; models view a Dataset and do not copy it.
#pragma once

#include <attmirror/base/aligned.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace attmirror {

// Plain arrays, as a user has them.
struct DatasetArrays {
  Matrix tokens;                      // (sum of lengths, d): the sequences one after the other
  std::vector<std::int64_t> lengths;  // n, tokens per sequence, each >= 1
  Matrix queries;                     // (n, d)
  std::vector<double> labels;         // n, each -1 or +1
  Vector decoder;                     // d, or empty where the decoder is trained or not known
};

class Dataset {
 public:
  // Checks all of the arrays, then copies them; throws Error (bad input) that names the first wrong entry.
  explicit Dataset(const DatasetArrays& arrays);

  std::ptrdiff_t samples() const { return static_cast<std::ptrdiff_t>(labels_.size()); }
  std::ptrdiff_t dim() const { return queries_.view().cols; }
  std::ptrdiff_t total_tokens() const { return offsets_.back(); }
  std::ptrdiff_t max_length() const { return max_length_; }

  // Sequence i has length(i) tokens; they start at row offset(i) of all_tokens(). offset(samples()) is the
  // end.
  std::ptrdiff_t length(std::ptrdiff_t i) const { return offset(i + 1) - offset(i); }
  std::ptrdiff_t offset(std::ptrdiff_t i) const { return offsets_[static_cast<std::size_t>(i)]; }
  bool equal_lengths() const { return max_length_ * samples() == total_tokens(); }

  ConstMatrixView all_tokens() const { return tokens_.view(); }  // (total_tokens, d), starts on a cache line
  ConstMatrixView tokens(std::ptrdiff_t i) const {               // (length(i), d)
    const ConstMatrixView all = tokens_.view();
    return {all.data + offset(i) * all.stride, length(i), all.cols, all.stride};
  }
  ConstMatrixView queries() const { return queries_.view(); }  // (n, d)
  std::span<const double> labels() const { return labels_; }

  bool has_decoder() const { return decoder_.view().rows == 1; }
  ConstMatrixView decoder() const { return decoder_.view(); }  // (1, d); no rows when has_decoder() is false

  // 64 bits of all sizes and values. Runs store it, so that resuming or comparing with other data is noticed.
  std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  PaddedMatrix tokens_, queries_, decoder_;
  std::vector<std::ptrdiff_t> offsets_;  // n + 1
  AlignedVector labels_;
  std::ptrdiff_t max_length_ = 0;
  std::uint64_t fingerprint_ = 0;
};

// "6 sequences of 8 tokens, dimension 10, with decoder"
std::string to_string(const Dataset& data);

// Reads an .npz file with the arrays
//   X (n, T, d), or (sum of lengths, d) together with `lengths` (n)
//   Z (n, d) or (n, 1, d); or instead query_index (n) or (n, 1): the query is that token of the sequence
//   Y (n), each -1 or +1
//   v (d), optional
// Lower-case names are accepted. Throws Error: bad input when the arrays do not fit, naming file and array.
Dataset load_dataset(const std::filesystem::path& path);

// Writes what load_dataset() reads, as doubles: X rectangular when all lengths are equal, else ragged with
// `lengths`; and `format_version`, which load_dataset() checks. The file appears whole or not at all.
void save_dataset(const std::filesystem::path& path, const Dataset& data);

}  // namespace attmirror
