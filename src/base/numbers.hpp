// Small words for numbers that every room uses.
#pragma once

#include <concepts>
#include <cstddef>
#include <limits>

namespace attmirror {

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

// A signed count or index, which is known not to be negative, as the standard containers want it: values[at(k)].
constexpr std::size_t at(std::integral auto k) { return static_cast<std::size_t>(k); }

}  // namespace attmirror
