// Vectors of floats for the kernels of optimizers, and their three storage formats: float, bfloat16, half.
//
// The same rules as in simd.hpp: only for sources that attmirror_add_kernels() compiles. Weights of networks are
// floats or less, and a vector has twice as many of them as of doubles. SSE2 has no fused multiply-add, on which the
// steps depend for their accuracy; there it goes through doubles, which is slow and right.
#pragma once

#include "base/simd.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

#if defined(ATTMIRROR_ISA_avx512)
inline constexpr int float_lanes = 16;
#elif defined(ATTMIRROR_ISA_avx2)
inline constexpr int float_lanes = 8;
#else
inline constexpr int float_lanes = 4;
#endif

// Vectors of one width, the instruction set's widest: what is left of an array is treated in padded lanes.
using Floats [[gnu::vector_size(4 * float_lanes)]] = float;
using Ints [[gnu::vector_size(4 * float_lanes)]] = std::int32_t;  // also of comparisons, all ones = true
using Words [[gnu::vector_size(4 * float_lanes)]] = std::uint32_t;
using HalfWords [[gnu::vector_size(2 * float_lanes)]] = std::uint16_t;
using HalfDoubles [[gnu::vector_size(4 * float_lanes)]] = double;  // half as many, of twice the size
using HalfFloats [[gnu::vector_size(2 * float_lanes)]] = float;

inline constexpr std::uint32_t float_sign = 0x80000000u;
inline constexpr float float_infinity = __builtin_inff();

[[gnu::always_inline]] inline Floats spread(float x) { return x - Floats{}; }
[[gnu::always_inline]] inline Floats magnitude(Floats x) {
  return bit_cast<Floats>(bit_cast<Words>(x) & ~float_sign);
}
[[gnu::always_inline]] inline Words sign_of(Floats x) { return bit_cast<Words>(x) & float_sign; }
[[gnu::always_inline]] inline Floats flip(Floats x, Words sign) {
  return bit_cast<Floats>(bit_cast<Words>(x) ^ sign);
}

// a*b + c with one rounding (on SSE2 a second one, 2^29 times finer); minus_fused is c - a*b. rough_fused may round
// twice on SSE2: for terms that are small against what they are added to.
#if defined(ATTMIRROR_ISA_avx512)
[[gnu::always_inline]] inline Floats fused(Floats a, Floats b, Floats c) {
  return Floats(_mm512_fmadd_ps(a, b, c));
}
[[gnu::always_inline]] inline Floats minus_fused(Floats a, Floats b, Floats c) {
  return Floats(_mm512_fnmadd_ps(a, b, c));
}
#elif defined(ATTMIRROR_ISA_avx2)
[[gnu::always_inline]] inline Floats fused(Floats a, Floats b, Floats c) {
  return Floats(_mm256_fmadd_ps(a, b, c));
}
[[gnu::always_inline]] inline Floats minus_fused(Floats a, Floats b, Floats c) {
  return Floats(_mm256_fnmadd_ps(a, b, c));
}
#else
[[gnu::always_inline]] inline Floats fused(Floats a, Floats b, Floats c) {
  const __m128d low = _mm_add_pd(_mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b)), _mm_cvtps_pd(c));
  const auto upper = [](Floats x) { return _mm_cvtps_pd(_mm_movehl_ps(x, x)); };
  const __m128d high = _mm_add_pd(_mm_mul_pd(upper(a), upper(b)), upper(c));
  return Floats(_mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high)));
}
[[gnu::always_inline]] inline Floats minus_fused(Floats a, Floats b, Floats c) { return fused(-a, b, c); }
#endif
[[gnu::always_inline]] inline Floats rough_fused(Floats a, Floats b, Floats c) {
  if constexpr (has_fma)
    return fused(a, b, c);
  else
    return a * b + c;
}

// Square root, correctly rounded. (Full masks: see simd.hpp.)
#if defined(ATTMIRROR_ISA_avx512)
[[gnu::always_inline]] inline Floats square_root(Floats x) { return Floats(_mm512_maskz_sqrt_ps(0xffff, x)); }
// The larger of two; b when either is NaN.
[[gnu::always_inline]] inline Floats larger(Floats a, Floats b) {
  return Floats(_mm512_maskz_max_ps(0xffff, a, b));
}
#elif defined(ATTMIRROR_ISA_avx2)
[[gnu::always_inline]] inline Floats square_root(Floats x) { return Floats(_mm256_sqrt_ps(x)); }
[[gnu::always_inline]] inline Floats larger(Floats a, Floats b) { return Floats(_mm256_max_ps(a, b)); }
#else
[[gnu::always_inline]] inline Floats square_root(Floats x) { return Floats(_mm_sqrt_ps(x)); }
[[gnu::always_inline]] inline Floats larger(Floats a, Floats b) { return Floats(_mm_max_ps(a, b)); }
#endif

// Is an x >= 0 outside [low, high), or NaN, in a lane where d is not 0? As integers the magnitudes are in the
// same order.
[[gnu::always_inline]] inline Words outside(Floats x, float low, float high) {
  const std::uint32_t first = bit_cast<std::uint32_t>(low), count = bit_cast<std::uint32_t>(high) - first;
  return bit_cast<Words>((bit_cast<Words>(x) - first) >= count);
}
[[gnu::always_inline]] inline bool any_outside(Floats x, Floats d, float low, float high) {
#if defined(ATTMIRROR_ISA_avx512)
  const std::uint32_t first = bit_cast<std::uint32_t>(low), count = bit_cast<std::uint32_t>(high) - first;
  const __mmask16 moving = _mm512_cmp_ps_mask(d, Floats{}, _CMP_NEQ_UQ);
  return _mm512_mask_cmpge_epu32_mask(moving, bit_cast<__m512i>(bit_cast<Words>(x) - first),
                                      bit_cast<__m512i>(Words{} + count)) != 0;
#else
  const Ints out = bit_cast<Ints>(outside(x, low, high)) & (d != 0.0f);
#if defined(ATTMIRROR_ISA_avx2)
  return _mm256_movemask_ps(bit_cast<__m256>(out)) != 0;
#else
  return _mm_movemask_ps(bit_cast<__m128>(out)) != 0;
#endif
#endif
}

