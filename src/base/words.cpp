#include "base/words.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

// How many letters must be changed, added, dropped or exchanged with their neighbor to make one word of the
// other (optimal string alignment), three rows of the table at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> above(b.size() + 1), row(b.size() + 1), two_above(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = above[j] + (a[i] == b[j] ? 0 : 1);
      row[j + 1] = std::min({changed, row[j] + 1, above[j + 1] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        row[j + 1] = std::min(row[j + 1], two_above[j - 1] + 1);
    }
    std::swap(two_above, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

// A word as British and American writers, and those of entropy-beta and entropy_beta, spell it alike. It need
// not be English: both words that are compared are folded.
std::string folded(std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of('-'), word.size()));
  std::string text;
  for (const char c : word)
    text += c == '-' ? '_' : static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> spellings{{{"is", "iz"},
                                                                                    {"ys", "yz"},
                                                                                    {"our", "or"},
                                                                                    {"tre", "ter"},
                                                                                    {"ogue", "og"},
                                                                                    {"ll", "l"},
                                                                                    {"grey", "gray"},
                                                                                    {"artef", "artif"}}};
  for (const auto& [british, american] : spellings)
    for (std::size_t at = 0; (at = text.find(british, at)) != std::string::npos; at += american.size())
      text.replace(at, british.size(), american);
  return text;
}

// Whether a terminal does something else with a letter than to show it: the controls C0 and C1 (ESC and CSI begin
// sequences that move the cursor, set the title or answer as if they were typed), separators of lines, and the marks
// that turn the direction of writing, by which a name can be made to look like another.
bool commands_terminal(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x061C || code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string_view nearest_word(std::string_view name, const std::vector<std::string_view>& names) {
  if (name.size() > 64) return {};
  const std::string word = folded(name);
  std::string_view best;
  std::size_t smallest = word.size() / 3 + 2;  // more is another word
  for (const std::string_view candidate : names) {
    const std::string other = folded(candidate);
    // Somebody who types the beginning of a long word has it in mind.
    const bool begun = word.size() >= 3 && other.starts_with(word);
    const std::size_t edits = edit_distance(word, other),
                      distance = begun ? std::min<std::size_t>(edits, 1) : edits;
    if (distance >= smallest || distance >= std::max(word.size(), other.size())) continue;
    smallest = distance;
    best = candidate;
  }
  return best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& names) {
  const std::string_view best = nearest_word(name, names);
  if (best.empty()) return "";
  return best.starts_with('-') ? fmt::format("; did you mean {}?", best)
                               : fmt::format("; did you mean \"{}\"?", best);
}

std::string expected_choice(std::string_view word, const std::vector<std::string_view>& choices) {
  std::string text;
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    text += i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ";
    text += choices[i];
    const std::size_t colon = choices[i].find(':');
    names.push_back(choices[i].substr(0, colon));
  }
  // "schaten:1.5" is near "schatten:P".
  return text + did_you_mean(word.substr(0, word.find(':')), names);
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
