// The records of docs/results, which are built into the library: the installed command and the Python package have
// them, too. Internal.
#pragma once

#include "papers/records.hpp"

#include <string_view>

namespace attmirror {

// P1's sentiment transformer on IMDb: docs/results/imdb. No runs where nothing has been recorded yet.
RecordTexts imdb_records();

// The same network with every optimizer tuned alike: docs/results/imdb_clean. No runs where nothing has been recorded
// yet.
RecordTexts imdb_clean_records();

// The same network with 4 and 6 blocks: docs/results/imdb_depth. No runs where nothing has been recorded yet.
RecordTexts imdb_depth_records();

// P3's global convergence over a grid of sizes: docs/results/p3_global_grid.csv.
std::string_view global_grid_csv();

}  // namespace attmirror
