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
// Each file but metrics.jsonl is replaced as a whole. metrics.jsonl is appended to while the run goes on, for those
// who watch it; what counts are the records inside the checkpoint, from which it is written anew when a run resumes
// or ends, so no record is there twice or missing. result.json is the first to be removed when a run begins or
// resumes and the last to be written when it ends: while it is there, all other files belong to it.
#pragma once

#include <attmirror/descent/checkpoint.hpp>
#include <attmirror/descent/run_config.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// How a run ended, without its weights: what `attmirror train --json` prints and result.json holds.
struct RunResult {
  RunStatus status = RunStatus::completed;
  std::int64_t steps = 0;
  double loss = 0, max_softmax = 0, norm = 0, seconds = 0;
  Selection selected;                // empty when diverged
  std::optional<Selection> optimal;  // the tokens that are best for the run's v; none while v is 0
  bool globally_optimal() const { return optimal && *optimal == selected; }
};

// The result.json of a run.
RunResult result_of(const Objective& objective, const DescentRun& run);
RunResult result_of(const Attention& model, const DescentRun& run);

// One JSON object: status, steps, loss, selected, max_softmax, norm, seconds, globally_optimal, optimal, and
// of the configuration optimizer, geometry (the norm that `norm` is), p, lr, normalized (null for Adam), params,
// isa, version; `output` is the folder, null for "". Numbers that are not finite are null.
std::string to_json(const RunResult& result, const RunConfig& config, const std::filesystem::path& output);

// What to_json() wrote. Throws Error (bad input) for anything else.
RunResult parse_result(std::string_view text);

class ResultFolder;

// The folder of a run that this process writes.
class RunFolder {
 public:
  // Makes the folder if it is not there and takes a lock on it, which ends with the process. Changes no file; a
  // folder that was made here and stayed empty is removed at the end. Throws Error: environment when it cannot be
  // written to or another process writes to it; bad input when it holds a result of another kind, or one of the files
  // above is a symbolic link.
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
  void finish(const Objective& objective, const DescentRun& run, const Checkpoint& last,
              const RunConfig& config);
  void finish(const Attention& model, const DescentRun& run, const Checkpoint& last, const RunConfig& config);

 private:
  void check_same_run(const RunConfig& config) const;
  void start_files(const RunConfig& config, const std::vector<Record>& records);

  std::unique_ptr<ResultFolder> files_;
  std::filesystem::path path_;
  std::ofstream metrics_;
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

// Whether `path` is a folder with the config.json of a run.
bool is_run_folder(const std::filesystem::path& path);

}  // namespace attmirror
