// The l_p mirror step, its norms and the penalty's gradient on blocks of parameters, one run per lane: the loops of
// mirror/power_kernels.cpp, whose powers are shared and whose order of sums is repeated.
#pragma once

#include "mirror/power_inline.hpp"
#include "sweep/lane_kernels.hpp"
#include "sweep/lane_products.hpp"

namespace attmirror::ATTMIRROR_ISA {
namespace {

// Calls body(j) for the entries of a block, not for its padding.
template <class Body>
[[gnu::always_inline]] inline void for_entries(LaneShape shape, Body body) {
  for (std::ptrdiff_t r = 0; r < shape.rows; ++r)
    for (std::ptrdiff_t j = r * shape.stride; j < r * shape.stride + shape.cols; ++j) body(j);
}

// out(j, |x|^r) of the entries of a block, where x = in(j) >= 0. General powers are done in three passes over some
// entries at a time; see LogStart for why.
template <Power power, class V, class In, class Out>
[[gnu::always_inline]] inline void raise_entries(LaneShape shape, Exponent r, In in, Out out) {
  if constexpr (power != Power::general) {
    for_entries(shape, [&](std::ptrdiff_t j) { out(j, raise<power>(in(j), r)); });
  } else {
    constexpr std::ptrdiff_t most = 32;
    V first[most], second[most], third[most];
    const std::ptrdiff_t cols = shape.cols < most ? shape.cols : most, rows = most / cols;
    for (std::ptrdiff_t row = 0; row < shape.rows; row += rows)
      for (std::ptrdiff_t col = 0; col < shape.cols; col += cols) {
        // Calls body(j, its number among these entries).
        const auto pass = [&](auto body) {
          std::ptrdiff_t k = 0;
          for (std::ptrdiff_t i = row; i < row + rows && i < shape.rows; ++i)
            for (std::ptrdiff_t c = col; c < col + cols && c < shape.cols; ++c)
              body(i * shape.stride + c, k++);
        };
        pass([&](std::ptrdiff_t j, std::ptrdiff_t k) {
          const LogStart<V> start = start_log(in(j));
          first[k] = start.f;
          second[k] = start.reciprocal;
          third[k] = start.exponent;
        });
        pass([&](std::ptrdiff_t, std::ptrdiff_t k) {
          const Pair<V> logarithm = finish_log(LogStart<V>{first[k], second[k], third[k]});
          first[k] = logarithm.hi;
          second[k] = logarithm.lo;
        });
        pass([&](std::ptrdiff_t j, std::ptrdiff_t k) {
          out(j, power_of_log(Pair<V>{first[k], second[k]}, r));
        });
      }
  }
}

// The sum of term(j) over a flat, padded block in the order of a single run's sum_power(): even and odd vectors Wide
// apart, then what is left, a Narrow at a time.
template <class V, class Term>
[[gnu::always_inline]] inline V sum_flat(std::ptrdiff_t size, Term term) {
  constexpr int P = partial_sums;
  const std::ptrdiff_t whole = size / P * P;
  V even[P] = {}, odd[P] = {};
  std::ptrdiff_t j = 0;
  for (; j + 2 * P <= size; j += 2 * P)
    unrolled<P>([&](auto k) {
      even[k.value] = even[k.value] + term(j + k.value);
      odd[k.value] = odd[k.value] + term(j + P + k.value);
    });
  if (j < whole) unrolled<P>([&](auto k) { even[k.value] = even[k.value] + term(j + k.value); });
  V sum = fold<V>([&](auto k) { return even[k.value] + odd[k.value]; });
  if constexpr (P > lanes<Narrow>) {  // AVX-512, whose Narrow has four
    if (whole < size) sum = sum + ((term(whole) + term(whole + 2)) + (term(whole + 1) + term(whole + 3)));
  }
  return sum;
}

// Powers that cost no more than to write a term down and read it again.
constexpr bool is_product(Power power) {
  return power == Power::one || power == Power::two || power == Power::three || power == Power::four ||
         power == Power::ten || power == Power::eleven;
}

template <Power power, class V>
void sum_power(const double* x, const LaneShape& shape, const double* scale, Exponent r, double* terms,
               double* out) {
  const std::ptrdiff_t size = shape.rows * shape.stride;
  const V factor = scale != nullptr ? at<V>(scale, 0) : broadcast<V>(1.0);
  const auto number = [=](std::ptrdiff_t j) { return abs(at<V>(x, j)) * factor; };
  if constexpr (is_product(power)) {
    put(out, 0, sum_flat<V>(size, [=](std::ptrdiff_t j) { return raise<power>(number(j), r); }));
  } else {  // none of these for the padding
    raise_entries<power, V>(shape, r, number, [=](std::ptrdiff_t j, V term) { put(terms, j, term); });
    put(out, 0, sum_flat<V>(size, [=](std::ptrdiff_t j) { return at<V>(terms, j); }));
  }
}

template <Power power, class V>
void mirror_step(const double* g, const double* scale, double* y, double* w, const LaneShape& shape,
                 Exponent r) {
  const V minus = -at<V>(scale, 0);
  const auto move = [=](std::ptrdiff_t j) {
    const V dual = mul_add(at<V>(g, j), minus, at<V>(y, j));
    put(y, j, dual);
    return dual;
  };
  if constexpr (power == Power::one)
    for_entries(shape, [=](std::ptrdiff_t j) { put(w, j, move(j)); });
  else
    raise_entries<power, V>(
        shape, r, [=](std::ptrdiff_t j) { return abs(move(j)); },
        [=](std::ptrdiff_t j, V size) { put(w, j, copy_sign(size, at<V>(y, j))); });
}

template <class V>
void add_up(const double* terms, const LaneShape& shape, double* out) {
  put(out, 0, sum_flat<V>(shape.rows * shape.stride, [=](std::ptrdiff_t j) { return at<V>(terms, j); }));
}

template <class V>
void roots(const double* sums, double inverse, double* out) {
  put(out, 0, root_of_sum(at<V>(sums, 0), inverse));
}

template <class V>
void max_abs(const double* x, const LaneShape& shape, double* out) {
  V largest{}, nan{};
  for_entries(shape, [&](std::ptrdiff_t j) {
    const V value = at<V>(x, j);
    nan = value != value ? value : nan;
    largest = max(abs(value), largest);
  });
  put(out, 0, nan != nan ? nan : largest);
}

template <class V>
void add_multiple(const double* keep, double* g, const double* add, const double* w, const LaneShape& shape) {
  const V of_g = at<V>(keep, 0), of_w = at<V>(add, 0);
  for_entries(shape, [=](std::ptrdiff_t j) { put(g, j, of_g * at<V>(g, j) + of_w * at<V>(w, j)); });
}

template <Power power, class V>
constexpr LanePowerKernels power_kernels{sum_power<power, V>, mirror_step<power, V>};

template <class V>
constexpr LanePowerKernels lane_powers[]{power_kernels<Power::general, V>,
                                         power_kernels<Power::one, V>,
                                         power_kernels<Power::two, V>,
                                         power_kernels<Power::three, V>,
                                         power_kernels<Power::four, V>,
                                         power_kernels<Power::ten, V>,
                                         power_kernels<Power::eleven, V>,
                                         power_kernels<Power::half, V>,
                                         power_kernels<Power::third, V>,
                                         power_kernels<Power::three_quarters, V>,
                                         power_kernels<Power::three_halves, V>,
                                         power_kernels<Power::four_thirds, V>,
                                         power_kernels<Power::seven_quarters, V>,
                                         power_kernels<Power::seven_thirds, V>};

}  // namespace
}  // namespace attmirror::ATTMIRROR_ISA
