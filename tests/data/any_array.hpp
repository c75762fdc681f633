// What tests of file formats share: files of other programs, and random arrays of every type and shape for property
// tests: empty ones, zero-dimensional ones, any bits.
#pragma once

#include "support/paths.hpp"
#include <attmirror/data/array.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include <rapidcheck.h>

namespace attmirror::test {

// A file that another program wrote, numpy or the library of safetensors.
inline std::filesystem::path format_file(std::string_view name) { return fixture("formats") / name; }

inline Array any_array(std::vector<DType> dtypes) {
  const DType dtype = *rc::gen::elementOf(dtypes);
  const auto axes = *rc::gen::inRange<std::size_t>(0, 5);
  const Shape shape = *rc::gen::container<Shape>(axes, rc::gen::inRange<std::int64_t>(0, 5));
  const std::size_t size = element_count(shape, dtype, "shape") * item_size(dtype);
  const int last = dtype == DType::boolean ? 2 : 256;
  std::vector<std::byte> bytes;
  for (const int value : *rc::gen::container<std::vector<int>>(size, rc::gen::inRange(0, last)))
    bytes.push_back(static_cast<std::byte>(value));
  return Array(dtype, shape, bytes);
}

inline const std::vector<DType> npy_types = {DType::float64, DType::float32, DType::float16, DType::int64,
                                             DType::int32,   DType::int16,   DType::int8,    DType::uint64,
                                             DType::uint32,  DType::uint16,  DType::uint8,   DType::boolean};

inline std::vector<DType> all_types() {
  auto types = npy_types;
  types.push_back(DType::bfloat16);
  return types;
}

inline NamedArrays any_named_arrays(const std::vector<DType>& dtypes) {
  NamedArrays arrays;
  const auto count = *rc::gen::inRange(0, 5);
  for (int i = 0; i < count; ++i)
    arrays.insert_or_assign(*rc::gen::container<std::string>(rc::gen::inRange<char>(32, 126)),
                            any_array(dtypes));
  return arrays;
}

}  // namespace attmirror::test
