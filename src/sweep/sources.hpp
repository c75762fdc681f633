// Whether the files that runs are made from are still those of the rows that are there. Internal.
#pragma once

#include <attmirror/sweep/database.hpp>
#include <attmirror/sweep/plan.hpp>

namespace attmirror {

// A key holds the path of a file, not what is in it. Throws Error (bad input) when a dataset, key weights or a start
// that finished runs of the plan were made from has changed since: old and new rows would not belong together.
void check_sources(const SweepPlan& plan, const SweepDatabase& results);

}  // namespace attmirror
