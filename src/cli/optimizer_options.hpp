// The options of the command that choose an optimizer.
#pragma once

#include "cli/options.hpp"
#include <attmirror/descent/optimizer.hpp>

#include <string>

namespace attmirror::cli {

struct OptimizerOptions {
  std::string optimizer = "md";
  std::string geometry = "lp";
  double p = 2, entropy_beta = 1;
  std::string norm;  // of steepest
  double lr = 0.1;
  bool normalized = false, unnormalized = false;
  std::string momentum;  // empty: none, and that of the named methods
  std::string schedule = "constant";
  double beta1 = 0.9, beta2 = 0.999;
  std::string orthogonalization;  // empty: exact, and newton-schulz for muon
  std::string eps = "exact";
  double eps_value = 0x1p-52;
  std::string jacobian;  // empty: as the eps policy says
  std::string powers = "fast";
};

void add_optimizer_options(CLI::App& app, OptimizerOptions& options);

// Throws Error (bad input) for words that do not parse and for options that the optimizer does not take: an
// option that would change nothing is a misunderstanding.
Optimizer make_optimizer(const CLI::App& app, const OptimizerOptions& options);

}  // namespace attmirror::cli
