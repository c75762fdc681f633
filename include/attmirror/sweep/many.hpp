// Many trainings from a program: what a sweep does with its runs, without a file and a database.
//
//   std::vector<Run> runs = descend_many(tasks, {.threads = 0});
//
// Tasks that fit are put side by side in the lanes of a vector (lanes.hpp), the others run singly, all spread over threads.
// Each result has the bits that descend() gives it alone.
#pragma once

#include <attmirror/sweep/lanes.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace attmirror {

struct ManyOptions {
  int threads = 0;  // 0: as many as the machine runs at once
  // Called about ten times a second, from any thread but one at a time, with the steps taken so far of the steps asked for
  // (runs that saturate take fewer). `stop` ends the runs under way as interrupted; those not begun are interrupted at
  // step 0, with no weights.
  std::function<Command(double share)> on_pulse{};

  void validate() const;
};

// In the order of the tasks. Throws Error (bad input) as descend() does, for the first task that is wrong.
std::vector<Run> descend_many(std::span<const LaneTask> tasks, const ManyOptions& options = {});

}  // namespace attmirror
