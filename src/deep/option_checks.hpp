// What the options of networks have in common to be checked. Internal.
#pragma once

#include <attmirror/base/error.hpp>

#include <cstdint>
#include <string_view>

#include <fmt/format.h>

namespace attmirror::deep {

inline void check_at_least(std::string_view name, std::int64_t value, std::int64_t least) {
  if (value < least) throw bad_input(fmt::format("{} is {}: expected at least {}", name, value, least));
}

inline void check_at_most(std::string_view name, std::int64_t value, std::int64_t most) {
  if (value > most) throw bad_input(fmt::format("{} is {}: expected at most {}", name, value, most));
}

// (Written so that NaN is refused.)
inline void check_dropout(double dropout) {
  if (!(dropout >= 0 && dropout < 1))
    throw bad_input(fmt::format("dropout is {}: expected at least 0 and below 1", dropout));
}

}  // namespace attmirror::deep
