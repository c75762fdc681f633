// What p1-imdb makes of the records of docs/results/imdb: p1_imdb.cpp judges. Internal.
#pragma once

#include "papers/records.hpp"
#include <attmirror/papers/experiment.hpp>

#include <span>

namespace attmirror {

// All of the experiment but reading. Throws Error (bad input) for records without md-1.1 and md-2.
ExperimentResult imdb_result(std::span<const TrainingRecord> records);

}  // namespace attmirror
