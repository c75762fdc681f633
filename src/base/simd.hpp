// Vectors of doubles for the kernels that are compiled once per instruction set.
//
// Include this only from sources that CMake builds through attmirror_add_kernels(): everything lives in an
// anonymous namespace inside attmirror::ATTMIRROR_ISA, so no code for one instruction set can leak into
// another. The vectors are the compiler's own (+, -, *, /, comparisons and ?: work lane by lane); the
// functions below add what the language lacks. A width of 1 (plain double) has the same functions, so that
// one template serves both.
#pragma once

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#ifndef ATTMIRROR_ISA
#error "include simd.hpp only from sources compiled by attmirror_add_kernels()"
#endif

#pragma GCC diagnostic ignored "-Wpsabi"
#pragma GCC diagnostic ignored "-Wunused-function"

namespace attmirror::ATTMIRROR_ISA {
namespace {

using F64x2 [[gnu::vector_size(16)]] = double;
using F64x4 [[gnu::vector_size(32)]] = double;
using F64x8 [[gnu::vector_size(64)]] = double;
using I64x2 [[gnu::vector_size(16)]] = std::int64_t;
using I64x4 [[gnu::vector_size(32)]] = std::int64_t;
using I64x8 [[gnu::vector_size(64)]] = std::int64_t;
using U64x2 [[gnu::vector_size(16)]] = std::uint64_t;
using U64x4 [[gnu::vector_size(32)]] = std::uint64_t;
using U64x8 [[gnu::vector_size(64)]] = std::uint64_t;

// Wide is the widest vector of the instruction set; Narrow treats what Wide leaves of a row (rows are
// multiples of four doubles).
#if defined(ATTMIRROR_ISA_avx512)
using Wide = F64x8;
using Narrow = F64x4;
#elif defined(ATTMIRROR_ISA_avx2)
using Wide = F64x4;
using Narrow = F64x4;
#else
using Wide = F64x2;
using Narrow = F64x2;
#endif

template <class V>
inline constexpr std::ptrdiff_t lanes = sizeof(V) / sizeof(double);

template <class V>
struct IntOf;
template <>
struct IntOf<double> {
  using type = std::int64_t;
  using unsigned_type = std::uint64_t;
};
template <>
struct IntOf<F64x2> {
  using type = I64x2;
  using unsigned_type = U64x2;
};
template <>
struct IntOf<F64x4> {
  using type = I64x4;
  using unsigned_type = U64x4;
};
template <>
struct IntOf<F64x8> {
  using type = I64x8;
  using unsigned_type = U64x8;
};
// The vector of 64-bit integers with as many lanes as V; also the type of V's comparisons (all ones = true).
template <class V>
using Int = typename IntOf<V>::type;
// The same without a sign: its shifts to the right bring in zeros.
template <class V>
using UInt = typename IntOf<V>::unsigned_type;

template <class V>
[[gnu::always_inline]] inline V broadcast(double x) {
  return x - V{};
}

template <class V>
[[gnu::always_inline]] inline V load(const double* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// The same from floats, widened exactly: tokens may be stored in half the bytes, arithmetic is always in doubles.
template <class V>
[[gnu::always_inline]] inline V load(const float* p) {
  if constexpr (sizeof(V) == sizeof(double)) {
    return *p;
  } else {
    using Floats [[gnu::vector_size(sizeof(V) / 2)]] = float;
    Floats f;
    __builtin_memcpy(&f, p, sizeof f);
    return __builtin_convertvector(f, V);
  }
}

template <class V>
[[gnu::always_inline]] inline void store(double* p, V v) {
  __builtin_memcpy(p, &v, sizeof v);
}

template <class To, class From>
[[gnu::always_inline]] inline To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

// a*b + c: one rounding where the instruction set has fused multiply-add, two on SSE2.
#if defined(ATTMIRROR_ISA_sse2)
inline constexpr bool has_fma = false;
template <class V>
[[gnu::always_inline]] inline V mul_add(V a, V b, V c) {
  return a * b + c;
}
#else
inline constexpr bool has_fma = true;
[[gnu::always_inline]] inline double mul_add(double a, double b, double c) { return __builtin_fma(a, b, c); }
[[gnu::always_inline]] inline F64x2 mul_add(F64x2 a, F64x2 b, F64x2 c) {
  return F64x2(_mm_fmadd_pd(a, b, c));
}
[[gnu::always_inline]] inline F64x4 mul_add(F64x4 a, F64x4 b, F64x4 c) {
  return F64x4(_mm256_fmadd_pd(a, b, c));
}
#if defined(ATTMIRROR_ISA_avx512)
[[gnu::always_inline]] inline F64x8 mul_add(F64x8 a, F64x8 b, F64x8 c) {
  return F64x8(_mm512_fmadd_pd(a, b, c));
}
#endif
#endif

// c - a*b, rounded like mul_add.
#if defined(ATTMIRROR_ISA_sse2)
template <class V>
[[gnu::always_inline]] inline V negative_mul_add(V a, V b, V c) {
  return c - a * b;
}
#else
[[gnu::always_inline]] inline double negative_mul_add(double a, double b, double c) {
  return __builtin_fma(-a, b, c);
}
[[gnu::always_inline]] inline F64x2 negative_mul_add(F64x2 a, F64x2 b, F64x2 c) {
  return F64x2(_mm_fnmadd_pd(a, b, c));
}
[[gnu::always_inline]] inline F64x4 negative_mul_add(F64x4 a, F64x4 b, F64x4 c) {
  return F64x4(_mm256_fnmadd_pd(a, b, c));
}
#if defined(ATTMIRROR_ISA_avx512)
[[gnu::always_inline]] inline F64x8 negative_mul_add(F64x8 a, F64x8 b, F64x8 c) {
  return F64x8(_mm512_fnmadd_pd(a, b, c));
}
#endif
#endif

// Square root, correctly rounded.
[[gnu::always_inline]] inline double sqrt(double x) { return __builtin_sqrt(x); }
[[gnu::always_inline]] inline F64x2 sqrt(F64x2 x) { return F64x2(_mm_sqrt_pd(x)); }
#if !defined(ATTMIRROR_ISA_sse2)
[[gnu::always_inline]] inline F64x4 sqrt(F64x4 x) { return F64x4(_mm256_sqrt_pd(x)); }
#endif
#if defined(ATTMIRROR_ISA_avx512)
[[gnu::always_inline]] inline F64x8 sqrt(F64x8 x) { return F64x8(_mm512_maskz_sqrt_pd(0xff, x)); }
#endif

inline constexpr std::int64_t sign_bit = INT64_MIN;

template <class V>
[[gnu::always_inline]] inline V abs(V x) {
  return bit_cast<V>(bit_cast<Int<V>>(x) & ~sign_bit);
}

// |magnitude| with the sign of `sign`.
template <class V>
[[gnu::always_inline]] inline V copy_sign(V magnitude, V sign) {
  return bit_cast<V>((bit_cast<Int<V>>(magnitude) & ~sign_bit) | (bit_cast<Int<V>>(sign) & sign_bit));
}

// max and min return b when either is NaN. (Compilers do not find the vector instructions for this by
// themselves. The 512-bit intrinsics are taken with a full mask: without one, GCC 12 warns about a variable
// of its own header.)
[[gnu::always_inline]] inline double max(double a, double b) { return a > b ? a : b; }
[[gnu::always_inline]] inline double min(double a, double b) { return a < b ? a : b; }
[[gnu::always_inline]] inline F64x2 max(F64x2 a, F64x2 b) { return F64x2(_mm_max_pd(a, b)); }
[[gnu::always_inline]] inline F64x2 min(F64x2 a, F64x2 b) { return F64x2(_mm_min_pd(a, b)); }
#if !defined(ATTMIRROR_ISA_sse2)
[[gnu::always_inline]] inline F64x4 max(F64x4 a, F64x4 b) { return F64x4(_mm256_max_pd(a, b)); }
[[gnu::always_inline]] inline F64x4 min(F64x4 a, F64x4 b) { return F64x4(_mm256_min_pd(a, b)); }
#endif
#if defined(ATTMIRROR_ISA_avx512)
[[gnu::always_inline]] inline F64x8 max(F64x8 a, F64x8 b) { return F64x8(_mm512_maskz_max_pd(0xff, a, b)); }
[[gnu::always_inline]] inline F64x8 min(F64x8 a, F64x8 b) { return F64x8(_mm512_maskz_min_pd(0xff, a, b)); }
#endif

// Does a comparison hold in every lane? (The comparison of two doubles is a plain bool.)
[[gnu::always_inline]] inline bool all(int mask) { return mask != 0; }
[[gnu::always_inline]] inline bool all(I64x2 mask) { return _mm_movemask_pd(bit_cast<__m128d>(mask)) == 0x3; }
#if !defined(ATTMIRROR_ISA_sse2)
[[gnu::always_inline]] inline bool all(I64x4 mask) {
  return _mm256_movemask_pd(bit_cast<__m256d>(mask)) == 0xf;
}
#endif
#if defined(ATTMIRROR_ISA_avx512)
[[gnu::always_inline]] inline bool all(I64x8 mask) {
  return _mm512_movepi64_mask(bit_cast<__m512i>(mask)) == 0xff;
}
#endif

[[gnu::always_inline]] inline F64x4 low_half(F64x8 v) { return __builtin_shufflevector(v, v, 0, 1, 2, 3); }
[[gnu::always_inline]] inline F64x4 high_half(F64x8 v) { return __builtin_shufflevector(v, v, 4, 5, 6, 7); }
[[gnu::always_inline]] inline F64x2 low_half(F64x4 v) { return __builtin_shufflevector(v, v, 0, 1); }
[[gnu::always_inline]] inline F64x2 high_half(F64x4 v) { return __builtin_shufflevector(v, v, 2, 3); }
[[gnu::always_inline]] inline double low_half(F64x2 v) { return v[0]; }
[[gnu::always_inline]] inline double high_half(F64x2 v) { return v[1]; }

// Sum and maximum of the lanes, in a fixed order: halves are folded onto each other.
[[gnu::always_inline]] inline double reduce_add(double v) { return v; }
template <class V>
[[gnu::always_inline]] inline double reduce_add(V v) {
  return reduce_add(low_half(v) + high_half(v));
}
[[gnu::always_inline]] inline double reduce_max(double v) { return v; }
template <class V>
[[gnu::always_inline]] inline double reduce_max(V v) {
  return reduce_max(max(low_half(v), high_half(v)));
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
