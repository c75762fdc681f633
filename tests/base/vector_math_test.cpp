// Holds each function of vector_math.hpp to the bound in its doc comment, with MPFR as the yardstick.
//
// The program runs once per instruction set; the bounds are the same for all of them. Arguments are random but fixed:
// all exponents, the neighbourhoods where a function is near 0 or 1 or leaves the range of doubles.
#include "base/vector_math.hpp"

#include "base/dispatch.hpp"
#include "base/vector_math_kernels.hpp"
#include "support/same_bits.hpp"
#include <attmirror/base/error.hpp>

// The header for kernels, in its build for the instruction set that every processor has.
#define ATTMIRROR_ISA isa_sse2
#define ATTMIRROR_ISA_sse2 1
#include "base/vector_math_inline.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <mpfr.h>

namespace attmirror {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double tiny = std::numeric_limits<double>::denorm_min();
constexpr double smallest = std::numeric_limits<double>::min();
constexpr double largest = std::numeric_limits<double>::max();

using ArrayFunction = std::function<void(std::span<const double>, std::span<double>)>;

std::vector<double> results_of(const ArrayFunction& function, const std::vector<double>& in) {
  std::vector<double> out(in.size(), 12345.0);
  function(in, out);
  return out;
}

ArrayFunction power(double r) {
  return [r](std::span<const double> in, std::span<double> out) { vpow(in, r, out); };
}

// A number of 160 bits: its own rounding is below 1e-30 ulp of a double.
class BigFloat {
 public:
  explicit BigFloat(double x = 0.0) {
    mpfr_init2(value_, 160);
    mpfr_set_d(value_, x, MPFR_RNDN);
  }
  BigFloat(const BigFloat&) = delete;
  BigFloat& operator=(const BigFloat&) = delete;
  ~BigFloat() { mpfr_clear(value_); }
  mpfr_ptr get() { return value_; }

 private:
  mpfr_t value_;
};

// |got - exact| in ulps of the exact value (of the smallest normal number where it is denormal).
double ulp_error(double got, BigFloat& exact) {
  const double rounded = mpfr_get_d(exact.get(), MPFR_RNDN);
  if (std::isnan(got) || std::isnan(rounded)) return std::isnan(got) == std::isnan(rounded) ? 0.0 : inf;
  if (std::isinf(got) || std::isinf(rounded)) return got == rounded ? 0.0 : inf;
  const double truncated = std::abs(mpfr_get_d(exact.get(), MPFR_RNDZ));
  const int exponent = truncated < smallest ? -1074 : std::ilogb(truncated) - 52;
  BigFloat difference;
  mpfr_sub_d(difference.get(), exact.get(), got, MPFR_RNDN);
  mpfr_mul_2si(difference.get(), difference.get(), -exponent, MPFR_RNDN);
  return std::abs(mpfr_get_d(difference.get(), MPFR_RNDN));
}

using Exact = std::function<void(mpfr_ptr result, mpfr_srcptr x)>;

struct Bound {
  double normal;    // ulps where the exact result is a normal number
  double denormal;  // ulps where it is below
};

void expect_bound(const ArrayFunction& function, const Exact& exact, const std::vector<double>& in,
                  Bound bound) {
  const std::vector<double> out = results_of(function, in);
  double worst_excess = -inf, worst = 0, worst_in = 0, worst_out = 0;
  BigFloat x, result;
  for (std::size_t i = 0; i < in.size(); ++i) {
    mpfr_set_d(x.get(), in[i], MPFR_RNDN);
    exact(result.get(), x.get());
    const double error = ulp_error(out[i], result);
    const bool is_denormal = std::abs(mpfr_get_d(result.get(), MPFR_RNDA)) < smallest;
    const double excess = error - (is_denormal ? bound.denormal : bound.normal);
    if (!(excess <= worst_excess)) worst_excess = excess, worst = error, worst_in = in[i], worst_out = out[i];
  }
  EXPECT_LE(worst_excess, 0.0) << std::hexfloat << "f(" << worst_in << ") = " << worst_out
                               << std::defaultfloat << " is off by " << worst << " ulp";
}

// Arguments for the tests; the same in each run.
class Arguments {
 public:
  double uniform(double a, double b) { return std::uniform_real_distribution<double>(a, b)(engine_); }
  // Any positive finite double, all exponents alike, denormals included.
  double any_positive() { return std::bit_cast<double>(engine_() % std::bit_cast<std::uint64_t>(inf)); }
  // x in (-1, 1) with all exponents from 2^-60 on alike.
  double near_zero() { return std::ldexp(uniform(-1, 1), -static_cast<int>(engine_() % 60)); }
  double denormal() { return std::bit_cast<double>(engine_() >> 12); }
  template <class Draw>
  void append(std::size_t count, Draw draw) {
    for (std::size_t i = 0; i < count; ++i) values.push_back(draw());
  }
  std::vector<double> values;

