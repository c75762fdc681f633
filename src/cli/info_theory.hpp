// attmirror info DATA --theory: which assumptions of the papers' theorems the data satisfy.
#pragma once

#include "cli/info_results.hpp"
#include "cli/options.hpp"

#include <filesystem>
#include <string>

namespace attmirror::cli {

struct TheoryCommand {
  bool on = false;
  std::string params = "W", select = "global", mask = "none";
  std::filesystem::path key_weights;
  double lr = 0;
};

void add_theory_options(CLI::App& app, TheoryCommand& options);

// Refuses options of --theory without it. Throws Error (bad input).
void check_theory_options(const CLI::App& app, const TheoryCommand& options);

// Adds the assumptions to what `info` says of the dataset at `path`.
void add_theory(const CLI::App& app, const TheoryCommand& options, const std::filesystem::path& path,
                int threads, InfoAnswer& answer);

}  // namespace attmirror::cli
