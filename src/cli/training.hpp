// A descent at work in the terminal: progress, checkpoints into its folder, and an ear for Ctrl-C.
#pragma once

#include <attmirror/descent/run_folder.hpp>

#include <cstdint>
#include <string>

namespace attmirror::cli {

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
