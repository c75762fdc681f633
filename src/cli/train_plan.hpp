// From the words of `attmirror train` to the objects of the library.
#pragma once

#include "cli/optimizer_options.hpp"
#include "cli/options.hpp"
#include <attmirror/descent/model_words.hpp>
#include <attmirror/descent/run_config.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace attmirror::cli {

struct TrainOptions {
  CommonOptions common;
  std::filesystem::path data;

  OptimizerOptions optimizer;

  std::string params = "W";
  std::int64_t rank = 0;
  std::filesystem::path key_weights;
  std::string loss = "logistic";
  std::string head = "linear";
  std::string mask = "none";
  bool scaled = false;
  double penalty = 0;
  std::string train;  // empty: all blocks of the attention, v fixed
  std::string init;   // empty: zero, or uniform for KQ
  std::uint64_t init_seed = 0;

  std::int64_t steps = 1000;
  double saturation = 0, max_seconds = 0;
  std::string record = "log", keep = "parameters";
  std::string data_path = "auto", storage = "float64";

  double checkpoint_every = 30;
  bool resume = false, overwrite = false;
  std::filesystem::path output;
};

// What commands that keep a run have in common. Throws Error (bad input) for values and combinations that make no sense.
struct RunOptions {
  std::filesystem::path output;
  bool resume = false, overwrite = false;
  double max_seconds = 0, checkpoint_every = 0;
};
void check_run_options(const CLI::App& app, const RunOptions& options);

// Declares the options. Which of them were given matters where one excludes another.
void add_train_options(CLI::App& app, TrainOptions& options);

struct TrainPlan {
  ModelPlan model;
  Optimizer optimizer;
  DescentOptions descent;
  RunSources sources;
};

// Throws Error (bad input) for words that do not parse and options that exclude each other, before any data
// are read.
TrainPlan make_plan(const CLI::App& app, const TrainOptions& options);

// Throws Error (bad input) when the records of a run with such blocks would not fit into memory.
void check_record_memory(const std::vector<BlockShape>& blocks, const DescentOptions& options);

}  // namespace attmirror::cli
