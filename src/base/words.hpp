// Words of the user's in our messages. Internal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// For a name that is none of `names`: `, did you mean "steps"?` with the one that takes the fewest letters to change,
// or nothing if none is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& names);

// What a file holds (a name, a status, a path), made fit for a line on the screen: line feeds, orders to the terminal,
// marks that turn the direction of writing and bytes that are no UTF-8 become \x0a, \x1b, \u202e, \xff.
std::string one_line(std::string_view text);

// The same for a text of several lines, and for JSON, where all of this stands inside of strings.
enum class Breaks { keep, escape };  // line feeds and tabs
enum class Escapes { plain, json };  // \x9b or \u009b; JSON has no bytes that are no UTF-8
std::string printable(std::string_view text, Breaks breaks, Escapes escapes = Escapes::plain);

// A name for a figure, a table or a heading: its first 60 letters, and "…" for what is left out. No name of ours is as
// long; a database of somebody else may hold any.
std::string shortened(std::string_view name);

}  // namespace attmirror
