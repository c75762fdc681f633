// Published numbers, which are rounded.
#pragma once

#include <cmath>

namespace attmirror::test {

// Half a unit of the last of so many decimals, and a little for a number that was rounded from the middle.
inline double last_digit(int decimals) { return 0.51 * std::pow(10, -decimals); }

}  // namespace attmirror::test
