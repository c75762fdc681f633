// Numbers with the digits that mean something. Internal.
#pragma once

#include <string>
#include <string_view>

namespace attmirror {

// The text with every decimal number of more than seven digits rounded to four that count: "lr 0.04472", not
// "lr 0.044721359549995794". For people: whole numbers, versions, hashes and words stay as they are.
std::string with_short_numbers(std::string_view text);

}  // namespace attmirror
