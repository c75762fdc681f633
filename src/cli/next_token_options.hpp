// The options of `attmirror next-token`.
#pragma once

#include "cli/field_options.hpp"
#include "cli/options.hpp"
#include <attmirror/next_token/embedding.hpp>
#include <attmirror/next_token/model.hpp>
#include <attmirror/next_token/realizable.hpp>
#include <attmirror/next_token/sentence_text.hpp>
#include <attmirror/next_token/two_stage.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace attmirror::cli {

struct NextTokenOptions {
  CommonOptions common;
  std::filesystem::path file;  // of sentences; empty: they are generated

  std::int64_t vocab = 20, sentences = 100, optimal = 0, non_optimal = 0;
  std::string lengths = "4:6", order = "three-class", successor = "permutation", repetition = "allowed";
  std::uint64_t seed = 1;

  std::string collocations = "auto";
  std::filesystem::path vocabulary, test;
  std::int64_t unseen = 1000;
  bool cyclic = false, skip_unexplained = false;

  std::string embedding = "one-hot";
  std::int64_t dim = 0;
  std::uint64_t embedding_seed = 1;

  std::string stages = "two", readout = "softmax", targets = "auto";
  Given optimizer;
  std::int64_t steps = 3000, ov_steps = 3000;
  double ov_lr = 0;
  std::string init = "zero";
  std::uint64_t init_seed = 0;
  double max_seconds = 0;

  std::string record = "log", keep = "auto";
  double checkpoint_every = 30;
  bool resume = false, overwrite = false;
  std::filesystem::path output;
};

void add_next_token_options(CLI::App& app, NextTokenOptions& options);

enum class TargetPolicy { automatic, on, off };

// What the words mean, before any data are read. Step sizes that were not given depend on the dimension:
// see stage_options().
struct NextTokenPlan {
  RealizableOptions realizable;  // of generated data
  SentenceTextOptions text;      // of a file
  EmbeddingOptions embedding;
  std::vector<Stage> stages;
  Readout readout = Readout::softmax;
  TargetPolicy targets = TargetPolicy::automatic;
  Optimizer optimizer;
  bool lr_is_given = false, ov_lr_is_given = false;
  bool keep_is_given = false;
  DescentOptions descent;  // of every stage, but for its steps
  std::int64_t steps = 0, ov_steps = 0;
  double ov_lr = 0;
};

// Throws Error (bad input) for words that do not parse and options that exclude each other.
NextTokenPlan make_next_token_plan(const CLI::App& app, const NextTokenOptions& options);

// Optimizer, steps and records of a stage, for a model of these blocks.
StageOptions stage_options(const NextTokenPlan& plan, const NextTokenModel& model);

}  // namespace attmirror::cli
