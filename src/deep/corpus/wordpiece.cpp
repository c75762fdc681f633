// The vocabulary and the two engines.
//
// Why the fast engine may take words one by one: NFD changes nothing about ASCII and moves no mark past it, and
// blanks and ASCII punctuation end a word whatever stands beside them. So the text between two of those can be
// normalized by itself: by a table if it is ASCII, through ICU otherwise. Control characters are dropped before
// anything else and so end neither a word nor a run of marks.
#include "base/atomic_file.hpp"
#include "base/utf8.hpp"
#include "data/messages.hpp"
#include "deep/corpus/piece_trie.hpp"
#include "deep/corpus/unicode.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/fingerprint.hpp>
#include <attmirror/deep/wordpiece.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace attmirror {
namespace {

constexpr std::size_t longest_word = 100;  // in letters, after normalization

enum class ByteKind : unsigned char { letter, blank, punctuation, dropped, beyond_ascii };

struct ByteTable {
  std::array<ByteKind, 256> kind{};
  std::array<char, 256> lower{};
};

constexpr ByteTable make_byte_table() {
  ByteTable table;
  for (int b = 0; b < 256; ++b) {
    const bool upper = b >= 'A' && b <= 'Z', digit = b >= '0' && b <= '9', small = b >= 'a' && b <= 'z';
    const auto at = static_cast<std::size_t>(b);
    table.lower[at] = static_cast<char>(static_cast<unsigned char>(upper ? b - 'A' + 'a' : b));
    table.kind[at] = b >= 0x80                                         ? ByteKind::beyond_ascii
                     : b == ' ' || b == '\t' || b == '\n' || b == '\r' ? ByteKind::blank
                     : b < ' ' || b == 0x7F                            ? ByteKind::dropped
                     : upper || small || digit                         ? ByteKind::letter
                                                                       : ByteKind::punctuation;
  }
  return table;
}
constexpr ByteTable byte_table = make_byte_table();

ByteKind kind_of(char c) { return byte_table.kind[static_cast<unsigned char>(c)]; }

// A word of normalized text: its letters with their places.
using Word = std::span<const SourceLetter>;

// Rule 5. Calls use(word) for each word until it returns false.
template <class Use>
void for_each_word(std::span<const SourceLetter> letters, Use use) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= letters.size(); ++i) {
    const bool at_end = i == letters.size();
    const bool punctuation = !at_end && is_punctuation(letters[i].code);
    if (!at_end && !punctuation && letters[i].code != U' ') continue;
    if (begin < i && !use(letters.subspan(begin, i - begin))) return;
    if (punctuation && !use(letters.subspan(i, 1))) return;
    begin = i + 1;
  }
}

std::string utf8(Word word) {
  std::string text;
  for (const SourceLetter& letter : word) append_utf8(text, letter.code);
  return text;
}

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using PieceTable = std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>>;

constexpr std::string_view continuation_mark = "##";

std::vector<std::pair<std::string_view, std::int32_t>> with_ids(const std::vector<std::string>& pieces,
                                                                std::string_view prefix) {
  std::vector<std::pair<std::string_view, std::int32_t>> result;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (pieces[i].starts_with(prefix) && pieces[i].size() > prefix.size())
      result.emplace_back(std::string_view(pieces[i]).substr(prefix.size()), static_cast<std::int32_t>(i));
  return result;
}

}  // namespace

struct WordPiece::Tables {
  WordPieceOptions options;
  std::vector<std::string> pieces;
  PieceTable ids;
  std::string fingerprint;
  PieceTrie starts, continuations;
  std::int32_t padding = 0, unknown = 0, classifier = 0, separator = 0;

  Tables(std::vector<std::string> list, const WordPieceOptions& given, std::string_view name);

