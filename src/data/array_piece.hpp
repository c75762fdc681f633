// A piece of an array, as doubles: what Array::to_doubles() does with all of it. Internal.
#pragma once

#include <attmirror/data/array.hpp>

#include <cstddef>
#include <span>
#include <string_view>

namespace attmirror {

// Converts the elements in `bytes`, of which the first is number `first` of the array `name`, into `into`. Throws Error
// (bad input), naming the element, where one is no double.
void piece_to_doubles(DType dtype, std::span<const std::byte> bytes, double* into, std::string_view name,
                      const Shape& shape, std::size_t first);

}  // namespace attmirror
