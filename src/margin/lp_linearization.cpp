#include "margin/lp_linearization.hpp"

#include "mirror/entries.hpp"

#include <algorithm>
#include <cmath>

namespace attmirror {

namespace {

// Below this relative distance the two points of a chord are one: differences are rounding, the tangent is as good.
constexpr double same_point = 1e-4;

}  // namespace

double LpLinearization::form(const LpMap& map, ConstMatrixView W, ConstMatrixView U, double bound_product,
                             double bound) {
  unit_ = multiplier_scale_ = 0;
  const double largest_u = max_abs(U), largest_w = max_abs(W);
  if (!(largest_u > 0 && std::isfinite(largest_u) && std::isfinite(largest_w))) return 0;
  const std::ptrdiff_t size = U.flat_size();
  double* u = dual_.view().data;
  double* s = offset_.view().data;  // phi(u), until it is the offset
  double* w = weights_.view().data;
  double* D = slopes_.view().data;
  for (std::ptrdiff_t i = 0; i < size; ++i) u[i] = U.data[i] / largest_u;
  map.inverse(dual_.view(), offset_.view());
  double sum = 0;
  for (std::ptrdiff_t i = 0; i < size; ++i) sum += u[i] * s[i];
  const double k = bound_product / (largest_u * sum);  // phi(lambda's best multiple) = k s
  if (!(k > 0 && std::isfinite(k))) return 0;
  unit_ = std::max(largest_w, k);
  const double size_s = k / unit_, size_u = std::max(std::pow(size_s, map.p() - 1), 1e-200);
  multiplier_scale_ = size_u / largest_u;
  for (std::ptrdiff_t i = 0; i < size; ++i) {
    w[i] = W.data[i] / unit_;
    s[i] *= size_s;
    u[i] *= size_u;
  }
  const double q_minus_1 = 1 / (map.p() - 1);
  if (map.p() < 2) {
    const double least = bound * q_minus_1 * size_s / size_u;
    for (std::ptrdiff_t i = 0; i < size; ++i) {
      const double slope = u[i] != 0 ? q_minus_1 * (s[i] / u[i]) : 0;
      D[i] = std::max(slope, least);
      s[i] -= D[i] * u[i];
    }
    return unit_;
  }
  double* psi = image_.view().data;
  map.map(weights_.view(), image_.view());
  const double least = bound / q_minus_1;  // of 1/D
  for (std::ptrdiff_t i = 0; i < size; ++i) {
    const double difference = s[i] - w[i];
    const bool same =
        std::fabs(difference) <= same_point * std::max(std::fabs(w[i]), std::fabs(s[i])) || difference == 0;
    const double tangent = w[i] != 0 ? psi[i] / (w[i] * q_minus_1) : 0;
    const double curvature = same ? tangent : (u[i] - psi[i]) / difference;
    D[i] = 1 / std::max(curvature, least);
    s[i] = w[i] - D[i] * psi[i];
  }
  return unit_;
}

}  // namespace attmirror
