// The searches of docs/results/imdb_clean: every configuration is tuned by at most so many trainings with one seed, and
// the accuracy on held-out reviews after the last epoch decides. Internal.
#pragma once

#include "papers/training_groups.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attmirror {

// At most so many trainings choose the settings of a configuration (docs/results/imdb_clean/plan.toml).
inline constexpr std::size_t search_budget = 10;

// All tuning runs of one configuration.
struct ImdbSearch {
  std::string config;
  TrainingOptimizer optimizer;
  std::vector<const TrainingRecord*> trials;  // in the order of the records
  // The highest accuracy after the last epoch; of several, the one whose settings the main trainings have, then the
  // first. None: no trial came to its end.
  const TrainingRecord* winner = nullptr;

  // Trials of an earlier try of the search, which a note says, do not count in its budget.
  std::size_t counted_trials() const;
  double accuracy() const;  // the winner's, a share; NaN where there is none
};

// After the last epoch, on the reviews that were held out; none for a training that did not come to its end.
std::optional<double> final_validation(const TrainingRecord& record);
// The first epoch after which the accuracy on them was at least so high.
std::optional<std::int64_t> epochs_to(const TrainingRecord& record, double accuracy);

// In the order of families, and of p in each. The records must outlive the searches.
std::vector<ImdbSearch> imdb_searches(std::span<const TrainingRecord> records);
const ImdbSearch* search_of(const std::vector<ImdbSearch>& searches, std::string_view config);
// The one with the most accurate winner among those of a family; none where no trial came to its end.
const ImdbSearch* best_search(const std::vector<ImdbSearch>& searches, OptimizerFamily family);

// Where the winner's learning rate is among those that were tried.
enum class RatePlace { inside, smallest, largest, only };
RatePlace rate_place(const ImdbSearch& search);
std::string_view to_string(RatePlace place);

// KEY=VALUE, divided by blanks; a value may have blanks, too.
std::vector<std::pair<std::string, std::string>> parse_settings(std::string_view settings);
// "lr 0.002, embeddings 0.02, no weight decay": as people say it. The embeddings' number is the deviation they begin with.
std::string settings_text(std::string_view settings);

}  // namespace attmirror
