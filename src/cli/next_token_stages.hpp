// The stages of `attmirror next-token`, each a run folder below the folder of the whole.
//
//   config.json      format, what was asked
//   sentences.txt    collocations and sentences, as the command reads them; vocabulary.txt: the words in order
//   embedding.npy    unless one-hot
//   W_ov/, W_kq/     the stages, or joint/: files of a run as `attmirror train` writes them
//   targets.npz      W_ov, W_kq: the max-margin solutions, with their multipliers
//   final.npz        W_ov, W_kq as trained
//   result.json      what --json prints
#pragma once

#include "cli/next_token_data.hpp"
#include <attmirror/descent/run_folder.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace attmirror::cli {

struct StageOutcome {
  Stage stage = Stage::collocation;
  RunResult result;
  Parameters parameters;
  std::vector<Metric> metrics;  // of the last record
  double lr = 0;
  std::string norm_name;  // "‖W_kq‖_2"
};

// The folder of the whole; without a path nothing is written.
class NextTokenFolder {
 public:
  // Throws Error (bad input), with nothing changed, where the folder holds a run and neither resume nor overwrite is
  // given, or something that is not ours.
  explicit NextTokenFolder(const NextTokenOptions& options);

  bool writes() const { return !path_.empty(); }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path stage_path(Stage stage) const;

  void begin(const NextTokenOptions& options, const Corpus& corpus, const Embedding& embedding);
  void save(const Targets& targets) const;
  void finish(const Parameters& last, const Json& result) const;

  // Run folders stay open, and locked, until the whole ends.
  RunFolder& open(Stage stage);

 private:
  std::filesystem::path path_;
  std::vector<std::unique_ptr<RunFolder>> stages_;
};

// Runs or resumes one stage. `given` has the weights that it starts from, or is frozen at.
StageOutcome run_stage(const NextTokenModel& model, const NextTokenMeasures& measures,
                       const StageOptions& stage, const Parameters& given, const NextTokenOptions& options,
                       NextTokenFolder& folder);

}  // namespace attmirror::cli
