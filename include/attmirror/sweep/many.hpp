// Many trainings from a program: what a sweep does with its runs, without a file and a database.
//
//   std::vector<DescentRun> runs = descend_many(tasks, {.threads = 0});
//
// Tasks that fit are put side by side in the lanes of a vector, the others run singly, those of objectives of your own
// among them, all spread over threads. Each result has the bits that descend() gives it alone.
#pragma once

#include <attmirror/descent/descend.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace attmirror {

// Several small trainings side by side, one in each lane of a vector register.
//
// A run of the papers' size has vectors of ten numbers: too short to fill a register, and each step waits for the one
// before. Eight such runs are eight independent columns of the same program. Here the k-th number of all of them makes
// one vector, and every line of the step is done for all at once; data, start and step size differ from lane to lane.
//
// The arithmetic of a lane is that of descend(), operation by operation and in the same order, so each run has the same
// bits as descend() would give it alone, whatever its neighbours are and however wide the vectors are.

// One training of many.
struct DescentTask {
  const Attention* model = nullptr;  // not owned
  Optimizer optimizer;
  DescentOptions options{};  // `threads` does not matter here
  // In place of `model`: a model of another kind, not owned. It runs by itself; several threads may ask it at once.
  const Objective* objective = nullptr;
};

// Empty if the task can run in a lane, or a reason: "momentum", "a mask", "sequences of different lengths". Such a
// task is one for descend().
std::string why_not_in_lanes(const DescentTask& task);

// Tasks with equal texts may run in the same vector: same shapes, parameterization, loss, head, geometry and policies.
// What may differ is data, starts, lr, steps, saturation and records. Throws Error (bad input) where why_not_in_lanes()
// has a reason.
std::string lane_group(const DescentTask& task);

// How many runs fit into a vector of the active instruction set: 8, 4 or 2.
std::ptrdiff_t lane_width();

// How trainings share vector registers.
struct LaneOptions {
  // 0: the narrowest that holds the tasks; 1, 2, 4, 8 to compare (if the set has it).
  std::ptrdiff_t width = 0;
  // Called about ten times a second with the steps taken so far in all lanes together.
  std::function<void(std::int64_t steps)> on_pulse{};
  StopRequest stop{};  // ends all runs as interrupted

  void validate() const;
};

// Trains all tasks, at most lane_width() of them, in one thread. They must have equal lane_group(). Results are in
// order and equal those of descend() to the bit, but for `seconds`, which is the share of each in the time of all.
std::vector<DescentRun> descend_in_lanes(std::span<const DescentTask> tasks, const LaneOptions& options = {});

// How many trainings are run at once.
struct ManyOptions {
  int threads = 0;  // 0: as many as the machine runs at once
  // Called about ten times a second, from any thread but one at a time, with the steps taken so far of the steps
  // asked for (runs that saturate take fewer).
  std::function<void(double share)> on_pulse{};
  // Ends the runs under way as interrupted; those not begun are interrupted at step 0, with no weights.
  StopRequest stop{};

  void validate() const;
};

// In the order of the tasks. Throws Error (bad input) as descend() does, for the first task that is wrong.
std::vector<DescentRun> descend_many(std::span<const DescentTask> tasks, const ManyOptions& options = {});

}  // namespace attmirror
