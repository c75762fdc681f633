// Two runs on the same data, side by side: what they select, what it is worth, and where their weights point.
#pragma once

#include "cli/options.hpp"
#include <attmirror/data/dataset.hpp>
#include <attmirror/descent/run_folder.hpp>

#include <array>
#include <filesystem>
#include <optional>

namespace attmirror::cli {

struct CompareRunsOptions {
  CommonOptions common;
  std::array<std::filesystem::path, 2> runs;
  std::filesystem::path data;  // "": where the first run had it
  std::optional<double> p;     // margins in this norm alone; none: in those of the two runs
};

// Prints the comparison and returns the exit code. Throws Error (bad input) where the runs are of different
// data or their weights of different shapes.
int compare_runs(const CompareRunsOptions& options);

// The data of a run, from the file given or from where they were.
Dataset load_compared_data(const SavedRun& run, const std::filesystem::path& given);

}  // namespace attmirror::cli
