#include "support/files.hpp"
#include <attmirror/base/sign_test.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

TEST(SignTest, ByHand) {
  // 2 C(5,0) / 2^5; 2 (C(5,0) + C(5,1)) / 2^5; 2 (1 + 10 + 45) / 2^10; 2 (1 + 3) / 2^3 = 1.
  EXPECT_EQ(sign_test(5, 0).p, 2.0 / 32);
  EXPECT_EQ(sign_test(4, 1).p, 12.0 / 32);
  EXPECT_EQ(sign_test(2, 8).p, 112.0 / 1024);
  EXPECT_EQ(sign_test(2, 1).p, 1);
  EXPECT_EQ(sign_test(1, 0).p, 1);
  EXPECT_EQ(sign_test(8, 2).p, sign_test(2, 8).p);
}

TEST(SignTest, TiesAreCountedAndLeftOut) {
  const SignTest test = sign_test(5, 0, 100);
  EXPECT_EQ(test.ties, 100);
  EXPECT_EQ(test.p, sign_test(5, 0).p);
  EXPECT_EQ(sign_test(0, 0, 7).p, 1);
  EXPECT_EQ(sign_test(3, 3).p, 1);
}

// The sum term by term in long double, from Pascal's triangle.
TEST(SignTest, AllCountsUpToSeventy) {
  std::vector<long double> row{1};
  for (std::int64_t n = 1; n <= 70; ++n) {
    std::vector<long double> next(row.size() + 1, 1);
    for (std::size_t k = 1; k < row.size(); ++k) next[k] = row[k - 1] + row[k];
    row = next;
    long double tail = 0;
    for (std::int64_t w = 0; 2 * w < n; ++w) {
      tail += row[static_cast<std::size_t>(w)];
      const double expected = static_cast<double>(std::min(1.0L, 2 * tail / std::pow(2.0L, n)));
      EXPECT_NEAR(sign_test(w, n - w).p / expected, 1, n <= 60 ? 1e-15 : 1e-12) << w << " of " << n;
    }
  }
}

TEST(SignTest, ManyCases) {
  // The same sums in fractions of whole numbers (Python's Fraction and comb). 2^10000 overflows.
  EXPECT_NEAR(sign_test(450, 550).p / 0.0017305360849763176, 1, 1e-11);
  EXPECT_NEAR(sign_test(4900, 5100).p / 0.04658552770494739, 1, 1e-10);
  EXPECT_LT(sign_test(0, 10'000).p, std::numeric_limits<double>::min());
  EXPECT_GE(sign_test(0, 10'000).p, 0);
}

TEST(SignTest, OfNumbers) {
  using Numbers = std::vector<std::optional<double>>;
  const Numbers first{1, 2, {}, 4, 0.5, 6}, second{0, 3, 1, 4, 0, {}};
  const SignTest test = sign_test(first, second);
  EXPECT_EQ(test.first, 2);
  EXPECT_EQ(test.second, 1);
  EXPECT_EQ(test.ties, 1);
  EXPECT_NEAR(test.p, 1, 1e-14);
  test::expect_bad_input({"6", "5"}, [&] { sign_test(first, std::span(second).first(5)); });
  test::expect_bad_input({"second[0]", "nan"}, [&] { sign_test(Numbers{1}, Numbers{std::nan("")}); });
  test::expect_bad_input({"second is -1"}, [] { sign_test(1, -1); });
}

}  // namespace
}  // namespace attmirror
