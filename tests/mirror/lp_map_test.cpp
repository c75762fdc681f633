// The l_p geometry: its identities hold for every p, on ordinary, tiny and huge numbers, on the fast and on
// the general path.
#include "mirror/matrices.hpp"
#include "support/files.hpp"
#include "support/special_numbers.hpp"
#include <attmirror/mirror/lp_map.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace attmirror {
namespace {

using test::dot;
using test::expect_bad_input;
using test::row;

const std::vector<double> map_exponents{1.01, 1.1, 1.25, 4.0 / 3.0, 1.5, 1.75, 2, 2.5, 3, 4, 7, 50};
const std::vector<double> fast_p{1.1, 4.0 / 3.0, 1.5, 1.75, 2, 3, 4};

// Finite entries over many orders of magnitude, zeros included.
std::vector<double> entries(double decades) {
  const int count = *rc::gen::inRange(1, 40);
  std::vector<double> result;
  for (int i = 0; i < count; ++i) {
    const double mantissa = 1.0 + *rc::gen::inRange(0, 1000) / 1000.0;
    const double exponent = decades * (*rc::gen::inRange(-1000, 1001) / 1000.0);
    const double sign = *rc::gen::element(-1.0, 0.0, 1.0, 1.0, -1.0);
    result.push_back(sign * mantissa * std::pow(10.0, exponent));
  }
  return result;
}

struct Case {
  double p;
  PowerPath path;
};

class LpMapOf : public ::testing::TestWithParam<Case> {
 protected:
  LpMap map{GetParam().p, GetParam().path};
};

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const double p : map_exponents)
    for (const PowerPath path : {PowerPath::fast, PowerPath::general}) result.push_back({p, path});
  return result;
}

INSTANTIATE_TEST_SUITE_P(Geometries, LpMapOf, ::testing::ValuesIn(cases()), [](const auto& geometry) {
  const std::string name = fmt::format("p{}", std::lround(geometry.param.p * 1000));
  return name + (geometry.param.path == PowerPath::fast ? "_fast" : "_general");
});

TEST_P(LpMapOf, MapAgreesWithLongDouble) {
  const std::vector<double> values{0.0, -0.0, 1e-30, -3e-7, 0.25, -0.9999, 1.0, 1.5, -42.0, 1e3};
  const PaddedMatrix w = row(values);
  PaddedMatrix y = w;
  map.map(w.view(), y.view());
  const long double exponent = GetParam().p == 1.1         ? 0.1L
                               : GetParam().p == 4.0 / 3.0 ? 1.0L / 3
                                                           : GetParam().p - 1;
  for (std::size_t j = 0; j < values.size(); ++j) {
    const long double expected =
        std::copysign(std::pow(std::abs(static_cast<long double>(values[j])), exponent),
                      static_cast<long double>(values[j]));
    EXPECT_NEAR(y.view().data[j], static_cast<double>(expected),
                4e-16 * std::abs(static_cast<double>(expected)) *
                        (1 + std::abs(std::log(std::abs(values[j]) + 1e-300)) * 0.02) +
                    5e-324)
        << values[j];
    EXPECT_EQ(std::signbit(y.view().data[j]), std::signbit(values[j])) << values[j];
  }
}

TEST_P(LpMapOf, InverseUndoesMap) {
  const double p = GetParam().p;
  // As far out as y = |w|^(p-1) is a normal number; a relative error of y comes back 1/(p-1) times as large.
  const double decades = std::min(300.0, 300.0 / std::max(p - 1, 1.0) - 0.31);
  const double tolerance = 4e-16 * std::max(1.0, 1 / (p - 1)) + 4e-16;
  EXPECT_TRUE(rc::check("inverse(map(w)) == w", [&] {
    const PaddedMatrix w = row(entries(decades));
    PaddedMatrix back = w;
    map.map(w.view(), back.view());
    map.inverse(back.view(), back.view());
    for (std::ptrdiff_t j = 0; j < w.view().cols; ++j) {
      const double a = w.view().data[j], b = back.view().data[j];
      RC_ASSERT(std::abs(a - b) <= tolerance * std::abs(a));
      RC_ASSERT(std::signbit(a) == std::signbit(b));
    }
  }));
}

TEST_P(LpMapOf, MapUndoesInverse) {
  const double p = GetParam().p;
  const double decades = std::min(300.0, 300.0 * std::min(p - 1, 1.0) - 0.31);
  const double tolerance = 4e-16 * std::max(1.0, p - 1) + 4e-16;
  EXPECT_TRUE(rc::check("map(inverse(y)) == y", [&] {
    const PaddedMatrix y = row(entries(decades));
    PaddedMatrix back = y;
    map.inverse(y.view(), back.view());
    map.map(back.view(), back.view());
    for (std::ptrdiff_t j = 0; j < y.view().cols; ++j)
      RC_ASSERT(std::abs(y.view().data[j] - back.view().data[j]) <= tolerance * std::abs(y.view().data[j]));
  }));
}

