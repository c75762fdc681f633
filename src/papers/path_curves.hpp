// What the experiment on regularization paths says of each kind of path: distances from the limit by radius, their
// rate, and how many points were not solved. Internal.
#pragma once

#include <attmirror/base/figure.hpp>
#include <attmirror/base/table.hpp>
#include <attmirror/descent/regularization_path.hpp>
#include <attmirror/papers/finding.hpp>

#include <string>
#include <vector>

namespace attmirror {

// Distances of one path from a direction, by radius: the directional divergence of its norm, 1 - cos for
// singular values.
struct PathCurve {
  std::vector<double> distance;
  bool optimal = false;     // the last point selects the optimal tokens
  bool found_alone = true;  // without the start at the solution of the optimal tokens
  std::ptrdiff_t unconverged = 0;
  double worst_gap = 0;
  bool certified = true;
};

// Adds the points' gaps and failures.
void count_points(const RegularizationPath& path, PathCurve& curve);

// Quartiles over paths, radius by radius.
Series band(const std::string& name, const std::vector<double>& radii, const std::vector<PathCurve>& curves);

// What each series has come to.
void describe(Figure& figure);

void add_row(Table& table, const std::string& name, const std::vector<double>& radii,
             const std::vector<PathCurve>& curves);

// The limit and the rate, of one kind of path.
void add_findings(const std::string& name, const std::vector<double>& radii,
                  const std::vector<PathCurve>& curves, double bound, std::vector<Finding>& findings);

}  // namespace attmirror
