#include <attmirror/base/error.hpp>
#include <attmirror/base/sign_test.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

// sum_{k <= most} C(n, k) / 2^n for most < n / 2, in whole numbers: n <= 60, so that products fit 64 bits.
double whole_tail(std::int64_t most, std::int64_t n) {
  std::uint64_t term = 1, sum = 1;
  for (std::int64_t k = 1; k <= most; ++k) {
    term = term * static_cast<std::uint64_t>(n - k + 1) / static_cast<std::uint64_t>(k);
    sum += term;
  }
  return std::ldexp(static_cast<double>(sum), -static_cast<int>(n));
}

// The same for any n. The largest term comes first, from its logarithm because 2^n overflows; each other follows
// from its neighbor, C(n, k - 1) = C(n, k) k / (n - k + 1), until they no longer count.
double long_tail(std::int64_t most, std::int64_t n) {
  const auto count = static_cast<double>(n), top = static_cast<double>(most);
  const double log_term =
      std::lgamma(count + 1) - std::lgamma(top + 1) - std::lgamma(count - top + 1) - count * std::log(2.0);
  double relative = 1, sum = 1;
  for (double k = top; k > 0 && relative > 1e-18 * sum; --k) {
    relative *= k / (count - k + 1);
    sum += relative;
  }
  return std::exp(log_term) * sum;
}

double lower_tail(std::int64_t most, std::int64_t n) {
  return n <= 60 ? whole_tail(most, n) : long_tail(most, n);
}

}  // namespace

SignTest sign_test(std::int64_t first, std::int64_t second, std::int64_t ties) {
  for (const auto& [name, count] :
       {std::pair{"first", first}, std::pair{"second", second}, std::pair{"ties", ties}})
    if (count < 0) throw bad_input(fmt::format("{} is {}: expected a count from 0 on", name, count));
  SignTest result{first, second, ties, 1};
  if (first != second) result.p = std::min(1.0, 2 * lower_tail(std::min(first, second), first + second));
  return result;
}

SignTest sign_test(std::span<const std::optional<double>> first,
                   std::span<const std::optional<double>> second) {
  if (first.size() != second.size())
    throw bad_input(fmt::format("first has {} numbers and second {}: expected as many, one for each case",
                                first.size(), second.size()));
  SignTest counts;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (!first[i] || !second[i]) continue;
    if (std::isnan(*first[i]) || std::isnan(*second[i]))
      throw bad_input(
          fmt::format("{}[{}] is nan: expected a number", std::isnan(*first[i]) ? "first" : "second", i));
    counts.first += *first[i] > *second[i] ? 1 : 0;
    counts.second += *second[i] > *first[i] ? 1 : 0;
    counts.ties += *first[i] == *second[i] ? 1 : 0;
  }
  return sign_test(counts.first, counts.second, counts.ties);
}

}  // namespace attmirror
