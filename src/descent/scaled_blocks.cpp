#include "descent/scaled_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace attmirror {

namespace {

// Between 2^-200 and 2^200 entries have 800 binary orders to both sides before anything over- or underflows.
constexpr int widest_exponent = 200;
constexpr double widest_shift = widest_exponent * std::numbers::ln2;

double largest_entry(std::initializer_list<MatrixView> arrays) {
  double largest = 0;
  for (const MatrixView& array : arrays)
    for (std::ptrdiff_t j = 0; j < array.flat_size(); ++j)
      largest = std::max(largest, std::abs(array.data[j]));
  return largest;
}

void multiply(std::initializer_list<MatrixView> arrays, double factor) {
  for (const MatrixView& array : arrays)
    for (std::ptrdiff_t j = 0; j < array.flat_size(); ++j) array.data[j] *= factor;
}

}  // namespace

double align_scale(const ScaledBlock& gradient, double& a, std::initializer_list<MatrixView> average) {
  const double s = gradient.log_scale;
  if (s == a) return 1;
  if (!std::isfinite(s)) return std::exp(s - a);  // -inf: a gradient of 0
  if (s > a + widest_shift) {
    multiply(average, std::exp(a - s));
    a = s;
    return 1;
  }
  // An average of 0 has any scale; this is asked only where the scales differ much, which is rare.
  if (s < a - widest_shift && largest_entry(average) == 0) {
    a = s;
    return 1;
  }
  return std::exp(s - a);
}

void recenter(double& a, std::initializer_list<MatrixView> average) {
  const double largest = largest_entry(average);
  if (largest == 0 || !std::isfinite(largest)) return;
  const int exponent = std::ilogb(largest);
  if (std::abs(exponent) <= widest_exponent) return;
  // In two steps: 2^1000 and more cannot be one factor.
  const int half = exponent / 2;
  multiply(average, std::ldexp(1.0, -half));
  multiply(average, std::ldexp(1.0, half - exponent));
  a += exponent * std::numbers::ln2;
}

}  // namespace attmirror
