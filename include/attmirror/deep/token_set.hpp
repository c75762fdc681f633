// Texts as token ids, ready for training: the output of WordPiece for a text set, and the content of token files.
//
// Unpacking 50,000 reviews and tokenizing them takes seconds; loading the ids from a file takes a tenth of a
// second. A token file is a safetensors file with `ids` (U16, or I32 for a larger vocabulary), `offsets`
// (I64, rows + 1) and `labels` (I32). Its metadata say what they were made from, so that a file of another
// vocabulary is noticed, and hold a fingerprint of all three, so that damage is noticed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// Tokenized texts of different lengths, one after another, with their labels.
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

  friend bool operator==(const TokenSet&, const TokenSet&) = default;

  // Throws Error (bad input), naming the field and index: offsets that do not rise or fit, an empty row, a row above
  // `length`, ids outside the vocabulary, negative labels.
  void validate() const;
};

// Both name the file in what they throw: Error (bad input) for a file that is not a token file, is damaged or
// breaks the rules above. Saving is atomic.
TokenSet load_token_set(const std::filesystem::path& path);
void save_token_set(const std::filesystem::path& path, const TokenSet& tokens);

// The content of a token file; `name` is its name in messages.
TokenSet parse_token_set(std::span<const std::byte> file, std::string_view name);
std::vector<std::byte> format_token_set(const TokenSet& tokens);

// SHA-256 of all ids as uint16, little-endian, rows end to end: 64 hexadecimal digits by which other programs can check
// that theirs are the same. Throws Error (bad input) for an id above 65,535.
std::string ids_sha256(const TokenSet& tokens);

}  // namespace attmirror
