// Names for people instead of the columns and keys of files. Internal.
#pragma once

#include <attmirror/mirror/norm.hpp>

#include <string>
#include <string_view>

namespace attmirror {

// "divergence from its own max-margin solution" for the column own.bregman of a sweep; what has no name of ours keeps
// its own, with spaces for underscores.
std::string metric_name(std::string_view column);
// "learning rate" for lr.
std::string setting_name(std::string_view column);
// How close a solver came to the optimum: rounding, which makes no figure.
bool is_solver_gap(std::string_view column);

// "ℓ1.75", "ℓ∞", "nuclear norm".
std::string norm_name(const Norm& norm);

// Four digits that count; "–" for what is not finite.
std::string short_number(double value);
// "99.98 %"
std::string percent(double share);
// "6 runs", "1 run"
std::string count_of(std::size_t count, std::string_view what);

}  // namespace attmirror
