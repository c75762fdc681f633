// Arrays of a file without their numbers, for whoever wants to know what is in it. Internal.
#pragma once

#include <attmirror/data/array.hpp>

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace attmirror {

struct ArrayOutline {
  std::string name;
  DType dtype = DType::float64;
  Shape shape{};

  std::size_t size() const { return element_count(shape, dtype, name); }
  std::size_t bytes() const { return size() * item_size(dtype); }
};

// Of a safetensors file: its header, which fits the size of the file. Throws what load_safetensors() throws.
struct SafetensorsOutline {
  std::map<std::string, std::string> metadata;
  std::vector<ArrayOutline> tensors;  // sorted by name
};
SafetensorsOutline outline_safetensors(const std::filesystem::path& path);

}  // namespace attmirror
