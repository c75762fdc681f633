// Whether markup is well formed: every element that is opened is closed, in order; attributes in quotes, none twice; no
// stray < or &; valid UTF-8. Enough of XML to catch text that was not escaped, without a parser to install.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attmirror::test {

enum class Markup { svg, html };

struct Element {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;  // as written
};

struct MarkupCheck {
  std::string error;  // empty: well formed
  std::vector<Element> elements;
  std::string text;  // all that is between tags, scripts and styles of HTML excepted
};

MarkupCheck check_markup(std::string_view markup, Markup kind);

}  // namespace attmirror::test
