#include "report/typeset.hpp"

#include "report/markup.hpp"
#include "report/svg_drawing.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace attmirror {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alphanumeric(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_beyond_ascii(char c) { return static_cast<unsigned char>(c) >= 0x80; }

constexpr std::string_view minus_sign = "−";

// Whether a subscript may follow what ends at `end`: "W", "log", ")", "|", "ℓ"; not the last letter of a word.
bool carries_subscript(std::string_view text, std::size_t end) {
  if (end == 0) return false;
  const char last = text[end - 1];
  if (last == ')' || last == '|' || is_beyond_ascii(last)) return true;
  if (!is_alphanumeric(last) || is_digit(last)) return false;
  if (end >= 3 && text.substr(end - 3, 3) == "log")
    return end == 3 || !(is_alphanumeric(text[end - 4]) || text[end - 4] == '_');
  return end == 1 || !(is_alphanumeric(text[end - 2]) || text[end - 2] == '_' || text[end - 2] == '.' ||
                       text[end - 2] == '/' || text[end - 2] == '-');
}

// The length of the subscript at the beginning; 0 where it is none.
std::size_t subscript_length(std::string_view text, bool of_norm) {
  // "‖W‖_spectral" and "‖W‖_1.75", where a letter has "W_mm" and "W_3" alone.
  const std::size_t longest = of_norm ? 12 : 3;
  std::size_t length = 0;
  while (length < text.size() && is_alphanumeric(text[length])) ++length;
  if (of_norm && length + 1 < text.size() && text[length] == '.' && is_digit(text[length + 1]))
    for (++length; length < text.size() && is_digit(text[length]);) ++length;
  if (length == 0 || length > longest) return 0;
  const std::string_view rest = text.substr(length);
  if (rest.starts_with('_') || rest.starts_with('/')) return 0;
  return rest.size() > 1 && rest[0] == '.' && is_alphanumeric(rest[1]) ? 0 : length;
}

// The end of the number that begins there, "0.08", ".5", "1e-05" or "inf"; `begin` where there is none, or where it is
// the beginning of a name ("1.npz", "3d", "1-2").
std::size_t number_end(std::string_view text, std::size_t begin) {
  const auto digit_at = [&](std::size_t at) { return at < text.size() && is_digit(text[at]); };
  std::size_t end = begin;
  if (text.substr(begin).starts_with("inf")) {
    end += 3;
  } else {
    while (digit_at(end)) ++end;
    if (end < text.size() && text[end] == '.' && digit_at(end + 1))
      for (++end; digit_at(end);) ++end;
    if (end == begin) return begin;
    if (end < text.size() && text[end] == 'e') {
      const bool has_sign = end + 1 < text.size() && (text[end + 1] == '-' || text[end + 1] == '+');
      if (const std::size_t exponent = end + (has_sign ? 2 : 1); digit_at(exponent))
        for (end = exponent; digit_at(end);) ++end;
    }
  }
  if (end == text.size()) return end;
  const bool goes_on = end + 1 < text.size() && is_alphanumeric(text[end + 1]);
  const bool is_name = is_alphanumeric(text[end]) || text[end] == '_' || text[end] == '-' ||
                       (goes_on && text[end] == '.') ||
                       (goes_on && text[end] == '/' && !is_digit(text[end + 1]));
  return is_name ? begin : end;
}

// Whether the hyphen is a minus: the sign of a number, or between two terms of which the first is a number or a letter.
bool is_minus(std::string_view text, std::size_t at) {
  const auto begins_at = [&](std::size_t place) {
    return place == 0 || std::string_view(" \t\n([{=,<>|").find(text[place - 1]) != std::string_view::npos;
  };
  if (begins_at(at) && number_end(text, at + 1) > at + 1) return true;
  const bool stands_apart =
      at >= 2 && at + 2 < text.size() && text[at - 1] == ' ' && text[at + 1] == ' ' && text[at + 2] != ' ';
  // "word - word" has a dash.
  return stands_apart && (is_digit(text[at - 2]) || (is_alphanumeric(text[at - 2]) && begins_at(at - 2)));
}