// Of x >= 0: x itself where it is 0, infinite or NaN, `other` elsewhere.
[[gnu::always_inline]] inline Floats unless_special(Floats x, Floats other) {
#if defined(ATTMIRROR_ISA_avx512)
  // By the class of x, four bits each: NaNs become quiet, zero and the infinities are copied.
  constexpr int nan_zero_or_infinite = 0x00110122;
  return Floats(_mm512_fixupimm_ps(other, x, _mm512_set1_epi32(nan_zero_or_infinite), 0));
#else
  return ((x > 0.0f) & (x < float_infinity)) ? other : x;
#endif
}

// 16-bit formats; see base/half_floats.hpp for the same one number at a time.
struct Brain {
  std::uint16_t bits;
};
struct HalfFloat {
  std::uint16_t bits;
};

[[gnu::always_inline]] inline Floats load_floats(const float* p) {
  Floats v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
[[gnu::always_inline]] inline void store_floats(float* p, Floats v) { __builtin_memcpy(p, &v, sizeof v); }

[[gnu::always_inline]] inline Floats load_floats(const Brain* p) {
  HalfWords h;
  __builtin_memcpy(&h, p, sizeof h);
  return bit_cast<Floats>(__builtin_convertvector(h, Words) << 16);
}
[[gnu::always_inline]] inline void store_floats(Brain* p, Floats v) {
  const Words bits = bit_cast<Words>(v);
  const Words rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const Words kept = v == v ? rounded : (bits | 0x400000u);
  const HalfWords h = __builtin_convertvector(kept >> 16, HalfWords);
  __builtin_memcpy(p, &h, sizeof h);
}

#if defined(ATTMIRROR_ISA_avx512)
[[gnu::always_inline]] inline Floats load_floats(const HalfFloat* p) {
  __m256i h;
  __builtin_memcpy(&h, p, sizeof h);
  return Floats(_mm512_maskz_cvtph_ps(0xffff, h));
}
[[gnu::always_inline]] inline void store_floats(HalfFloat* p, Floats v) {
  const __m256i h = _mm512_maskz_cvtps_ph(0xffff, v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __builtin_memcpy(p, &h, sizeof h);
}
#else
[[gnu::always_inline]] inline Floats load_floats(const HalfFloat* p) {
  HalfWords h;
  __builtin_memcpy(&h, p, sizeof h);
  const Words bits = __builtin_convertvector(h, Words);
  const Words rest = bits & 0x7fffu;
  const Words finite = bit_cast<Words>(bit_cast<Floats>(rest << 13) * 0x1p112f);
  const Words special = (rest << 13) | 0x7f800000u;
  return bit_cast<Floats>((rest >= 0x7c00u ? special : finite) | ((bits & 0x8000u) << 16));
}
[[gnu::always_inline]] inline void store_floats(HalfFloat* p, Floats v) {
  const Words bits = bit_cast<Words>(v);
  const Words rest = bits & ~float_sign;
  const Words normal = (rest - 0x38000000u + 0xfffu + ((rest >> 13) & 1u)) >> 13;
  // Adding 1/2 puts the unit in the last place at 2^-24, that of denormal halves.
  const Words denormal = bit_cast<Words>(bit_cast<Floats>(rest) + 0.5f) - 0x3f000000u;
  Words half = rest < 0x38800000u ? denormal : normal;
  half = rest >= 0x477ff000u ? Words{} + 0x7c00u : half;
  half = rest > 0x7f800000u ? Words{} + 0x7e00u : half;
  const HalfWords h = __builtin_convertvector(half | ((bits >> 16) & 0x8000u), HalfWords);
  __builtin_memcpy(p, &h, sizeof h);
}
#endif

// The entries of a table of 16 or 32 floats; of an index only the low 4 or 5 bits count.
#if defined(ATTMIRROR_ISA_avx512)
[[gnu::always_inline]] inline Floats look_up(const float (&table)[16], Words index) {
  return Floats(_mm512_maskz_permutexvar_ps(0xffff, bit_cast<__m512i>(index), load_floats(table)));
}
[[gnu::always_inline]] inline Floats look_up(const float (&table)[32], Words index) {
  return Floats(
      _mm512_permutex2var_ps(load_floats(table), bit_cast<__m512i>(index), load_floats(table + 16)));
}
#else
template <int size>
[[gnu::always_inline]] inline Floats look_up(const float (&table)[size], Words index) {
  index &= size - 1u;
#if defined(ATTMIRROR_ISA_avx2)
  return Floats(_mm256_i32gather_ps(table, bit_cast<__m256i>(index), 4));
#else
  return Floats{table[index[0]], table[index[1]], table[index[2]], table[index[3]]};
#endif
}
#endif

// The lanes as doubles.
[[gnu::always_inline]] inline HalfDoubles lower_doubles(Floats x) {
  HalfFloats half;
  __builtin_memcpy(&half, &x, sizeof half);
  return __builtin_convertvector(half, HalfDoubles);
}
[[gnu::always_inline]] inline HalfDoubles upper_doubles(Floats x) {
  HalfFloats half;
  __builtin_memcpy(&half, reinterpret_cast<const char*>(&x) + sizeof half, sizeof half);
  return __builtin_convertvector(half, HalfDoubles);
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
