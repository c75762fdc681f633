// x^r on vectors, for the kernels that are compiled once per instruction set: the map, its norms and its step, on one
// block (power_kernels.cpp) and on several side by side (room `sweep`).
#pragma once

#include "base/vector_math_inline.hpp"
#include "mirror/power_kernels.hpp"

namespace attmirror::ATTMIRROR_ISA {

using namespace kernels;

namespace {

// e^(r log x) for a logarithm as a pair.
template <class V>
[[gnu::always_inline]] inline V power_of_log(const Pair<V>& logarithm, Exponent r) {
  const V value = broadcast<V>(r.value);
  const Pair<V> product = two_product(logarithm.hi, value);
  const V low = mul_add(logarithm.hi, broadcast<V>(r.rest), product.lo);
  return exp_of_pair(product.hi, mul_add(logarithm.lo, value, low));
}

// |x|^(value + rest), like pow_abs() with a longer exponent.
template <class V>
[[gnu::always_inline]] inline V general_power(V x, Exponent r) {
  return power_of_log(log_pair(x), r);
}

// The root of a sum of r-th powers, sum^{1/r}; `inverse` is 1/r.
template <class V>
[[gnu::always_inline]] inline V root_of_sum(V sum, double inverse) {
  return inverse == 0.5 ? sqrt(sum) : pow_abs(sum, broadcast<V>(inverse));
}

// x^r for x >= 0. Each named exponent is exact up to the roundings of its few factors.
template <Power power, class V>
[[gnu::always_inline]] inline V raise(V x, [[maybe_unused]] Exponent r) {
  if constexpr (power == Power::one) return x;
  if constexpr (power == Power::two) return x * x;
  if constexpr (power == Power::three) return x * x * x;
  if constexpr (power == Power::four) return (x * x) * (x * x);
  if constexpr (power == Power::ten) return integer_power(x, 10);
  if constexpr (power == Power::eleven) return integer_power(x, 11);
  if constexpr (power == Power::half) return sqrt(x);
  if constexpr (power == Power::third) return cbrt(x);
  if constexpr (power == Power::three_quarters) {
    const V root = sqrt(x);
    return root * sqrt(root);
  }
  if constexpr (power == Power::three_halves) return x * sqrt(x);
  if constexpr (power == Power::four_thirds) return x * cbrt(x);
  if constexpr (power == Power::seven_quarters) return x * raise<Power::three_quarters>(x, r);
  if constexpr (power == Power::seven_thirds) return x * x * cbrt(x);
  if constexpr (power == Power::general) return general_power(x, r);
}

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
