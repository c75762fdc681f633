// All selections of a small problem, each with what theory says about it: on which tokens can training end at all?
//
//   infeasible   no W selects these tokens; proved
//   feasible     some W does, but a support token of the max-margin solution has a better score: training leaves it
//   local        locally optimal: training that starts near the solution's direction converges to it (P1, P2, P3)
//   global       the best token of every query
//
//   const Landscape landscape = enumerate_landscape(data, {.norm = Norm::l(1.75)});
//   landscape.count(SelectionClass::local);
//
// There are T^n selections: four queries of five tokens have 625, the papers' six of eight have 262,144.
#pragma once

#include <attmirror/base/stop.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/data/selection.hpp>
#include <attmirror/margin/max_margin.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <string_view>
#include <vector>

namespace attmirror {

// What a selection of tokens is; the top of this file says what each word means.
enum class SelectionClass { infeasible, feasible, local, global, undecided };
// All of them, in order.
inline constexpr std::array all_selection_classes{SelectionClass::infeasible, SelectionClass::feasible,
                                                  SelectionClass::local, SelectionClass::global,
                                                  SelectionClass::undecided};
std::string_view to_string(SelectionClass kind);

// How a landscape is enumerated, and how often it is trained on.
struct LandscapeOptions {
  Norm norm = Norm::frobenius();              // of the max-margin problems, hence of the support tokens
  MarginOptions margin{};                     // threads among them
  std::ptrdiff_t max_selections = 1'000'000;  // more are refused, because they would take hours
  std::function<void(double)> on_progress{};  // with the share that is done
  StopRequest stop{};                         // checked every 512 selections

  void validate() const;
};

// One selection, with its max-margin solution.
struct LandscapeEntry {
  Selection tokens;
  SelectionClass kind = SelectionClass::undecided;  // undecided: neither solved nor proved infeasible
  MarginSolution solution;
  double least_advantage = 0;  // of LocalOptimality; NaN where there is no solution
};

// All selections of a small dataset.
struct Landscape {
  std::vector<LandscapeEntry> entries;  // the last query's token varies fastest
  bool interrupted = false;             // later entries are then missing

  std::ptrdiff_t count(SelectionClass kind) const;
  // The entry for these tokens. Throws Error (bad input) if there is none.
  const LandscapeEntry& at(const Selection& tokens) const;
  std::ptrdiff_t index_of(const Selection& tokens) const;
};

// Throws Error (bad input) if the data have no decoder, by which tokens are judged, or too many selections.
Landscape enumerate_landscape(const Dataset& data, const LandscapeOptions& options = {});

// The number of selections, which may be too large for an integer.
double selection_count(const Dataset& data);

}  // namespace attmirror
