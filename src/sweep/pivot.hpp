// A summary as pivot tables, which a screen has room for: the values of the last column to group by go
// across, those of the others down, and a cell is the mean of a metric with its standard error. Internal.
//
//   final_loss
//     p         lr 0.05          lr 0.1
//   ---  --------------  --------------
//   1.5   0.475 ± 0.012   0.475 ± 0.012
//     2   0.477 ± 0.012   0.475 ± 0.012
#pragma once

#include "sweep/summary_groups.hpp"
#include <attmirror/base/table.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace attmirror {

struct Pivot {
  // What is the same in all groups, a line each: "steps_taken  500", "runs  4 in each group, all ok".
  std::vector<std::string> facts;
  std::vector<Table> tables;
  std::size_t kept = 0;  // the columns at the left of each table that tell its rows apart
};

// With one column to group by the metrics go across, in one table; with two or more there is a table per
// metric.
Pivot make_pivot(const SummaryGroups& summary);

// "0.475 ± 0.012", "(1.23 ± 0.04)e-07": two digits of the error, and the mean to the same place. Without an
// error, or with one that is rounding, four digits.
std::string mean_text(double mean, std::optional<double> error);

}  // namespace attmirror
