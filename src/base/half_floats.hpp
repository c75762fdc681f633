// The 16-bit floating-point formats as bits, one number at a time; the kernels have their own vector forms.
//
//   bfloat16   a float without its lower 16 bits: 8 bits of precision, the range of a float
//   half       IEEE binary16: 11 bits of precision, largest finite number 65504
//
// Both round to nearest, ties to even; NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace attmirror {

struct BFloat16 {
  std::uint16_t bits = 0;
};
struct Half {
  std::uint16_t bits = 0;
};

inline float to_float(BFloat16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }

inline BFloat16 to_bfloat16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return {static_cast<std::uint16_t>((bits >> 16) | 0x40u)};  // NaN, quiet
  const std::uint32_t to_even = (bits >> 16) & 1u;
  return {static_cast<std::uint16_t>((bits + 0x7fffu + to_even) >> 16)};
}

inline float to_float(Half x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x.bits & 0x8000u) << 16;
  const std::uint32_t rest = x.bits & 0x7fffu;
  if (rest >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
  // As the bits of a float these stand for 2^-112 times the number, denormals included; the product is exact.
  const float magnitude = std::bit_cast<float>(rest << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

inline Half to_half(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return {static_cast<std::uint16_t>(sign | 0x7e00u)};  // NaN
  if (rest >= 0x477ff000u)
    return {static_cast<std::uint16_t>(sign | 0x7c00u)};  // 65520 and more round to infinity
  if (rest < 0x38800000u) {
    // Below 2^-14: adding 1/2 puts the unit in the last place at 2^-24, so the sum is rounded as a denormal half is.
    const float sum = std::bit_cast<float>(rest) + 0.5f;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(sum) - 0x3f000000u))};
  }
  const std::uint32_t to_even = (rest >> 13) & 1u;
  return {static_cast<std::uint16_t>(sign | ((rest - 0x38000000u + 0xfffu + to_even) >> 13))};
}

// Numbers of any of the four formats as doubles, which hold them all, and back: from a number that T or float holds,
// so that it is rounded once at most.
inline double widen(double x) { return x; }
inline double widen(float x) { return x; }
inline double widen(BFloat16 x) { return to_float(x); }
inline double widen(Half x) { return to_float(x); }

template <class T>
T narrow(double x) {
  if constexpr (std::is_same_v<T, BFloat16>)
    return to_bfloat16(static_cast<float>(x));
  else if constexpr (std::is_same_v<T, Half>)
    return to_half(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

}  // namespace attmirror
