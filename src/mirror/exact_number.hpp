// Numbers of 192 bits with any exponent, and their powers: what the exact step computes in.
//
// Why not long double or pairs of doubles? A step may cancel: rate d agrees with the image y = |w|^{p-1} in its first k
// bits, and what is left of y has lost k bits of precision. For double weights k reaches 53 and more, and the result needs
// another 53, which is all that a pair has. Then |w|^{p-1} leaves the range of doubles early (w = 1e300, p = 50). Integers
// have neither trouble, round once at the end to whatever format is asked for, and come out the same from every compiler,
// CUDA's among them.
//
// Powers are 2^{r log2 x}, from one function, the exponential:
//
//   2^f = (1 + u)^{1024}, u = e^{f log(2)/1024} - 1 by its Taylor series (14 terms: the next is below 2^-180),
//         squared ten times as 1 + u <- 1 + (2u + u^2); fixed point, since all of these u lie in [0, 1);
//   log2 x = g + log2(x 2^{-g}) with g = log2 x in doubles, so that x 2^{-g} = 1 + t, |t| < 2^-45, and four terms of
//         log(1 + t) do (the next is below 2^-225).
//
// Relative error of a power: about 2^-170 max(1, |r|), where pairs of doubles would have 2^-95.
//
// Roots that come out even deserve more: with w = 9, p = 3/2 and rate d = 3, y - rate d is 0, not 2^-170. The r-th power
// of a number of 53 bits, 0 < r < 1, that is short at all has at most 53 bits, so a power within 2^-98 of a number of 64
// bits is taken to be that number. (98, since exponents like 1/3 are given to 106 bits.) By chance this happens once in
// 2^33, and then moves the power by 2^-98, which nothing but a cancellation of 40 bits at the same entry would show.
#pragma once

#include "mirror/step_plan.hpp"

#include <cmath>
#include <cstdint>

// The one macro CUDA cannot do without: what runs on both sides must say so.
#if defined(__CUDACC__)
#define ATTMIRROR_HOST_DEVICE __host__ __device__
#else
#define ATTMIRROR_HOST_DEVICE
#endif

