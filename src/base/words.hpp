// Words of the user's in our messages. Internal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// For a name that is none of `names`: `, did you mean "steps"?` with the one that takes the fewest letters to change,
// or nothing if none is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& names);

// A message that quotes what a file holds, as one line: line feeds and orders to the terminal become \x0a and the like.
std::string one_line(std::string_view message);

}  // namespace attmirror
