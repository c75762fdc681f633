#include "mirror/chosen_kernels.hpp"
#include "mirror/lp_bregman.hpp"
#include "mirror/lp_norm.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/mirror/lp_map.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

using kernels::Power;

namespace {

const kernels::PowerKernels& kernels_for(const LpMap::Exponent& exponent) {
  return power_kernels().kernels[exponent.power];
}

kernels::Exponent kernel_exponent(const LpMap::Exponent& exponent) { return {exponent.value, exponent.rest}; }

// numerator / denominator, with the remainder of the division: value + rest is right to about 106 bits.
LpMap::Exponent fraction(double numerator, double denominator, Power power = Power::general) {
  const double value = numerator / denominator;
  return {value, std::fma(-value, denominator, numerator) / denominator, static_cast<int>(power)};
}

// The p with products and roots. A double such as 1.1 stands for the fraction it is nearest to, 11/10, so the
// exponents are those of the fraction: 1/(p - 1) = 10, not 9.99...91.
struct NamedGeometry {
  double p;
  LpMap::Exponent map, inverse, norm, dual;
};

const std::array<NamedGeometry, 7>& named_geometries() {
  static const std::array<NamedGeometry, 7> table{{
      {2.0, fraction(1, 1, Power::one), fraction(1, 1, Power::one), fraction(2, 1, Power::two),
       fraction(2, 1, Power::two)},
      {3.0, fraction(2, 1, Power::two), fraction(1, 2, Power::half), fraction(3, 1, Power::three),
       fraction(3, 2, Power::three_halves)},
      {1.5, fraction(1, 2, Power::half), fraction(2, 1, Power::two), fraction(3, 2, Power::three_halves),
       fraction(3, 1, Power::three)},
      {4.0 / 3.0, fraction(1, 3, Power::third), fraction(3, 1, Power::three),
       fraction(4, 3, Power::four_thirds), fraction(4, 1, Power::four)},
      {4.0, fraction(3, 1, Power::three), fraction(1, 3, Power::third), fraction(4, 1, Power::four),
       fraction(4, 3, Power::four_thirds)},
      {1.75, fraction(3, 4, Power::three_quarters), fraction(4, 3, Power::four_thirds),
       fraction(7, 4, Power::seven_quarters), fraction(7, 3, Power::seven_thirds)},
      // |w|^{1/10} has no short product of roots; the steps and the dual norm, which are hot, are whole powers.
      {1.1, fraction(1, 10), fraction(10, 1, Power::ten), fraction(11, 10), fraction(11, 1, Power::eleven)},
  }};
  return table;
}

// phi(r) = (|r|^p - 1)/p - (r - 1), the Bregman divergence of r from 1, to nearly full relative accuracy.
double bregman_from_one(double r, double minus_one, double p) {
  const double e = p - 1;
  if (r <= 0) return std::pow(-r, p) / p + e / p - r;
  if (std::abs(minus_one) * std::max(1.0, p) < 0.4) {
    // Near 1 the difference cancels: sum_{k >= 2} binomial(p, k) (r - 1)^k / p instead.
    double term = 0.5 * e * minus_one * minus_one, sum = 0;
    for (int k = 2; k < 60 && sum + term != sum; ++k) {
      sum += term;
      term *= (p - k) / (k + 1) * minus_one;
    }
    return sum;
  }
  // r^p = r + r expm1((p-1) log r) keeps the small factor p - 1 in front.
  return std::max(0.0, (r * std::expm1(e * std::log(r)) - e * minus_one) / p);
}

}  // namespace

double lp_bregman(double a, double b, double p) {
  if (a == b) return 0;
  const double weight = std::pow(std::abs(b), p);
  const double ratio = a / b;
  if (weight == 0 ||
      !(std::abs(ratio) < 1e3)) {  // b far smaller than a: no cancellation, but b^p may underflow
    const double slope = std::copysign(std::pow(std::abs(b), p - 1), b);
    return std::pow(std::abs(a), p) / p + (p - 1) / p * weight - slope * a;
  }
  return weight * bregman_from_one(ratio, (a - b) / b, p);
}

std::string_view to_string(PowerPath path) { return path == PowerPath::fast ? "fast" : "general"; }

PowerPath parse_power_path(std::string_view name) {
  if (name == "fast") return PowerPath::fast;
  if (name == "general") return PowerPath::general;
  throw bad_value("power_path", name, "fast or general");
}

void validate_p(double p) {
  if (!(p > 1) || std::isinf(p)) throw bad_value("p", p, "a finite number greater than 1");
}

