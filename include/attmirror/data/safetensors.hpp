// Named arrays in the safetensors format, the one in which trained transformers travel.
//
// Layout: the length of the header (8 bytes, little-endian), the header (JSON, padded by spaces), the data.
// The header maps each name to {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]} and
// "__metadata__" to an object of strings. The arrays must fill the data without overlap and without holes, so
// a file has one meaning and hides nothing.
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

// Reads a file; `name` is what messages call it. Throws Error (bad input) for anything that breaks the rules
// above, for a number type that DType lacks, and for a header above 100 MB (the limit of the format's own
// library).
Safetensors parse_safetensors(std::span<const std::byte> file, std::string_view name);
Safetensors load_safetensors(const std::filesystem::path& path);

// The bytes of a file. Equal content gives equal bytes. Arrays are laid out by falling element size, then by
// name, and the data starts at a multiple of 8 bytes: a reader that maps the file finds each array aligned.
std::vector<std::byte> format_safetensors(const Safetensors& content);

// Writes atomically (base/atomic_file.hpp).
void save_safetensors(const std::filesystem::path& path, const Safetensors& content);

}  // namespace attmirror
