// A run as its page shows it, and what came out of it in a sentence. Internal.
#pragma once

#include "descent/saved_model.hpp"
#include <attmirror/attention/attention.hpp>
#include <attmirror/descent/comparison.hpp>
#include <attmirror/descent/run_folder.hpp>
#include <attmirror/margin/max_margin.hpp>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace attmirror {

// What needs the data of a run, which may be gone.
struct MeasuredRun {
  std::unique_ptr<const Dataset> data;  // the model views it
  std::optional<Attention> model;
  std::vector<Vector> probabilities;
  Selection selected;
  std::optional<Selection> optimal;
  std::optional<MarginSolution> solution;
  std::vector<std::pair<double, Comparison>> trace;
  std::string without;  // why there is no solution: one sentence
};

struct ReportedRun {
  std::filesystem::path folder;
  std::string name;
  SavedRun saved;
  std::optional<MeasuredRun> measured;
  std::string without_data;  // why not: one sentence
};

// "completed", "diverged", "unfinished".
std::string status_of(const SavedRun& run);
// Diverged, or not at its end.
bool went_wrong(const ReportedRun& run);

// One sentence about one run, and about several: what went wrong first, then the range.
std::string run_conclusion(const ReportedRun& run);
std::string runs_conclusion(const std::vector<ReportedRun>& runs);

}  // namespace attmirror
