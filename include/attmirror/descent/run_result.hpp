// How a run ended: what `attmirror train --json` prints and result.json of a run folder holds.
#pragma once

#include <attmirror/descent/run_config.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace attmirror {

// How a run ended, without its weights.
struct RunResult {
  RunStatus status = RunStatus::completed;
  std::int64_t steps = 0;
  double loss = 0, max_softmax = 0, norm = 0, seconds = 0;
  Selection selected;                // empty when diverged
  std::optional<Selection> optimal;  // the tokens that are best for the run's v; none while v is 0
  bool globally_optimal() const { return optimal && *optimal == selected; }
};

RunResult result_of(const Objective& objective, const Run& run);
RunResult result_of(const Attention& model, const Run& run);

// One JSON object: status, steps, loss, selected, max_softmax, norm, seconds, globally_optimal, optimal, and
// of the configuration optimizer, geometry (the norm that `norm` is), p, lr, normalized (null for Adam), params,
// isa, version; `output` is the folder, null for "". Numbers that are not finite are null.
std::string to_json(const RunResult& result, const RunConfig& config, const std::filesystem::path& output);

// What to_json() wrote. Throws Error (bad input) for anything else.
RunResult parse_result(std::string_view text);

}  // namespace attmirror
