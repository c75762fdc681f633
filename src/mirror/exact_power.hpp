// Powers of numbers of 192 bits (exact_number.hpp), with exponents of 106.
//
// They are 2^{r log2 x}, from one function, the exponential:
//
//   2^f = (1 + u)^{1024}, u = e^{f log(2)/1024} - 1 by its Taylor series (14 terms: the next is below 2^-180),
//         squared ten times as 1 + u <- 1 + (2u + u^2); fixed point, since all of these u lie in [0, 1);
//   log2 x = g + log2(x 2^{-g}) with g = log2 x in doubles, so that x 2^{-g} = 1 + t, |t| < 2^-45, and four terms of
//         log(1 + t) do (the next is below 2^-225).
//
// Relative error of a power: about 2^-175 max(1, |r|), where pairs of doubles would have 2^-95.
//
// Roots that come out even deserve more: with w = 9, p = 3/2 and rate d = 3, y - rate d is 0, not 2^-175. The r-th
// power of a number of 53 bits, 0 < r < 1, that is short at all has at most 53 bits, so a power within 2^-98 of a
// number of 64 bits is taken to be that number. (98, since exponents like 1/3 are given to 106 bits.) By chance this
// happens once in 2^33, and then moves the power by 2^-98, which nothing but a cancellation of 40 bits at the same
// entry would show.
#pragma once

#include "mirror/exact_number.hpp"
#include "mirror/step_plan.hpp"

#include <cmath>
#include <cstdint>

namespace attmirror::exact {

// 2^f - 1 for a fraction f = bits 2^-192.
// (Not inlined, nor is signed_power: CUDA's compiler takes minutes over copies of them.)
[[gnu::noinline]] ATTMIRROR_HOST_DEVICE inline Words exp2_fraction(const Words& fraction) {
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

  const Words x = shift_right(fraction_product(fraction, log_of_two), squarings);
  Words sum;
  for (const auto& coefficient : inverse_factorials)
    sum = add(fraction_product(sum, x), Words{{coefficient[0], coefficient[1], coefficient[2]}}).bits;
  Words u = add(x, fraction_product(fraction_product(sum, x), x)).bits;
  for (int i = 0; i < squarings; ++i) u = add(shift_left(u, 1), fraction_product(u, u)).bits;
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
[[gnu::noinline]] ATTMIRROR_HOST_DEVICE inline Number signed_power(const Number& x, const kernels::Sum& r) {
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
