#include <attmirror/mirror/lp_map.hpp>

#include <attmirror/base/error.hpp>
#include <attmirror/base/isa.hpp>

#include "mirror/power_kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

using kernels::Power;

namespace {

const kernels::PowerTable& power_table() {
  switch (active_isa()) {
    case Isa::avx512:
      return isa_avx512::power_table();
    case Isa::avx2:
      return isa_avx2::power_table();
    case Isa::sse2:
      break;
  }
  return isa_sse2::power_table();
}

const kernels::PowerKernels& kernels_for(const LpMap::Exponent& exponent) {
  return power_table().kernels[exponent.power];
}

LpMap::Exponent exponent(double value, Power power) { return {value, static_cast<int>(power)}; }

// The p with products and roots. A double such as 1.1 stands for the fraction it is nearest to, 11/10, so the
// exponents are those of the fraction: 1/(p - 1) = 10, not 9.99...91.
struct NamedGeometry {
  double p;
  LpMap::Exponent map, inverse, norm, dual;
};

const std::array<NamedGeometry, 7>& named_geometries() {
  static const std::array<NamedGeometry, 7> table{{
      {2.0, exponent(1, Power::one), exponent(1, Power::one), exponent(2, Power::two), exponent(2, Power::two)},
      {3.0, exponent(2, Power::two), exponent(0.5, Power::half), exponent(3, Power::three),
       exponent(1.5, Power::three_halves)},
      {1.5, exponent(0.5, Power::half), exponent(2, Power::two), exponent(1.5, Power::three_halves),
       exponent(3, Power::three)},
      {4.0 / 3.0, exponent(1.0 / 3.0, Power::third), exponent(3, Power::three),
       exponent(4.0 / 3.0, Power::four_thirds), exponent(4, Power::four)},
      {4.0, exponent(3, Power::three), exponent(1.0 / 3.0, Power::third), exponent(4, Power::four),
       exponent(4.0 / 3.0, Power::four_thirds)},
      {1.75, exponent(0.75, Power::three_quarters), exponent(4.0 / 3.0, Power::four_thirds),
       exponent(1.75, Power::seven_quarters), exponent(7.0 / 3.0, Power::seven_thirds)},
      // |w|^{1/10} has no short product of roots; the steps and the dual norm, which are hot, are whole powers.
      {1.1, exponent(0.1, Power::general), exponent(10, Power::ten), exponent(1.1, Power::general),
       exponent(11, Power::eleven)},
  }};
  return table;
}

// phi(r) = (|r|^p - 1)/p - (r - 1), the Bregman divergence of r from 1, to nearly full relative accuracy.
double bregman_from_one(double r, double minus_one, double p) {
  const double e = p - 1;
  if (r <= 0) return std::pow(-r, p) / p + e / p - r;
  if (std::abs(minus_one) * std::max(1.0, p) < 0.1) {
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

double bregman_entry(double a, double b, double p) {
  if (a == b) return 0;
  const double weight = std::pow(std::abs(b), p);
  const double ratio = a / b;
  if (weight == 0 || !std::isfinite(ratio)) return std::pow(std::abs(a), p) / p;
  return weight * bregman_from_one(ratio, (a - b) / b, p);
}

}  // namespace

void validate_p(double p) {
  if (!(p > 1) || std::isinf(p)) throw bad_input(fmt::format("p is {}: expected a finite number greater than 1", p));
}

LpMap::LpMap(double p, PowerPath path)
    : p_(p), map_{p - 1}, inverse_{1 / (p - 1)}, norm_{p}, dual_{p / (p - 1)} {
  validate_p(p);
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
  return kernels_for(norm_).sum_power(w.data, w.flat_size(), 1.0, norm_.value) / p_;
}

void LpMap::map(ConstMatrixView w, MatrixView y) const {
  kernels_for(map_).signed_power(w.data, y.data, w.flat_size(), map_.value);
}

void LpMap::inverse(ConstMatrixView y, MatrixView w) const {
  kernels_for(inverse_).signed_power(y.data, w.data, y.flat_size(), inverse_.value);
}

// (sum |w_j|^r)^{1/r} = 2^e (sum |2^-e w_j|^r)^{1/r} with max |2^-e w_j| in [1, 2): exact scaling, no overflow, and
// what underflows is too small to count.
double LpMap::scaled_norm(ConstMatrixView w, const Exponent& exponent) const {
  const double largest = power_table().max_abs(w.data, w.flat_size());
  if (largest == 0 || !std::isfinite(largest)) return largest;
  const int e = std::clamp(std::ilogb(largest), -1021, 1022);
  const double sum = kernels_for(exponent).sum_power(w.data, w.flat_size(), std::ldexp(1.0, -e), exponent.value);
  const double root = exponent.value == 2 ? std::sqrt(sum) : std::pow(sum, 1 / exponent.value);
  return std::ldexp(root, e);
}

double LpMap::norm(ConstMatrixView w) const { return scaled_norm(w, norm_); }
double LpMap::dual_norm(ConstMatrixView g) const { return scaled_norm(g, dual_); }

void LpMap::steepest(ConstMatrixView g, MatrixView d) const {
  const double norm = dual_norm(g);
  if (norm == 0) {
    std::fill_n(d.data, d.flat_size(), 0.0);
    return;
  }
  for (std::ptrdiff_t j = 0; j < g.flat_size(); ++j) d.data[j] = g.data[j] / norm;
  inverse(d, d);  // q - 1 = 1/(p - 1)
}

double LpMap::bregman(ConstMatrixView a, ConstMatrixView b) const {
  double sum = 0;
  for (std::ptrdiff_t i = 0; i < a.rows; ++i)
    for (std::ptrdiff_t j = 0; j < a.cols; ++j)
      sum += bregman_entry(a.data[i * a.stride + j], b.data[i * b.stride + j], p_);
  return sum;
}

void LpMap::step(ConstMatrixView g, double scale, MatrixView y, MatrixView w) const {
  kernels_for(inverse_).mirror_step(g.data, scale, y.data, w.data, g.flat_size(), inverse_.value);
}

}  // namespace attmirror
