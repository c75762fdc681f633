// Files that may be packed by xz. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace attmirror {

// No set of this room unpacks to more; a file that does was made to fill the memory.
inline constexpr std::uint64_t most_unpacked_bytes = std::uint64_t{16} << 30;

// What the bytes of an .xz file unpack to. Throws Error (bad input), naming the file: truncated, damaged, no .xz file,
// more than `most` bytes, or a build without liblzma.
std::string unpack_xz(std::span<const std::byte> file, std::string_view name,
                      std::uint64_t most = most_unpacked_bytes);

// The content of a file; of what it unpacks to where its name ends in .xz.
std::string read_maybe_packed(const std::filesystem::path& path);

}  // namespace attmirror
