// Labeled texts as in the official distributions of IMDb and SST-2.
//
// What read_text_set() takes:
//   a folder       one half of aclImdb (train or test): neg/*.txt have label 0, pos/*.txt label 1, one text per file.
//                  Order: neg, then pos, each by the number at the beginning of the file's name, then by name.
//   .tsv, .tsv.xz  one text a line, with its label (0 or 1) before or after it: LABEL<TAB>TEXT or TEXT<TAB>LABEL. A
//                  first line whose label is the word "label" is a header.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// Texts with their labels.
struct TextSet {
  std::vector<std::string> texts;    // UTF-8, as it stands in the file
  std::vector<std::int32_t> labels;  // one per text: 0 or 1

  std::int64_t rows() const { return static_cast<std::int64_t>(texts.size()); }
};

// Where the labels are in a .tsv file.
enum class TextColumns { found, label_text, text_label };

std::string_view to_string(TextColumns columns);  // "auto", "label,text", "text,label"
TextColumns parse_text_columns(
    std::string_view word);  // of these words; throws Error (bad input) for another

// How a file of texts is read.
struct TextSetOptions {
  // Detected: the labels are the column that is 0 or 1 in every row. A file in which both columns are, or
  // neither is, is refused.
  TextColumns columns = TextColumns::found;
};

// Throws Error (bad input), naming the file and the line, for a line without a tab, a label that is neither 0
// nor 1, columns that cannot be told apart, a NUL byte, a set without rows, a truncated or damaged .xz file, or
// a folder without neg and pos. Lines may end in CR LF, the last line needs no end, and a text may be empty.
TextSet read_text_set(const std::filesystem::path& path, const TextSetOptions& options = {});

// The same for the content of a .tsv file; `name` is its name in messages.
TextSet parse_text_set(std::string_view content, std::string_view name, const TextSetOptions& options = {});

// A short review whose verdict depends on one word: P1 asks whether attention selects it.
struct PivotalSentence {
  std::int32_t label = 0;  // 0 or 1
  std::string pivotal;     // normally a word of the sentence; three of P1's fifty lack theirs
  std::string sentence;
};

// A .tsv file (or .tsv.xz) with the header label<TAB>pivotal<TAB>sentence and one line for each. Throws Error
// (bad input), naming the file and the line, for another header, another number of columns, a label that is
// neither 0 nor 1, an empty word or sentence, or no rows.
std::vector<PivotalSentence> read_pivotal_sentences(const std::filesystem::path& path);
std::vector<PivotalSentence> parse_pivotal_sentences(std::string_view content, std::string_view name);

}  // namespace attmirror
