// A text in a file of arrays, as its bytes: .npy strings are padded UCS-4, which does not suit a sentence. Internal.
#pragma once

#include <attmirror/base/error.hpp>
#include <attmirror/data/array.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace attmirror {

inline Array text_array(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {DType::uint8, {static_cast<std::int64_t>(text.size())}, {bytes.begin(), bytes.end()}};
}

// The text of such an array, which messages call `name`.
inline std::string text_of(const Array& array, std::string_view name) {
  if (array.dtype() != DType::uint8 || array.axes() != 1)
    throw bad_input(fmt::format("{} is {}: expected a text of bytes", name, array.describe()));
  return {reinterpret_cast<const char*>(array.bytes().data()), array.size()};
}

}  // namespace attmirror
