#include "mirror/hyperbolic_entropy_map.hpp"

#include "mirror/entries.hpp"
#include <attmirror/base/error.hpp>

#include <cmath>
#include <numbers>

#include <fmt/format.h>

namespace attmirror {

namespace {

// asinh(w / beta), also where the quotient is not a double.
double dual_of(double w, double beta) {
  const double ratio = w / beta;
  if (std::isinf(ratio) && std::isfinite(w))
    return std::copysign(std::log(std::abs(w)) - std::log(beta) + std::numbers::ln2, w);
  return std::asinh(ratio);
}

// beta sinh(y), also where sinh(y) is not a double: a small beta brings back up to 745 of the exponent.
double primal_of(double y, double beta) {
  if (!(std::abs(y) > 700)) return beta * std::sinh(y);
  const double part = std::exp(std::abs(y) / 4);
  return std::copysign(beta * part * part * (0.5 * part) * part, y);
}

// asinh(a / beta) - asinh(b / beta). For equal signs the difference of two close numbers is avoided by
//
//   sinh(x - z) = sinh x cosh z - cosh x sinh z = (sinh^2 x - sinh^2 z) / (sinh x cosh z + cosh x sinh z)
//
// divided by cosh x cosh z, so that nothing overflows: a mean of 1/cosh x and 1/cosh z, times (a - b)/beta.
double dual_difference(double a, double b, double beta) {
  if ((a > 0) != (b > 0) || a == 0 || b == 0) return dual_of(a, beta) - dual_of(b, beta);
  const double x = std::abs(a / beta), z = std::abs(b / beta);
  if (x > 1e9 && z > 1e9)  // asinh is log(2 x) to all digits
    return std::copysign(1.0, a) * std::log1p((a - b) / b);
  if (std::isinf(x) || std::isinf(z)) return dual_of(a, beta) - dual_of(b, beta);  // far apart
  const double cosh_x = std::hypot(1.0, x), cosh_z = std::hypot(1.0, z);
  const double tanh_x = x / cosh_x, tanh_z = z / cosh_z;
  const double mean = (tanh_x / cosh_z + tanh_z / cosh_x) / (tanh_x + tanh_z);
  return std::asinh((a - b) / beta * mean);
}

// sinh(x) - x for |x| <= 1: x^3/3! + x^5/5! + ...
double sinh_minus(double x) {
  const double square = x * x;
  double term = x * square / 6, sum = 0;
  for (int k = 3; sum + term != sum; k += 2) {
    sum += term;
    term *= square / ((k + 1) * (k + 2));
  }
  return sum;
}

// With t = asinh(a/beta) - asinh(b/beta): D = a t - sqrt(a^2 + beta^2) + sqrt(b^2 + beta^2). Where t is small that
// cancels; the addition theorem of cosh for the last root gives
//
//   D = sqrt(a^2 + beta^2) (cosh t - 1) - a (sinh t - t)
//
// whose second term is at most t/3 times the first.
double bregman_entry(double a, double b, double beta) {
  if (a == b) return 0;
  const double t = dual_difference(a, b, beta);
  if (!(std::abs(t) <= 1)) return a * t - (std::hypot(a, beta) - std::hypot(b, beta));
  const double half = std::sinh(0.5 * t);
  return std::hypot(a, beta) * 2 * half * half - a * sinh_minus(t);
}

}  // namespace

void validate_beta(double beta) {
  if (!(beta > 0) || std::isinf(beta))
    throw bad_input(fmt::format("beta is {}: expected a finite number greater than 0", beta));
}

HyperbolicEntropyMap::HyperbolicEntropyMap(double beta) : beta_((validate_beta(beta), beta)) {}

std::string HyperbolicEntropyMap::name() const { return fmt::format("hyperbolic{}", beta_); }

// sqrt(w^2 + beta^2) - beta = w tanh(y / 2): no cancellation for small w.
double HyperbolicEntropyMap::potential(ConstMatrixView w) const {
  double sum = 0;
  for (std::ptrdiff_t j = 0; j < w.flat_size(); ++j) {
    const double y = dual_of(w.data[j], beta_);
    sum += w.data[j] * (y - std::tanh(0.5 * y));
  }
  return sum;
}

void HyperbolicEntropyMap::map(ConstMatrixView w, MatrixView y) const {
  for (std::ptrdiff_t j = 0; j < w.flat_size(); ++j) y.data[j] = dual_of(w.data[j], beta_);
}

void HyperbolicEntropyMap::inverse(ConstMatrixView y, MatrixView w) const {
  for (std::ptrdiff_t j = 0; j < y.flat_size(); ++j) w.data[j] = primal_of(y.data[j], beta_);
}

double HyperbolicEntropyMap::norm(ConstMatrixView w) const { return sum_abs(w); }

double HyperbolicEntropyMap::dual_norm(ConstMatrixView g) const { return max_abs(g); }

double HyperbolicEntropyMap::steepest(ConstMatrixView g, MatrixView d) const { return largest_entry(g, d); }

double HyperbolicEntropyMap::bregman(ConstMatrixView a, ConstMatrixView b) const {
  double sum = 0;
  for (std::ptrdiff_t i = 0; i < a.rows; ++i)
    for (std::ptrdiff_t j = 0; j < a.cols; ++j)
      sum += bregman_entry(a.data[i * a.stride + j], b.data[i * b.stride + j], beta_);
  return sum;
}

void HyperbolicEntropyMap::step(ConstMatrixView g, double scale, MatrixView y, MatrixView w) const {
  for (std::ptrdiff_t j = 0; j < g.flat_size(); ++j) {
    y.data[j] -= scale * g.data[j];
    w.data[j] = primal_of(y.data[j], beta_);
  }
}

}  // namespace attmirror
