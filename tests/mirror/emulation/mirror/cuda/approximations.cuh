// Stands in for src/mirror/cuda/approximations.cuh where cuda_formulas_test.cpp compiles the formulas of the GPU's
// kernels for the CPU: the words of CUDA C++ that they use, and the GPU's approximations with all the error they
// may have.
//
// Sums, products and fmaf() are rounded the same way on both machines. The approximations are not: what they return
// is known within bounds only, and differs between GPUs. So a result here is the true one, disturbed at random within
// its bound (the ones documented for PTX): a formula that passes owes nothing to one GPU's luck. The disturbance is a
// function of the argument alone, so that every run and every order of tests sees the same.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__

inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }

namespace attmirror::cuda {

using std::max;
using std::min;

// .ftz: denormals become zeros of their sign.
inline float flushed(float x) { return std::abs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

// From -1 to 1, half of the time one of these: formulas break at the ends of a bound, not in its middle.
inline double disturbance(float x, std::uint64_t function) {
  std::uint64_t bits =
      (static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(x)) + (function << 32)) * 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 29)) * 0xbf58476d1ce4e5b9u;
  bits ^= bits >> 32;
  if (bits % 4 < 2) return bits % 4 == 0 ? -1 : 1;
  return std::ldexp(static_cast<double>(bits >> 11), -52) - 1;
}

// `value` with a random error of at most `bound`, as a float; where rounding would lead out of the bound, the next
// float towards `value`.
inline float disturbed(double value, double bound, double random) {
  if (!std::isfinite(value) || bound == 0) return static_cast<float>(value);
  const float nearest = static_cast<float>(value + random * bound);
  if (std::abs(nearest - value) <= bound) return flushed(nearest);
  return flushed(std::nextafter(nearest, static_cast<float>(value)));
}

// Within 1 ulp.
inline float fast_reciprocal(float x) {
  const double value = 1.0 / flushed(x);
  return disturbed(value, std::isnormal(value) ? std::ldexp(1.0, std::ilogb(value) - 23) : 0,
                   disturbance(x, 1));
}

// Within 2^-22.9 of the result.
inline float fast_rsqrt(float x) {
  const double value = 1.0 / std::sqrt(static_cast<double>(flushed(x)));
  return disturbed(value, 0x1.125fp-23 * value, disturbance(x, 2));
}

// Within 2^-22, times the result where x is outside of [1/2, 2].
inline float fast_log2(float x) {
  const double value = std::log2(static_cast<double>(flushed(x)));
  return disturbed(value, 0x1p-22 * std::max(1.0, std::abs(value)), disturbance(x, 3));
}

// Within 2^-22 of the result.
inline float fast_exp2(float x) {
  const double value = std::exp2(static_cast<double>(flushed(x)));
  return disturbed(value, 0x1p-22 * value, disturbance(x, 4));
}

}  // namespace attmirror::cuda
