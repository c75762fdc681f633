// Strips under dense algebra, for the kernels that are compiled once per instruction set.
//
// For sums of products a_ik b_jk over k, 16 rows of a matrix are copied into a strip: their first entries side by
// side, then their second ones, and so on (b[k * 16 + j]). A tile (register_tiles.hpp) then takes a few rows times
// some lanes of it.
#pragma once

#include "base/register_tiles.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

inline constexpr std::ptrdiff_t strip = 16;

// Copies `count` <= 16 rows of `depth` numbers into a strip; the lanes of missing rows are zero.
inline void pack_strip(const double* rows, std::ptrdiff_t stride, std::ptrdiff_t count, std::ptrdiff_t depth,
                       double* out) {
  for (std::ptrdiff_t r = 0; r < count; ++r)
    for (std::ptrdiff_t k = 0; k < depth; ++k) out[k * strip + r] = rows[r * stride + k];
  for (std::ptrdiff_t r = count; r < strip; ++r)
    for (std::ptrdiff_t k = 0; k < depth; ++k) out[k * strip + r] = 0;
}

inline void unpack_strip(const double* packed, std::ptrdiff_t count, std::ptrdiff_t depth, double* rows,
                         std::ptrdiff_t stride) {
  for (std::ptrdiff_t r = 0; r < count; ++r)
    for (std::ptrdiff_t k = 0; k < depth; ++k) rows[r * stride + k] = packed[k * strip + r];
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
