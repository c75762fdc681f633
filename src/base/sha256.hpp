// SHA-256 (FIPS 180-4), to name content in a way that other programs can check. Internal.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace attmirror {

class Sha256 {
 public:
  void add(std::span<const std::byte> piece);
  void add(std::string_view piece) { add(std::as_bytes(std::span(piece))); }

  // 64 hexadecimal digits of all that was added so far; more may be added after.
  std::string hex() const;

 private:
  void add_block(const std::byte* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> block_{};  // what does not fill a block yet
  std::size_t filled_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace attmirror
