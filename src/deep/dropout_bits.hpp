// The hash behind keyed dropout, the same on the CPU and in CUDA kernels. Internal.
//
// 32 bits from a row's key (64 bits), a site and a column, by multiplications and shifts of 32-bit words that vectorise
// everywhere. Keys come from Philox and carry the randomness; the hash has to spread columns and sites over it. Three
// rounds: after each, a change of one input bit changes about half of the word.
#pragma once

#include "mirror/host_device.hpp"

#include <cstdint>

namespace attmirror {

ATTMIRROR_HOST_DEVICE inline std::uint32_t dropout_bits(std::uint64_t key, std::uint32_t site,
                                                        std::uint32_t column) {
  std::uint32_t x = static_cast<std::uint32_t>(key) ^ (column * 0x9E3779B9u);
  x = (x ^ (x >> 16)) * 0x7FEB352Du;
  x += static_cast<std::uint32_t>(key >> 32) ^ (site * 0x85EBCA6Bu);
  x = (x ^ (x >> 15)) * 0x846CA68Bu;
  x = (x ^ (x >> 16)) * 0xC2B2AE35u;
  return x ^ (x >> 16);
}

// Elements whose bits are below this are dropped.
inline std::uint32_t dropout_threshold(double probability) {
  return static_cast<std::uint32_t>(probability * 4294967296.0);
}

}  // namespace attmirror
