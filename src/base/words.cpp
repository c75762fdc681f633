#include "base/words.hpp"

#include <algorithm>
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

std::string one_line(std::string_view message) {
  std::string result;
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 32 || byte == 127)
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  return result;
}

}  // namespace attmirror
