// Many trainings from a program: what a sweep does with its runs, without a file or a database.
//
//   std::vector<DescentRun> runs = descend_many(tasks, {.threads = 0});
//
// Tasks that fit are put side by side in the lanes of a vector; the others, including those with objectives of
// your own, run singly; all are divided among threads. Each result has the bits that descend() gives it alone.
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
// A run at the papers' size has vectors of ten numbers: too short to fill a register, and each step waits for
// the previous one. Eight such runs are eight independent columns of one program: their k-th numbers form a
// vector, and every step is done for all at once; data, start and step size differ from lane to lane.
//
// The arithmetic of a lane is that of descend(), operation by operation and in the same order, so each run has
// the bits that descend() would give it alone, whatever its neighbors are and however wide the vectors are.

// One training of many.
struct DescentTask {
  const Attention* model = nullptr;  // not owned
  Optimizer optimizer;
  DescentOptions options{};  // `threads` is ignored here
  // Instead of `model`: a model of another kind, not owned. It runs by itself; several threads may call it at once.
  const Objective* objective = nullptr;
};

// Empty if the task can run in a lane, otherwise the reason: "momentum", "a mask", "sequences of different
// lengths". Use descend() for such a task.
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
// order and equal those of descend() to the bit, except for `seconds`, which is each run's share of the total time.
std::vector<DescentRun> descend_in_lanes(std::span<const DescentTask> tasks, const LaneOptions& options = {});

// How many trainings are run at once.
struct ManyOptions {
  int threads = 0;  // 0: as many as the machine runs at once
  // Called about ten times a second, from any thread but one at a time, with the steps taken so far and the
  // steps requested (runs that saturate take fewer).
  std::function<void(double share)> on_pulse{};
  // Ends current runs as interrupted; those not started are interrupted at step 0, with no weights.
  StopRequest stop{};

  void validate() const;
};

// In the order of the tasks. Throws Error (bad input) like descend(), for the first task that is invalid.
std::vector<DescentRun> descend_many(std::span<const DescentTask> tasks, const ManyOptions& options = {});

}  // namespace attmirror