struct Script {
  std::string text;
  std::size_t length = 0;  // of what it was written as; 0: none
};

// What is raised: "-1/2" of "(-1/2)", "-a" of "-a", "mm" of "mm[1,2]".
Script superscript(std::string_view text) {
  Script script;
  if (text.starts_with('(') || text.starts_with('{')) {
    const char open = text[0], close = open == '(' ? ')' : '}';
    std::size_t end = 1;
    for (int depth = 1; end < text.size(); ++end) {
      depth += text[end] == open ? 1 : text[end] == close ? -1 : 0;
      if (depth == 0) break;
    }
    if (end == text.size() || end < 2) return script;
    script = {std::string(text.substr(1, end - 1)), end + 1};
  } else {
    std::size_t at = 0;
    if (text.starts_with('-') || text.starts_with('+'))
      at = 1;
    else if (text.starts_with(minus_sign))
      at = minus_sign.size();
    const std::size_t begin = at;
    while (at < text.size() &&
           (is_alphanumeric(text[at]) || (text[at] == '.' && at + 1 < text.size() && is_digit(text[at + 1]))))
      ++at;
    if (at == begin) return script;
    script = {std::string(text.substr(0, at)), at};
  }
  if (script.text.starts_with('-')) script.text.replace(0, 1, minus_sign);
  return script;
}

}  // namespace

std::vector<TypesetPiece> typeset(std::string_view text) {
  std::vector<TypesetPiece> pieces;
  const auto add = [&](Level level, std::string_view more) {
    if (more.empty()) return;
    if (pieces.empty() || pieces.back().level != level) pieces.push_back({level, {}});
    pieces.back().text += more;
  };
  std::size_t begin = 0, at = 0;
  const auto raise = [&](Level level, std::string_view script, std::size_t length) {
    add(Level::line, text.substr(begin, at - begin));
    add(level, script);
    at += 1 + length;
    begin = at;
  };
  while (at < text.size()) {
    if (text[at] == '_' && carries_subscript(text, at)) {
      const bool of_norm = text[at - 1] == '|' || is_beyond_ascii(text[at - 1]);
      if (const std::size_t length = subscript_length(text.substr(at + 1), of_norm); length > 0) {
        raise(Level::lower, text.substr(at + 1, length), length);
        continue;
      }
    } else if (text[at] == '^' && at > 0 && text[at - 1] != ' ') {
      if (const Script script = superscript(text.substr(at + 1)); script.length > 0) {
        raise(Level::upper, script.text, script.length);
        continue;
      }
    } else if (text[at] == '-' && is_minus(text, at)) {
      add(Level::line, text.substr(begin, at - begin));
      add(Level::line, minus_sign);
      begin = ++at;
      continue;
    }
    ++at;
  }
  add(Level::line, text.substr(begin));
  return pieces;
}

std::string typeset_html(std::string_view text) {
  std::string html;
  for (const TypesetPiece& piece : typeset(text)) {
    const std::string words = escape_markup(piece.text);
    html += piece.level == Level::lower   ? "<sub>" + words + "</sub>"
            : piece.level == Level::upper ? "<sup>" + words + "</sup>"
                                          : words;
  }
  return html;
}

std::string typeset_svg(std::string_view text, double size) {
  std::string svg;
  double shift = 0;  // of the piece before, which the next one takes back
  for (const TypesetPiece& piece : typeset(text)) {
    const double wanted = piece.level == Level::lower   ? 0.22 * size
                          : piece.level == Level::upper ? -0.36 * size
                                                        : 0;
    const std::string words = escape_markup(piece.text);
    if (wanted == 0 && shift == 0)
      svg += words;
    else
      svg += fmt::format("<tspan dy=\"{}\"{}>{}</tspan>", svg_number(wanted - shift),
                         wanted == 0 ? "" : fmt::format(" font-size=\"{}\"", svg_number(0.78 * size)), words);
    shift = wanted;
  }
  return svg;
}

}  // namespace attmirror
