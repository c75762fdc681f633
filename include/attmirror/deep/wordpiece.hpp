// Text to token ids by WordPiece, as in bert-base-uncased.
//
// The rules, in order:
//   1. U+0000, U+FFFD, control, format and private-use characters are dropped; white space becomes a blank.
//      Anything that is not UTF-8 counts as U+FFFD.
//   2. CJK ideographs are separated: a blank on either side.
//   3. Accents are removed: canonical decomposition (NFD), without nonspacing marks (Mn).
//   4. Lower case, letter by letter: a sigma at the end of a word is a sigma like any other.
//   5. Words end at blanks; a punctuation character (ASCII that is neither letter nor digit, Unicode's P*) is a word.
//   6. A word is the longest piece of the vocabulary it begins with, then the longest piece "##..." that the rest
//      begins with, and so on. Where none fits, and for words of more than 100 letters, it is [UNK] as a whole.
//   7. [CLS], the pieces, [SEP], cut to the first `length` ids. So a text that is too long has no [SEP].
// A marker in the text itself ("[SEP]") is text like any other.
//
// Two engines give the same ids. The plain one follows the rules above step by step, and finds pieces by
// shortening a word from its end until it is in a table. The fast one uses that nearly all text is ASCII, for
// which a table of 256 bytes says everything that Unicode does, and walks a trie of the pieces; runs of other
// letters are handled like in the plain one. Unicode needs ICU; a build without it refuses texts beyond ASCII.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// Which of two implementations with equal results is used.
enum class WordPieceEngine { fast, plain };

// How texts are cut into pieces.
struct WordPieceOptions {
  // The plain engine exists to check the fast one, which is ten times as fast.
  WordPieceEngine engine = WordPieceEngine::fast;
};

// A token and where its letters are in the text, in bytes. [CLS] and [SEP] have no letters: begin == end, at
// the text's beginning and end. Marks that were dropped belong to the letter before them.
struct TextPiece {
  std::int32_t id = 0;
  std::string piece;
  std::size_t begin = 0, end = 0;
};

// Cuts texts into the pieces of a vocabulary, as BERT does.
class WordPiece {
 public:
  // The pieces by id. Throws Error (bad input) for a piece that is empty, occurs twice or is not UTF-8, or if [PAD],
  // [UNK], [CLS] or [SEP] is missing. `name` is the name of the list in messages, which count its lines from 1.
  explicit WordPiece(std::vector<std::string> pieces, const WordPieceOptions& options = {},
                     std::string_view name = "vocabulary");

  // At most `length` ids. May be called from several threads at once. Throws Error (bad input) if length < 1, and in a
  // build without ICU for text beyond ASCII.
  std::vector<std::int32_t> encode(std::string_view text, std::int64_t length = 512) const;

  // The same ids with their positions. Uses the plain engine.
  std::vector<TextPiece> encode_pieces(std::string_view text, std::int64_t length = 512) const;

  std::int64_t size() const;
  const std::string& piece(
      std::int64_t id) const;                     // throws Error (bad input) for an id outside the vocabulary
  std::int32_t id(std::string_view piece) const;  // throws Error (bad input) for a piece that it lacks
  bool contains(std::string_view piece) const;
  std::int32_t padding() const;
  std::int32_t unknown() const;
  std::int32_t classifier() const;         // [CLS]
  std::int32_t separator() const;          // [SEP]
  const std::string& fingerprint() const;  // of all pieces, 16 hexadecimal digits

 private:
  struct Tables;
  std::shared_ptr<const Tables> tables_;  // never changes; copies share it
};

// A vocabulary file: one piece per line; its id is the number of the line, from 0. Throws Error (bad input)
// like the constructor, naming the file.
WordPiece load_wordpiece(const std::filesystem::path& path, const WordPieceOptions& options = {});

// Which Unicode the ids beyond ASCII follow: "Unicode 15.0", or "ASCII only" in a build without ICU.
std::string unicode_version();

}  // namespace attmirror
