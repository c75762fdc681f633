#include "base/words.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include <fmt/format.h>

namespace attmirror {

namespace {

// How many letters must be changed, added or dropped to make one word of the other (Levenshtein), one row of the
// table at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const char letter : a) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = diagonal + (letter == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// Whether a terminal does something else with a letter than to show it: the controls C0 and C1 (ESC and CSI begin
// sequences that move the cursor, set the title or answer as if they were typed), separators of lines, and the marks
// that turn the direction of writing, by which a name can be made to look like another.
bool commands_terminal(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x061C || code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& names) {
  std::string_view best;
  std::size_t smallest = name.size() > 64 ? 0 : name.size() / 3 + 2;  // more is another word
  for (const std::string_view candidate : names) {
    const std::size_t distance = edit_distance(name.substr(0, 64), candidate);
    if (distance >= smallest) continue;
    smallest = distance;
    best = candidate;
  }
  return best.empty() ? "" : fmt::format(", did you mean \"{}\"?", best);
}

std::string one_line(std::string_view text) { return printable(text, Breaks::escape); }

std::string printable(std::string_view text, Breaks breaks, Escapes escapes) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Letter letter = first_letter(text);
    const std::string_view bytes = text.substr(0, letter.bytes);
    // A letter U+FFFD that the text has itself takes three bytes.
    const bool is_text = letter.code != replacement_letter || letter.bytes == 3;
    if (breaks == Breaks::keep && (letter.code == '\n' || letter.code == '\t'))
      result += bytes;
    else if (is_text && !commands_terminal(letter.code))
      result += bytes;
    else if (is_text && (escapes == Escapes::json || letter.code > 0xFF))
      result += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(letter.code));
    else if (is_text)
      result += fmt::format("\\x{:02x}", static_cast<std::uint32_t>(letter.code));
    else
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(bytes[0]));
    text.remove_prefix(letter.bytes);
  }
  return result;
}

std::string shortened(std::string_view name) {
  constexpr int most_letters = 60;
  std::size_t end = 0;
  for (int letters = 0; end < name.size() && letters < most_letters; ++letters)
    end += first_letter(name.substr(end)).bytes;
  return std::string(name.substr(0, end)) + (end < name.size() ? "…" : "");
}

}  // namespace attmirror
