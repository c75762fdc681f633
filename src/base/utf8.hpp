// UTF-8 text letter by letter. What users name (runs, columns, files) may hold any bytes; what we write must
// not. Internal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attmirror {

struct Letter {
  char32_t code;
  std::size_t bytes;
};

// What stands for a byte that is not UTF-8.
inline constexpr char32_t replacement_letter = 0xFFFD;

// The first letter of non-empty text; replacement_letter and one byte where it is not UTF-8 (cut short, too long, a
// surrogate, beyond the last code point).
Letter first_letter(std::string_view text);

// The text with U+FFFD for each byte that is not UTF-8.
std::string valid_utf8(std::string_view text);

}  // namespace attmirror
