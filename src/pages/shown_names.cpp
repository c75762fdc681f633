#include "pages/shown_names.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

using Names = std::pair<std::string_view, std::string_view>;

std::string with_spaces(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '_', ' ');
  return text;
}

template <std::size_t n>
std::string_view found(const std::array<Names, n>& names, std::string_view key) {
  const auto it = std::ranges::find(names, key, &Names::first);
  return it == names.end() ? std::string_view() : it->second;
}

// "its own max-margin solution", "the max-margin solution “nuclear”".
std::string solution_name(std::string_view name) {
  return name == "own" ? std::string("its own max-margin solution")
                       : fmt::format("the max-margin solution “{}”", name);
}

// What is measured of a solution; {} is its name.
constexpr std::array<Names, 10> of_solutions{
    {{"bregman", "divergence from {}"},
     {"correlation", "correlation with {}"},
     {"margin_ratio", "margin, as a share of the largest in the norm of {}"},
     {"norm", "norm of {}"},
     {"gap", "certified relative gap of {}"},
     {"rank", "rank of {}"},
     {"support", "support tokens of {}"},
     {"all_support", "share of runs where all tokens are support tokens of {}"},
     {"local", "share of runs whose tokens are locally optimal for {}"},
     {"status", "status of {}"}}};

constexpr std::array<Names, 11> of_runs{
    {{"loss", "loss"},
     {"final_loss", "loss at the end"},
     {"max_softmax", "largest attention probability, mean over queries"},
     {"norm", "norm of the weights in the run's geometry"},
     {"weight_norm", "norm of the weights in the run's geometry, at the end"},
     {"weight_rank", "rank of the weights at the end"},
     {"steps_taken", "steps taken"},
     {"run_status", "how the training ended"},
     {"global", "share of runs on the globally optimal tokens"},
     {"selected", "selected tokens"},
     {"optimal", "optimal tokens"}}};

constexpr std::array<Names, 9> of_settings{{{"lr", "learning rate"},
                                            {"p", "exponent p of the geometry"},
                                            {"dim", "dimension d"},
                                            {"samples", "number of sequences n"},
                                            {"tokens", "tokens T"},
                                            {"init_std", "standard deviation of the start"},
                                            {"init_seed", "seed of the start"},
                                            {"beta1", "β₁"},
                                            {"beta2", "β₂"}}};

}  // namespace

std::string metric_name(std::string_view column) {
  if (const std::string_view name = found(of_runs, column); !name.empty()) return std::string(name);
  const std::size_t point = column.find('.');
  if (point == std::string_view::npos) return with_spaces(column);
  const std::string_view owner = column.substr(0, point), what = column.substr(point + 1);
  if (owner == "margin") return fmt::format("margin in the norm {}", what);
  if (const std::string_view name = found(of_solutions, what); !name.empty())
    return fmt::format(fmt::runtime(name), solution_name(owner));
  return fmt::format("{} of {}", with_spaces(what), with_spaces(owner));
}

std::string setting_name(std::string_view column) {
  const std::string_view name = found(of_settings, column);
  return name.empty() ? with_spaces(column) : std::string(name);
}

bool is_solver_gap(std::string_view column) { return column.ends_with(".gap"); }

std::string norm_name(const Norm& norm) {
  if (!norm.is_entrywise()) return to_string(norm) + " norm";
  return std::isinf(norm.p()) ? std::string("ℓ∞") : fmt::format("ℓ{:g}", norm.p());
}

std::string short_number(double value) { return std::isfinite(value) ? fmt::format("{:.4g}", value) : "–"; }

std::string percent(double share) {
  return std::isfinite(share) ? fmt::format("{:.4g} %", 100 * share) : "–";
}

std::string count_of(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace attmirror
