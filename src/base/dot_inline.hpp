// The scalar product of two padded rows, for kernels.
#pragma once

#include "base/simd.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

// <a, b>; `size` is a multiple of four. Two sums side by side, so that one addition need not wait for the last; their
// order depends on the size only.
[[maybe_unused]] inline double dot(const double* a, const double* b, std::ptrdiff_t size) {
  Wide even{}, odd{};
  std::ptrdiff_t j = 0;
  for (; j + 2 * lanes<Wide> <= size; j += 2 * lanes<Wide>) {
    even = mul_add(load<Wide>(a + j), load<Wide>(b + j), even);
    odd = mul_add(load<Wide>(a + j + lanes<Wide>), load<Wide>(b + j + lanes<Wide>), odd);
  }
  if (j + lanes<Wide> <= size) {
    even = mul_add(load<Wide>(a + j), load<Wide>(b + j), even);
    j += lanes<Wide>;
  }
  double sum = reduce_add(even + odd);
  for (; j < size; j += lanes<Narrow>) sum += reduce_add(load<Narrow>(a + j) * load<Narrow>(b + j));
  return sum;
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
