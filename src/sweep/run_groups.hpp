// Runs that may share a vector, put side by side and cut into pieces: what a thread takes at a time. Internal.
//
// descend_many() cuts its tasks by what lanes really ask for (lane_group), one vector a piece. A sweep first cuts its
// runs by their settings, before it has any data, into pieces long enough to be worth handing out (batches.hpp);
// whoever computes such a batch then cuts it like descend_many().
#pragma once

#include <attmirror/sweep/many.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace attmirror {

struct GroupedRun {
  std::size_t index = 0;  // the caller's own
  std::string group{};    // runs with equal texts may share a vector; one without a text runs alone
  double work = 0;        // multiplications, roughly
};

struct RunPiece {
  std::vector<std::size_t>
      indices{};  // the longest first: lanes of one vector end together where their runs are as long
  double work = 0;
  enum class Engine { single, lanes } engine = Engine::lanes;
};

// Pieces of one group each: as many whole vectors as make `least_work`, and at the end of a group what is left of it.
// The longest pieces come first, so that threads end at about the same time.
std::vector<RunPiece> cut_into_pieces(std::vector<GroupedRun> runs, double least_work = 0);

// A task with its lane_group(), or without a group where it cannot run in a lane.
GroupedRun grouped(std::size_t index, const DescentTask& task);
// The same where it shall run alone, whatever it is.
GroupedRun ungrouped(std::size_t index, const DescentTask& task);

// Trains the tasks of one piece, at most one vector of them, on the calling thread. Results are in the order of
// its indices.
std::vector<DescentRun> train_piece(std::span<const DescentTask> tasks, const RunPiece& piece,
                                    const LaneOptions& how);

}  // namespace attmirror
