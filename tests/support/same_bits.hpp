// The same bits: -0 is not +0, and a NaN equals one with the same payload. This is what "results do not depend on
// threads" means; == is neither.
//   EXPECT_TRUE(same_bits(one.W, two.W)) << "with 2 threads";
#pragma once

#include <attmirror/attention/parameters.hpp>
#include <attmirror/base/aligned.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

namespace attmirror::test {

template <std::floating_point T>
testing::AssertionResult same_bits(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
  const Bits x = std::bit_cast<Bits>(a), y = std::bit_cast<Bits>(b);
  if (x == y) return testing::AssertionSuccess();
  return testing::AssertionFailure() << std::setprecision(std::numeric_limits<T>::max_digits10) << a
                                     << " and " << b << ", bits " << std::hex << x << " and " << y;
}

inline testing::AssertionResult same_bits(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size())
    return testing::AssertionFailure() << a.size() << " and " << b.size() << " numbers";
  for (std::size_t i = 0; i < a.size(); ++i)
    if (const auto same = same_bits(a[i], b[i]); !same)
      return testing::AssertionFailure() << "at " << i << ": " << same.message();
  return testing::AssertionSuccess();
}

template <class A, class B>
testing::AssertionResult same_bits(const Eigen::DenseBase<A>& a, const Eigen::DenseBase<B>& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols())
    return testing::AssertionFailure()
           << a.rows() << " x " << a.cols() << " and " << b.rows() << " x " << b.cols();
  for (std::ptrdiff_t i = 0; i < a.rows(); ++i)
    for (std::ptrdiff_t j = 0; j < a.cols(); ++j)
      if (const auto same = same_bits(a.derived().coeff(i, j), b.derived().coeff(i, j)); !same)
        return testing::AssertionFailure() << "at " << i << ", " << j << ": " << same.message();
  return testing::AssertionSuccess();
}

// Without the padding.
inline testing::AssertionResult same_bits(ConstMatrixView a, ConstMatrixView b) {
  return same_bits(a.eigen(), b.eigen());
}

inline testing::AssertionResult same_bits(const Parameters& a, const Parameters& b) {
  const std::pair<const char*, testing::AssertionResult> blocks[] = {{"W", same_bits(a.W, b.W)},
                                                                     {"K", same_bits(a.K, b.K)},
                                                                     {"Q", same_bits(a.Q, b.Q)},
                                                                     {"p", same_bits(a.p, b.p)},
                                                                     {"v", same_bits(a.v, b.v)}};
  for (const auto& [name, same] : blocks)
    if (!same) return testing::AssertionFailure() << name << " " << same.message();
  return testing::AssertionSuccess();
}

// Files: tells where they differ instead of printing both.
inline testing::AssertionResult same_bytes(std::string_view a, std::string_view b) {
  if (a == b) return testing::AssertionSuccess();
  const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  return testing::AssertionFailure() << a.size() << " and " << b.size() << " bytes that differ from byte "
                                     << at << " on";
}

}  // namespace attmirror::test
