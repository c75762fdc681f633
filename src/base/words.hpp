// Words of the user's in our messages. Internal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// The one of `names` that a mistyped name is nearest to, or nothing where none is near. Letters that are
// wrong, missing, doubled or exchanged count; British and American spellings, capitals, and dashes for
// underscores do not; the beginning of a word is near to it.
std::string_view nearest_word(std::string_view name, const std::vector<std::string_view>& names);

// The same as the end of a sentence: `; did you mean "steps"?`, or nothing. Options are not quoted.
std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& names);

// What is expected instead of a word from a closed list: `auto, on or off; did you mean "auto"?`. Of a choice
// that goes on in the user's words, "normal:STD", the first counts.
std::string expected_choice(std::string_view word, const std::vector<std::string_view>& choices);

// What a file holds (a name, a status, a path), made fit for a line on the screen: line feeds, orders to the terminal,
// marks that turn the direction of writing and bytes that are not UTF-8 become \x0a, \x1b, \u202e, \xff.
std::string one_line(std::string_view text);

// The same for a text of several lines, and for JSON, where all of this stands inside of strings.
enum class Breaks { keep, escape };  // line feeds and tabs
enum class Escapes { plain, json };  // \x9b or \u009b; JSON has no bytes that are not UTF-8
std::string printable(std::string_view text, Breaks breaks, Escapes escapes = Escapes::plain);

// A name for a figure, a table or a heading: its first 60 letters, and "…" for what is left out. None of our own names is as
// long; a database of somebody else may hold any.
std::string shortened(std::string_view name);

}  // namespace attmirror
