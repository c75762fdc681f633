#include "mirror/entries.hpp"

#include "mirror/chosen_kernels.hpp"

#include <algorithm>
#include <cmath>

namespace attmirror {

namespace {}  // namespace

double max_abs(ConstMatrixView w) { return power_kernels().max_abs(w.data, w.flat_size()); }

double sum_abs(ConstMatrixView w) {
  return power_kernels().kernels[static_cast<int>(kernels::Power::one)].sum_power(w.data, w.flat_size(), 1.0,
                                                                                  {});
}

double largest_entry(ConstMatrixView g, MatrixView d) {
  const double largest = max_abs(g);
  if (largest == 0 || !std::isfinite(largest)) {
    fill_entries(d, largest == 0 ? 0.0 : std::nan(""));
    return largest;
  }
  const double* place =
      std::find_if(g.data, g.data + g.flat_size(), [=](double x) { return std::abs(x) == largest; });
  const std::ptrdiff_t best = place - g.data;
  const double sign = std::copysign(1.0, *place);
  fill_entries(d, 0.0);
  d.data[best] = sign;
  return largest;
}

int scale_exponent(double largest) {
  if (largest == 0 || !std::isfinite(largest)) return 0;
  int exponent = 0;
  std::frexp(largest, &exponent);
  return exponent;
}

void scale_by_power(ConstMatrixView in, int exponent, MatrixView out) {
  // Two factors, because 2^1074, which lifts the smallest number to 1, is not a double.
  const double first = std::ldexp(1.0, exponent / 2), second = std::ldexp(1.0, exponent - exponent / 2);
  for (std::ptrdiff_t i = 0; i < in.rows; ++i) {
    const double* from = in.data + i * in.stride;
    double* to = out.data + i * out.stride;
    for (std::ptrdiff_t j = 0; j < in.cols; ++j) to[j] = from[j] * first * second;
  }
}

void fill_entries(MatrixView out, double value) {
  for (std::ptrdiff_t i = 0; i < out.rows; ++i) {
    double* row = out.data + i * out.stride;
    std::fill(row, row + out.cols, value);
    std::fill(row + out.cols, row + out.stride, 0.0);
  }
}

}  // namespace attmirror
