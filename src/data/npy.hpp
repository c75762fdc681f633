// One array in numpy's .npy format, versions 1.0, 2.0 and 3.0, without Python.
//
// Layout: the magic "\x93NUMPY", two version bytes, the length of the header (2 bytes in version 1.0, else 4,
// little-endian), the header, the numbers. The header is a Python dict literal,
//   {'descr': '<f8', 'fortran_order': False, 'shape': (6, 8, 10), }
// padded by spaces to a multiple of 64 bytes and ended by a newline. The parser here knows this one dict and
// nothing else of Python: no names, no expressions, no pickles.
#pragma once

#include <attmirror/data/array.hpp>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace attmirror {

enum class MemoryOrder { c, fortran };

struct NpyOptions {
  // Order of the numbers in the file. C order is what Array holds, so it costs no copy; Fortran order is for
  // readers that hold matrices by columns.
  MemoryOrder order = MemoryOrder::c;
};

// Reads an array; one in Fortran order is transposed to C order. `name` is what messages call the file.
// Throws Error (bad input) for anything but a whole array of real numbers, integers or booleans in
// little-endian order.
Array parse_npy(std::span<const std::byte> file, std::string_view name);
Array load_npy(const std::filesystem::path& path);

// The bytes of a file (version 1.0). There is no .npy type for bfloat16: Error (bad input).
std::vector<std::byte> format_npy(const Array& array, const NpyOptions& options = {});

// Writes atomically (base/atomic_file.hpp).
void save_npy(const std::filesystem::path& path, const Array& array, const NpyOptions& options = {});

}  // namespace attmirror
