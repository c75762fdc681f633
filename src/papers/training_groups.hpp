// Trainings by optimizer, and what the pages of all studies say of them: docs/results/imdb (p1-imdb),
// docs/results/imdb_depth (p1-imdb-depth), docs/results/imdb_clean (imdb-clean) and docs/results/cifar (p1-cifar,
// p2-vit). Internal.
#pragma once

#include "papers/records.hpp"
#include "papers/welch.hpp"
#include <attmirror/base/table.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace attmirror {

// Kinds of optimizers, in the order of tables: mirror descents, then the others by name.
enum class OptimizerFamily {
  plain,
  momentum,
  normalized,
  normalized_momentum,
  two_p,  // one p for the maps Q, K and V, another for the rest; normalized, with momentum
  adam,
  adamw,
  muon,
  sgd_momentum,
  signum,
  unknown,
};
inline constexpr std::size_t optimizer_family_count = static_cast<std::size_t>(OptimizerFamily::unknown);
std::string_view to_string(OptimizerFamily family);     // "plain mirror descent", "Adam", ...
std::string_view variant_name(OptimizerFamily family);  // among mirror descents: "plain", "normalized", ...

// What a configuration says by its name: "md-1.1", "md-normalized-momentum-1.1", "md-two-1.1-2", "adamw", "adamw-blocks",
// "md-1.1-6blocks", "adam-1e-4-6blocks" (its learning rate).
struct TrainingOptimizer {
  OptimizerFamily family = OptimizerFamily::unknown;
  std::vector<double> p;   // of mirror descents: one, or that of attention and that of the rest
  std::string name;        // "ℓ1.1 mirror descent"; for an unknown one its configuration
  bool by_blocks = false;  // tuned on blocks of neighboring reviews instead of every fifth
  int blocks = 3;          // of the network

  // A mirror descent with p = 2 is gradient descent, which nobody needs this library for.
  bool is_mirror_descent() const;
  // Its place among mirror descents of one p, where SGD with momentum is the variant with momentum for p = 2; none for
  // the others.
  std::optional<std::pair<OptimizerFamily, double>> variant_and_p() const;
};
TrainingOptimizer training_optimizer(std::string_view config);
std::string optimizer_name(std::string_view config);

// A number that each training has, one of these two kinds.
using RecordedNumber = std::optional<double> TrainingRecord::*;
using RecordedCount = std::optional<std::int64_t> TrainingRecord::*;

// The trainings of one configuration that have one role.
struct TrainingGroup {
  std::string config, name;                   // "md-1.1", "ℓ1.1 mirror descent"
  std::vector<const TrainingRecord*> runs;    // that came to their end: what means are over
  std::vector<const TrainingRecord*> others;  // that diverged, were stopped or failed

  // Of those that did not come to their end, the ones that a study counts all the same are among the runs from now on.
  void count_also(const std::function<bool(const TrainingRecord&)>& counts);

  // Accuracies in percent; what a training has not is left out.
  SampleSummary percent(RecordedNumber member) const;
  SampleSummary numbers(RecordedNumber member) const;
  SampleSummary counts(RecordedCount member) const;
  SampleSummary mean_sparsity() const;  // Hoyer's, mean of K, Q and V
  SampleSummary mean_above() const;     // weights above 0.06, share of K, Q and V together, in percent
  // Of one map, 0 to 2 for K, Q and V.
  SampleSummary map_count(std::size_t map) const;    // weights above 0.06
  SampleSummary map_largest(std::size_t map) const;  // |w|
  SampleSummary map_sparsity(std::size_t map) const;
  SampleSummary map_above(std::size_t map) const;  // in percent
  // A training of the group, one that came to its end where there is one.
  const TrainingRecord& any() const { return runs.empty() ? *others.front() : *runs.front(); }
};

// In the order of families, and of p in each. The records must outlive the groups.
std::vector<TrainingGroup> training_groups(std::span<const TrainingRecord> records,
                                           TrainingRole role = TrainingRole::main);
// Throws Error (bad input) where there is none.
const TrainingGroup& group_of(const std::vector<TrainingGroup>& groups, std::string_view config);

// 1: all of the interval is above 0, -1: below, 0: it contains 0.
int sign_of(const WelchComparison& comparison);
// "+1.72 points (95 % interval 1.51 to 1.93)"
std::string difference_text(const WelchComparison& comparison);
// "1.72 points higher (95 % interval 1.51 to 1.93)"
std::string higher_text(const WelchComparison& comparison);
// "holds", "is contradicted" or "is not decided"
std::string_view claim_word(const WelchComparison& comparison);
// P1's claim by best epochs, with `where` behind it, and by last ones where these say something else.
std::string claim_verdict(const WelchComparison& best, const WelchComparison& last_ten,
                          std::string_view where);
// Of another optimizer, compared with l1.1 mirror descent: "generalizes better than ℓ1.1 mirror descent".
std::string_view beside_mirror_descent(const WelchComparison& best, const WelchComparison& last_ten);
// "83.41 ± 0.11": the mean, and half of its 95 % interval; "–" for nothing.
std::string mean_text(const SampleSummary& sample, int decimals);
// The standard error of the mean; 0 for a single number.
double error_of(const SampleSummary& sample);

// The columns difference, interval, degrees of freedom, p-value and verdict, and their cells with so many decimals.
std::vector<Column> comparison_columns();
std::vector<std::string> comparison_cells(const WelchComparison& comparison, int decimals = 2);

// "83.41" for 0.8341, "–" for nothing.
std::string percent_cell(const std::optional<double>& share);
template <class Number>
std::string cell_of(const std::optional<Number>& number, const char* format) {
  return number ? fmt::format(fmt::runtime(format), *number) : "–";
}
// "5", or "4 of 5" where some did not come to their end.
std::string trainings_cell(const TrainingGroup& group);

// "NVIDIA H200", "2026-11-17, 2026-11-18"
std::string distinct_text(std::span<const TrainingRecord> records, std::string TrainingRecord::*member);
// A group among the settings of a page: its name, and "configs/md-1.1.toml, learning rate 0.0008, seeds 1, 2".
std::pair<std::string, std::string> group_configuration(const TrainingGroup& group);
// What a network is tested on, and the accuracy that it exceeds once it has learnt anything.
struct TestRows {
  std::string_view name;  // "test reviews"
  double chance;
};
inline constexpr TestRows imdb_test_rows{"test reviews", 0.51};  // two classes, and 25,000 reviews
// Which main trainings are in no mean, and why.
std::string left_out_remark(const std::vector<TrainingGroup>& groups, const TestRows& rows = imdb_test_rows);

}  // namespace attmirror
