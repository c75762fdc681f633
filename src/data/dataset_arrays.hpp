// A dataset as the arrays of its file, in both directions: for those who have them in memory instead. Internal.
#pragma once

#include <attmirror/data/array.hpp>
#include <attmirror/data/dataset.hpp>

namespace attmirror {

// The arrays that load_dataset() reads, by the same names and with the same checks and messages.
Dataset make_dataset(const NamedArrays& arrays);

// What save_dataset() writes.
NamedArrays arrays_of(const Dataset& data);

}  // namespace attmirror
