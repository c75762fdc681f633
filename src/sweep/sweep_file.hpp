// A sweep file, read but not yet made into runs. Internal.
#pragma once

#include "sweep/axes.hpp"
#include <attmirror/sweep/plan.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace attmirror {

struct SweepFile {
  SweepPlan plan;  // names, text, folder and records; no columns, axes and runs yet
  SweepAxes axes;
};

// Throws Error (bad input), see parse_sweep().
SweepFile read_sweep_file(std::string_view text, const std::string& name, const std::filesystem::path& folder,
                          const SweepLimits& limits);

}  // namespace attmirror
