// A run as a folder that survives kill -9 at any moment and can be read while it grows.
//
//   config.json      everything resolved (descent/run_config.hpp)
//   metrics.jsonl    a line per record: step, loss, max_softmax, norm, the model's own metrics; no clock times, equal
//                    runs are equal
//   trace.npz        step, loss, max_softmax, norm, metrics and each trained block by name, first axis = record
//   final.npz        trained blocks by name, `selected`, `step`; fixed blocks as fixed_v, ...; key_weights
//   checkpoint.npz   descent/checkpoint.hpp; stays after the end, so that the run can be continued
//   result.json      how it ended; what `attmirror train --json` prints
//
// Each file except metrics.jsonl is replaced as a whole. metrics.jsonl is appended to during the run, for
// anyone who watches it; the records that count are inside the checkpoint, from which it is rewritten when a
// run resumes or ends, so no record is duplicated or missing. result.json is removed first when a run begins
// or resumes and written last when it ends: while it exists, all other files belong to it.
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

// How near attention is to picking one token. A query is saturated where its largest probability is at least 0.9: from
// there on the other tokens move the prediction by a tenth at most, and the selection seldom changes any more.
struct Saturation {
  static constexpr double threshold = 0.9;
  std::int64_t queries = 0, unsaturated = 0;
  double smallest = 0;  // of the largest probabilities
};

// How a run ended, without its weights: what `attmirror train --json` prints and result.json holds.
struct RunResult {
  RunStatus status = RunStatus::completed;
  std::int64_t steps = 0;
  double loss = 0, max_softmax = 0, norm = 0, seconds = 0;
  Selection selected;                // empty when diverged
  std::optional<Selection> optimal;  // the tokens that are best for the run's v; none while v is 0
  bool globally_optimal() const { return optimal && *optimal == selected; }
  // None where it was not measured: sweeps do not ask, and neither did version 0.1.0.
  std::optional<Saturation> saturation{};
};

// The result.json of a run.
RunResult result_of(const Objective& objective, const DescentRun& run);
RunResult result_of(const Attention& model, const DescentRun& run);

// None where the weights are not finite, or the model has no attention.
std::optional<Saturation> saturation_of(const Objective& objective, const DescentRun& run);
std::optional<Saturation> saturation_of(const Attention& model, const DescentRun& run);

// One JSON object, whose keys docs/command.md lists: how it ended, `differences` of selected and optimal tokens,
// `unsaturated` and min_max_softmax (null where not measured), the configuration's optimizer and its numbers, params,
// isa, version; `output` is the folder, null for "". Numbers that are not finite are null.
std::string to_json(const RunResult& result, const RunConfig& config, const std::filesystem::path& output);

// What to_json() wrote. Throws Error (bad input) for anything else.
RunResult parse_result(std::string_view text);

class ResultFolder;

// The folder of a run that this process writes.
class RunFolder {
 public:
  // Makes the folder if it does not exist and takes a lock on it, which ends with the process. Changes no
  // file; a folder that was made here and stayed empty is removed at the end. Throws Error: environment when
  // it cannot be written to or another process writes to it; bad input when it holds a result of another
  // kind, or when one of the files above is a symbolic link.
  explicit RunFolder(std::filesystem::path path);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // Whether one of the files above exists.
  bool holds_run() const;

  // Starts a new run; the files of an earlier one are removed. Throws Error (bad input), with nothing
  // changed, when there is a config.json of something else.
  void begin(const RunConfig& config);

  // The checkpoint of the existing run, as Descent takes it; none when the run was killed before its first
  // checkpoint (or there is no run). Throws Error (bad input) when the configurations differ. Changes no
  // file: to resume, first make the Descent, which may refuse the checkpoint, and then call resume().
  std::optional<Checkpoint> checkpoint(const RunConfig& config) const;

  // Continues the existing run from this checkpoint, or starts it again without one.
  void resume(const RunConfig& config, const std::optional<Checkpoint>& checkpoint);

  // The end of the existing run, if there is nothing left to do for `steps` steps with this configuration: it
  // took them all, or it diverged. Throws like checkpoint().
  std::optional<RunResult> finished(const RunConfig& config) const;

  void append(const Record& record);        // to metrics.jsonl, for anyone who watches
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

// A run as it was left, for reading.
struct SavedRun {
  RunConfig config;
  std::optional<RunResult> result;  // none while it runs, or after a kill
  std::int64_t step = 0;            // at which `parameters` were taken
  Parameters parameters;            // all blocks; empty when there is no checkpoint yet
  Matrix key_weights;               // A of a prompt; empty for the identity
  std::vector<Record> records;      // with all blocks, unless the run kept metrics only
};

// Reads final.npz and trace.npz of a run that has ended, and the checkpoint of one that has not. Throws Error
// (bad input) when `path` is not a run folder or a file in it is damaged.
SavedRun load_run(const std::filesystem::path& path);

// Whether `path` is a folder with the config.json of a run.
bool is_run_folder(const std::filesystem::path& path);

}  // namespace attmirror
