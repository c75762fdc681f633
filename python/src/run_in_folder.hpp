// A training that reports to Python and, where asked to, lives in a run folder: what `attmirror train -o FOLDER` does,
// for every model that Python trains.
#pragma once

#include "base/stopwatch.hpp"
#include "bridge.hpp"
#include <attmirror/descent/run_folder.hpp>

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace attmirror::python {

struct FolderOptions {
  std::filesystem::path path;
  bool resume = false, overwrite = false;
  double checkpoint_every = 30;  // seconds
};

// None, or (path, resume, overwrite, checkpoint_every).
std::optional<FolderOptions> read_folder_options(const nb::object& options);

// Puts data without a file of their own beside a result. A file that is there stays: it must hold the same data.
void keep_data(const std::filesystem::path& file, const Dataset& data);

// What the user wants to hear of a run.
class Watchers {
 public:
  // on_record takes a tuple, on_pulse (step, loss, seconds); None: nobody listens.
  Watchers(nb::object on_record, nb::object on_pulse, StopRequest stop)
      : stop_(stop), record_(std::move(on_record), stop), pulse_(std::move(on_pulse), stop) {}

  DescentCallbacks callbacks();
  void finish() const {
    record_.finish();
    pulse_.finish();
  }

 private:
  StopRequest stop_;
  UserFunction record_, pulse_;
};

// Without the interpreter's lock. `save_data` puts the data into the folder where they have no file of their own.
template <class Model>
DescentRun descend_in_folder(const Model& model, const Optimizer& optimizer, const DescentOptions& options,
                             RunSources sources, const FolderOptions& where, Watchers& watchers,
                             const std::function<void(const std::filesystem::path&)>& save_data) {
  RunFolder folder(where.path);
  if (folder.holds_run() && !where.resume && !where.overwrite)
    throw bad_input(
        fmt::format("{} holds a run already: give resume=True to go on with it, overwrite=True to replace "
                    "it, or another folder",
                    where.path.string()));
  const bool without_file = sources.data.empty();
  if (without_file) sources.data = std::filesystem::absolute(where.path / "data.npz");
  const RunConfig config = describe_run(model, optimizer, options, sources);
  std::optional<Checkpoint> checkpoint;
  if (where.resume) checkpoint = folder.checkpoint(config);
  // All that can be wrong is told before a file is touched.
  Descent descent =
      checkpoint ? Descent(model, optimizer, options, *checkpoint) : Descent(model, optimizer, options);
  if (without_file) save_data(sources.data);
  folder.resume(config, checkpoint);
  DescentCallbacks callbacks = watchers.callbacks();
  callbacks.on_record = [&folder, inner = std::move(callbacks.on_record)](const Record& record) {
    folder.append(record);
    if (inner) inner(record);
  };
  // Every so many seconds, but never so often that writing takes more than a tenth of the time.
  Clock::time_point last = Clock::now();
  double cost = 0;
  callbacks.on_pulse = [&, inner = std::move(callbacks.on_pulse)](const Descent& now) {
    if (inner) inner(now);
    if (seconds_since(last) < std::max(where.checkpoint_every, 9 * cost)) return;
    const Clock::time_point begin = Clock::now();
    folder.save(now.checkpoint());
    cost = seconds_since(begin);
    last = Clock::now();
  };
  DescentRun run = descent.run(callbacks);
  folder.finish(model, run, descent.checkpoint(), config);
  return run;
}

}  // namespace attmirror::python
