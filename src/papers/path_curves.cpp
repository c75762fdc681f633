#include "papers/path_curves.hpp"

#include "papers/training_set.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

// Slope of log(distance) over log(R) between the last radius and the one a decade before it.
double last_slope(const std::vector<double>& radii, const std::vector<double>& distance) {
  std::size_t k = radii.size() - 1;
  while (k > 0 && radii[k] > radii.back() / 9.99) --k;
  return std::log(distance.back() / distance[k]) / std::log(radii.back() / radii[k]);
}

}  // namespace

void count_points(const RegularizationPath& path, PathCurve& curve) {
  for (const PathPoint& point : path.points) {
    curve.unconverged += point.status != PointStatus::converged;
    curve.worst_gap = std::max(curve.worst_gap, point.gap);
  }
}

Series band(const std::string& name, const std::vector<double>& radii, const std::vector<PathCurve>& curves) {
  Series series{.name = name, .mark = Series::Mark::both};
  for (std::size_t k = 0; k < radii.size(); ++k) {
    std::vector<double> values;
    for (const PathCurve& curve : curves)
      if (k < curve.distance.size()) values.push_back(curve.distance[k]);
    std::ranges::sort(values);
    if (values.empty()) continue;
    const auto at = [&](double share) {
      return values[static_cast<std::size_t>(std::round(share * static_cast<double>(values.size() - 1)))];
    };
    series.x.push_back(radii[k]);
    series.y.push_back(at(0.5));
    if (values.size() > 2) {
      series.low.push_back(at(0.25));
      series.high.push_back(at(0.75));
    }
  }
  return series;
}

void describe(Figure& figure) {
  figure.description = "Distances from the max-margin direction against the radius, both axes logarithmic.";
  for (const Series& series : figure.series)
    figure.description +=
        fmt::format(" {}: {:.1e} at R = {:g}.", series.name, series.y.back(), series.x.back());
}

void add_row(Table& table, const std::string& name, const std::vector<double>& radii,
             const std::vector<PathCurve>& curves) {
  std::vector<double> last, slopes;
  double gap = 0;
  for (const PathCurve& curve : curves) {
    if (curve.distance.empty()) continue;
    last.push_back(curve.distance.back());
    slopes.push_back(last_slope(radii, curve.distance));
    gap = std::max(gap, curve.worst_gap);
  }
  table.rows.push_back({name, fmt::format("{}", last.size()), fmt::format("{:g}", radii.back()),
                        fmt::format("{:.2e}", median_of(last)),
                        fmt::format("{:.2e}", *std::ranges::max_element(last)),
                        fmt::format("{:.3f}", median_of(slopes)), fmt::format("{:.1e}", gap)});
}

void add_findings(const std::string& name, const std::vector<double>& radii,
                  const std::vector<PathCurve>& curves, double bound, std::vector<Finding>& findings) {
  std::vector<double> last, slopes;
  std::ptrdiff_t rising = 0;
  for (const PathCurve& curve : curves) {
    if (curve.distance.empty()) continue;
    last.push_back(curve.distance.back());
    slopes.push_back(last_slope(radii, curve.distance));
    rising += !(curve.distance.back() < curve.distance[curve.distance.size() - 2]);
  }
  findings.push_back(
      {.quantity =
           fmt::format("{}: largest distance from the max-margin direction at R = {:g}", name, radii.back()),
       .published = 0,
       .source = ReferenceSource::theory,
       .ours = *std::ranges::max_element(last),
       .tolerance = Tolerance::at_most(bound),
       .note = rising > 0 ? fmt::format("{} of {} are not falling yet", rising, last.size())
                          : "still falling in every path"});
  findings.push_back(
      {.quantity = fmt::format("{}: median slope of log distance over log R, last decade", name),
       .ours = median_of(slopes),
       .note = "no theorem; −2 if W_R − R u stays bounded"});
}

}  // namespace attmirror
