// What a sweep records of a run that has ended. Internal.
#pragma once

#include <attmirror/sweep/plan.hpp>
#include <attmirror/sweep/row.hpp>

#include <string>
#include <vector>

namespace attmirror {

struct Measured {
  std::string status = "ok", reason;
  std::vector<Cell> metrics;  // as metric_columns() names them
  std::vector<RowArray> arrays;
};

// The column, and the curve, of the margin in a norm.
std::string margin_name(const Norm& norm);

// Never depends on anything but its arguments. Throws only what preparing a max-margin problem throws (bad input).
Measured measure(const RecordPlan& plan, const PreparedRun& prepared, const DescentRun& run);

}  // namespace attmirror
