// From the words of `attmirror train` to the objects of the library.
#pragma once

#include "cli/field_options.hpp"
#include "cli/options.hpp"
#include <attmirror/descent/run_config.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace attmirror::cli {

struct TrainOptions {
  CommonOptions common;
  std::filesystem::path data;

  Given given;  // of optimizer, model and length

  double checkpoint_every = 30;
  bool resume = false, overwrite = false;
  std::filesystem::path output;
};

// What commands that keep a run have in common. Throws Error (bad input) for values and combinations that make
// no sense.
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
