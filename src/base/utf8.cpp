#include "base/utf8.hpp"

namespace attmirror {

Letter first_letter(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 && lead < 0xF5   ? 4
                            : lead >= 0xE0 && lead < 0xF0 ? 3
                            : lead >= 0xC2 && lead < 0xE0 ? 2
                                                          : 1;
  if (bytes == 1 || bytes > text.size()) return {replacement_letter, 1};
  char32_t code = lead & (0xFFu >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {replacement_letter, 1};
    code = (code << 6) | (byte(i) & 0x3Fu);
  }
  const bool too_long = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (too_long || surrogate || code > 0x10FFFF) return {replacement_letter, 1};
  return {code, bytes};
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const Letter letter = first_letter(text);
    if (letter.code == replacement_letter)
      valid += "\uFFFD";
    else
      valid += text.substr(0, letter.bytes);
    text.remove_prefix(letter.bytes);
  }
  return valid;
}

}  // namespace attmirror
