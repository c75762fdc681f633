// The hyperbolic entropy: the identities of a mirror map, for beta and weights of every size.
#include "mirror/hyperbolic_entropy_map.hpp"

#include "mirror/matrices.hpp"
#include "support/files.hpp"
#include "support/special_numbers.hpp"
#include <attmirror/mirror/norm.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace attmirror {
namespace {

using test::dot;
using test::expect_bad_input;
using test::padding_is_zero;
using test::row;

// A number between 10^-decades and 10^decades in size, of either sign, or zero.
double any_number(double decades) {
  const double exponent = decades * (*rc::gen::inRange(-1000, 1001) / 1000.0);
  return *rc::gen::element(-1.0, 0.0, 1.0, 1.0, -1.0) * (1 + *rc::gen::inRange(0, 1000) / 1000.0) *
         std::pow(10.0, exponent);
}

std::vector<double> any_numbers(double decades) {
  std::vector<double> result(static_cast<std::size_t>(*rc::gen::inRange(1, 20)));
  for (double& x : result) x = any_number(decades);
  return result;
}

class HyperbolicEntropyMapOf : public ::testing::TestWithParam<double> {
 protected:
  double beta = GetParam();
  HyperbolicEntropyMap map{beta};
  double bregman(double a, double b) { return map.bregman(row({a}).view(), row({b}).view()); }
};

INSTANTIATE_TEST_SUITE_P(Geometries, HyperbolicEntropyMapOf,
                         ::testing::Values(1e-150, 1e-8, 0.01, 1.0, 30.0, 1e12),
                         [](const auto& geometry) { return "beta" + std::to_string(geometry.index); });

TEST_P(HyperbolicEntropyMapOf, MatchesTheFormulas) {
  EXPECT_TRUE(rc::check("asinh, sinh and psi in long double", [&] {
    const long double w = any_number(6) * std::min(beta, 1e6), x = w / beta;
    const PaddedMatrix at = row({static_cast<double>(w)});
    PaddedMatrix y = at, back = at;
    map.map(at.view(), y.view());
    const long double dual = std::asinh(x);
    RC_ASSERT(std::abs(y.view().data[0] - dual) <= 4e-16L * std::abs(dual));
    map.inverse(y.view(), back.view());
    const long double primal = beta * std::sinh(static_cast<long double>(y.view().data[0]));
    RC_ASSERT(std::abs(back.view().data[0] - primal) <= 8e-16L * std::abs(primal));
    const long double psi = w * (dual - std::tanh(dual / 2));
    RC_ASSERT(std::abs(map.potential(at.view()) - psi) <= 2e-15L * std::abs(psi));
    const long double plain = w * dual - std::sqrt(w * w + static_cast<long double>(beta) * beta) + beta;
    if (std::abs(x) > 0.1) RC_ASSERT(std::abs(plain - psi) <= 1e-15L * (std::abs(psi) + beta));
  }));
}

TEST_P(HyperbolicEntropyMapOf, MapAndInverseUndoEachOther) {
  EXPECT_TRUE(rc::check("inverse(map(w)) == w", [&] {
    const PaddedMatrix w = row(any_numbers(280));
    PaddedMatrix back = w;
    map.map(w.view(), back.view());
    const std::vector<double> y(back.view().data, back.view().data + w.view().cols);
    map.inverse(back.view(), back.view());
    RC_ASSERT(padding_is_zero(back.view()));
    for (std::ptrdiff_t j = 0; j < w.view().cols; ++j) {
      const double a = w.view().data[j], b = back.view().data[j], dual = y[static_cast<std::size_t>(j)];
      RC_ASSERT(std::isfinite(dual));
      if (std::abs(a) / beta < 1e-290) continue;  // y underflows
      // A relative error of y comes back |y| coth|y| times as large.
      RC_ASSERT(std::abs(a - b) <= 1e-15 * (1 + std::abs(dual)) * std::abs(a));
      RC_ASSERT(std::signbit(a) == std::signbit(b));
    }
  }));
}

TEST_P(HyperbolicEntropyMapOf, NormsAndSteepestDirectionAreThoseOfL1) {
  for (const Matrix& g : test::sample_matrices()) {
    const PaddedMatrix view(g);
    PaddedMatrix d(Matrix(Matrix::Constant(g.rows(), g.cols(), 42.0)));
    map.steepest(view.view(), d.view());
    EXPECT_EQ(map.norm(view.view()), norm(g, Norm::l(1)));
    EXPECT_EQ(map.dual_norm(view.view()), norm(g, Norm::l(1).dual()));
    EXPECT_EQ(dot(view, d), map.dual_norm(view.view()));
    EXPECT_EQ(map.norm(d.view()), 1);
    EXPECT_TRUE(padding_is_zero(d.view()));
  }
  PaddedMatrix zero = row({0, -0.0, 0});
  map.steepest(zero.view(), zero.view());
  EXPECT_TRUE(zero.view().eigen().isZero(0));
}

TEST_P(HyperbolicEntropyMapOf, BregmanMatchesItsDefinition) {
  EXPECT_TRUE(rc::check("D(a, b) == psi(a) - psi(b) - <grad psi(b), a - b>", [&] {
    const double a = any_number(4) * std::min(beta, 1e6), b = any_number(4) * std::min(beta, 1e6);
    const auto scaled = [&](long double x) { return x * std::asinh(x) - std::sqrt(x * x + 1); };
    const long double x = static_cast<long double>(a) / beta, z = static_cast<long double>(b) / beta;
    const long double slope = std::asinh(z) * (x - z);
    const long double expected = scaled(x) - scaled(z) - slope;
    const long double size = 1 + std::abs(x * std::asinh(x)) + std::abs(z * std::asinh(z)) + std::abs(slope);
    const double d = bregman(a, b);
    RC_ASSERT(d >= 0);
    RC_ASSERT((d > 0) == (a != b));
    RC_ASSERT(std::abs(d / beta - expected) <= 1e-17L * size + 1e-14L * std::abs(expected));
  }));
}

TEST_P(HyperbolicEntropyMapOf, BregmanNearEqualityKeepsItsDigits) {
  // D(b + h, b) = h^2/2 psi''(b) + h^3/6 psi'''(b) + O(h^4),  psi'' = 1/sqrt(b^2 + beta^2)
  for (const double ratio : {1e-5, 0.3, 1.0, 20.0, 1e6, 0.9999e9, 1e12, -0.3, -1e6, -1e12})
    for (const double part : {1e-5, 1e-8, 1e-11}) {
      const double b = ratio * beta, a = b + part * (std::abs(b));
      const long double h = static_cast<long double>(a) - b;
      const long double root = std::hypot(static_cast<long double>(b), static_cast<long double>(beta));
      const long double curvature = 1 / root, third = -(b / root) / root / root;
      const long double expected = h * (h / 2 * curvature) + h * (h * (h / 6 * third));
      EXPECT_NEAR(bregman(a, b) / static_cast<double>(expected), 1, 1e-14 + 2 * part * part)
          << ratio << " " << part;
      EXPECT_EQ(bregman(b, b), 0);
    }
}

TEST_P(HyperbolicEntropyMapOf, ThreePointIdentity) {
  EXPECT_TRUE(rc::check("D(a, c) == D(a, b) + D(b, c) + <y(b) - y(c), a - b>", [&] {
    const double unit = std::min(beta, 1e6);
    const double a = any_number(2) * unit, b = any_number(2) * unit, c = any_number(2) * unit;
    PaddedMatrix y = row({b, c});
    map.map(y.view(), y.view());
    const double cross = (y.view().data[0] - y.view().data[1]) * (a - b);
    const double left = bregman(a, c), right = bregman(a, b) + bregman(b, c) + cross;
    RC_ASSERT(std::abs(left - right) <= 1e-13 * (left + bregman(a, b) + bregman(b, c) + std::abs(cross)));
  }));
}

TEST_P(HyperbolicEntropyMapOf, StepIsMapSubtractInverse) {
  const PaddedMatrix g(test::normal_matrix(3, 5, 1)), y0(test::normal_matrix(3, 5, 2));
  PaddedMatrix y = y0, w = y0, expected = y0;
  map.step(g.view(), 0.1, y.view(), w.view());
  for (std::ptrdiff_t j = 0; j < y.view().flat_size(); ++j)
    EXPECT_NEAR(y.view().data[j], y0.view().data[j] - 0.1 * g.view().data[j], 1e-15);
  map.inverse(y.view(), expected.view());
  EXPECT_EQ(Matrix(w.view().eigen()), Matrix(expected.view().eigen()));
  EXPECT_TRUE(padding_is_zero(w.view()) && padding_is_zero(y.view()));
}

TEST_P(HyperbolicEntropyMapOf, ZerosInfinitiesAndNan) {
  for (const bool forward : {true, false}) {
    PaddedMatrix w = row({0.0, -0.0, test::infinity, -test::infinity, std::nan("")});
    forward ? map.map(w.view(), w.view()) : map.inverse(w.view(), w.view());
    const double* y = w.view().data;
    EXPECT_TRUE(y[0] == 0 && !std::signbit(y[0]));
    EXPECT_TRUE(y[1] == 0 && std::signbit(y[1]));
    EXPECT_EQ(y[2], test::infinity);
    EXPECT_EQ(y[3], -test::infinity);
    EXPECT_TRUE(std::isnan(y[4]));
  }
  EXPECT_EQ(map.potential(row({0.0, -0.0}).view()), 0);
  EXPECT_TRUE(std::isnan(bregman(std::nan(""), 1)));
  EXPECT_TRUE(std::isnan(bregman(1, std::nan(""))));
}

TEST(HyperbolicEntropyMap, ReachesTheEndsOfTheRange) {
  // w / beta = 1e610 and sinh(1400) are not doubles.
  const HyperbolicEntropyMap small(1e-305);
  PaddedMatrix w = row({1e305, -1e300, 1e-305});
  small.map(w.view(), w.view());
  EXPECT_NEAR(w.view().data[0], 610 * std::log(10.0) + std::log(2.0), 1e-12);
  small.inverse(w.view(), w.view());
  EXPECT_NEAR(w.view().data[0] / 1e305, 1, 1e-12);
  EXPECT_NEAR(w.view().data[1] / -1e300, 1, 1e-12);
  EXPECT_NEAR(w.view().data[2] / 1e-305, 1, 1e-15);
  // D(a, b) = a log(a / b) - a + b far out
  const double d = small.bregman(row({1e300}).view(), row({1e299}).view());
  EXPECT_NEAR(d / 1e300, std::log(10.0) - 0.9, 1e-14);
  const double far = small.bregman(row({1e300}).view(), row({1e-305}).view());
  EXPECT_NEAR(far / 1e300, 605 * std::log(10.0) + std::log(2.0) - std::asinh(1.0) - 1, 1e-11);
}

TEST(HyperbolicEntropyMap, LargeBetaIsGradientDescent) {
  const HyperbolicEntropyMap map(1e9);
  PaddedMatrix y(test::normal_matrix(3, 4, 1)), w(3, 4);
  y.view().eigen() *= 1e-9;
  map.inverse(y.view(), w.view());
  EXPECT_LE((w.view().eigen() - 1e9 * y.view().eigen()).cwiseAbs().maxCoeff(), 1e-15);
  EXPECT_EQ(HyperbolicEntropyMap(0.25).name(), "hyperbolic0.25");
}

TEST(HyperbolicEntropyMap, RefusesOtherBeta) {
  for (const double beta : {0.0, -1.0, HUGE_VAL, std::nan("")})
    expect_bad_input({"beta is", "greater than 0"}, [&] { HyperbolicEntropyMap map(beta); });
}

}  // namespace
}  // namespace attmirror
