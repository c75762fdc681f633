#include "report/markup.hpp"

#include "base/utf8.hpp"
#include "report/typeset.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace attmirror {

namespace {

bool forbidden_in_xml(char32_t code) {
  return (code < 0x20 && code != '\t' && code != '\n' && code != '\r') || code == 0x7F || code == 0xFFFE ||
         code == 0xFFFF;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool starts_like(std::string_view text, std::string_view word) {
  return text.size() >= word.size() &&
         std::equal(word.begin(), word.end(), text.begin(), [](char a, char b) { return a == lower(b); });
}

struct Link {
  std::string_view text, target;
  std::size_t length = 0;  // 0: none
};

// [text](target) at the beginning.
Link link_at(std::string_view text) {
  const std::size_t middle = text.find("](");
  if (middle == std::string_view::npos || text.substr(1, middle - 1).find('[') != std::string_view::npos)
    return {};
  const std::size_t end = text.find(')', middle);
  if (end == std::string_view::npos || middle < 2) return {};
  const std::string_view target = text.substr(middle + 2, end - middle - 2);
  const bool inside = target.starts_with('#') && target.size() > 1;
  const bool outside =
      target.starts_with("https://") && target.find_first_of(" \t\n\"<>") == std::string_view::npos;
  if (!inside && !outside) return {};
  return {text.substr(1, middle - 1), target, end + 1};
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const Letter letter = first_letter(text);
    if (letter.code == replacement_letter || forbidden_in_xml(letter.code))
      escaped += "\uFFFD";
    else if (letter.code == '<')
      escaped += "&lt;";
    else if (letter.code == '>')
      escaped += "&gt;";
    else if (letter.code == '&')
      escaped += "&amp;";
    else if (letter.code == '"')
      escaped += "&quot;";
    else if (letter.code == '\'')
      escaped += "&#39;";
    else
      escaped += text.substr(0, letter.bytes);
    text.remove_prefix(letter.bytes);
  }
  return escaped;
}

std::string inside_script(std::string_view script) {
  std::string safe;
  safe.reserve(script.size() + 64);
  for (std::size_t i = 0; i < script.size(); ++i) {
    safe += script[i];
    if (script[i] != '<') continue;
    const std::string_view rest = script.substr(i + 1);
    // "<\/script" and "<\!--" are the same strings to JavaScript, and mean nothing to HTML.
    if (starts_like(rest, "/script") || rest.starts_with("!--")) safe += '\\';
  }
  return safe;
}

std::string json_inside_script(std::string_view json) {
  std::string safe;
  safe.reserve(json.size() + json.size() / 16);
  for (const char c : json)
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  return safe;
}

std::string inline_markup(std::string_view text) {
  std::string markup;
  while (!text.empty()) {
    const std::size_t at = text.find_first_of("`[");
    markup += typeset_html(text.substr(0, at));
    if (at == std::string_view::npos) break;
    text.remove_prefix(at);
    if (text.front() == '`') {
      const std::size_t end = text.find('`', 1);
      if (end != std::string_view::npos && end > 1) {
        markup += "<code>" + escape_markup(text.substr(1, end - 1)) + "</code>";
        text.remove_prefix(end + 1);
        continue;
      }
    } else if (const Link link = link_at(text); link.length > 0) {
      markup += fmt::format("<a href=\"{}\"{}>{}</a>", escape_markup(link.target),
                            link.target.front() == '#' ? "" : " rel=\"noopener noreferrer\"",
                            typeset_html(link.text));
      text.remove_prefix(link.length);
      continue;
    }
    markup += text.front() == '`' ? "`" : "[";
    text.remove_prefix(1);
  }
  return markup;
}

bool is_page_id(std::string_view id) {
  return !id.empty() && std::ranges::all_of(id, [](char c) {
    return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

}  // namespace attmirror
