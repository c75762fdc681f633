// A run folder brought back to life: what comparisons, max-margin problems and reports need of a run besides its
// files. Internal.
#pragma once

#include <attmirror/attention/attention.hpp>
#include <attmirror/descent/run_folder.hpp>

#include <filesystem>
#include <optional>

namespace attmirror {

// The run, if it has weights that point somewhere. Throws Error (bad input) when it was stopped before its first
// checkpoint, or diverged.
SavedRun load_trained_run(const std::filesystem::path& path);

Parameterization parameterization_of(const SavedRun& run);

// The model that was trained; views `data`, which is that of load_run_data().
Attention model_of(const SavedRun& run, const Dataset& data);

// The norm whose smallest weights the run goes to, where theory says so: that of its geometry. K and Q under gradient
// descent end at the smallest nuclear norm, because it is the smallest (|K|^2 + |Q|^2) / 2 of all K Q^T = W. For their
// other geometries there is no such theorem, nor for an optimizer without a geometry_norm(): nothing is returned.
std::optional<Norm> limit_norm(const RunConfig& config);
std::optional<Norm> limit_norm(const Optimizer& optimizer, const Parameterization& parameterization);

}  // namespace attmirror
