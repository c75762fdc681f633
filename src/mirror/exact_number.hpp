// Numbers of 192 bits with any exponent: what the exact step computes in.
//
// Why not long double or pairs of doubles? A step may cancel: rate d agrees with the image y = |w|^{p-1} in its first
// k bits, and what is left of y has lost k bits of precision. For double weights k reaches 53 and more, and the
// result needs another 53, which is all that a pair has. Then |w|^{p-1} leaves the range of doubles early (w = 1e300,
// p = 50). Integers have neither trouble, round once at the end to whatever format is asked for, and come out the
// same from every compiler, CUDA's among them.
//
// Sums and products are cut off, not rounded, but remember in the last bit that something was lost: an error of at most
// 2^-191, and a later rounding to 53 bits or fewer knows on which side of a tie the number lies.
#pragma once

#include "mirror/host_device.hpp"

#include <cmath>
#include <cstdint>

namespace attmirror::exact {

__extension__ typedef unsigned __int128 TwoWords;

// 192 bits, most significant word first.
struct Words {
  std::uint64_t word[3] = {0, 0, 0};
};

// A finite number: (-1)^negative bits 2^{exponent - 191}. The first bit is set, so 2^exponent <= |x| < 2^{exponent +
// 1}; zero has no bits at all.
struct Number {
  bool negative = false;
  std::int64_t exponent = 0;
  Words bits;
};

// ---- words ----------------------------------------------------------------------------------------------------------

ATTMIRROR_HOST_DEVICE inline bool is_zero(const Words& a) { return (a.word[0] | a.word[1] | a.word[2]) == 0; }

// -1, 0, 1 for a < b, a = b, a > b.
ATTMIRROR_HOST_DEVICE inline int compare(const Words& a, const Words& b) {
  for (int i = 0; i < 3; ++i)
    if (a.word[i] != b.word[i]) return a.word[i] < b.word[i] ? -1 : 1;
  return 0;
}

struct SumOfWords {
  Words bits;
  std::uint64_t carry = 0;
};
ATTMIRROR_HOST_DEVICE inline SumOfWords add(const Words& a, const Words& b) {
  SumOfWords sum;
  TwoWords carry = 0;
  for (int i = 2; i >= 0; --i) {
    carry += static_cast<TwoWords>(a.word[i]) + b.word[i];
    sum.bits.word[i] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
  sum.carry = static_cast<std::uint64_t>(carry);
  return sum;
}

// a - b modulo 2^192.
ATTMIRROR_HOST_DEVICE inline Words subtract(const Words& a, const Words& b) {
  Words difference;
  std::uint64_t borrow = 0;
  for (int i = 2; i >= 0; --i) {
    const TwoWords part = static_cast<TwoWords>(a.word[i]) - b.word[i] - borrow;
    difference.word[i] = static_cast<std::uint64_t>(part);
    borrow = static_cast<std::uint64_t>(part >> 64) & 1u;
  }
  return difference;
}

ATTMIRROR_HOST_DEVICE inline Words shift_left(Words a, int count) {
  for (; count >= 64; count -= 64) a = {{a.word[1], a.word[2], 0}};
  if (count == 0) return a;
  return {{(a.word[0] << count) | (a.word[1] >> (64 - count)),
           (a.word[1] << count) | (a.word[2] >> (64 - count)), a.word[2] << count}};
}

// What is shifted out is not forgotten: where it is not 0, the last bit is set. So a later rounding to 53 bits or fewer
// sees on which side of a tie the number lies.
ATTMIRROR_HOST_DEVICE inline Words shift_right(Words a, std::int64_t count) {
  if (count >= 192) return {{0, 0, is_zero(a) ? 0u : 1u}};
  std::uint64_t lost = 0;
  for (; count >= 64; count -= 64) {
    lost |= a.word[2];
    a = {{0, a.word[0], a.word[1]}};
  }
  if (count > 0) {
    const int left = 64 - static_cast<int>(count);
    lost |= a.word[2] << left;
    a = {{a.word[0] >> count, (a.word[1] >> count) | (a.word[0] << left),
          (a.word[2] >> count) | (a.word[1] << left)}};
  }
  if (lost != 0) a.word[2] |= 1u;
  return a;
}

ATTMIRROR_HOST_DEVICE inline TwoWords product(std::uint64_t a, std::uint64_t b) {
  return static_cast<TwoWords>(a) * b;
}
ATTMIRROR_HOST_DEVICE inline TwoWords lower(TwoWords a) { return static_cast<std::uint64_t>(a); }
ATTMIRROR_HOST_DEVICE inline TwoWords upper(TwoWords a) { return a >> 64; }

// a b 2^-192 for fixed-point fractions, at most 3 units of the last bit too small.
ATTMIRROR_HOST_DEVICE inline Words fraction_product(const Words& a, const Words& b) {
  const TwoWords p00 = product(a.word[0], b.word[0]), p01 = product(a.word[0], b.word[1]),
                 p10 = product(a.word[1], b.word[0]);
  const TwoWords third = lower(p01) + lower(p10) + upper(product(a.word[0], b.word[2])) +
                         upper(product(a.word[1], b.word[1])) + upper(product(a.word[2], b.word[0]));
  const TwoWords second = upper(third) + lower(p00) + upper(p01) + upper(p10);
  const TwoWords first = upper(second) + upper(p00);
  return {{static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(second),
           static_cast<std::uint64_t>(third)}};
}

// a b in full.
struct ProductOfWords {
  Words upper, lower;
};
ATTMIRROR_HOST_DEVICE inline ProductOfWords multiply(const Words& a, const Words& b) {
  const TwoWords p00 = product(a.word[0], b.word[0]), p01 = product(a.word[0], b.word[1]),
                 p02 = product(a.word[0], b.word[2]), p10 = product(a.word[1], b.word[0]),
                 p11 = product(a.word[1], b.word[1]), p12 = product(a.word[1], b.word[2]),
                 p20 = product(a.word[2], b.word[0]), p21 = product(a.word[2], b.word[1]),
                 p22 = product(a.word[2], b.word[2]);
  const TwoWords fifth = upper(p22) + lower(p12) + lower(p21);
  const TwoWords fourth = upper(fifth) + upper(p12) + upper(p21) + lower(p02) + lower(p11) + lower(p20);
  const TwoWords third = upper(fourth) + upper(p02) + upper(p11) + upper(p20) + lower(p01) + lower(p10);
  const TwoWords second = upper(third) + upper(p01) + upper(p10) + lower(p00);
  const TwoWords first = upper(second) + upper(p00);
  return {{{static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(second),
            static_cast<std::uint64_t>(third)}},
          {{static_cast<std::uint64_t>(fourth), static_cast<std::uint64_t>(fifth),
            static_cast<std::uint64_t>(p22)}}};
}

ATTMIRROR_HOST_DEVICE inline int leading_zeros(std::uint64_t a) {
  int count = 0;
  for (int step = 32; step > 0; step /= 2)
    if ((a >> (64 - step)) == 0) {
      a <<= step;
      count += step;
    }
  return count;
}

// ---- numbers --------------------------------------------------------------------------------------------------------

ATTMIRROR_HOST_DEVICE inline bool is_zero(const Number& x) { return is_zero(x.bits); }

ATTMIRROR_HOST_DEVICE inline Number normalized(Number x) {
  if (is_zero(x.bits)) return Number{};
  int count = 0, first = 0;
  for (; x.bits.word[first] == 0; ++first) count += 64;
  count += leading_zeros(x.bits.word[first]);
  x.bits = shift_left(x.bits, count);
  x.exponent -= count;
  return x;
}

// Of a finite double.
ATTMIRROR_HOST_DEVICE inline Number number(double x) {
  if (x == 0) return Number{};
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(x), &exponent);
  return {x < 0, exponent - 1, {{static_cast<std::uint64_t>(std::ldexp(fraction, 64)), 0, 0}}};
}

ATTMIRROR_HOST_DEVICE inline Number power_of_two(std::int64_t exponent) {
  return {false, exponent, {{0x8000000000000000u, 0, 0}}};
}

ATTMIRROR_HOST_DEVICE inline Number negated(Number x) {
  x.negative = !x.negative && !is_zero(x);
  return x;
}

ATTMIRROR_HOST_DEVICE inline Number magnitude(Number x) {
  x.negative = false;
  return x;
}

// x 2^n.
ATTMIRROR_HOST_DEVICE inline Number scaled(Number x, std::int64_t n) {
  if (!is_zero(x)) x.exponent += n;
  return x;
}

ATTMIRROR_HOST_DEVICE inline int compare_magnitudes(const Number& a, const Number& b) {
  if (is_zero(a) || is_zero(b)) return static_cast<int>(is_zero(b)) - static_cast<int>(is_zero(a));
  if (a.exponent != b.exponent) return a.exponent < b.exponent ? -1 : 1;
  return compare(a.bits, b.bits);
}

ATTMIRROR_HOST_DEVICE inline int compare(const Number& a, const Number& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  return a.negative ? -compare_magnitudes(a, b) : compare_magnitudes(a, b);
}

ATTMIRROR_HOST_DEVICE inline Number operator*(const Number& a, const Number& b) {
  if (is_zero(a) || is_zero(b)) return Number{};
  const ProductOfWords product = multiply(a.bits, b.bits);
  Number result{a.negative != b.negative, a.exponent + b.exponent + 1, product.upper};
  if ((result.bits.word[0] >> 63) == 0) {
    result.bits = shift_left(result.bits, 1);
    result.bits.word[2] |= product.lower.word[0] >> 63;
    --result.exponent;
    if (((product.lower.word[0] << 1) | product.lower.word[1] | product.lower.word[2]) != 0)
      result.bits.word[2] |= 1u;
  } else if (!is_zero(product.lower)) {
    result.bits.word[2] |= 1u;
  }
  return result;
}

ATTMIRROR_HOST_DEVICE inline Number operator+(const Number& a, const Number& b) {
  if (is_zero(a)) return b;
  if (is_zero(b)) return a;
  const bool swap = compare_magnitudes(a, b) < 0;
  const Number& large = swap ? b : a;
  const Number& small = swap ? a : b;
  Number result = large;
  const Words aligned = shift_right(small.bits, large.exponent - small.exponent);
  if (a.negative != b.negative) {
    result.bits = subtract(large.bits, aligned);
    return normalized(result);
  }
  const SumOfWords sum = add(large.bits, aligned);
  result.bits = sum.bits;
  if (sum.carry != 0) {
    result.bits = shift_right(result.bits, 1);
    result.bits.word[0] |= 0x8000000000000000u;
    ++result.exponent;
  }
  return result;
}

ATTMIRROR_HOST_DEVICE inline Number operator-(const Number& a, const Number& b) { return a + negated(b); }

// ---- rounding -------------------------------------------------------------------------------------------------------

// A binary floating-point format: `digits` bits of precision, numbers from 2^least to below 2^{largest + 1}.
struct Format {
  int digits, least, largest;
};

ATTMIRROR_HOST_DEVICE constexpr Format float_format() { return {24, -149, 127}; }
ATTMIRROR_HOST_DEVICE constexpr Format double_format() { return {53, -1074, 1023}; }
ATTMIRROR_HOST_DEVICE constexpr Format bfloat16_format() { return {8, -133, 127}; }
ATTMIRROR_HOST_DEVICE constexpr Format half_format() { return {11, -24, 15}; }

// To nearest, ties to even, denormals and overflow as the format has them.
ATTMIRROR_HOST_DEVICE inline double rounded(const Number& x, const Format& format) {
  if (is_zero(x)) return 0.0;
  const double sign = x.negative ? -1.0 : 1.0;
  if (x.exponent > format.largest) return sign * HUGE_VAL;
  if (x.exponent < format.least - 1) return sign * 0.0;
  const int exponent = static_cast<int>(x.exponent);
  const int last = exponent - format.digits + 1 > format.least ? exponent - format.digits + 1 : format.least;
  const int kept = exponent - last + 1;  // bits, 0 to 53
  std::uint64_t integer = kept == 0 ? 0 : x.bits.word[0] >> (64 - kept);
  const std::uint64_t rest = x.bits.word[0] << kept;
  const bool half = (rest >> 63) != 0;
  const bool more = ((rest << 1) | x.bits.word[1] | x.bits.word[2]) != 0;
  if (half && (more || (integer & 1u) != 0)) ++integer;
  const double result = std::ldexp(static_cast<double>(integer), last);
  return sign * (result >= std::ldexp(1.0, format.largest) * 2 ? HUGE_VAL : result);
}

}  // namespace attmirror::exact
