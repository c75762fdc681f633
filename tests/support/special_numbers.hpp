// Numbers that are none.
#pragma once

#include <limits>

namespace attmirror::test {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace attmirror::test
