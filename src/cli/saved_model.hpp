// A run folder brought back to life: what `compare` and `margin` need of a run besides its files.
#pragma once

#include <attmirror/attention/attention.hpp>
#include <attmirror/descent/run_folder.hpp>

#include <filesystem>

namespace attmirror::cli {

// The run, if it has weights that point somewhere. Throws Error (bad input) when it was stopped before its first
// checkpoint, or diverged.
SavedRun load_trained_run(const std::filesystem::path& path);

Parameterization parameterization_of(const SavedRun& run);

// The model that was trained; views `data`, which is that of load_run_data().
Attention model_of(const SavedRun& run, const Dataset& data);

}  // namespace attmirror::cli
