// Which tokens are whole words. Internal.
#pragma once

#include <attmirror/deep/wordpiece.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace attmirror {

// Whether a piece goes on with the word of the piece before it, as ##ing does.
inline bool piece_continues(std::string_view piece) { return piece.starts_with("##") && piece.size() > 2; }

// Whether token t of a row is a word by itself: it begins one, and the next token does not go on with it. The last
// token of a row that was cut is none, because what came next is unknown; other rows end in [SEP].
inline bool is_whole_word(const WordPiece& vocabulary, std::span<const std::int32_t> row, std::size_t t) {
  return t + 1 < row.size() && !piece_continues(vocabulary.piece(row[t])) &&
         !piece_continues(vocabulary.piece(row[t + 1]));
}

}  // namespace attmirror
