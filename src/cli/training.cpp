#include "cli/training.hpp"

#include "base/progress.hpp"
#include "base/signals.hpp"
#include "base/stopwatch.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace attmirror::cli {

namespace {

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

}  // namespace

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
