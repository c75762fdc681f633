// The header of an .npy file, read and written. Internal to the room: .npy and .npz share it.
#pragma once

#include "data/npy.hpp"
#include <attmirror/data/array.hpp>

#include <cstddef>
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

// parse_npy() for a buffer that is no longer needed: the numbers stay in it instead of being copied.
Array take_npy(std::vector<std::byte> file, std::string_view name);

}  // namespace attmirror
