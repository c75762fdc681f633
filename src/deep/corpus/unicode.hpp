// What WordPiece asks of Unicode, answered by ICU. Internal.
//
// Without ICU the questions about letters beyond ASCII cannot be answered; then both functions throw Error (bad
// input) that names the missing package.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// A letter of cleaned text, and the bytes of the source that it comes from.
struct SourceLetter {
  char32_t code = 0;
  std::size_t begin = 0, end = 0;
};

// Rules 1 to 4 of wordpiece.hpp. Blanks are U+0020.
std::vector<SourceLetter> normalized_letters(std::string_view text);

// Rule 5: a word of its own, in normalized text.
bool is_punctuation(char32_t code);

void append_utf8(std::string& text, char32_t code);

}  // namespace attmirror
