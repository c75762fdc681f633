// The records of docs/results, which are built into the library: the installed command and the Python package have them, too.
// Internal.
#pragma once

#include "papers/records.hpp"

namespace attmirror {

// P1's sentiment transformer on IMDb: docs/results/imdb. No runs where nothing has been recorded yet.
RecordTexts imdb_records();

}  // namespace attmirror
