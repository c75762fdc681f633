// A report of anything that attmirror left on disk: folders of runs, regularization paths, next-token runs and
// trainings of transformers, databases of sweeps, max-margin solutions, a folder of reproductions.
#pragma once

#include <attmirror/report/page.hpp>

#include <filesystem>
#include <string_view>
#include <vector>

namespace attmirror {

// What lies at `path`: "run", "path", "next-token", "training", "sweep", "solution" or "reproduction". Throws Error
// (bad input), naming the path, where it is none of these.
std::string_view source_kind(const std::filesystem::path& path);

// Run folders are shown together, their curves in the same figures, and then one by one: configuration, the command
// that repeats it, the selected tokens, attention probabilities, and the max-margin solution that the run goes to,
// where its data are still there. The stages of a next-token run are runs. Regularization paths are shown the same
// way, over the radius, and so are folders of `attmirror deep train`, with bands over their trials. A max-margin
// solution is a section: how it was certified, and its support tokens. Each sweep is one: its summary, curves with
// the range of four runs of five, metrics against the axes. A folder of `attmirror reproduce` (at most one) gives the
// page that it has itself.
//
// Throws Error (bad input) where there is no source, one of them is given twice or cannot be read.
Page page_of(const std::vector<std::filesystem::path>& sources);

}  // namespace attmirror
