#include "margin/lp_line.hpp"

#include "mirror/entries.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attmirror {

namespace {

// A slope that could not win this part of what has been won is as good as none. It lets full steps be full, which
// Newton's convergence needs.
constexpr double nearly_flat = 0.02;

// Changes of a logarithm below it are rounding.
constexpr double rounding = 1e-13;

constexpr int most_values = 12;

}  // namespace

// With Y = (y + t v) / m, m the largest entry, and h = sign(Y)|Y|^{r-1}:
//   log m + log <h, Y> / r - log (c0 + t c1),    slope <h, v> / (m <h, Y>) - c1 / (c0 + t c1)
LpLineSearch::Point LpLineSearch::at(double t) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double linear = part_.start + t * part_.slope;
  if (!(linear > 0)) return {infinity, infinity};
  const MatrixView point = point_.view(), power = power_.view();
  Eigen::Map<Eigen::ArrayXd> flat_point(point.data, point.flat_size());
  const Eigen::Map<const Eigen::ArrayXd> y(y_.data, y_.flat_size()), v(v_.data, v_.flat_size());
  const Eigen::Map<const Eigen::ArrayXd> h(power.data, power.flat_size());
  flat_point = y + t * v;
  const double largest = max_abs(point);
  if (!(largest > 0) || !std::isfinite(largest)) return {NAN, NAN};
  flat_point *= 1 / largest;
  if (side_ == LpSide::primal)
    map_->map(point, power);
  else
    map_->inverse(point, power);
  const double sum = (h * flat_point).sum(), r = side_ == LpSide::primal ? map_->p() : map_->q();
  return {std::log(largest) + std::log(sum) / r - std::log(linear),
          (h * v).sum() / (largest * sum) - part_.slope / linear};
}

double LpLineSearch::minimize(const LpMap& map, LpSide side, ConstMatrixView y, ConstMatrixView v,
                              LinePart part) {
  map_ = &map;
  side_ = side;
  y_ = y;
  v_ = v;
  part_ = part;
  double low = 0, high = 1;
  const Point begin = at(low), end = at(high);
  if (std::isnan(begin.slope) || std::isnan(end.slope)) return 0;
  const auto small = [&](const Point& point) {
    return std::fabs(point.slope) <= std::max(nearly_flat * (begin.value - point.value), rounding);
  };
  if (end.slope <= 0 || small(end)) return 1;
  if (begin.slope >= 0) return 0;
  // Regula falsi; an end that stays twice counts half (Illinois), so that both move.
  double at_low = begin.slope, at_high = end.slope;
  int moved = 0;  // -1: low was the last to move, 1: high
  for (int values = 0; values < most_values; ++values) {
    double t =
        std::isinf(at_high) ? 0.5 * (low + high) : (low * at_high - high * at_low) / (at_high - at_low);
    t = std::clamp(t, low + 0.02 * (high - low), high - 0.02 * (high - low));
    const Point point = at(t);
    if (std::isnan(point.slope)) return low;
    if (small(point) || high - low < 1e-3 * high) return t;
    if (point.slope < 0) {
      low = t;
      at_low = point.slope;
      if (moved == -1) at_high *= 0.5;
      moved = -1;
    } else {
      high = t;
      at_high = point.slope;
      if (moved == 1) at_low *= 0.5;
      moved = 1;
    }
  }
  return low > 0 ? low : high;
}

}  // namespace attmirror
