// Small pictures as PNG files, for pages. Internal.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace attmirror {

// Bytes of a pixel, in this order.
enum class PngPixels { rgb, gray_alpha };

// `bytes` are the pixels line by line. Throws Error (bad input) where they are not width x height.
std::string png_file(std::int64_t width, std::int64_t height, PngPixels pixels,
                     std::span<const std::uint8_t> bytes);

}  // namespace attmirror
