// One batch of runs on the calling thread. Internal.
#pragma once

#include "sweep/batches.hpp"
#include <attmirror/sweep/sweep.hpp>

#include <vector>

namespace attmirror {

// The rows of the batch; fewer where `stop` was asked for meanwhile.
std::vector<RunRow> compute_batch(const SweepPlan& plan, const Batch& batch, SweepOptions::Engine engine,
                                  const StopRequest& stop);

}  // namespace attmirror
