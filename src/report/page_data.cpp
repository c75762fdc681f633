#include "report/page_data.hpp"

#include <algorithm>
#include <cmath>

namespace attmirror {

std::string base64(std::string_view bytes) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t at) -> unsigned {
      return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0;
    };
    const unsigned three = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (int shift = 18; shift >= 0; shift -= 6) text += letters[three >> shift & 63];
  }
  const std::size_t rest = bytes.size() % 3;
  for (std::size_t i = 0; rest != 0 && i < 3 - rest; ++i) text[text.size() - 1 - i] = '=';
  return text;
}

std::string packed_probabilities(std::span<const float> probabilities) {
  std::string bytes;
  bytes.reserve(2 * probabilities.size());
  for (const float p : probabilities) {
    const auto step = static_cast<unsigned>(std::lround(std::clamp(p, 0.0f, 1.0f) * 65535.0f));
    bytes += static_cast<char>(step & 0xff);
    bytes += static_cast<char>(step >> 8);
  }
  return base64(bytes);
}

std::string picture_url(std::int64_t width, std::int64_t height, PngPixels pixels,
                        std::span<const std::uint8_t> bytes) {
  return "data:image/png;base64," + base64(png_file(width, height, pixels, bytes));
}

}  // namespace attmirror
