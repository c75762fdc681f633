// An optimizer in words and numbers, as users name it: the options of `attmirror train` and the settings of a sweep.
//
//   const Optimizer optimizer = make_optimizer({.optimizer = "steepest", .norm = "nuclear", .lr = 0.01});
//
// A word that is empty was not given. The difference matters: a setting that an optimizer does not take would change
// nothing, and whoever gave it has misunderstood something, so it is refused.
#pragma once

#include <attmirror/descent/optimizer.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

struct OptimizerWords {
  std::optional<std::string> optimizer{};          // one of optimizer_methods(); md
  std::optional<std::string> geometry{};           // of md: lp, schatten or entropy; lp
  std::optional<double> p{};                       // of md with lp and schatten; 2
  std::optional<double> entropy_beta{};            // of md with entropy; 1
  std::optional<std::string> norm{};               // of steepest, which needs one
  std::optional<double> lr{};                      // 0.1
  std::optional<bool> normalized{};                // not of adam; false for md and gd, true for the others
  std::optional<std::string> momentum{};           // not of adam; none, and that of signum and muon
  std::optional<std::string> schedule{};           // constant
  std::optional<double> beta1{}, beta2{};          // of adam; 0.9, 0.999
  std::optional<std::string> orthogonalization{};  // of spectral directions; exact, newton-schulz for muon
  std::optional<std::string> eps{};                // exact or paper; exact
  std::optional<double> eps_value{};               // of normalized steps with eps paper
  std::optional<std::string> jacobian{};           // safe or textbook; as the eps policy says
  std::optional<std::string> powers{};             // of md with lp: fast or general; fast

  friend bool operator==(const OptimizerWords&, const OptimizerWords&) = default;
};

// md, gd, steepest, sign, coordinate, spectral, signum, muon, adam
const std::vector<std::string_view>& optimizer_methods();

// Throws Error (bad input) for words that do not parse, for settings that the optimizer does not take and for values
// out of range. Messages spell settings as the command does ("--entropy-beta").
Optimizer make_optimizer(const OptimizerWords& words);

// Every word that matters for this optimizer, defaults included; make_optimizer() gives an equal one. `method` is the
// word to use for it, which several may fit (sign descent is also steepest descent in the norm inf).
OptimizerWords words_of(const Optimizer& optimizer, std::string_view method);

}  // namespace attmirror
