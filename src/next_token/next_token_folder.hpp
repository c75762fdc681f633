// The folder that `attmirror next-token` leaves: files of its own, and a run folder for each stage. Internal.
//
//   config.json      everything that decides the run
//   sentences.txt    collocations and sentences, as the command reads them; vocabulary.txt: the words in order
//   embedding.npy    unless one-hot
//   W_ov/, W_kq/     the stages, or joint/: files of a run as `attmirror train` writes them
//   targets.npz      W_ov, W_kq: the max-margin solutions, with their multipliers
//   final.npz        W_ov, W_kq as trained
//   result.json      what --json prints
//
// config.json is the first of them to be written, so that a folder is known for what it is whenever its writer is
// killed; a run that goes on writes what is missing.
#pragma once

#include "base/json.hpp"
#include "base/result_folder.hpp"
#include <attmirror/descent/run_folder.hpp>
#include <attmirror/next_token/graph_svm.hpp>
#include <attmirror/next_token/model.hpp>
#include <attmirror/next_token/partial_order.hpp>
#include <attmirror/next_token/realizable.hpp>
#include <attmirror/next_token/sentences.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace attmirror {

// What decides a run, as its config.json has it.
struct NextTokenConfig {
  std::string source;  // the file, or how the sentences were generated
  std::int64_t vocabulary = 0, sentences = 0;
  std::optional<RealizableOptions> generator{};  // resolved; none for a file
  std::string collocations;                      // where they come from, in words
  std::string embedding;                         // "one-hot", "file:E.npy", ...
  std::int64_t dim = 0;
  std::optional<std::uint64_t> embedding_seed{};  // of a random one
  std::uint64_t data_fingerprint = 0;
  std::string stages, readout, targets, init;
  bool cyclic = false;
  std::uint64_t init_seed = 0;
  std::optional<std::string> optimizer_W_ov{};  // of two stages
  std::string optimizer;
  std::optional<std::int64_t> ov_steps{};
  std::int64_t steps = 0;
  double max_seconds = 0;
  std::string record;
  std::int64_t unseen = 0;
  std::string test;
};

// What a run is trained on; not owned.
struct NextTokenInput {
  const Vocabulary* vocabulary = nullptr;
  const Collocations* collocations = nullptr;
  const Sentences* sentences = nullptr;
  const Embedding* embedding = nullptr;

  std::uint64_t fingerprint() const;
};

// The max-margin problems that training goes to, as far as they were solved.
struct NextTokenTargets {
  std::optional<MarginSolution> W_ov, W_kq;
  std::optional<FinitePart> finite;  // of cyclic priorities with readout attention
};

// The folder of the whole while this process writes it; without a path nothing is written.
class NextTokenFolder {
 public:
  // Takes a lock on the folder. Throws Error: bad input, with nothing changed, where the folder holds a run and
  // `existing` is refuse, or files that are not ours, or the run to resume is another one than `config` describes;
  // environment where it cannot be written or another process writes to it.
  NextTokenFolder(std::filesystem::path path, const NextTokenConfig& config, ExistingResult existing);

  bool writes() const { return files_ != nullptr; }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path stage_path(Stage stage) const;

  // A new run: its data. One that is resumed has them, but for what its writer was killed before, and keeps all its
  // files until a stage goes on.
  void begin(const NextTokenInput& input);
  // Called by a stage that is about to train: from here on earlier answers are void.
  void go_on();
  void save(const NextTokenTargets& targets, const PartialOrders& orders) const;
  void finish(const Parameters& last, const Json& result) const;

  // Run folders stay open, and locked, until the whole ends.
  RunFolder& open(Stage stage);

 private:
  void refuse_files_of_others() const;
  void check_same_run() const;
  void write_missing(const NextTokenInput& input) const;

  std::filesystem::path path_;
  std::unique_ptr<ResultFolder> files_;
  Json config_;
  bool resumes_ = false, went_on_ = false;
  std::vector<std::unique_ptr<RunFolder>> stages_;
};

}  // namespace attmirror