TEST_P(LpMapOf, KeepsDenormalsZerosAndInfinities) {
  const double tiny = std::numeric_limits<double>::denorm_min();
  PaddedMatrix w = row(
      {0.0, -0.0, test::infinity, -test::infinity, tiny, -tiny, std::numeric_limits<double>::quiet_NaN()});
  map.map(w.view(), w.view());
  const double* y = w.view().data;
  EXPECT_EQ(y[0], 0.0);
  EXPECT_FALSE(std::signbit(y[0]));
  EXPECT_TRUE(y[1] == 0.0 && std::signbit(y[1]));
  EXPECT_EQ(y[2], test::infinity);
  EXPECT_EQ(y[3], -test::infinity);
  const double expected = std::pow(tiny, GetParam().p - 1);
  EXPECT_NEAR(y[4], expected, 1e-12 * expected);
  EXPECT_EQ(y[5], -y[4]);
  EXPECT_TRUE(std::isnan(y[6]));
}

TEST_P(LpMapOf, NormsOfHugeAndTinyVectors) {
  for (const double scale : {1e-320, 1e-300, 1e-150, 1.0, 1e150, 1e300}) {
    const PaddedMatrix w = row({3 * scale, -4 * scale, 0, 1 * scale});
    const long double p = GetParam().p, q = p / (p - 1);
    const auto norm = [](long double r) {
      return std::pow(std::pow(0.75L, r) + 1 + std::pow(0.25L, r), 1 / r) * 4;
    };
    const double rounding = scale < 1e-310 ? 1e-3 : 1e-15;  // denormal entries have few digits
    EXPECT_NEAR(map.norm(w.view()) / scale, static_cast<double>(norm(p)), 5 * rounding * 4) << scale;
    EXPECT_NEAR(map.dual_norm(w.view()) / scale, static_cast<double>(norm(q)), 5 * rounding * 4) << scale;
  }
  EXPECT_EQ(map.norm(row({0, -0.0}).view()), 0.0);
  EXPECT_TRUE(std::isnan(map.norm(row({1, std::nan(""), 2}).view())));
  EXPECT_TRUE(std::isinf(map.norm(row({1, -INFINITY, 2}).view())));
}

TEST_P(LpMapOf, SteepestDirectionAttainsTheDualNorm) {
  EXPECT_TRUE(rc::check("<g, d> == ||g||_q and ||d||_p == 1", [&] {
    const PaddedMatrix g = row(entries(6));
    PaddedMatrix d = g;
    map.steepest(g.view(), d.view());
    const double dual = map.dual_norm(g.view());
    if (dual == 0) {
      RC_ASSERT(d.view().eigen().isZero(0));
      return;
    }
    const double amplify = std::max(1.0, 1 / (GetParam().p - 1));
    RC_ASSERT(std::abs(map.norm(d.view()) - 1) <= 1e-14 * amplify);
    RC_ASSERT(std::abs(dot(g, d) - dual) <= 1e-14 * amplify * dual);
  }));
}

TEST_P(LpMapOf, BregmanIsNonNegativeAndZeroOnlyAtEquality) {
  EXPECT_TRUE(rc::check("D(a, b) >= 0", [&] {
    const std::vector<double> values = entries(3);
    const PaddedMatrix a = row(values);
    RC_ASSERT(map.bregman(a.view(), a.view()) == 0);
    std::vector<double> moved = values;
    for (double& x : moved) x += *rc::gen::inRange(-100, 101) * 1e-3 * (std::abs(x) + 0.1);
    const PaddedMatrix b = row(moved);
    const double d = map.bregman(a.view(), b.view());
    RC_ASSERT(d >= 0);
    RC_ASSERT((d > 0) == (values != moved));
  }));
}

TEST_P(LpMapOf, BregmanMatchesItsDefinitionInLongDouble) {
  EXPECT_TRUE(rc::check("D(a, b) == psi(a) - psi(b) - <grad psi(b), a - b>", [&] {
    const long double p = GetParam().p;
    const double a = entries(1).front(), b = entries(1).front();
    const auto psi = [&](long double w) { return std::pow(std::abs(w), p) / p; };
    const long double slope = std::copysign(std::pow(std::abs(static_cast<long double>(b)), p - 1), b);
    const long double expected = psi(a) - psi(b) - slope * (static_cast<long double>(a) - b);
    const long double size = psi(a) + psi(b) + std::abs(slope * (static_cast<long double>(a) - b));
    const double d = map.bregman(row({a}).view(), row({b}).view());
    RC_ASSERT(std::abs(d - expected) <= 1e-17L * size + 1e-14L * std::max(10.0L, p) * std::abs(expected));
  }));
}