LpMap::LpMap(double p, PowerPath path)
    : p_((validate_p(p), p)),
      map_(fraction(p - 1, 1)),  // p - 1 is exact
      inverse_(fraction(1, p - 1)),
      norm_(fraction(p, 1)),
      dual_(fraction(p, p - 1)) {
  for (const NamedGeometry& named : named_geometries()) {
    if (named.p != p) continue;
    map_ = named.map;
    inverse_ = named.inverse;
    norm_ = named.norm;
    dual_ = named.dual;
  }
  if (path == PowerPath::general) map_.power = inverse_.power = norm_.power = dual_.power = 0;
}

bool LpMap::is_fast() const { return inverse_.power != static_cast<int>(Power::general); }

std::string LpMap::name() const { return fmt::format("l{}", p_); }

double LpMap::potential(ConstMatrixView w) const {
  return kernels_for(norm_).sum_power(w.data, w.flat_size(), 1.0, kernel_exponent(norm_)) / p_;
}

void LpMap::map(ConstMatrixView w, MatrixView y) const {
  kernels_for(map_).signed_power(w.data, y.data, w.flat_size(), kernel_exponent(map_));
}

void LpMap::inverse(ConstMatrixView y, MatrixView w) const {
  kernels_for(inverse_).signed_power(y.data, w.data, y.flat_size(), kernel_exponent(inverse_));
}

double lp_root(double sum, const LpMap::Exponent& exponent) {
  return power_kernels().root(sum, 1 / exponent.value);
}

namespace {

// (sum |w_j|^r)^{1/r} = m (sum |w_j / m|^r)^{1/r} with m = max |w_j|: no power exceeds 1, and what underflows is too
// small to count.
double scaled_norm(ConstMatrixView w, const LpMap::Exponent& exponent) {
  const double largest = power_kernels().max_abs(w.data, w.flat_size());
  if (largest == 0 || !std::isfinite(largest)) return largest;
  if (largest < smallest_divisor) {  // 1/m would overflow for the smallest: lift them first, some at a time
    alignas(64) std::array<double, 256> lifted;
    double sum = 0;
    for (std::ptrdiff_t first = 0, size = 0; first < w.flat_size(); first += size) {
      size = std::min(w.flat_size() - first, static_cast<std::ptrdiff_t>(lifted.size()));
      for (std::ptrdiff_t j = 0; j < size; ++j)
        lifted[static_cast<std::size_t>(j)] = w.data[first + j] * 0x1p1000;
      sum += kernels_for(exponent).sum_power(lifted.data(), size, 1 / (largest * 0x1p1000),
                                             kernel_exponent(exponent));
    }
    return largest * lp_root(sum, exponent);
  }
  const double sum =
      kernels_for(exponent).sum_power(w.data, w.flat_size(), 1 / largest, kernel_exponent(exponent));
  return largest * lp_root(sum, exponent);
}

double norm_of(ConstMatrixView w, const LpMap::Exponent& exponent) {
  const double sum = kernels_for(exponent).sum_power(w.data, w.flat_size(), 1.0, kernel_exponent(exponent));
  return plain_sum_serves(sum) ? lp_root(sum, exponent) : scaled_norm(w, exponent);
}

}  // namespace

double LpMap::norm(ConstMatrixView w) const { return norm_of(w, norm_); }
double LpMap::dual_norm(ConstMatrixView g) const { return norm_of(g, dual_); }

double LpMap::steepest(ConstMatrixView g, MatrixView d) const {
  const double norm = dual_norm(g);
  if (norm == 0) {
    std::fill_n(d.data, d.flat_size(), 0.0);
    return 0;
  }
  for (std::ptrdiff_t j = 0; j < g.flat_size(); ++j) d.data[j] = g.data[j] / norm;
  inverse(d, d);  // q - 1 = 1/(p - 1)
  if (p_ < 2) {
    // That power enlarges the relative error of the norm 1/(p - 1) times, the same for all entries: it goes away again.
    // What is left moves <g, d> by second order only, because d is where <g, d> is largest.
    const double length = LpMap::norm(d);
    for (std::ptrdiff_t j = 0; j < d.flat_size(); ++j) d.data[j] /= length;
  }
  return norm;
}

double LpMap::bregman(ConstMatrixView a, ConstMatrixView b) const {
  double sum = 0;
  for (std::ptrdiff_t i = 0; i < a.rows; ++i)
    for (std::ptrdiff_t j = 0; j < a.cols; ++j)
      sum += lp_bregman(a.data[i * a.stride + j], b.data[i * b.stride + j], p_);
  return sum;
}

void LpMap::step(ConstMatrixView g, double scale, MatrixView y, MatrixView w) const {
  kernels_for(inverse_).mirror_step(g.data, scale, y.data, w.data, g.flat_size(), kernel_exponent(inverse_));
}

}  // namespace attmirror
