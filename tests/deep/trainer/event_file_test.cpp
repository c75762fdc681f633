// Event files, read back by a parser that knows the formats and nothing of the writer.
#include "deep/trainer/event_file.hpp"

#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

// The polynomial division bit by bit, without a table.
std::uint32_t plain_crc32c(std::string_view data) {
  std::uint32_t crc = ~0u;
  for (const char c : data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
  }
  return ~crc;
}

template <class T>
T take(std::string_view& bytes) {
  T value;
  if (bytes.size() < sizeof value) throw std::runtime_error("too short");
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<std::uint8_t>(bytes);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return value;
  }
}

struct ReadEvent {
  double wall_time = NAN;
  std::int64_t step = 0;
  std::string version;
  std::map<std::string, float> values;
};

std::string_view take_bytes(std::string_view& bytes) {
  const auto size = take_varint(bytes);
  if (size > bytes.size()) throw std::runtime_error("too short");
  const std::string_view part = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return part;
}

ReadEvent read_event(std::string_view bytes) {
  ReadEvent event;
  while (!bytes.empty()) {
    const auto tag = take_varint(bytes);
    if (tag == (1 << 3 | 1)) {
      event.wall_time = take<double>(bytes);
    } else if (tag == (2 << 3 | 0)) {
      event.step = static_cast<std::int64_t>(take_varint(bytes));
    } else if (tag == (3 << 3 | 2)) {
      event.version = take_bytes(bytes);
    } else if (tag == (5 << 3 | 2)) {
      std::string_view summary = take_bytes(bytes);
      while (!summary.empty()) {
        if (take_varint(summary) != (1 << 3 | 2)) throw std::runtime_error("no value");
        std::string_view value = take_bytes(summary);
        std::string name;
        while (!value.empty()) {
          const auto field = take_varint(value);
          if (field == (1 << 3 | 2))
            name = take_bytes(value);
          else if (field == (2 << 3 | 5))
            event.values[name] = take<float>(value);
          else
            throw std::runtime_error("unknown field of a value");
        }
      }
    } else {
      throw std::runtime_error("unknown field of an event");
    }
  }
  return event;
}

std::vector<ReadEvent> read_events(std::string_view file) {
  const auto check = [](std::string_view data, std::uint32_t masked) {
    const std::uint32_t rotated = masked - 0xA282EAD8u;
    if (((rotated >> 17) | (rotated << 15)) != plain_crc32c(data)) throw std::runtime_error("checksum");
  };
  std::vector<ReadEvent> events;
  while (!file.empty()) {
    const std::string_view length_bytes = file.substr(0, 8);
    const auto length = take<std::uint64_t>(file);
    check(length_bytes, take<std::uint32_t>(file));
    if (length > file.size()) throw std::runtime_error("too short");
    const std::string_view data = file.substr(0, length);
    file.remove_prefix(length);
    check(data, take<std::uint32_t>(file));
    events.push_back(read_event(data));
  }
  return events;
}

// RFC 3720, B.4, and the check value of the polynomial.
TEST(EventFile, ChecksumsOfKnownData) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string rising;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  EXPECT_EQ(crc32c(rising), 0x46DD794Eu);
  EXPECT_EQ(masked_crc32c("123456789"), ((0xE3069283u >> 15) | (0xE3069283u << 17)) + 0xA282EAD8u);
}

TEST(EventFile, IsReadBack) {
  const std::string file =
      first_event(1234.5) + scalar_event(1235.25, 1, {{"loss/train", 0.5}, {"lr", 1e-3}}) +
      scalar_event(1236, 300, {{"accuracy/test", 0.8125}}) +
      scalar_event(1237, std::int64_t{1} << 40, {{std::string(300, 'x'), -1.0}, {"nan", NAN}});
  const auto events = read_events(file);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[0].wall_time, 1234.5);
  EXPECT_EQ(events[1].wall_time, 1235.25);
  EXPECT_EQ(events[1].step, 1);
  EXPECT_EQ(events[1].values, (std::map<std::string, float>{{"loss/train", 0.5f}, {"lr", 1e-3f}}));
  EXPECT_EQ(events[2].step, 300);
  EXPECT_EQ(events[2].values.at("accuracy/test"), 0.8125f);
  EXPECT_EQ(events[3].step, std::int64_t{1} << 40);
  EXPECT_EQ(events[3].values.at(std::string(300, 'x')), -1.0f);
  EXPECT_TRUE(std::isnan(events[3].values.at("nan")));
}

}  // namespace
}  // namespace attmirror
