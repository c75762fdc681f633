// What `attmirror attractors` and am.attractors() do: find attractors, train from random starts, confirm each
// by descent and look at the condition under which there is only one; and what they say about it. Internal.
#pragma once

#include "base/fields.hpp"
#include <attmirror/base/table.hpp>
#include <attmirror/sweep/attractors.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace attmirror {

// The options of both, described in attractor_fields().
struct AttractorSettings {
  double p = AttractorOptions{}.p;
  std::int64_t max_candidates = AttractorOptions{}.max_candidates;
  std::int64_t search_starts = AttractorOptions{}.search_starts;
  std::int64_t starts = StartOptions{}.starts;
  double start_std = StartOptions{}.std;
  std::uint64_t seed = 0;  // of starts, and of the directions of a search
  bool confirm = true;
};

const Fields<AttractorSettings>& attractor_fields();

struct AttractorStudy {
  Attractors found;
  StartShares shares;                  // no starts: no counts
  std::vector<AttractorCheck> checks;  // not asked for: none
  GlobalCondition condition;
  double start_std = 0;  // that was used
  bool interrupted = false;
};

AttractorStudy study_attractors(const Attention& model, const AttractorSettings& settings,
                                const MarginWork& work = {});

// One row for each attractor.
Table attractor_table(const AttractorStudy& study);
// The whole in one sentence; then sentences on the list, the starts, the checks and the condition.
std::string attractor_conclusion(const AttractorStudy& study);
std::vector<std::string> attractor_notes(const AttractorStudy& study);

}  // namespace attmirror
