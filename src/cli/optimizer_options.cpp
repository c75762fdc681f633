#include "cli/optimizer_options.hpp"

#include <attmirror/base/error.hpp>
#include <attmirror/descent/optimizer_words.hpp>

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::cli {

namespace {

// The value of an option, if it was given: for the optimizer a default that was not asked for is no word.
template <class T>
std::optional<T> if_given(const CLI::App& app, const char* option, const T& value) {
  return app.count(option) > 0 ? std::optional(value) : std::nullopt;
}

// Normalized or not is one thing with two flags.
std::optional<bool> read_normalized(const OptimizerOptions& options) {
  const std::string& method = options.optimizer;
  const bool md = method == "md" || method == "gd", adam = method == "adam";
  if (options.unnormalized && method != "steepest")
    throw bad_input(fmt::format(
        "unnormalized is given, but optimizer is {}: {}", method,
        md     ? "its steps are not normalized unless --normalized is given"
        : adam ? "its steps never depend on the gradient's size"
               : "its steps are normalized by definition; steepest takes any norm and --unnormalized"));
  if (options.normalized && options.unnormalized)
    throw bad_input("both --normalized and --unnormalized are given: expected one of them");
  if (options.normalized) return true;
  if (options.unnormalized) return false;
  return std::nullopt;
}

}  // namespace

void add_optimizer_options(CLI::App& app, OptimizerOptions& o) {
  const char* group = "Descent";
  add_text(app, "--optimizer", o.optimizer, fmt::format("{}", fmt::join(optimizer_methods(), "|")),
           "mirror descent, gradient descent, steepest descent in a norm, or one of those by name")
      ->group(group);
  add_text(app, "--geometry", o.geometry, "lp|schatten|entropy", "the potential of md")->group(group);
  add_number(app, "--p", o.p,
             "p of md's lp and schatten, 1 < p < infinity; near 1 gives sparse weights, or low rank")
      ->group(group);
  add_number(app, "--entropy-beta", o.entropy_beta,
             "of md's entropy: small is like l1, large like gradient descent")
      ->group(group);
  add_text(app, "--norm", o.norm, "1|2|inf|NUMBER|frobenius|nuclear|spectral|schatten:P",
           "of steepest: the norm that its steps are steepest in")
      ->group(group);
  add_number(app, "--lr", o.lr, "step size")->group(group);
  add_flag(app, "--normalized", o.normalized, "md, gd: divide each block's gradient by its dual norm")
      ->group(group);
  add_flag(app, "--unnormalized", o.unnormalized, "steepest: steps in proportion to the gradient's dual norm")
      ->group(group);
  add_text(app, "--momentum", o.momentum, "none|heavy-ball|heavy-ball:BETA|ema|ema:BETA",
           "step along M <- beta M + g, or an average; by default none, ema:0.9 for signum and ema:0.95 for "
           "muon; a word alone has beta 0.9")
      ->group(group);
  add_text(app, "--schedule", o.schedule, "constant|power|power:EXPONENT|polyak|polyak:LOWER",
           "power: lr (t+1)^-EXPONENT (0.5); polyak: lr (loss - LOWER) / |gradient|^2, LOWER 0")
      ->group(group);
  add_number(app, "--beta1", o.beta1, "of adam: weight of the past in the average of gradients")
      ->group(group);
  add_number(app, "--beta2", o.beta2, "of adam: weight of the past in the average of their squares")
      ->group(group);
  add_text(app, "--orthogonalization", o.orthogonalization, "exact|newton-schulz",
           "how spectral and muon find their direction; by default exact, and newton-schulz for muon")
      ->group(group);
  add_text(app, "--eps", o.eps, "exact|paper",
           "exact: normalized steps never freeze; paper: g/(|g| + eps) as the published code rounds it")
      ->group(group);
  add_number(app, "--eps-value", o.eps_value, "the eps of --eps paper; 1e-8 for adam")->group(group);
  add_text(app, "--jacobian", o.jacobian, "safe|textbook",
           "how the derivative of the softmax is evaluated; by default safe, and textbook for --eps paper")
      ->group(group);
  add_text(app, "--powers", o.powers, "fast|general",
           "general: no shortcuts for p = 2, 3, 3/2, 4/3, 4, 1.75, 1.1, to check them")
      ->group(group);
}

Optimizer make_optimizer(const CLI::App& app, const OptimizerOptions& o) {
  OptimizerWords words;
  words.optimizer = o.optimizer;
  words.geometry = if_given(app, "--geometry", o.geometry);
  words.p = if_given(app, "--p", o.p);
  words.entropy_beta = if_given(app, "--entropy-beta", o.entropy_beta);
  words.norm = if_given(app, "--norm", o.norm);
  words.lr = if_given(app, "--lr", o.lr);
  words.momentum = if_given(app, "--momentum", o.momentum);
  words.schedule = if_given(app, "--schedule", o.schedule);
  words.beta1 = if_given(app, "--beta1", o.beta1);
  words.beta2 = if_given(app, "--beta2", o.beta2);
  words.orthogonalization = if_given(app, "--orthogonalization", o.orthogonalization);
  words.eps = if_given(app, "--eps", o.eps);
  words.eps_value = if_given(app, "--eps-value", o.eps_value);
  words.jacobian = if_given(app, "--jacobian", o.jacobian);
  words.powers = if_given(app, "--powers", o.powers);
  if (std::ranges::find(optimizer_methods(), o.optimizer) != optimizer_methods().end())
    words.normalized = read_normalized(o);
  return make_optimizer(words);
}

}  // namespace attmirror::cli
