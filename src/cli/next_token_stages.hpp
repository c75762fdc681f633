// The stages of `attmirror next-token`, each a run folder below the folder of the whole.
//
//   config.json      everything that decides the run
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
  bool norm_grows_by_lr =
      false;  // every step has length lr in that norm: norm/(steps lr) says how straight they went
};

// The folder of the whole; without a path nothing is written.
class NextTokenFolder {
 public:
  // Throws Error (bad input), with nothing changed: the folder holds a run and neither resume nor overwrite is given, or
  // files that are not ours; or the run to resume is another one than `config` describes.
  NextTokenFolder(const NextTokenOptions& options, Json config);

  bool writes() const { return !path_.empty(); }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path stage_path(Stage stage) const;

  // A new run: its data. One that is resumed has them, and keeps all its files until a stage goes on.
  void begin(const Corpus& corpus, const Embedding& embedding);
  // Called by a stage that is about to train: from here on earlier answers are void.
  void go_on();
  void save(const Targets& targets, const PartialOrders& orders) const;
  void finish(const Parameters& last, const Json& result) const;

  // Run folders stay open, and locked, until the whole ends.
  RunFolder& open(Stage stage);

 private:
  std::filesystem::path path_;
  Json config_;
  bool resumes_ = false, went_on_ = false;
  std::vector<std::unique_ptr<RunFolder>> stages_;
};

// Everything that decides the run. `stages` are those of the plan, in order.
Json next_token_config(const NextTokenOptions& options, const NextTokenPlan& plan, const Corpus& corpus,
                       const Embedding& embedding, const std::vector<StageOptions>& stages);

// Runs or resumes one stage. `given` has the weights that it starts from, or is frozen at.
StageOutcome run_stage(const NextTokenModel& model, const NextTokenMeasures& measures,
                       const StageOptions& stage, const Parameters& given, const NextTokenOptions& options,
                       NextTokenFolder& folder);

}  // namespace attmirror::cli
