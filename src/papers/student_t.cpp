#include "papers/student_t.hpp"

#include <attmirror/base/error.hpp>

#include <cmath>
#include <limits>
#include <numbers>

namespace attmirror {

namespace {

constexpr double unit = std::numeric_limits<double>::epsilon();

void check_freedom(double nu) {
  if (!(nu > 0)) throw bad_value("freedom", nu, "a positive number");
}

// Gamma(a + 1/2) / Gamma(a). Beyond 40 by its asymptotic series, whose next term is below one unit of the last place.
double half_step_ratio(double a) {
  if (a < 40) return std::tgamma(a + 0.5) / std::tgamma(a);
  const double r = 1 / a;
  const double series =
      1 +
      r * (-1. / 8 +
           r * (1. / 128 +
                r * (5. / 1024 + r * (-21. / 32768 +
                                      r * (-399. / 262144 + r * (869. / 4194304 + r * 39325. / 33554432))))));
  return std::sqrt(a) * series;
}

// The continued fraction of I_x(a, b) a B(a, b) / (x^a (1 - x)^b), for x < (a + 1) / (a + b + 2), by Lentz's method as
// Thompson and Barnett modified it. Every other coefficient is
//
//   d_2m+1 = -(a + m)(a + b + m) x / ((a + 2m)(a + 2m + 1)),   d_2m = m (b - m) x / ((a + 2m - 1)(a + 2m)).
double beta_fraction(double a, double b, double x) {
  constexpr double tiny = 1e-300;
  const auto away_from_zero = [](double value) { return std::abs(value) < tiny ? tiny : value; };
  double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), fraction = d;
  for (int m = 1; m < 100'000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double change = 1;
    for (const double coefficient : {even, odd}) {
      d = 1 / away_from_zero(1 + coefficient * d);
      c = away_from_zero(1 + coefficient / c);
      change = c * d;
      fraction *= change;
    }
    if (std::abs(change - 1) < unit) break;
  }
  return fraction;
}

// The density of T.
double student_density(double t, double nu) {
  const double peak = half_step_ratio(nu / 2) / std::sqrt(nu * std::numbers::pi);
  return peak * std::exp(-(nu + 1) / 2 * std::log1p(t * t / nu));
}

}  // namespace

double student_two_sided(double t, double nu) {
  check_freedom(nu);
  if (!(t >= 0)) throw bad_value("t", t, "a number from 0 on");
  if (std::isinf(nu)) return std::erfc(t / std::numbers::sqrt2);
  if (std::isinf(t)) return 0;
  const double a = nu / 2, square = t * t;
  if (std::isinf(square)) return 0;
  const double x = nu / (nu + square), y = square / (nu + square);
  // x^a (1 - x)^(1/2) / B(a, 1/2), where B = Gamma(a) Gamma(1/2) / Gamma(a + 1/2).
  const double front = half_step_ratio(a) / std::sqrt(std::numbers::pi) *
                       std::exp(-a * std::log1p(square / nu)) * std::sqrt(y);
  if (x < (a + 1) / (a + 2.5)) return front / a * beta_fraction(a, 0.5, x);
  return 1 - front / 0.5 * beta_fraction(0.5, a, y);
}

double student_quantile(double level, double nu) {
  check_freedom(nu);
  if (!(level > 0 && level < 1)) throw bad_value("level", level, "a number between 0 and 1");
  const double tail = 1 - level;
  double low = 0, high = 1;
  while (student_two_sided(high, nu) > tail) {
    low = high;
    high *= 2;
    if (std::isinf(high)) return high;
  }
  // Newton's steps, and halves of the bracket where they leave it.
  double t = low + (high - low) / 2;
  for (int i = 0; i < 200; ++i) {
    const double excess = student_two_sided(t, nu) - tail;
    (excess > 0 ? low : high) = t;
    const double slope =
        std::isinf(nu) ? std::exp(-t * t / 2) / std::sqrt(2 * std::numbers::pi) : student_density(t, nu);
    double next = t + excess / (2 * slope);
    if (!(next > low && next < high)) next = low + (high - low) / 2;
    if (std::abs(next - t) <= unit * t) return next;
    t = next;
  }
  return t;
}

}  // namespace attmirror
