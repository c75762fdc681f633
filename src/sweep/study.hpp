// A study of one dataset: several optimizers, each from several random starts, held against the max-margin
// solutions of their own norms. It is a sweep whose file is written from a few words, and whose results are
// read back by optimizer. Internal.
#pragma once

#include "descent/optimizer_words.hpp"
#include <attmirror/sweep/database.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace attmirror {

struct StudyOptions {
  std::string file;  // the dataset, as the sweep file names it: relative to its own folder
  std::vector<NamedOptimizer> optimizers;
  std::int64_t seeds = 10;      // random starts, the same for all optimizers
  std::int64_t steps = 20'000;  // of each run, as in which-margin
  std::optional<double> lr{};   // for all; else by the data's scale, for each optimizer by itself
  // As in `attmirror train`, of the fields loss and init. Without an init, starts are normal with a deviation
  // by the data's scale.
  Given model{};

  void validate() const;
};

inline constexpr std::string_view study_file_mark = "# Written by attmirror study";

// The sweep file. Throws Error (bad input) for optimizers that theory names no norm for, and for several
// seeds of starts that are not random.
std::string study_file(const Dataset& data, const StudyOptions& options);

// The runs of one optimizer.
struct StudyGroup {
  std::string word, title;  // md:1.1, ℓ1.1 mirror descent
  std::string norm;         // its own, as ℓ1.1
  double lr = 0;
  std::int64_t runs = 0, saturated = 0, optimal = 0;
  std::map<std::string, std::int64_t> statuses;
  // One for each start in ascending order of seeds: the margin in its own norm over the largest; NaN where
  // the run did not saturate, diverged or has no certified solution.
  std::vector<double> shares, divergences, correlations;
  // The divergence from each run's own max-margin solution during training, over the runs that have a share:
  // by step the values of all runs.
  std::map<double, std::vector<double>> curve;
};

struct Study {
  std::vector<StudyGroup> groups;   // in the order of their first runs
  std::vector<std::int64_t> seeds;  // of the starts
  std::int64_t runs = 0, steps = 0;
  std::map<std::string, std::int64_t> statuses;
};

Study read_study(const SweepDatabase& results);

}  // namespace attmirror
