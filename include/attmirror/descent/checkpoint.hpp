// A checkpoint as one .npz file: what a run needs to continue, to the bit, as if it had never stopped.
//
// Every number is stored as the double it is, so nothing is rounded on the way. The records of the run so far
// are inside, with their weights: a kill between two writes could separate a trace and a checkpoint in two
// files, but not one file. Arrays:
//
//   format, format_version           "attmirror checkpoint" (bytes) and 1
//   model, rule                      descriptions (bytes); Descent refuses a checkpoint of others
//   data_fingerprint, step, seconds  scalars
//   weights.W, weights.v, ...        all blocks of the model
//   state.dual.W, ...                what the update rule remembers of each block, by the rule's own names
//   numbers.momentum.log_scale, ...  and what it remembers besides, a list each; none for most rules
//   record.step, .loss, .max_softmax, .norm, .scheduled, .kept    one entry per record
//   record.W, ...                    the weights of the records whose `kept` is 1, first axis = record
#pragma once

#include <attmirror/descent/descend.hpp>

#include <filesystem>

namespace attmirror {

// Written completely or not at all (base/atomic_file.hpp). Equal checkpoints give equal bytes.
void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);

// Throws Error (bad input) with one sentence that names the file when it is truncated, damaged, of another
// kind or of a format that this version does not know.
Checkpoint load_checkpoint(const std::filesystem::path& path);

// Whether all weights and all of the rule's memory are finite. If not, the run has just diverged and could
// not be resumed from here, so the previous checkpoint is the one to keep.
bool is_finite(const Checkpoint& checkpoint);

}  // namespace attmirror
