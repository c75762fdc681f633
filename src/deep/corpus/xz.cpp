// liblzma reads a stream piece by piece; the result grows by doubling, as its size is not known before.
#include "deep/corpus/xz.hpp"

#include "base/atomic_file.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>

#include <fmt/format.h>

#ifdef ATTMIRROR_LZMA
#include <lzma.h>
#endif

namespace attmirror {

#ifdef ATTMIRROR_LZMA

namespace {

struct Decoder {
  lzma_stream stream = LZMA_STREAM_INIT;
  ~Decoder() { lzma_end(&stream); }
};

Error xz_error(lzma_ret code, std::string_view name) {
  switch (code) {
    case LZMA_FORMAT_ERROR:
      return bad_input(fmt::format("{} is not an .xz file", name));
    case LZMA_DATA_ERROR:
      return bad_input(fmt::format("{} is damaged: its data do not unpack", name));
    case LZMA_OPTIONS_ERROR:
    case LZMA_UNSUPPORTED_CHECK:
      return bad_input(fmt::format("{} is packed in a way that this liblzma does not know", name));
    case LZMA_BUF_ERROR:
      return bad_input(fmt::format("{} ends too early: the file is truncated", name));
    case LZMA_MEMLIMIT_ERROR:
      return bad_input(fmt::format("{} asks for more than a gigabyte of memory to unpack it", name));
    default:
      return environment_error(fmt::format("{}: liblzma failed (code {})", name, static_cast<int>(code)));
  }
}

}  // namespace

std::string unpack_xz(std::span<const std::byte> file, std::string_view name, std::uint64_t most) {
  constexpr std::uint64_t memory = std::uint64_t{1} << 30;  // xz -9 takes 65 MB
  constexpr std::size_t first_size = std::size_t{1} << 16;
  // liblzma would call a short file of another kind truncated.
  constexpr std::string_view magic(
      "\xFD"
      "7zXZ\0",
      6);
  const auto start = file.first(std::min(file.size(), magic.size()));
  if (!std::equal(start.begin(), start.end(), std::as_bytes(std::span(magic)).begin()))
    throw xz_error(LZMA_FORMAT_ERROR, name);
  Decoder decoder;
  lzma_stream& stream = decoder.stream;
  if (const lzma_ret code =
          lzma_stream_decoder(&stream, memory, LZMA_TELL_UNSUPPORTED_CHECK | LZMA_CONCATENATED);
      code != LZMA_OK)
    throw xz_error(code, name);
  std::string unpacked(first_size, '\0');
  stream.next_in = reinterpret_cast<const std::uint8_t*>(file.data());
  stream.avail_in = file.size();
  std::size_t size = 0;
  for (;;) {
    stream.next_out = reinterpret_cast<std::uint8_t*>(unpacked.data()) + size;
    stream.avail_out = unpacked.size() - size;
    const lzma_ret code = lzma_code(&stream, LZMA_FINISH);
    size = unpacked.size() - stream.avail_out;
    if (size > most) throw bad_input(fmt::format("{} unpacks to more than {} bytes", name, most));
    if (code == LZMA_STREAM_END) break;
    // An empty or cut file ends in LZMA_BUF_ERROR; a full buffer merely wants to grow.
    if (code != LZMA_OK) throw xz_error(code, name);
    if (stream.avail_out == 0) unpacked.resize(2 * unpacked.size());
  }
  unpacked.resize(size);
  return unpacked;
}

#else

std::string unpack_xz(std::span<const std::byte>, std::string_view name, std::uint64_t) {
  throw bad_input(
      fmt::format("{} is packed by xz, and attmirror was built without liblzma: install liblzma-dev and "
                  "build it again, or unpack "
                  "the file",
                  name));
}

#endif

std::string read_maybe_packed(const std::filesystem::path& path) {
  if (path.extension() == ".xz") return unpack_xz(read_file(path), path.string());
  return read_text_file(path);
}

}  // namespace attmirror
