// Words of a vocabulary in messages. A file may hold words of any length and with control characters; a message is one
// line that fits a screen. Internal.
#pragma once

#include "base/utf8.hpp"
#include "base/words.hpp"

#include <string>
#include <string_view>

namespace attmirror {

// The word on one line, cut after some 60 bytes (never within a letter).
inline std::string shown_word(std::string_view word) {
  constexpr std::size_t longest = 60;
  if (word.size() <= longest) return one_line(valid_utf8(word));
  std::size_t end = 0;
  while (end < longest) end += first_letter(word.substr(end)).bytes;
  return one_line(valid_utf8(word.substr(0, end))) + "...";
}

inline std::string quoted_word(std::string_view word) { return '"' + shown_word(word) + '"'; }

}  // namespace attmirror
