// The record behind p3_global_grid.cpp: how 90,000 trainings ended, one line for each n, T, d and parameterization.
// docs/results/p3_global_grid.csv, built in; examples/sweeps/p3_global_grid.toml says how it is made. Internal.
#pragma once

#include "papers/share_interval.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace attmirror {

struct GridCell {
  std::int64_t n = 0, T = 0, d = 0;
  // How many runs there are, and how many of them are saturated, on the best tokens, on other locally optimal ones.
  struct Ends {
    std::ptrdiff_t runs = 0, saturated = 0, global = 0, local = 0, certified = 0;
    ShareInterval global_share() const { return share_interval(global, runs); }
    ShareInterval local_share() const { return share_interval(local, runs); }
    ShareInterval neither_share() const { return share_interval(runs - global - local, runs); }
  };
  Ends W, KQ;
};

// The cells of the record (recorded_studies.hpp), ascending in n, T and d. Throws Error (bad input) naming a line
// that is not of this form, or a cell that has only one of W and KQ.
std::vector<GridCell> parse_global_grid(std::string_view csv);

}  // namespace attmirror
