#include "papers/imdb_search.hpp"

#include "base/numbers.hpp"
#include "report/short_numbers.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/ranges.h>

namespace attmirror {

namespace {

constexpr std::pair<std::string_view, std::string_view> setting_names[] = {
    {"optimizer.lr", "lr"},
    {"optimizer.attention_lr", "lr of Q, K and V"},
    {"optimizer.attention_p", "p of Q, K and V"},
    {"optimizer.other_lr", "lr of AdamW"},
    {"optimizer.betas", "β"},
    {"model.embedding_deviation", "embeddings"},
};

// "optimizer.weight_decay" is "weight decay".
std::string setting_name(std::string_view key) {
  for (const auto& [known, name] : setting_names)
    if (known == key) return std::string(name);
  std::string name(key.substr(key.find('.') + 1));
  std::ranges::replace(name, '_', ' ');
  return name;
}

bool is_main_of(const TrainingRecord& record, const TrainingRecord& trial) {
  return record.role == TrainingRole::main && record.config == trial.config && record.lr == trial.lr &&
         record.settings == trial.settings;
}

const TrainingRecord* winner_of(const std::vector<const TrainingRecord*>& trials,
                                std::span<const TrainingRecord> records) {
  const TrainingRecord* winner = nullptr;
  const auto is_trained = [&](const TrainingRecord& trial) {
    return std::ranges::any_of(records, [&](const auto& record) { return is_main_of(record, trial); });
  };
  for (const TrainingRecord* trial : trials) {
    const std::optional<double> accuracy = final_validation(*trial);
    if (!accuracy) continue;
    if (!winner || *accuracy > *final_validation(*winner) ||
        (*accuracy == *final_validation(*winner) && is_trained(*trial) && !is_trained(*winner)))
      winner = trial;
  }
  return winner;
}

}  // namespace

std::size_t ImdbSearch::counted_trials() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(trials, [](const TrainingRecord* trial) { return trial->note.empty(); }));
}

double ImdbSearch::accuracy() const { return winner ? *final_validation(*winner) : nan_value; }

std::optional<double> final_validation(const TrainingRecord& record) {
  const bool ended =
      record.status == RecordStatus::completed || record.status == RecordStatus::reached_accuracy;
  return ended && !record.curve.empty() ? record.curve.back().validation_accuracy : std::nullopt;
}

std::optional<std::int64_t> epochs_to(const TrainingRecord& record, double accuracy) {
  for (const EpochRecord& epoch : record.curve)
    if (epoch.validation_accuracy && *epoch.validation_accuracy >= accuracy) return epoch.epoch;
  return {};
}

std::vector<ImdbSearch> imdb_searches(std::span<const TrainingRecord> records) {
  std::map<std::tuple<OptimizerFamily, std::vector<double>, std::string>, ImdbSearch> searches;
  for (const TrainingRecord& record : records) {
    if (record.role != TrainingRole::tuning) continue;
    TrainingOptimizer optimizer = training_optimizer(record.config);
    ImdbSearch& search = searches[{optimizer.family, optimizer.p, record.config}];
    search.config = record.config;
    search.optimizer = std::move(optimizer);
    search.trials.push_back(&record);
  }
  std::vector<ImdbSearch> list;
  for (auto& [place, search] : searches) {
    search.winner = winner_of(search.trials, records);
    list.push_back(std::move(search));
  }
  return list;
}

const ImdbSearch* search_of(const std::vector<ImdbSearch>& searches, std::string_view config) {
  const auto found = std::ranges::find(searches, config, &ImdbSearch::config);
  return found == searches.end() ? nullptr : &*found;
}

const ImdbSearch* best_search(const std::vector<ImdbSearch>& searches, OptimizerFamily family) {
  const ImdbSearch* best = nullptr;
  for (const ImdbSearch& search : searches)
    if (search.optimizer.family == family && search.winner && (!best || search.accuracy() > best->accuracy()))
      best = &search;
  return best;
}

RatePlace rate_place(const ImdbSearch& search) {
  bool below = false, above = false;
  for (const TrainingRecord* trial : search.trials) {
    below = below || (trial->lr && *trial->lr < search.winner->lr.value_or(0));
    above = above || (trial->lr && *trial->lr > search.winner->lr.value_or(0));
  }
  return below && above ? RatePlace::inside
         : below        ? RatePlace::largest
         : above        ? RatePlace::smallest
                        : RatePlace::only;
}

std::string_view to_string(RatePlace place) {
  switch (place) {
    case RatePlace::inside:
      return "between others";
    case RatePlace::smallest:
      return "the smallest";
    case RatePlace::largest:
      return "the largest";
    case RatePlace::only:
      return "the only one";
  }
  return "?";
}

std::vector<std::pair<std::string, std::string>> parse_settings(std::string_view settings) {
  std::vector<std::pair<std::string, std::string>> list;
  while (!settings.empty()) {
    const std::string_view word = settings.substr(0, settings.find(' '));
    settings.remove_prefix(std::min(word.size() + 1, settings.size()));
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos)
      list.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    else if (!list.empty() && !word.empty())  // "optimizer.betas=[0.9, 0.98]"
      list.back().second += fmt::format(" {}", word);
  }
  return list;
}

std::string settings_text(std::string_view settings) {
  // "[0.9, 0.98]" and "0.9,0.98" are "0.9 and 0.98"; a number has the digits that mean something.
  const auto shown = [](std::string_view value) {
    std::string text;
    for (const char letter : value) {
      if (letter == ',')
        text += " and ";
      else if (letter != '[' && letter != ']' && letter != ' ')
        text += letter;
    }
    return with_short_numbers(text);
  };
  std::vector<std::string> parts;
  for (const auto& [key, value] : parse_settings(settings))
    parts.push_back(value == "0" || value == "0.0" ? fmt::format("no {}", setting_name(key))
                                                   : fmt::format("{} {}", setting_name(key), shown(value)));
  return parts.empty() ? "–" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace attmirror
