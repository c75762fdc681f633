// Text inside HTML and SVG. Internal.
#pragma once

#include <string>
#include <string_view>

namespace attmirror {

// For text and for attributes in double quotes: < > & " ' escaped, bytes that are not UTF-8 and control characters
// that XML forbids replaced by U+FFFD.
std::string escape_markup(std::string_view text);

// JavaScript inside <script>: nothing in it ends the element or opens a comment. Its strings and regular expressions
// mean the same afterwards. JSON can do without any "<".
std::string inside_script(std::string_view script);
std::string json_inside_script(std::string_view json);

// A sentence with `code` and [links](#section): the rest is plain, with its mathematics typeset. A link goes to a
// place in the page or to https://; anything else stays the text it is.
std::string inline_markup(std::string_view text);

// Letters, digits and dashes, at least one.
bool is_page_id(std::string_view id);

}  // namespace attmirror
