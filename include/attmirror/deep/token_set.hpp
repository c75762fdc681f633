// Texts as token ids, ready for training: what WordPiece makes of a text set, and what lies in token files.
//
// Making the ids of 50,000 reviews takes seconds, loading them from a file a few hundredths of one. A token file is a
// safetensors file: `ids` (U16, or I32 where the vocabulary is larger), `offsets` (I64, rows + 1), `labels` (I32), and
// what they were made from as metadata, so that a file of another vocabulary is noticed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace attmirror {

struct TokenSet {
  std::vector<std::int32_t> ids;            // all rows end to end, [CLS] and [SEP] included
  std::vector<std::int64_t> offsets = {0};  // row r is ids[offsets[r]] up to ids[offsets[r + 1]]
  std::vector<std::int32_t> labels;         // one per row, from 0
  std::int64_t vocabulary = 0;              // ids are below this
  std::int64_t length = 0;                  // rows are cut to this many ids
  std::string vocabulary_fingerprint = {};  // of the vocabulary file's words

  std::int64_t rows() const { return static_cast<std::int64_t>(labels.size()); }
  std::span<const std::int32_t> row(std::int64_t r) const {
    const auto at = static_cast<std::size_t>(r);
    return std::span(ids).subspan(static_cast<std::size_t>(offsets[at]),
                                  static_cast<std::size_t>(offsets[at + 1] - offsets[at]));
  }

  // Throws Error (bad input), naming the field and index: offsets that do not rise or fit, an empty row, a row above
  // `length`, ids outside the vocabulary, negative labels.
  void validate() const;
};

// Both name the file in what they throw: Error (bad input) for a file that is no token file or breaks the rules above.
TokenSet load_token_set(const std::filesystem::path& path);
void save_token_set(const std::filesystem::path& path, const TokenSet& tokens);

}  // namespace attmirror
