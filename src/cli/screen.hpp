// What the terminal can show: its width, and color.
//
// Color is put on finished text, in this one place: headings of help and tables become bold, and a cell of a
// table, or the word after "status", that is one of our status words gets the color of its meaning. So nobody
// who prints anything needs to think of it, and text from untrusted files cannot color itself. JSON is
// never colored.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace attmirror::cli {

// Whether what is written to this stream (STDOUT_FILENO, STDERR_FILENO) may be colored: it is a terminal that
// is not dumb, and NO_COLOR is empty or not set.
bool takes_color(int stream);

std::string colored(std::string_view text);   // as above
std::string as_error(std::string_view text);  // in the color of errors

// Letters in a line of standard output: what COLUMNS says, else the terminal, else 80.
std::size_t screen_width();

// Words in lines of at most `width` columns, each after `indent` and ended by a line feed. A longer word has
// a line of its own.
std::string wrapped(std::string_view text, std::string_view indent, std::size_t width);

}  // namespace attmirror::cli
