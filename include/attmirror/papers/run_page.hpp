// A report of anything that attmirror left on disk: run folders, trainings of transformers, databases of
// sweeps, a folder of reproductions.
#pragma once

#include <attmirror/report/page.hpp>

#include <filesystem>
#include <string_view>
#include <vector>

namespace attmirror {

enum class SourceKind { run, training, sweep, reproduction };
std::string_view to_string(SourceKind kind);

// What lies at `path`. Throws Error (bad input), naming the path, where it is none of these.
SourceKind source_kind(const std::filesystem::path& path);

// Run folders are shown together, their curves in the same figures, and then one by one: configuration, the command that
// repeats it, the selected tokens, attention probabilities, and the max-margin solution that the run goes to, where its
// data are still there. So are folders of `attmirror deep train`, with bands over their trials. Each sweep is a section: its summary, curves with the range of four runs of five, metrics against
// the axes. A folder of `attmirror reproduce` (at most one) gives the page that it has itself.
//
// Throws Error (bad input) where there is no source, one of them is given twice or cannot be read.
Page page_of(const std::vector<std::filesystem::path>& sources);

}  // namespace attmirror