  // Rule 6 by the trie. `word` is not empty.
  void append_word(std::string_view word, std::vector<std::int32_t>& result) const {
    const std::size_t before = result.size();
    const PieceTrie* trie = &starts;
    while (!word.empty()) {
      const PieceTrie::Match match = trie->longest(word);
      if (match.id < 0) {
        result.resize(before);
        result.push_back(unknown);
        return;
      }
      result.push_back(match.id);
      word.remove_prefix(match.bytes);
      trie = &continuations;
    }
  }
  void append_fast(std::string_view text, std::size_t enough, std::vector<std::int32_t>& result) const;

  // Rule 6 by its words, with places.
  std::vector<TextPiece> pieces_of(Word word) const;
  std::vector<TextPiece> encode_plainly(std::string_view text, std::size_t length) const;
};

WordPiece::Tables::Tables(std::vector<std::string> list, const WordPieceOptions& given, std::string_view name)
    : options(given),
      pieces(std::move(list)),
      starts([&] {
        // Checked before the tries are built of it.
        if (pieces.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
          throw bad_input(fmt::format("{} has {} pieces: expected fewer than 2^31", name, pieces.size()));
        Fingerprint sum;
        for (std::size_t i = 0; i < pieces.size(); ++i) {
          const std::string& piece = pieces[i];
          if (piece.empty())
            throw bad_input(fmt::format("{}, line {} is empty: expected a piece", name, i + 1));
          if (valid_utf8(piece) != piece)
            throw bad_input(fmt::format("{}, line {}: {} is not UTF-8", name, i + 1, in_quotes(piece)));
          const auto [known, is_new] = ids.emplace(piece, static_cast<std::int32_t>(i));
          if (!is_new)
            throw bad_input(fmt::format("{}, line {}: {} is already given in line {}", name, i + 1,
                                        in_quotes(piece), known->second + 1));
          sum.add(piece);
        }
        fingerprint = fmt::format("{:016x}", sum.value());
        return with_ids(pieces, "");
      }()),
      continuations(with_ids(pieces, continuation_mark)) {
  const auto marker = [&](const char* piece) {
    const auto found = ids.find(std::string_view(piece));
    if (found == ids.end())
      throw bad_input(
          fmt::format("{} has no piece {}: expected the vocabulary of a BERT model", name, piece));
    return found->second;
  };
  padding = marker("[PAD]");
  unknown = marker("[UNK]");
  classifier = marker("[CLS]");
  separator = marker("[SEP]");
}

void WordPiece::Tables::append_fast(std::string_view text, std::size_t enough,
                                    std::vector<std::int32_t>& result) const {
  std::array<char, longest_word> word;
  std::size_t at = 0;
  while (at < text.size() && result.size() < enough) {
    const ByteKind kind = kind_of(text[at]);
    if (kind == ByteKind::blank) {
      ++at;
      continue;
    }
    if (kind == ByteKind::punctuation) {
      append_word(text.substr(at++, 1), result);
      continue;
    }
    const std::size_t begin = at;
    std::size_t letters = 0;
    ByteKind end_kind = ByteKind::blank;
    for (; at < text.size(); ++at) {
      end_kind = kind_of(text[at]);
      if (end_kind == ByteKind::letter) {
        if (letters < word.size()) word[letters] = byte_table.lower[static_cast<unsigned char>(text[at])];
        ++letters;
      } else if (end_kind != ByteKind::dropped) {
        break;
      }
    }
    if (at < text.size() && end_kind == ByteKind::beyond_ascii) {
      while (at < text.size() && kind_of(text[at]) != ByteKind::blank &&
             kind_of(text[at]) != ByteKind::punctuation)
        ++at;
      for_each_word(normalized_letters(text.substr(begin, at - begin)), [&](Word unicode_word) {
        if (unicode_word.size() > longest_word)
          result.push_back(unknown);
        else
          append_word(utf8(unicode_word), result);
        return result.size() < enough;
      });
    } else if (letters > longest_word) {
      result.push_back(unknown);
    } else if (letters > 0) {
      append_word({word.data(), letters}, result);
    }
  }
}

std::vector<TextPiece> WordPiece::Tables::pieces_of(Word word) const {
  const std::vector<TextPiece> none_fits = {
      {unknown, pieces[static_cast<std::size_t>(unknown)], word.front().begin, word.back().end}};
  if (word.size() > longest_word) return none_fits;
  std::vector<TextPiece> result;
  for (std::size_t begin = 0; begin < word.size();) {
    std::size_t end = word.size();
    for (; end > begin; --end) {
      const std::string candidate =
          std::string(begin > 0 ? continuation_mark : "") + utf8(word.subspan(begin, end - begin));
      if (const auto found = ids.find(candidate); found != ids.end()) {
        result.push_back({found->second, candidate, word[begin].begin, word[end - 1].end});
        break;
      }
    }
    if (end == begin) return none_fits;
    begin = end;
  }
  return result;
}

std::vector<TextPiece> WordPiece::Tables::encode_plainly(std::string_view text, std::size_t length) const {
  std::vector<TextPiece> result = {{classifier, pieces[static_cast<std::size_t>(classifier)], 0, 0}};
  for_each_word(normalized_letters(text), [&](Word word) {
    for (TextPiece& piece : pieces_of(word)) result.push_back(std::move(piece));
    return result.size() < length;
  });
  result.push_back({separator, pieces[static_cast<std::size_t>(separator)], text.size(), text.size()});
  if (result.size() > length) result.resize(length);
  return result;
}

WordPiece::WordPiece(std::vector<std::string> pieces, const WordPieceOptions& options, std::string_view name)
    : tables_(std::make_shared<const Tables>(std::move(pieces), options, name)) {}

namespace {

std::size_t checked_length(std::int64_t length) {
  if (length < 1)
    throw bad_input(fmt::format("length is {}: expected a number of ids of at least 1", length));
  return static_cast<std::size_t>(length);
}

}  // namespace

std::vector<std::int32_t> WordPiece::encode(std::string_view text, std::int64_t length) const {
  const std::size_t enough = checked_length(length);
  std::vector<std::int32_t> result;
  if (tables_->options.engine == WordPieceEngine::plain) {
    for (const TextPiece& piece : tables_->encode_plainly(text, enough)) result.push_back(piece.id);
    return result;
  }
  result.reserve(std::min(enough, text.size() / 4 + 2));
  result.push_back(tables_->classifier);
  tables_->append_fast(text, enough, result);
  result.push_back(tables_->separator);
  if (result.size() > enough) result.resize(enough);
  return result;
}

std::vector<TextPiece> WordPiece::encode_pieces(std::string_view text, std::int64_t length) const {
  return tables_->encode_plainly(text, checked_length(length));
}

std::int64_t WordPiece::size() const { return static_cast<std::int64_t>(tables_->pieces.size()); }

const std::string& WordPiece::piece(std::int64_t id) const {
  if (id < 0 || id >= size())
    throw bad_input(fmt::format("id is {}: expected a piece of the vocabulary, 0 to {}", id, size() - 1));
  return tables_->pieces[static_cast<std::size_t>(id)];
}

std::int32_t WordPiece::id(std::string_view piece) const {
  const auto found = tables_->ids.find(piece);
  if (found == tables_->ids.end())
    throw bad_input(fmt::format("the vocabulary has no piece {}", in_quotes(piece)));
  return found->second;
}

bool WordPiece::contains(std::string_view piece) const { return tables_->ids.contains(piece); }
std::int32_t WordPiece::padding() const { return tables_->padding; }
std::int32_t WordPiece::unknown() const { return tables_->unknown; }
std::int32_t WordPiece::classifier() const { return tables_->classifier; }
std::int32_t WordPiece::separator() const { return tables_->separator; }
const std::string& WordPiece::fingerprint() const { return tables_->fingerprint; }

WordPiece load_wordpiece(const std::filesystem::path& path, const WordPieceOptions& options) {
  const std::string text = read_text_file(path);
  std::vector<std::string> pieces;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    pieces.emplace_back(line);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return WordPiece(std::move(pieces), options, path.string());
}

}  // namespace attmirror
