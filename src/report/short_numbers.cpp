#include "report/short_numbers.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::ptrdiff_t most_digits = 7;

bool digit_at(std::string_view text, std::size_t at) {
  return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
}

bool word_at(std::string_view text, std::size_t at) {
  return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
}

// The end of "12.5e-3", which begins at `begin`; `begin` where it has no point, or is part of a word or a version.
std::size_t decimal_end(std::string_view text, std::size_t begin) {
  if (begin > 0 && (word_at(text, begin - 1) || text[begin - 1] == '.')) return begin;
  std::size_t end = begin;
  while (digit_at(text, end)) ++end;
  if (end == begin || end >= text.size() || text[end] != '.' || !digit_at(text, end + 1)) return begin;
  ++end;
  while (digit_at(text, end)) ++end;
  if (end < text.size() && text[end] == 'e') {
    std::size_t exponent = end + 1;
    if (exponent < text.size() && (text[exponent] == '-' || text[exponent] == '+')) ++exponent;
    if (digit_at(text, exponent)) {
      end = exponent;
      while (digit_at(text, end)) ++end;
    }
  }
  return word_at(text, end) || (end < text.size() && text[end] == '.' && digit_at(text, end + 1)) ? begin
                                                                                                  : end;
}

}  // namespace

std::string with_short_numbers(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = digit_at(text, at) ? decimal_end(text, at) : at;
    if (end == at) {
      result += text[at++];
      continue;
    }
    const std::string number(text.substr(at, end - at));
    const auto digits = std::ranges::count_if(number.substr(0, number.find('e')),
                                              [](unsigned char c) { return std::isdigit(c) != 0; });
    result += digits > most_digits ? fmt::format("{:.4g}", std::strtod(number.c_str(), nullptr)) : number;
    at = end;
  }
  return result;
}

}  // namespace attmirror
