// [record]: what a sweep keeps of each run. Internal.
#pragma once

#include "base/toml_document.hpp"
#include <attmirror/sweep/plan.hpp>

#include <string>

namespace attmirror {

// Throws Error (bad input): `sweep.toml: [record] curves: ...`.
RecordPlan read_record(const TomlTable& file, const std::string& name);

// The norm of a solution for runs of this optimizer. Throws Error (bad input) where it is to be the optimizer's own
// and there is none.
Norm norm_of(const SolutionPlan& solution, const Optimizer& optimizer);

// All of it in a fixed form: equal texts mean equal records.
std::string to_text(const RecordPlan& record);

}  // namespace attmirror
