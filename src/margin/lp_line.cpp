#include "margin/lp_line.hpp"

#include "mirror/entries.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attmirror {

namespace {

// A derivative this much smaller than at the start is as good as none: the full step then keeps Newton's convergence.
constexpr double flat = 0.02;

// Changes of a logarithm below it are rounding.
constexpr double rounding = 1e-13;

constexpr int most_values = 12;

}  // namespace

// With Y = (y + t v) / m, m the largest entry, and h = sign(Y)|Y|^{r-1}:  <h, v> / (m <h, Y>) - c1 / (c0 + t c1)
double LpLineSearch::derivative(const LpMap& map, LpSide side, ConstMatrixView y, ConstMatrixView v,
                                LinePart part, double t) {
  const double value = part.start + t * part.slope;
  if (!(value > 0)) return std::numeric_limits<double>::infinity();
  const MatrixView point = point_.view(), power = power_.view();
  Eigen::Map<Eigen::ArrayXd> flat_point(point.data, point.flat_size());
  const Eigen::Map<const Eigen::ArrayXd> flat_y(y.data, y.flat_size()), flat_v(v.data, v.flat_size());
  const Eigen::Map<const Eigen::ArrayXd> flat_power(power.data, power.flat_size());
  flat_point = flat_y + t * flat_v;
  const double largest = max_abs(point);
  if (!(largest > 0) || !std::isfinite(largest)) return std::numeric_limits<double>::quiet_NaN();
  flat_point *= 1 / largest;
  if (side == LpSide::primal)
    map.map(point, power);
  else
    map.inverse(point, power);
  return (flat_power * flat_v).sum() / (largest * (flat_power * flat_point).sum()) - part.slope / value;
}

double LpLineSearch::minimize(const LpMap& map, LpSide side, ConstMatrixView y, ConstMatrixView v,
                              LinePart part) {
  double low = 0, high = 1;
  double at_low = derivative(map, side, y, v, part, low), at_high = derivative(map, side, y, v, part, high);
  if (std::isnan(at_low) || std::isnan(at_high)) return 0;
  if (at_high <= std::max(-flat * at_low, rounding)) return 1;
  if (at_low >= 0) return 0;
  // Regula falsi; an end that stays twice counts half (Illinois), so that both move.
  const double wanted = flat * -at_low;
  int moved = 0;  // -1: low was the last to move, 1: high
  for (int values = 0; values < most_values; ++values) {
    double t = std::isinf(at_high) ? 0.5 * (low + high) : (low * at_high - high * at_low) / (at_high - at_low);
    t = std::clamp(t, low + 0.02 * (high - low), high - 0.02 * (high - low));
    const double d = derivative(map, side, y, v, part, t);
    if (std::isnan(d)) return low;
    if (std::fabs(d) <= wanted || high - low < 1e-3 * high) return t;
    if (d < 0) {
      low = t;
      at_low = d;
      if (moved == -1) at_high *= 0.5;
      moved = -1;
    } else {
      high = t;
      at_high = d;
      if (moved == 1) at_low *= 0.5;
      moved = 1;
    }
  }
  return low;
}

}  // namespace attmirror
