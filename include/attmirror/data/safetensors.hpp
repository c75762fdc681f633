// Named arrays in the safetensors format, in which trained transformers are usually distributed.
//
// Layout: the length of the header (8 bytes, little-endian), the header (JSON, padded by spaces), the data.
// The header maps each name to {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]} and
// "__metadata__" to an object of strings. The arrays must fill the data without overlaps or gaps, so a file
// has only one meaning and hides nothing.
#pragma once

#include <attmirror/data/array.hpp>

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// What a .safetensors file holds: arrays by name, and texts about them.
struct Safetensors {
  NamedArrays tensors;
  std::map<std::string, std::string> metadata;
  friend bool operator==(const Safetensors&, const Safetensors&) = default;
};

// Reads a file; `name` is its name in messages. Throws Error (bad input) for anything that breaks the rules
// above, for a number type that DType does not have, and for a header above 100 MB (the limit in the format's
// own library).
Safetensors parse_safetensors(std::span<const std::byte> file, std::string_view name);
Safetensors load_safetensors(const std::filesystem::path& path);

// The bytes of a file. Equal content gives equal bytes. Arrays are ordered by decreasing element size, then by
// name, and the data start at a multiple of 8 bytes, so each array is aligned for a reader that maps the file.
std::vector<std::byte> format_safetensors(const Safetensors& content);

// Writes atomically (base/atomic_file.hpp).
void save_safetensors(const std::filesystem::path& path, const Safetensors& content);

}  // namespace attmirror
