#include "deep/trainer/event_file.hpp"

#include <array>
#include <bit>

namespace attmirror {

namespace {

constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0);
    table[byte] = crc;
  }
  return table;
}();

template <class Word>
std::string little_endian(Word word) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(Word); ++i) bytes += static_cast<char>((word >> (8 * i)) & 0xFF);
  return bytes;
}

// Seven bits a byte, the lowest first; the eighth says that more follow.
std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  return bytes + static_cast<char>(value);
}

enum WireType : std::uint32_t { varint_field = 0, double_field = 1, length_field = 2, float_field = 5 };

std::string field_tag(std::uint32_t number, WireType type) { return varint(number << 3 | type); }
std::string double_bytes(std::uint32_t number, double value) {
  return field_tag(number, double_field) + little_endian(std::bit_cast<std::uint64_t>(value));
}
std::string float_bytes(std::uint32_t number, float value) {
  return field_tag(number, float_field) + little_endian(std::bit_cast<std::uint32_t>(value));
}
std::string length_bytes(std::uint32_t number, std::string_view data) {
  return field_tag(number, length_field) + varint(data.size()) + std::string(data);
}

}  // namespace

std::uint32_t crc32c(std::string_view data) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char c : data) crc = crc_table[(crc ^ static_cast<unsigned char>(c)) & 0xFF] ^ (crc >> 8);
  return crc ^ 0xFFFFFFFFu;
}

std::uint32_t masked_crc32c(std::string_view data) { return std::rotr(crc32c(data), 15) + 0xA282EAD8u; }

std::string event_record(std::string_view data) {
  const std::string length = little_endian(static_cast<std::uint64_t>(data.size()));
  return length + little_endian(masked_crc32c(length)) + std::string(data) +
         little_endian(masked_crc32c(data));
}

std::string first_event(double wall_time) {
  return event_record(double_bytes(1, wall_time) + length_bytes(3, "brain.Event:2"));
}

std::string scalar_event(double wall_time, std::int64_t step,
                         const std::vector<std::pair<std::string, double>>& values) {
  std::string summary;
  for (const auto& [tag, value] : values)
    summary += length_bytes(1, length_bytes(1, tag) + float_bytes(2, static_cast<float>(value)));
  return event_record(double_bytes(1, wall_time) + field_tag(2, varint_field) +
                      varint(static_cast<std::uint64_t>(step)) + length_bytes(5, summary));
}

}  // namespace attmirror
