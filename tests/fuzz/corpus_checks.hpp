// What attmirror::corpus owes whatever it is given, for the fuzzers and for the ordinary tests that run their corpora.
#pragma once

#include "check_parser.hpp"
#include "deep/corpus/token_file.hpp"
#include "deep/corpus/xz.hpp"
#include <attmirror/deep/text_set.hpp>
#include <attmirror/deep/tokenize.hpp>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror::fuzz {

inline std::string_view as_text(std::span<const std::byte> file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

// Pieces that are each other's beginnings, in several scripts; built once.
inline const WordPiece& fuzz_wordpiece(WordPieceEngine engine) {
  static const auto make = [](WordPieceEngine which) {
    return WordPiece(
        {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a",  "##a", "ab",  "##ab", "abc", "##c", "b",   "##b", "e",
         "##e",   "the",   "##re",  "there", "th", "i",   "##i", "σ",    "##σ", "ß",   "##ß", "日",  "語",
         "ᄒ",    "##ᅡ",  "##ᆫ",  "!",     "\"", "#",   "'",   ",",    "-",   ".",   "“",   "。",  "1",
         "##1",   "12",    "£",     "##£",   "x",  "##x", "##",  "м",    "##и", "##ми"},
        {.engine = which});
  };
  static const WordPiece fast = make(WordPieceEngine::fast), plain = make(WordPieceEngine::plain);
  return engine == WordPieceEngine::fast ? fast : plain;
}

// The first byte says where to cut; the rest is text. Both engines and the pieces with their places agree.
inline void check_wordpiece(std::span<const std::byte> file) {
  if (file.empty()) return;
  const auto length = 1 + std::to_integer<std::int64_t>(file[0]);
  const std::string_view text = as_text(file.subspan(1));
  const WordPiece& fast = fuzz_wordpiece(WordPieceEngine::fast);
  const std::vector<std::int32_t> ids = fast.encode(text, length);
  if (ids != fuzz_wordpiece(WordPieceEngine::plain).encode(text, length)) std::abort();
  const std::vector<TextPiece> pieces = fast.encode_pieces(text, length);
  if (pieces.size() != ids.size()) std::abort();
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (pieces[i].id != ids[i] || pieces[i].begin > pieces[i].end || pieces[i].end > text.size())
      std::abort();
}

// A text set or an Error; what is written in either order reads back. Packed content is unpacked first.
inline void check_text_set(std::span<const std::byte> file) {
  std::string unpacked;
  std::string_view content = as_text(file);
  try {
    unpacked = unpack_xz(file, "file", 1 << 20);
    content = unpacked;
  } catch (const Error&) {
  }
  try {
    parse_pivotal_sentences(content, "file");
  } catch (const Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  try {
    const TextSet set = parse_text_set(content, "file");
    if (set.texts.empty() || set.texts.size() != set.labels.size()) std::abort();
    for (const TextColumns columns : {TextColumns::label_text, TextColumns::text_label}) {
      // A header keeps a first row that looks like one.
      std::string written = columns == TextColumns::label_text ? "label\ttext\n" : "text\tlabel\n";
      for (std::size_t i = 0; i < set.texts.size(); ++i) {
        const std::string label = set.labels[i] == 1 ? "1" : "0";
        written += columns == TextColumns::label_text ? label + "\t" + set.texts[i] + "\r\n"
                                                      : set.texts[i] + "\t" + label + "\r\n";
      }
      const TextSet again = parse_text_set(written, "file", {.columns = columns});
      if (again.texts != set.texts || again.labels != set.labels) std::abort();
    }
  } catch (const Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
}

// As a file, and with its fingerprint put right, so that what comes after that check is reached, too.
inline void check_tokens(std::span<const std::byte> file) {
  check_parser(
      file, [](std::span<const std::byte> bytes) { return parse_token_set(bytes, "file"); },
      format_token_set);
  try {
    Safetensors content = parse_safetensors(file, "file");
    for (const char* name : {"ids", "labels", "offsets"})
      if (!content.tensors.contains(name)) return;
    content.metadata["content_fingerprint"] = content_fingerprint(content.tensors);
    check_parser(
        format_safetensors(content),
        [](std::span<const std::byte> bytes) { return parse_token_set(bytes, "file"); }, format_token_set);
  } catch (const Error&) {
  }
}

}  // namespace attmirror::fuzz
