// Numbers and pictures inside a page, as text. Internal.
#pragma once

#include "base/png.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace attmirror {

std::string base64(std::string_view bytes);

// Probabilities as 16 bits each, in steps of 1/65535, least byte first, in base64: a quarter of what digits take, and
// finer than anything that a page shows.
std::string packed_probabilities(std::span<const float> probabilities);

// "data:image/png;base64,...", as png_file() has it.
std::string picture_url(std::int64_t width, std::int64_t height, PngPixels pixels,
                        std::span<const std::uint8_t> bytes);

}  // namespace attmirror
