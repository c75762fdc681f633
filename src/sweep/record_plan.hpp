// [record]: what a sweep keeps of each run. Internal.
#pragma once

#include "sweep/toml_document.hpp"
#include <attmirror/sweep/plan.hpp>

#include <string>

namespace attmirror {

// Throws Error (bad input): `sweep.toml: [record] curves: ...`.
RecordPlan read_record(const TomlTable& file, const std::string& name);

// All of it in a fixed form: equal texts mean equal records.
std::string to_text(const RecordPlan& record);

}  // namespace attmirror
