// Whole numbers out of JSON that anybody may have written. Internal.
#pragma once

#include "base/json.hpp"
#include <attmirror/base/error.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace attmirror {

// A whole number between `least` and `most`. Json's own conversion cuts 1.5 to 1, lets 2^64 - 1 be -1, and does
// anything with 1e300. Throws Error (bad input).
template <class Integer>
Integer whole_number(const Json& json, Integer least = std::numeric_limits<Integer>::min(),
                     Integer most = std::numeric_limits<Integer>::max()) {
  const auto in_range = [&](auto value) {
    return std::cmp_greater_equal(value, least) && std::cmp_less_equal(value, most);
  };
  if (json.is_number_unsigned()) {
    if (const auto value = json.get<std::uint64_t>(); in_range(value)) return static_cast<Integer>(value);
  } else if (json.is_number_integer()) {
    if (const auto value = json.get<std::int64_t>(); in_range(value)) return static_cast<Integer>(value);
  }
  throw bad_input((json.is_structured() ? std::string(json.type_name()) : dump(json)) +
                  " stands where a whole number from " + std::to_string(least) + " to " +
                  std::to_string(most) + " is expected");
}

}  // namespace attmirror
