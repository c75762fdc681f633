#include "cli/training.hpp"

#include "base/progress.hpp"
#include "base/signals.hpp"

#include <cstdio>
#include <utility>

namespace attmirror::cli {

Training run_descent(Descent& descent, const TrainingOptions& options, RunFolder* folder) {
  ProgressOptions progress_options;
  progress_options.label = options.label;
  progress_options.total = options.steps;
  progress_options.first = descent.step();
  progress_options.quiet = options.quiet;
  Progress progress(stderr, progress_options);
  CheckpointClock clock(options.checkpoint_every);

  DescentCallbacks callbacks;
  if (folder) callbacks.on_record = [&](const Record& record) { folder->append(record); };
  callbacks.on_pulse = [&](const Descent& now) {
    progress.update(now.step());
    if (folder && clock.due()) clock.time([&] { folder->save(now.checkpoint()); });
  };
  callbacks.stop = SignalGuard::stop();
  DescentRun run = descent.run(callbacks);
  progress.finish();
  return {std::move(run), folder ? descent.checkpoint() : Checkpoint{}};
}

}  // namespace attmirror::cli
