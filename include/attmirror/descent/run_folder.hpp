// A run as a folder that survives kill -9 at any moment, and that others can read while it grows.
//
//   config.json      everything resolved (descent/run_config.hpp)
//   metrics.jsonl    a line per record: step, loss, max_softmax, norm, the model's own metrics; no clock times, equal
//                    runs are equal
//   trace.npz        step, loss, max_softmax, norm, metrics and each trained block by name, first axis = record
//   final.npz        trained blocks by name, `selected`, `step`; fixed blocks as fixed_v, ...; key_weights
//   checkpoint.npz   descent/checkpoint.hpp; stays after the end, so that the run can be continued
//   result.json      how it ended; what `attmirror train --json` prints
//
// Each file but metrics.jsonl is replaced as a whole. metrics.jsonl is appended to while the run goes on, for
// those who watch it; what counts are the records inside the checkpoint, from which it is written anew when a
// run resumes or ends, so no record is there twice or missing. result.json is the first to be removed when a
// run begins or resumes and the last to be written when it ends: while it is there, all other files belong to
// it.
#pragma once

#include <attmirror/descent/checkpoint.hpp>
#include <attmirror/descent/run_config.hpp>
#include <attmirror/descent/run_result.hpp>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// The folder of a run that this process writes.
class RunFolder {
 public:
  // Makes the folder if it is not there and takes a lock on it, which ends with the process. Changes no file; a
  // folder that was made here and stayed empty is removed at the end.
  // Throws Error (environment) when it cannot be written to or another process trains in it.
  explicit RunFolder(std::filesystem::path path);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Whether one of the files above is there.
  bool holds_run() const;

  // Starts a new run; the files of an earlier one are removed. Throws Error (bad input), with nothing
  // changed, when there is a config.json of something else.
  void begin(const RunConfig& config);

  // The checkpoint of the run that is there, as Descent takes it over; none when the run was killed before its
  // first (or there is no run). Throws Error (bad input) when the configurations differ. Changes no file: whoever
  // resumes makes the Descent first, which may refuse the checkpoint, and then calls resume().
  std::optional<Checkpoint> checkpoint(const RunConfig& config) const;

  // Goes on with the run that is there from this checkpoint, or begins it anew without one.
  void resume(const RunConfig& config, const std::optional<Checkpoint>& checkpoint);

  // The end of the run that is there, if there is nothing left to do for `steps` steps with this
  // configuration: it took them all, or it diverged. Throws like checkpoint().
  std::optional<RunResult> finished(const RunConfig& config) const;

  void append(const Record& record);        // to metrics.jsonl, for those who watch
  void save(const Checkpoint& checkpoint);  // unless it is not finite

  // Writes all files of a run that ended or was interrupted.
  void finish(const Objective& objective, const Run& run, const Checkpoint& last, const RunConfig& config);
  void finish(const Attention& model, const Run& run, const Checkpoint& last, const RunConfig& config);

 private:
  void check_same_run(const RunConfig& config) const;
  void start_files(const RunConfig& config, const std::vector<Record>& records);

  std::filesystem::path path_;
  std::ofstream metrics_;
  std::vector<std::filesystem::path> made_;  // the folder and those above it that were not there
  int lock_ = -1;
};

// A run as it was left, for those who read.
struct SavedRun {
  RunConfig config;
  std::optional<RunResult> result;  // none while it runs, or after a kill
  std::int64_t step = 0;            // at which `parameters` were taken
  Parameters parameters;            // all blocks; empty when there is no checkpoint yet
  Matrix key_weights;               // A of a prompt; empty for the identity
  std::vector<Record> records;      // with all blocks, unless the run kept metrics only
};

// Reads final.npz and trace.npz of a run that has ended, and the checkpoint of one that has not. Throws Error
// (bad input) when `path` is no run folder or a file in it is damaged.
SavedRun load_run(const std::filesystem::path& path);

// Whether `path` is a folder with a config.json of ours.
bool is_run_folder(const std::filesystem::path& path);

}  // namespace attmirror