 private:
  std::mt19937_64 engine_{20240229};
};

TEST(VectorMath, ExpIsWithinItsBound) {
  Arguments a;
  a.append(60000, [&] { return a.uniform(-746, 710); });
  a.append(60000, [&] { return a.uniform(-40, 3); });
  a.append(40000, [&] { return a.near_zero(); });
  a.append(20000, [&] { return a.uniform(-746, -708); });
  a.append(10000, [&] { return a.uniform(709.7, 709.8); });
  a.append(10000, [&] { return a.any_positive() * -1.0; });
  for (double x :
       {709.782712893384, 709.7827128933841, -745.1332191019411, -745.1332191019412, -708.3964185322641})
    for (double y : {x, std::nextafter(x, -inf), std::nextafter(x, inf)}) a.values.push_back(y);
  expect_bound(vexp, [](mpfr_ptr y, mpfr_srcptr x) { mpfr_exp(y, x, MPFR_RNDN); }, a.values, {0.7, 0.85});
}

// The exponential of kernels that need no more: behind no public function.
void exp_of_term(std::span<const double> in, std::span<double> out) {
  choose_kernels<isa_sse2::vector_math_kernels, isa_avx2::vector_math_kernels,
                 isa_avx512::vector_math_kernels>()
      .exp_of_term(in.data(), out.data(), std::ssize(in));
}

TEST(VectorMath, ExpOfATermIsWithinItsBound) {
  Arguments a;
  a.append(60000, [&] { return a.uniform(-708, 700); });
  a.append(60000, [&] { return a.uniform(-40, 3); });
  a.append(40000, [&] { return a.near_zero(); });
  expect_bound(exp_of_term, [](mpfr_ptr y, mpfr_srcptr x) { mpfr_exp(y, x, MPFR_RNDN); }, a.values,
               {1.6, 1.6});
  const auto y = results_of(exp_of_term, {0.0, -inf, -1e300, nan});
  EXPECT_EQ(y[0], 1.0);
  EXPECT_LT(y[1], 1e-307);
  EXPECT_EQ(y[1], y[2]);
  EXPECT_TRUE(std::isnan(y[3]));
}

TEST(VectorMath, ExpOfSpecialValues) {
  const auto y = results_of(vexp, {0.0, -0.0, tiny, -tiny, -inf, inf, 710.0, largest, -746.0, -largest, nan});
  EXPECT_EQ(y[0], 1.0);
  EXPECT_EQ(y[1], 1.0);
  EXPECT_EQ(y[2], 1.0);
  EXPECT_EQ(y[3], 1.0);
  EXPECT_EQ(y[4], 0.0);
  EXPECT_EQ(y[5], inf);
  EXPECT_EQ(y[6], inf);
  EXPECT_EQ(y[7], inf);
  EXPECT_EQ(y[8], 0.0);
  EXPECT_EQ(y[9], 0.0);
  EXPECT_TRUE(std::isnan(y[10]));
}

TEST(VectorMath, LogIsWithinItsBound) {
  Arguments a;
  a.append(80000, [&] { return a.any_positive(); });
  a.append(60000, [&] { return a.uniform(0.5, 2.1); });
  a.append(40000, [&] { return 1.0 + a.near_zero(); });
  a.append(20000, [&] { return a.denormal(); });
  for (double x : {1.0, 0.5, std::sqrt(0.5), std::sqrt(2.0), smallest, largest, tiny})
    for (double y : {x, std::nextafter(x, 0.0), std::nextafter(x, 4.0)}) a.values.push_back(y);
  std::erase(a.values, 0.0);
  expect_bound(vlog, [](mpfr_ptr y, mpfr_srcptr x) { mpfr_log(y, x, MPFR_RNDN); }, a.values, {0.95, 0.95});
}

TEST(VectorMath, LogOfSpecialValues) {
  const auto y = results_of(vlog, {0.0, -0.0, 1.0, inf, -1.0, -tiny, -inf, nan});
  EXPECT_EQ(y[0], -inf);
  EXPECT_EQ(y[1], -inf);
  EXPECT_EQ(y[2], 0.0);
  EXPECT_FALSE(std::signbit(y[2]));
  EXPECT_EQ(y[3], inf);
  for (std::size_t i = 4; i < y.size(); ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
}

TEST(VectorMath, Log1pIsWithinItsBound) {
  Arguments a;
  a.append(70000, [&] { return a.any_positive(); });
  a.append(70000, [&] { return a.uniform(0.0, 4.0); });
  a.append(60000, [&] { return std::abs(a.near_zero()); });
  for (double x : {1.0, std::sqrt(2.0) - 1.0, 0x1p53, 0x1p54, 0x1p60, smallest, largest, tiny})
    for (double y : {x, std::nextafter(x, 0.0), std::nextafter(x, inf)}) a.values.push_back(y);
  std::erase(a.values, inf);
  expect_bound(vlog1p, [](mpfr_ptr y, mpfr_srcptr x) { mpfr_log1p(y, x, MPFR_RNDN); }, a.values,
               {0.95, 0.95});
}

TEST(VectorMath, Log1pOfSpecialValues) {
  const auto y = results_of(vlog1p, {0.0, tiny, 1e-300, inf, nan});
  EXPECT_EQ(y[0], 0.0);
  EXPECT_EQ(y[1], tiny);
  EXPECT_EQ(y[2], 1e-300);
  EXPECT_EQ(y[3], inf);
  EXPECT_TRUE(std::isnan(y[4]));
}

TEST(VectorMath, PowIsWithinItsBound) {
  for (double magnitude :
       {0.01, 0.1, 1 / 3., 0.5, 0.75, 1.1, 4 / 3., 1.5, 2., 3., 10., 11., 50., 100., 1000., 1e6})
    for (double r : {magnitude, -magnitude}) {
      Arguments a;
      a.append(2500, [&] { return a.any_positive(); });
      a.append(2000, [&] { return a.uniform(0.0, 3.0); });
      a.append(1000, [&] { return -(1.0 + a.near_zero()); });
      // Results of every size, and those that just leave the range of (normal) numbers.
      const auto root_of = [&](double from, double to) { return std::exp(a.uniform(from, to) / r); };
      a.append(2500, [&] { return root_of(-745, 710); });
      a.append(500, [&] { return root_of(-746, -708); });
      a.append(500, [&] { return root_of(709.7, 709.8); });
      a.append(500, [&] { return a.denormal(); });
      std::erase_if(a.values, [](double x) { return x == 0.0 || !std::isfinite(x); });
      SCOPED_TRACE(r);
      const BigFloat exponent(r);
      const Exact exact = [&](mpfr_ptr y, mpfr_srcptr x) {
        mpfr_abs(y, x, MPFR_RNDN);
        mpfr_pow(y, y, const_cast<BigFloat&>(exponent).get(), MPFR_RNDN);
      };
      expect_bound(power(r), exact, a.values, magnitude <= 100 ? Bound{0.75, 0.85} : Bound{1.0, 1.1});
    }
}

TEST(VectorMath, PowOfSpecialValuesFollowsC) {
  const std::vector<double> x = {0.0, tiny, smallest, 0.5, 1.0, 2.0, largest, inf, nan};
  for (double r : {0.0, -0.0, 1.0, 0.1, 10.0, 1e300, largest, tiny, -tiny, -0.1, -10.0, -1e300}) {
    const auto y = results_of(power(r), x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = std::pow(x[i], r);
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(y[i])) << x[i] << "^" << r;
      else
        EXPECT_TRUE(y[i] == expected || std::abs(y[i] / expected - 1.0) < 1e-15)
            << x[i] << "^" << r << " = " << y[i];
    }
    EXPECT_EQ(y[4], 1.0) << r;  // 1^r
    const auto of_negative = results_of(power(r), {-0.0, -0.5, -2.0, -inf});
    EXPECT_EQ(of_negative, (std::vector<double>{y[0], y[3], y[5], y[7]})) << r;
  }
}

TEST(VectorMath, SqrtIsCorrectlyRounded) {
  Arguments a;
  a.append(50000, [&] { return a.any_positive(); });
  for (double x : {0.0, 1.0, 4.0, smallest, tiny, largest, inf}) a.values.push_back(x);
  expect_bound(vsqrt, [](mpfr_ptr y, mpfr_srcptr x) { mpfr_sqrt(y, x, MPFR_RNDN); }, a.values, {0.5, 0.5});
  const auto y = results_of(vsqrt, {-0.0, -1.0, -inf, nan});
  EXPECT_TRUE(y[0] == 0.0 && std::signbit(y[0]));
  for (std::size_t i = 1; i < y.size(); ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
}

TEST(VectorMath, CbrtIsWithinItsBound) {
  Arguments a;
  a.append(80000, [&] { return a.any_positive(); });
  a.append(40000, [&] { return -a.any_positive(); });
  a.append(60000, [&] { return a.uniform(0.5, 8.5); });
  a.append(20000, [&] { return -a.denormal(); });
  for (double x : {1.0, 2.0, 4.0, 8.0, smallest, largest, tiny})
    for (double y : {x, std::nextafter(x, 0.0), std::nextafter(x, 9.0)}) a.values.push_back(y);
  expect_bound(vcbrt, [](mpfr_ptr y, mpfr_srcptr x) { mpfr_cbrt(y, x, MPFR_RNDN); }, a.values,
               {0.501, 0.501});
}

TEST(VectorMath, CbrtOfCubesAndSpecialValues) {
  std::vector<double> cubes, roots;
  for (int i = -200; i <= 200; ++i) roots.push_back(i), cubes.push_back(double(i) * i * i);
  EXPECT_EQ(results_of(vcbrt, cubes), roots);
  const auto y = results_of(vcbrt, {0.0, -0.0, inf, -inf, nan, 0x1p-1074});
  EXPECT_TRUE(y[0] == 0.0 && !std::signbit(y[0]));
  EXPECT_TRUE(y[1] == 0.0 && std::signbit(y[1]));
  EXPECT_EQ(y[2], inf);
  EXPECT_EQ(y[3], -inf);
  EXPECT_TRUE(std::isnan(y[4]));
  EXPECT_EQ(y[5], 0x1p-358);
}

// The result of a value has the same bits wherever it stands: arrays of n elements send their last n mod 8
// elements through narrower vectors and single doubles, and rare values next to a value must not change its
// path's result.
TEST(VectorMath, ResultsDoNotDependOnPositionLengthOrNeighbours) {
  Arguments a;
  a.append(40, [&] { return a.uniform(-5.0, 5.0); });
  a.append(20, [&] { return a.any_positive(); });
  a.append(8, [&] { return a.denormal(); });
  for (double x : {0.0, -0.0, 1.0, inf, -inf, nan, smallest, largest, -745.0, -710.0, 710.0, tiny})
    a.values.push_back(x);
  std::shuffle(a.values.begin(), a.values.end(), std::mt19937_64{7});
  const std::size_t size = a.values.size();

  const std::vector<ArrayFunction> functions = {vexp,      vlog,        vlog1p,      vsqrt,
                                                vcbrt,     power(0.1),  power(1.1),  power(2.0),
                                                power(10), power(-0.5), power(-11.0)};
  for (std::size_t f = 0; f < functions.size(); ++f) {
    SCOPED_TRACE(f);
    std::vector<double> alone(size);
    for (std::size_t i = 0; i < size; ++i)
      functions[f](std::span(a.values).subspan(i, 1), std::span(alone).subspan(i, 1));
    for (std::size_t length = 0; length <= 24; ++length)
      for (std::size_t begin = 0; begin + length <= size; begin += 5) {
        std::vector<double> out(length + 1, 4711.0);
        functions[f](std::span<const double>(a.values).subspan(begin, length), std::span(out).first(length));
        EXPECT_EQ(out[length], 4711.0) << "written past the end, length " << length;
        for (std::size_t i = 0; i < length; ++i) {
          if (std::isnan(alone[begin + i]) && std::isnan(out[i])) continue;
          EXPECT_TRUE(test::same_bits(out[i], alone[begin + i]))
              << "x = " << a.values[begin + i] << " at " << i << " of " << length;
        }
      }
  }
}

TEST(VectorMath, WorksInPlace) {
  std::vector<double> values = {-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0};
  const std::vector<double> expected = results_of(vexp, values);
  vexp(values, values);
  EXPECT_EQ(values, expected);
}

TEST(VectorMath, RefusesArraysOfDifferentLengthAndInfiniteExponents) {
  std::vector<double> three(3, 1.0), four(4, 1.0);
  EXPECT_THROW(vexp(three, four), Error);
  EXPECT_THROW(vpow(four, 2.0, three), Error);
  EXPECT_THROW(vpow(three, inf, three), Error);
  EXPECT_THROW(vpow(three, nan, three), Error);
}

TEST(VectorMath, IntegerPowerIsWithinItsBound) {
  Arguments a;
  a.append(2000, [&] { return a.uniform(-30.0, 30.0); });
  for (unsigned n : {0u, 1u, 2u, 3u, 4u, 5u, 10u, 11u, 20u}) {
    BigFloat x, exact;
    for (double value : a.values) {
      mpfr_set_d(x.get(), value, MPFR_RNDN);
      mpfr_pow_ui(exact.get(), x.get(), n, MPFR_RNDN);
      const double got = isa_sse2::integer_power(value, n);
      mpfr_d_div(exact.get(), got, exact.get(), MPFR_RNDN);
      mpfr_sub_ui(exact.get(), exact.get(), 1, MPFR_RNDN);
      ASSERT_LE(std::abs(mpfr_get_d(exact.get(), MPFR_RNDN)), (n > 1 ? n - 1 : 0) * 0x1p-53)
          << value << "^" << n;
    }
  }
}

}  // namespace
}  // namespace attmirror
