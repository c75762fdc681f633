// Pictures as PNG files, taken apart again: chunks with their checksums, and the pixels behind zlib's stream.
#include "base/png.hpp"

#include "support/files.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

namespace attmirror {
namespace {

std::uint32_t number_at(std::string_view text, std::size_t at) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(text.at(at + i));
  return number;
}

// PNG's checksum, bit by bit.
std::uint32_t checksum(std::string_view text) {
  std::uint32_t sum = 0xffffffff;
  for (const char letter : text) {
    sum ^= static_cast<unsigned char>(letter);
    for (int bit = 0; bit < 8; ++bit) sum = sum & 1 ? 0xedb88320 ^ sum >> 1 : sum >> 1;
  }
  return ~sum;
}

std::map<std::string, std::string> chunks(std::string_view file) {
  EXPECT_EQ(file.substr(0, 8), std::string_view("\x89PNG\r\n\x1a\n", 8));
  std::map<std::string, std::string> found;
  for (std::size_t at = 8; at < file.size();) {
    const std::size_t length = number_at(file, at);
    const std::string_view checked = file.substr(at + 4, 4 + length);
    EXPECT_EQ(number_at(file, at + 8 + length), checksum(checked));
    found[std::string(checked.substr(0, 4))] = checked.substr(4);
    at += 12 + length;
  }
  return found;
}

void expect_picture(std::int64_t width, std::int64_t height, PngPixels pixels, char kind, std::int64_t size) {
  std::vector<std::uint8_t> bytes;
  for (std::int64_t i = 0; i < width * height * size; ++i)
    bytes.push_back(static_cast<std::uint8_t>(i * 37 + i / 5));
  auto found = chunks(png_file(width, height, pixels, bytes));
  ASSERT_EQ(found.size(), 3u);
  ASSERT_EQ(found["IHDR"].size(), 13u);
  EXPECT_EQ(number_at(found["IHDR"], 0), static_cast<std::uint32_t>(width));
  EXPECT_EQ(number_at(found["IHDR"], 4), static_cast<std::uint32_t>(height));
  EXPECT_EQ(found["IHDR"].substr(8), std::string({8, kind, 0, 0, 0}));
  std::vector<Bytef> lines(static_cast<std::size_t>(height * (1 + width * size)) + 1);
  uLongf length = lines.size();
  ASSERT_EQ(uncompress(lines.data(), &length, reinterpret_cast<const Bytef*>(found["IDAT"].data()),
                       found["IDAT"].size()),
            Z_OK);
  ASSERT_EQ(length, lines.size() - 1);
  for (std::int64_t y = 0; y < height; ++y) {
    const auto begin = static_cast<std::size_t>(y * (1 + width * size));
    EXPECT_EQ(lines[begin], 0);
    for (std::int64_t x = 0; x < width * size; ++x)
      EXPECT_EQ(lines[begin + 1 + static_cast<std::size_t>(x)],
                bytes[static_cast<std::size_t>(y * width * size + x)]);
  }
}

TEST(Png, HoldsThePixels) {
  expect_picture(5, 3, PngPixels::rgb, 2, 3);
  expect_picture(32, 32, PngPixels::rgb, 2, 3);
  expect_picture(1, 1, PngPixels::gray_alpha, 4, 2);
  expect_picture(4, 7, PngPixels::gray_alpha, 4, 2);
}

TEST(Png, Refusals) {
  const std::vector<std::uint8_t> bytes(12);
  test::expect_bad_input({"2 x 2", "12 bytes", "8"}, [&] { png_file(2, 2, PngPixels::gray_alpha, bytes); });
  test::expect_bad_input({"0 x 2"}, [&] { png_file(0, 2, PngPixels::rgb, {}); });
  test::expect_bad_input({"1 x 100000"}, [&] { png_file(1, 100000, PngPixels::rgb, bytes); });
}

}  // namespace
}  // namespace attmirror