// D(a, c) = D(a, b) + D(b, c) + <grad psi(b) - grad psi(c), a - b>
TEST_P(LpMapOf, ThreePointIdentity) {
  EXPECT_TRUE(rc::check("three-point identity", [&] {
    const std::vector<double> base = entries(1);
    const auto jittered = [&] {
      std::vector<double> values = base;
      for (double& x : values) x += *rc::gen::inRange(-1000, 1001) * 1e-3;
      return row(values);
    };
    const PaddedMatrix a = jittered(), b = jittered(), c = jittered();
    PaddedMatrix yb = b, yc = c;
    map.map(b.view(), yb.view());
    map.map(c.view(), yc.view());
    const double cross =
        (yb.view().eigen() - yc.view().eigen()).cwiseProduct(a.view().eigen() - b.view().eigen()).sum();
    const double left = map.bregman(a.view(), c.view());
    const double ab = map.bregman(a.view(), b.view()), bc = map.bregman(b.view(), c.view());
    const double size = left + ab + bc + std::abs(cross) + yb.view().eigen().cwiseAbs().sum() +
                        yc.view().eigen().cwiseAbs().sum();
    RC_ASSERT(std::abs(left - (ab + bc + cross)) <= 1e-12 * size);
  }));
}

TEST_P(LpMapOf, StepIsMapSubtractInverse) {
  EXPECT_TRUE(rc::check("step", [&] {
    const std::vector<double> values = entries(2);
    std::vector<double> slopes = entries(2);
    slopes.resize(values.size(), 0.5);
    const PaddedMatrix g = row(slopes);
    PaddedMatrix y = row(values), w = y;
    map.step(g.view(), 0.1, y.view(), w.view());
    PaddedMatrix expected = y;
    map.inverse(y.view(), expected.view());
    for (std::ptrdiff_t j = 0; j < y.view().cols; ++j) {
      const double plain = values[static_cast<std::size_t>(j)] - 0.1 * slopes[static_cast<std::size_t>(j)];
      RC_ASSERT(std::abs(y.view().data[j] - plain) <=
                2.3e-16 * (std::abs(values[static_cast<std::size_t>(j)]) + std::abs(plain)));
      RC_ASSERT(w.view().data[j] == expected.view().data[j]);
    }
  }));
}

TEST(LpMap, FastAndGeneralPathsAgree) {
  for (const double p : fast_p) {
    const LpMap fast(p), general(p, PowerPath::general);
    EXPECT_TRUE(fast.is_fast());
    EXPECT_FALSE(general.is_fast());
    EXPECT_TRUE(rc::check("fast == general to a few ulp", [&] {
      const PaddedMatrix w = row(entries(8));
      PaddedMatrix a = w, b = w;
      const auto same = [&] {
        for (std::ptrdiff_t j = 0; j < w.view().cols; ++j)
          RC_ASSERT(std::abs(a.view().data[j] - b.view().data[j]) <= 2.5e-15 * std::abs(a.view().data[j]));
      };
      fast.map(w.view(), a.view());
      general.map(w.view(), b.view());
      same();
      fast.inverse(w.view(), a.view());
      general.inverse(w.view(), b.view());
      same();
      RC_ASSERT(std::abs(fast.norm(w.view()) - general.norm(w.view())) <= 4e-15 * fast.norm(w.view()));
      RC_ASSERT(std::abs(fast.dual_norm(w.view()) - general.dual_norm(w.view())) <=
                4e-15 * fast.dual_norm(w.view()));
    }));
  }
}

TEST(LpMap, NormsAndDivergencesFarFromTwo) {
  // q = 2001, 10001: powers of anything above 1 overflow.
  for (const double p : {1.0005, 1.0001, 5000.0}) {
    const LpMap map(p);
    const PaddedMatrix w = row({1.99, -1.5, 0.25});
    for (const double norm : {map.norm(w.view()), map.dual_norm(w.view())}) {
      EXPECT_GE(norm, 1.99 * (1 - 1e-12));
      EXPECT_LE(norm, 3.74 * (1 + 1e-12));
    }
  }
  // b far smaller than a: D = |a|^p/p + (p-1)/p |b|^p - |b|^{p-1} a.
  for (const double p : {1.01, 1.1, 1.6})
    for (const double b : {1e-310, 1e-306, 1e-285, 1e-200, 1e-195, 1e-30, 1e-5, 1e-3}) {
      const double d = LpMap(p).bregman(row({1.0}).view(), row({b}).view());
      const double expected = 1 / p + (p - 1) / p * std::pow(b, p) - std::pow(b, p - 1);
      EXPECT_NEAR(d, expected, 1e-12) << p << " " << b;
    }
}

// A double such as 1.1 stands for the fraction it is nearest to.
TEST(LpMap, ExponentsAreThoseOfTheFraction) {
  EXPECT_EQ(LpMap(1.1).q(), 11.0);
  EXPECT_EQ(LpMap(1.75).q(), 7.0 / 3.0);
  EXPECT_EQ(LpMap(4.0 / 3.0).q(), 4.0);
  EXPECT_EQ(LpMap(2).name(), "l2");
  EXPECT_EQ(LpMap(1.75).name(), "l1.75");
}

TEST(LpMap, RefusesOtherP) {
  for (const double p : {1.0, 0.9, 0.0, -2.0})
    expect_bad_input({"p is", "greater than 1"}, [&] { LpMap map(p); });
  expect_bad_input({"p is nan"}, [] { LpMap map(std::nan("")); });
  expect_bad_input({"p is inf"}, [] { LpMap map(INFINITY); });
}

}  // namespace
}  // namespace attmirror
