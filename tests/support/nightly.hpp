// How many random cases a test tries: a few where somebody waits, many at night.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace attmirror::test {

inline std::uint64_t nightly_count(std::uint64_t by_default, std::uint64_t at_night) {
  const char* nightly = std::getenv("ATTMIRROR_NIGHTLY");
  return nightly && std::string_view(nightly) == "1" ? at_night : by_default;
}

}  // namespace attmirror::test
