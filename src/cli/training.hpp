// A descent at work in the terminal: progress, checkpoints into its folder, and an ear for Ctrl-C.
#pragma once

#include "base/stopwatch.hpp"
#include <attmirror/descent/run_folder.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace attmirror::cli {

// Decides when a checkpoint is due: every so many seconds, but never so often that writing them takes more
// than a tenth of the time.
class CheckpointClock {
 public:
  explicit CheckpointClock(double interval) : interval_(interval) {}
  bool due() const { return seconds_since(last_) >= std::max(interval_, 9 * cost_); }
  template <class Save>
  void time(Save save) {
    const Clock::time_point start = Clock::now();
    save();
    cost_ = seconds_since(start);
    last_ = Clock::now();
  }

 private:
  double interval_, cost_ = 0;
  Clock::time_point last_ = Clock::now();
};

struct TrainingOptions {
  std::string label;             // of the progress
  std::int64_t steps = 0;        // in all
  double checkpoint_every = 30;  // seconds
  bool quiet = false;
};

struct Training {
  DescentRun run;
  Checkpoint last;  // empty without a folder
};

// To be called under a SignalGuard: a signal stops the run with status interrupted. `folder` may be nullptr.
Training run_descent(Descent& descent, const TrainingOptions& options, RunFolder* folder);

}  // namespace attmirror::cli