namespace attmirror::exact {

__extension__ typedef unsigned __int128 TwoWords;

// 192 bits, most significant word first.
struct Words {
  std::uint64_t word[3] = {0, 0, 0};
};

// A finite number: (-1)^negative bits 2^{exponent - 191}. The first bit is set, so 2^exponent <= |x| < 2^{exponent + 1};
// zero has no bits at all.
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

// a b in full.
struct ProductOfWords {
  Words upper, lower;
};
ATTMIRROR_HOST_DEVICE inline ProductOfWords multiply(const Words& a, const Words& b) {
  std::uint64_t sum[6] = {0, 0, 0, 0, 0, 0};
  for (int i = 2; i >= 0; --i) {
    std::uint64_t carry = 0;
    for (int j = 2; j >= 0; --j) {
      const TwoWords part = static_cast<TwoWords>(a.word[i]) * b.word[j] + sum[i + j + 1] + carry;
      sum[i + j + 1] = static_cast<std::uint64_t>(part);
      carry = static_cast<std::uint64_t>(part >> 64);
    }
    sum[i] = carry;
  }
  return {{{sum[0], sum[1], sum[2]}}, {{sum[3], sum[4], sum[5]}}};
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

// ---- powers ---------------------------------------------------------------------------------------------------------

// 2^f - 1 for a fraction f = bits 2^-192.
ATTMIRROR_HOST_DEVICE inline Words exp2_fraction(const Words& fraction) {
  // 1/j! for j = 14 down to 2, and log(2).
  constexpr std::uint64_t inverse_factorials[13][3] = {
      {0x000000000c9cba54u, 0x603e4e905d6f8a2eu, 0xfd1f2754668c46d5u},
      {0x00000000b092309du, 0x43684be51c198e91u, 0xd7b4269d9babdfa2u},
      {0x00000008f76c77fcu, 0x6c4bdaa26d4c3d67u, 0xf425f600e7ba5b3du},
      {0x0000006b99159fd5u, 0x138e3f9d1f92e0dfu, 0x71c7880adcbc46dbu},
      {0x0000049f93edde27u, 0xd71cbbc05b4fa999u, 0xe392d8777c170b65u},
      {0x00002e3bc74aad8eu, 0x671f5583911ca002u, 0xe3bc74aad8e671f5u},
      {0x0001a01a01a01a01u, 0xa01a01a01a01a01au, 0x01a01a01a01a01a0u},
      {0x000d00d00d00d00du, 0x00d00d00d00d00d0u, 0x0d00d00d00d00d01u},
      {0x005b05b05b05b05bu, 0x05b05b05b05b05b0u, 0x5b05b05b05b05b06u},
      {0x0222222222222222u, 0x2222222222222222u, 0x2222222222222222u},
      {0x0aaaaaaaaaaaaaaau, 0xaaaaaaaaaaaaaaaau, 0xaaaaaaaaaaaaaaabu},
      {0x2aaaaaaaaaaaaaaau, 0xaaaaaaaaaaaaaaaau, 0xaaaaaaaaaaaaaaabu},
      {0x8000000000000000u, 0x0000000000000000u, 0x0000000000000000u}};
  constexpr Words log_of_two{{0xb17217f7d1cf79abu, 0xc9e3b39803f2f6afu, 0x40f343267298b62eu}};
  constexpr int squarings = 10;

  const Words x = shift_right(multiply(fraction, log_of_two).upper, squarings);
  Words sum;
  for (const auto& coefficient : inverse_factorials)
    sum = add(multiply(sum, x).upper, Words{{coefficient[0], coefficient[1], coefficient[2]}}).bits;
  Words u = add(x, multiply(multiply(sum, x).upper, x).upper).bits;
  for (int i = 0; i < squarings; ++i) u = add(shift_left(u, 1), multiply(u, u).upper).bits;
  return u;
}

// 2^x. Beyond exponents of 2^61 it stays there.
ATTMIRROR_HOST_DEVICE inline Number exp2(const Number& x) {
  if (is_zero(x)) return power_of_two(0);
  constexpr std::int64_t limit = std::int64_t{1} << 61;
  if (x.exponent >= 61) return power_of_two(x.negative ? -limit : limit);
  // x = whole + fraction, the fraction from 0 to 1.
  std::int64_t whole = 0;
  Words fraction;
  if (x.exponent < 0) {
    fraction = shift_right(x.bits, -1 - x.exponent);
  } else {
    const int count = static_cast<int>(x.exponent) + 1;
    whole = static_cast<std::int64_t>(x.bits.word[0] >> (64 - count));
    fraction = shift_left(x.bits, count);
  }
  if (x.negative) {
    whole = is_zero(fraction) ? -whole : -whole - 1;
    fraction = subtract(Words{}, fraction);
  }
  Words bits = shift_right(exp2_fraction(fraction), 1);
  bits.word[0] |= 0x8000000000000000u;
  return {false, whole, bits};
}

// log2 |x|, x not 0; the error is below 2^-170.
ATTMIRROR_HOST_DEVICE inline Number log2_magnitude(const Number& x) {
  // |x| = m 2^k, 1/sqrt(2) <= m < sqrt(2).
  const bool upper = x.bits.word[0] >= 0xb504f333f9de6484u;
  const std::int64_t k = upper ? x.exponent + 1 : x.exponent;
  const Number m{false, upper ? -1 : 0, x.bits};
  // log m = 2 artanh s, s = (m - 1)/(m + 1), |s| < 0.172.
  const double m_double = std::ldexp(static_cast<double>(x.bits.word[0] >> 11), upper ? -53 : -52);
  const double s = (m_double - 1) / (m_double + 1);
  double series = 0;
  for (int i = 21; i >= 1; i -= 2) series = series * (s * s) + 1.0 / i;
  const double guess = 2 * s * series * 1.4426950408889634;

  const Number t = m * exp2(number(-guess)) - power_of_two(0);
  constexpr Words third_bits{{0xaaaaaaaaaaaaaaaau, 0xaaaaaaaaaaaaaaaau, 0xaaaaaaaaaaaaaaaau}};
  constexpr Words log2_e_bits{{0xb8aa3b295c17f0bbu, 0xbe87fed0691d3e88u, 0xeb577aa8dd695a59u}};
  const Number third{false, -2, third_bits};
  const Number log2_e{false, 0, log2_e_bits};
  // log(1 + t) = t (1 - t (1/2 - t (1/3 - t/4)))
  const Number inner = third - scaled(t, -2);
  const Number middle = power_of_two(-1) - t * inner;
  const Number log_rest = t * (power_of_two(0) - t * middle);
  return (number(static_cast<double>(k)) + number(guess)) + log_rest * log2_e;
}

// See the end of the opening comment.
ATTMIRROR_HOST_DEVICE inline Number snapped(Number x) {
  constexpr std::uint64_t all = (std::uint64_t{1} << 34) - 1;
  const std::uint64_t next = x.bits.word[1] >> 30;
  if (next == 0) {
    x.bits.word[1] = x.bits.word[2] = 0;
  } else if (next == all) {
    x.bits.word[1] = x.bits.word[2] = 0;
    if (++x.bits.word[0] == 0) {
      x.bits.word[0] = 0x8000000000000000u;
      ++x.exponent;
    }
  }
  return x;
}

// sign(x) |x|^r for r > 0. Whole powers up to 64 are products; of others the whole part is.
ATTMIRROR_HOST_DEVICE inline Number signed_power(const Number& x, const kernels::Sum& r) {
  if (is_zero(x)) return x;
  const double whole = r.value <= 64 ? std::floor(r.value) : 0;
  const Number rest = number(r.value - whole) + number(r.rest);
  Number result = power_of_two(0);
  Number square = magnitude(x);
  for (int n = static_cast<int>(whole); n > 0; n /= 2) {
    if (n % 2 == 1) result = result * square;
    if (n > 1) square = square * square;
  }
  if (!is_zero(rest)) result = result * snapped(exp2(rest * log2_magnitude(x)));
  result.negative = x.negative;
  return result;
}

}  // namespace attmirror::exact
