// A PNG file is a signature and chunks: length, four letters, content, and a checksum of letters and content, all
// numbers with the most significant byte first. Three chunks are enough: IHDR (what it is), IDAT (every line behind a
// byte that says how it was filtered, as a zlib stream) and IEND.
#include "base/png.hpp"

#include <attmirror/base/error.hpp>

#include <limits>
#include <string_view>

#include <fmt/format.h>
#include <zlib.h>

namespace attmirror {

namespace {

void append_number(std::string& to, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) to += static_cast<char>(number >> shift & 0xff);
}

const Bytef* zlib_bytes(std::string_view text) { return reinterpret_cast<const Bytef*>(text.data()); }

void append_chunk(std::string& to, std::string_view letters, std::string_view content) {
  append_number(to, static_cast<std::uint32_t>(content.size()));
  const std::size_t begin = to.size();
  to.append(letters).append(content);
  const std::string_view checked = std::string_view(to).substr(begin);
  append_number(to, static_cast<std::uint32_t>(
                        crc32(crc32(0, nullptr, 0), zlib_bytes(checked), static_cast<uInt>(checked.size()))));
}

}  // namespace

std::string png_file(std::int64_t width, std::int64_t height, PngPixels pixels,
                     std::span<const std::uint8_t> bytes) {
  constexpr std::int64_t most = 1 << 14;
  const std::int64_t pixel = pixels == PngPixels::rgb ? 3 : 2;
  if (width < 1 || height < 1 || width > most || height > most)
    throw bad_input(fmt::format("a picture has {} x {} pixels: expected 1 to {} each", width, height, most));
  if (static_cast<std::int64_t>(bytes.size()) != width * height * pixel)
    throw bad_input(fmt::format("a picture of {} x {} pixels has {} bytes: expected {}", width, height,
                                bytes.size(), width * height * pixel));
  std::string lines;
  const auto line = static_cast<std::size_t>(width * pixel);
  for (std::size_t begin = 0; begin < bytes.size(); begin += line) {
    lines += '\0';  // not filtered
    lines.append(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                 bytes.begin() + static_cast<std::ptrdiff_t>(begin + line));
  }
  uLongf size = compressBound(static_cast<uLong>(lines.size()));
  std::string stream(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(stream.data()), &size, zlib_bytes(lines),
                static_cast<uLong>(lines.size()), Z_BEST_COMPRESSION) != Z_OK)
    throw environment_error(fmt::format("zlib cannot compress a picture of {} x {} pixels", width, height));
  stream.resize(size);

  std::string header;
  append_number(header, static_cast<std::uint32_t>(width));
  append_number(header, static_cast<std::uint32_t>(height));
  // 8 bits a number; 2: red, green, blue, 4: gray and alpha; deflate; no filter but those of lines; not interlaced.
  header += {8, static_cast<char>(pixels == PngPixels::rgb ? 2 : 4), 0, 0, 0};
  std::string file = "\x89PNG\r\n\x1a\n";
  append_chunk(file, "IHDR", header);
  append_chunk(file, "IDAT", stream);
  append_chunk(file, "IEND", "");
  return file;
}

}  // namespace attmirror
