// The header of an .npy file, read and written. Internal to the room: .npy and .npz share it.
#pragma once

#include "data/npy.hpp"
#include <attmirror/data/array.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

struct NpyHeader {
  DType dtype = DType::float64;
  MemoryOrder order = MemoryOrder::c;
  Shape shape;
  std::size_t size = 0;  // bytes before the numbers: magic, version, length, dict
};

// Throws Error (bad input) unless `file` starts with a whole header that this library can read.
NpyHeader parse_npy_header(std::span<const std::byte> file, std::string_view name);

// Everything that stands before the numbers, version 1.0; the numbers then start at a multiple of 64 bytes.
std::string format_npy_header(const Array& array, MemoryOrder order);
// The same for any type of numpy's, "<f8" or "<U12".
std::string format_npy_header(std::string_view descr, const Shape& shape, MemoryOrder order);

// How many bytes the header has, as the first 12 of a file (or all of a shorter one) say; 0 where they say nothing that
// parse_npy_header() would accept.
std::size_t npy_header_bytes(std::span<const std::byte> beginning);

// Throws Error (bad input) unless a file of `file_size` bytes holds the array that its header describes.
void check_npy_size(const NpyHeader& header, std::uint64_t file_size, std::string_view name);

// The header of a regular file, whose size fits it; the numbers are not read.
NpyHeader load_npy_header(const std::filesystem::path& path);

// The array with these numbers, in the order of the header.
Array make_array(NpyHeader header, std::vector<std::byte> numbers, std::string_view name);

}  // namespace attmirror
