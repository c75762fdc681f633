// Norms against the plain formulas, their duality, and the words for them.
#include "mirror/matrices.hpp"
#include "support/files.hpp"
#include "support/special_numbers.hpp"
#include <attmirror/mirror/direction.hpp>
#include <attmirror/mirror/norm.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace attmirror {
namespace {

using test::expect_bad_input;
using test::infinity;

const std::vector<double> exponents{1, 1.0001, 1.1, 1.75, 2, 3, 7.5, 50, 1e6, infinity};

std::vector<Norm> sampled_norms() {
  std::vector<Norm> result;
  for (const double p : exponents) {
    result.push_back(Norm::l(p));
    result.push_back(Norm::schatten(p));
  }
  return result;
}

// In long double, scaled by the largest.
double plain_norm(const std::vector<double>& values, double p) {
  long double largest = 0, sum = 0;
  for (const double x : values) largest = std::max(largest, std::abs(static_cast<long double>(x)));
  if (largest == 0 || std::isinf(p)) return static_cast<double>(largest);
  for (const double x : values)
    sum += std::pow(std::abs(static_cast<long double>(x)) / largest, static_cast<long double>(p));
  return static_cast<double>(largest * std::pow(sum, 1 / static_cast<long double>(p)));
}

double plain_norm(const Matrix& w, const Norm& which) {
  if (which.is_entrywise()) return plain_norm(std::vector<double>(w.data(), w.data() + w.size()), which.p());
  const Eigen::VectorXd sigma = test::reference_svd(w).sigma;
  return plain_norm(std::vector<double>(sigma.data(), sigma.data() + sigma.size()), which.p());
}

TEST(Norm, AgreesWithThePlainFormula) {
  for (const Norm& which : sampled_norms())
    for (const Matrix& w : test::sample_matrices()) {
      const double expected = plain_norm(w, which);
      EXPECT_NEAR(norm(w, which), expected, 2e-14 * expected)
          << to_string(which) << ", " << w.rows() << " x " << w.cols();
    }
}

TEST(Norm, NeitherOverflowsNorUnderflows) {
  for (const Norm& which : sampled_norms())
    for (const Matrix& w : {test::normal_matrix(5, 7, 1), test::low_rank_matrix(6, 6, 3, 2)}) {
      const double plain = norm(w, which);
      for (const int exponent : {-1000, -600, 600, 1000}) {
        const Matrix scaled = w * std::ldexp(1.0, exponent);
        EXPECT_NEAR(std::ldexp(norm(scaled, which), -exponent), plain, 1e-14 * plain)
            << to_string(which) << " 2^" << exponent;
      }
      // denormal entries have few digits
      const Matrix tiny = (w * 0x1p-1000) * 0x1p-60;
      EXPECT_NEAR(std::ldexp(norm(tiny, which), 1060), plain, 0.01 * plain) << to_string(which);
    }
}

TEST(Norm, OfZeroNothingAndWhatIsNotFinite) {
  for (const Norm& which : sampled_norms()) {
    EXPECT_EQ(norm(Matrix::Zero(3, 4), which), 0.0);
    EXPECT_EQ(norm(Matrix(0, 4), which), 0.0);
    EXPECT_EQ(norm(Matrix(3, 0), which), 0.0);
    Matrix w = Matrix::Ones(3, 5);
    w(1, 4) = -infinity;
    EXPECT_EQ(norm(w, which), infinity) << to_string(which);
    w(2, 2) = std::nan("");
    EXPECT_TRUE(std::isnan(norm(w, which))) << to_string(which);
    EXPECT_NEAR(norm(Matrix::Constant(1, 1, -1e308), which) / 1e308, 1, 1e-15) << to_string(which);
  }
}

TEST(Norm, HoldersInequality) {
  EXPECT_TRUE(rc::check("<a, b> <= ||a|| ||b||_*", [] {
    const auto rows = *rc::gen::inRange(1, 9), cols = *rc::gen::inRange(1, 9);
    const Matrix a = test::normal_matrix(rows, cols, *rc::gen::arbitrary<std::uint64_t>()),
                 b = test::normal_matrix(rows, cols, *rc::gen::arbitrary<std::uint64_t>());
    for (const Norm& which : sampled_norms())
      RC_ASSERT(std::abs(a.cwiseProduct(b).sum()) <= norm(a, which) * norm(b, which.dual()) * (1 + 1e-13));
  }));
}

TEST(Norm, DualOfTheDual) {
  EXPECT_EQ(Norm::l(1).dual(), Norm::l(infinity));
  EXPECT_EQ(Norm::l(infinity).dual(), Norm::l(1));
  EXPECT_EQ(Norm::frobenius().dual(), Norm::frobenius());
  EXPECT_EQ(Norm::nuclear().dual(), Norm::spectral());
  EXPECT_EQ(Norm::spectral().dual(), Norm::nuclear());
  EXPECT_EQ(Norm::l(1.1).dual(), Norm::l(11));
  EXPECT_EQ(Norm::schatten(3).dual(), Norm::schatten(1.5));
  for (const Norm& which : sampled_norms()) {
    EXPECT_EQ(which.dual().is_entrywise(), which.is_entrywise());
    if (std::isinf(which.p())) continue;
    EXPECT_NEAR(which.dual().dual().p() / which.p(), 1, 1e-9) << to_string(which);
  }
}

TEST(Norm, SchattenTwoIsFrobenius) {
  EXPECT_EQ(Norm::schatten(2), Norm::l(2));
  EXPECT_TRUE(Norm::schatten(2).is_entrywise());
  EXPECT_NE(Norm::schatten(3), Norm::l(3));
  EXPECT_NE(Norm::l(3), Norm::l(4));
}

TEST(Norm, WordsAreReadBack) {
  const std::vector<std::pair<std::string, Norm>> words{{"1.75", Norm::l(1.75)},
                                                        {"2", Norm::l(2)},
                                                        {"1", Norm::l(1)},
                                                        {"inf", Norm::l(infinity)},
                                                        {"nuclear", Norm::nuclear()},
                                                        {"spectral", Norm::spectral()},
                                                        {"schatten:1.5", Norm::schatten(1.5)}};
  for (const auto& [word, which] : words) {
    EXPECT_EQ(parse_norm(word), which);
    EXPECT_EQ(to_string(which), word);
  }
  EXPECT_EQ(parse_norm("frobenius"), Norm::l(2));
  EXPECT_EQ(parse_norm("schatten:1"), Norm::nuclear());
  EXPECT_EQ(parse_norm("schatten:2"), Norm::frobenius());
  EXPECT_EQ(parse_norm("schatten:inf"), Norm::spectral());
  EXPECT_EQ(parse_norm("3e0"), Norm::l(3));
  EXPECT_TRUE(rc::check("parse_norm(to_string(n)) == n", [] {
    const double p = 1 + std::ldexp(*rc::gen::inRange(0, 1 << 30), *rc::gen::inRange(-80, 40));
    RC_ASSERT(parse_norm(to_string(Norm::l(p))) == Norm::l(p));
    RC_ASSERT(parse_norm(to_string(Norm::schatten(p))) == Norm::schatten(p));
  }));
}

TEST(Norm, RefusesOtherWordsAndExponents) {
  for (const std::string word : {"", " 2", "2 ", "two", "0.5", "-1", "nan", "-inf", "1.5x", "schatten:", "l2",
                                 "schatten:0.9", "schatten:nan", "schatten: 3", "Nuclear", "1,5"})
    expect_bad_input({"norm is \"" + word + "\"", "schatten:P"}, [&] { parse_norm(word); });
  for (const double p : {0.999, 0.0, -1.0, -infinity}) {
    expect_bad_input({"p is", "from 1 to infinity"}, [&] { Norm::l(p); });
    expect_bad_input({"p is", "from 1 to infinity"}, [&] { Norm::schatten(p); });
  }
  expect_bad_input({"p is nan"}, [] { Norm::l(std::nan("")); });
}

TEST(Norm, LpNormServesTheEnds) {
  const Matrix w = (Matrix(1, 3) << 1, -4, 2).finished();
  EXPECT_EQ(lp_norm(w, 1), 7);
  EXPECT_EQ(lp_norm(w, infinity), 4);
  EXPECT_NEAR(lp_norm(w, 2), std::sqrt(21.0), 1e-15);
  expect_bad_input({"p is 0.5"}, [&] { lp_norm(w, 0.5); });
}

}  // namespace
}  // namespace attmirror
