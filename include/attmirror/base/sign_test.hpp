// The sign test: of two that are compared case by case, does one win more often than chance would let it?
//
// Of n cases in which the two differ, the first wins w. If both were equally good, each case would be the toss of a
// fair coin, and a count at least as far from n / 2 as w would have the probability
//
//   p = min(1, 2 sum_{k <= min(w, n - w)} C(n, k) / 2^n),
//
// exactly, whatever the distribution of the differences. Ties do not favor either side and are left out. The test
// sees who wins, not by how much.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace attmirror {

// Who wins how often, and the two-sided p of that.
struct SignTest {
  std::int64_t first = 0, second = 0;  // cases in which this one has the larger number
  std::int64_t ties = 0;               // cases in which both have the same
  double p = 1;                        // 1 where there are only ties
};

// From counts. Throws Error (bad input) for a negative one.
SignTest sign_test(std::int64_t first, std::int64_t second, std::int64_t ties = 0);

// From numbers, case by case; one that lacks either number is left out. Throws Error (bad input) for spans of different
// lengths and for NaN.
SignTest sign_test(std::span<const std::optional<double>> first,
                   std::span<const std::optional<double>> second);

}  // namespace attmirror
