#include "papers/training_groups.hpp"

#include "papers/shorthand.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <fmt/ranges.h>

namespace attmirror {

namespace {

struct NamedOptimizer {
  const char *config, *name;
  OptimizerFamily family;
};
constexpr NamedOptimizer named_optimizers[] = {
    {"adam", "Adam", OptimizerFamily::adam},
    {"adamw", "AdamW", OptimizerFamily::adamw},
    {"muon", "Muon with AdamW", OptimizerFamily::muon},
    {"sgd-momentum", "SGD with momentum", OptimizerFamily::sgd_momentum},
    {"signum", "Signum", OptimizerFamily::signum}};

// What stands between "md-" and p; longer ones first.
constexpr std::pair<std::string_view, OptimizerFamily> mirror_words[] = {
    {"normalized-momentum-", OptimizerFamily::normalized_momentum},
    {"normalized-", OptimizerFamily::normalized},
    {"momentum-", OptimizerFamily::momentum},
    {"two-", OptimizerFamily::two_p},
    {"", OptimizerFamily::plain}};

// "1.1" or "1.1-2": the numbers, or none where a part is not one.
std::vector<double> parse_exponents(std::string_view text) {
  std::vector<double> numbers;
  while (true) {
    const std::string_view part = text.substr(0, text.find('-'));
    double value = 0;
    const auto [end, code] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (code != std::errc() || end != part.data() + part.size() || !(value > 1)) return {};
    numbers.push_back(value);
    if (part.size() == text.size()) return numbers;
    text.remove_prefix(part.size() + 1);
  }
}

std::string mirror_name(OptimizerFamily family, const std::vector<double>& p) {
  if (family == OptimizerFamily::two_p) return fmt::format("two-p mirror descent (ℓ{:g}, ℓ{:g})", p[0], p[1]);
  const bool gradient = p[0] == 2;
  std::string name = gradient ? "gradient descent" : fmt::format("ℓ{:g} mirror descent", p[0]);
  if (family == OptimizerFamily::normalized || family == OptimizerFamily::normalized_momentum)
    name = "normalized " + name;
  if (family == OptimizerFamily::momentum || family == OptimizerFamily::normalized_momentum)
    name += " with momentum";
  return gradient ? name + " (ℓ2)" : name;
}

template <class Value>
SampleSummary summary_over(const TrainingGroup& group, const Value& value) {
  std::vector<double> values;
  for (const TrainingRecord* run : group.runs)
    if (const std::optional<double> number = value(*run)) values.push_back(*number);
  return summarize(values);
}

// The mean over K, Q and V, where all three are known.
template <class Value>
std::optional<double> mean_of_maps(const TrainingRecord& record, const Value& value) {
  double sum = 0;
  for (const MapRecord& map : record.maps) {
    const std::optional<double> number = value(map);
    if (!number) return {};
    sum += *number / static_cast<double>(record.maps.size());
  }
  return sum;
}

std::optional<double> in_percent(const std::optional<double>& share) {
  return share ? std::optional(100 * *share) : std::nullopt;
}

// "muon-s3 (unfinished after 8 epochs, with 86.1 % of the test reviews right)"
std::string left_out_text(const TrainingRecord& record, const TestRows& rows) {
  std::string text = fmt::format("{} ({} after {}", record.run, to_string(record.status),
                                 counted(static_cast<std::uint64_t>(record.epochs), "epoch"));
  if (record.last_test)
    text += fmt::format(", with {:.1f} % of the {} right{}", 100 * *record.last_test, rows.name,
                        *record.last_test < rows.chance ? ", which is chance" : "");
  return text + ")";
}

}  // namespace

std::string_view to_string(OptimizerFamily family) {
  switch (family) {
    case OptimizerFamily::plain:
      return "plain mirror descent";
    case OptimizerFamily::momentum:
      return "mirror descent with momentum";
    case OptimizerFamily::normalized:
      return "normalized mirror descent";
    case OptimizerFamily::normalized_momentum:
      return "normalized mirror descent with momentum";
    case OptimizerFamily::two_p:
      return "two-p mirror descent";
    case OptimizerFamily::unknown:
      return "other";
    default:
      return std::ranges::find(named_optimizers, family, &NamedOptimizer::family)->name;
  }
}

std::string_view variant_name(OptimizerFamily family) {
  switch (family) {
    case OptimizerFamily::plain:
      return "plain";
    case OptimizerFamily::momentum:
      return "with momentum";
    case OptimizerFamily::normalized:
      return "normalized";
    case OptimizerFamily::normalized_momentum:
      return "normalized, with momentum";
    default:
      return to_string(family);
  }
}

bool TrainingOptimizer::is_mirror_descent() const {
  return std::ranges::any_of(p, [](double one) { return one != 2; });
}

std::optional<std::pair<OptimizerFamily, double>> TrainingOptimizer::variant_and_p() const {
  if (family == OptimizerFamily::sgd_momentum) return std::pair(OptimizerFamily::momentum, 2.0);
  return p.size() == 1 ? std::optional(std::pair(family, p[0])) : std::nullopt;
}

TrainingOptimizer training_optimizer(std::string_view config) {
  constexpr std::string_view ending = "-blocks";
  if (config.ends_with(ending)) {
    TrainingOptimizer optimizer = training_optimizer(config.substr(0, config.size() - ending.size()));
    optimizer.name += " (by blocks)";
    optimizer.by_blocks = true;
    return optimizer;
  }
  constexpr std::string_view blocks = "blocks";
  if (const std::size_t dash = config.rfind('-'); config.ends_with(blocks) && dash != config.npos) {
    const std::string_view digits = config.substr(dash + 1, config.size() - dash - 1 - blocks.size());
    int count = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (code == std::errc() && end == digits.data() + digits.size() && count > 0) {
      TrainingOptimizer optimizer = training_optimizer(config.substr(0, dash));
      optimizer.name += fmt::format(", {}", counted(static_cast<std::uint64_t>(count), "block"));
      optimizer.blocks = count;
      return optimizer;
    }
  }
  for (const NamedOptimizer& known : named_optimizers)
    if (known.config == config) return {.family = known.family, .p = {}, .name = known.name};
  // "adam-1e-4": with another learning rate than the study's first.
  for (const NamedOptimizer& known : named_optimizers) {
    const std::string prefix = fmt::format("{}-", known.config);
    if (!config.starts_with(prefix)) continue;
    const std::string_view digits = config.substr(prefix.size());
    double rate = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), rate);
    if (code == std::errc() && end == digits.data() + digits.size() && rate > 0 && std::isfinite(rate))
      return {.family = known.family,
              .p = {},
              .name = fmt::format("{} with learning rate {:g}", known.name, rate)};
  }
  if (config.starts_with("md-"))
    for (const auto& [word, family] : mirror_words) {
      const std::string_view rest = config.substr(3);
      if (!rest.starts_with(word)) continue;
      const std::vector<double> p = parse_exponents(rest.substr(word.size()));
      if (p.size() == (family == OptimizerFamily::two_p ? 2u : 1u))
        return {.family = family, .p = p, .name = mirror_name(family, p)};
    }
  return {.family = OptimizerFamily::unknown, .p = {}, .name = std::string(config)};
}

std::string optimizer_name(std::string_view config) { return training_optimizer(config).name; }

SampleSummary TrainingGroup::percent(RecordedNumber member) const {
  return summary_over(*this, [&](const TrainingRecord& run) { return in_percent(run.*member); });
}

SampleSummary TrainingGroup::numbers(RecordedNumber member) const {
  return summary_over(*this, [&](const TrainingRecord& run) { return run.*member; });
}

SampleSummary TrainingGroup::counts(RecordedCount member) const {
  return summary_over(*this, [&](const TrainingRecord& run) {
    return run.*member ? std::optional(static_cast<double>(*(run.*member))) : std::nullopt;
  });
}

SampleSummary TrainingGroup::mean_sparsity() const {
  return summary_over(*this, [](const TrainingRecord& run) {
    return mean_of_maps(run, [](const MapRecord& map) { return map.sparsity; });
  });
}

SampleSummary TrainingGroup::mean_above() const {
  return summary_over(*this, [](const TrainingRecord& run) {
    return mean_of_maps(run, [](const MapRecord& map) { return in_percent(map.share); });
  });
}

SampleSummary TrainingGroup::map_count(std::size_t map) const {
  return summary_over(*this, [&](const TrainingRecord& run) {
    const std::optional<std::int64_t>& above = run.maps[map].above;
    return above ? std::optional(static_cast<double>(*above)) : std::nullopt;
  });
}

SampleSummary TrainingGroup::map_largest(std::size_t map) const {
  return summary_over(*this, [&](const TrainingRecord& run) { return run.maps[map].largest; });
}

void TrainingGroup::count_also(const std::function<bool(const TrainingRecord&)>& counts) {
  const auto moved =
      std::ranges::stable_partition(others, [&](const TrainingRecord* record) { return !counts(*record); });
  runs.insert(runs.end(), moved.begin(), moved.end());
  others.erase(moved.begin(), moved.end());
}

SampleSummary TrainingGroup::map_sparsity(std::size_t map) const {
  return summary_over(*this, [&](const TrainingRecord& run) { return run.maps[map].sparsity; });
}

SampleSummary TrainingGroup::map_above(std::size_t map) const {
  return summary_over(*this, [&](const TrainingRecord& run) { return in_percent(run.maps[map].share); });
}

std::vector<TrainingGroup> training_groups(std::span<const TrainingRecord> records, TrainingRole role) {
  std::map<std::tuple<OptimizerFamily, std::vector<double>, std::string>, TrainingGroup> groups;
  for (const TrainingRecord& record : records) {
    if (record.role != role) continue;
    const TrainingOptimizer optimizer = training_optimizer(record.config);
    TrainingGroup& group = groups[{optimizer.family, optimizer.p, record.config}];
    group.config = record.config;
    group.name = optimizer.name;
    (record.is_comparable() ? group.runs : group.others).push_back(&record);
  }
  std::vector<TrainingGroup> list;
  for (auto& [place, group] : groups) list.push_back(std::move(group));
  return list;
}

const TrainingGroup& group_of(const std::vector<TrainingGroup>& groups, std::string_view config) {
  const auto found = std::ranges::find(groups, config, &TrainingGroup::config);
  if (found == groups.end()) throw bad_input(fmt::format("the records have no main training of {}", config));
  return *found;
}

int sign_of(const WelchComparison& comparison) {
  return comparison.low > 0 ? 1 : comparison.high < 0 ? -1 : 0;
}

std::string difference_text(const WelchComparison& comparison) {
  return fmt::format("{:+.2f} points (95 % interval {:.2f} to {:.2f})", comparison.difference, comparison.low,
                     comparison.high);
}

std::string higher_text(const WelchComparison& comparison) {
  return fmt::format("{:.2f} points {} (95 % interval {:.2f} to {:.2f})", std::abs(comparison.difference),
                     comparison.difference < 0 ? "lower" : "higher", comparison.low, comparison.high);
}

std::string_view claim_word(const WelchComparison& comparison) {
  constexpr std::array<std::string_view, 3> words{"is contradicted", "is not decided", "holds"};
  return words[static_cast<std::size_t>(sign_of(comparison) + 1)];
}

std::string claim_verdict(const WelchComparison& best, const WelchComparison& last_ten,
                          std::string_view where) {
  std::string verdict = fmt::format("{}{}", claim_word(best), where);
  if (sign_of(best) != sign_of(last_ten))
    verdict += fmt::format(", by the best epoch of a run, which P1 reports, and {} by its last ten epochs",
                           claim_word(last_ten));
  return verdict;
}

std::string_view beside_mirror_descent(const WelchComparison& best, const WelchComparison& last_ten) {
  if (sign_of(best) != sign_of(last_ten))
    return "and ℓ1.1 mirror descent compare differently by their best and by their last epochs";
  constexpr std::array<std::string_view, 3> words{"generalizes worse than ℓ1.1 mirror descent",
                                                  "cannot be told from ℓ1.1 mirror descent",
                                                  "generalizes better than ℓ1.1 mirror descent"};
  return words[static_cast<std::size_t>(sign_of(best) + 1)];
}

std::string mean_text(const SampleSummary& sample, int decimals) {
  if (sample.count == 0) return "–";
  std::string text = fmt::format("{:.{}f}", sample.mean, decimals);
  if (sample.count > 1) text += fmt::format(" ± {:.{}f}", mean_reach(sample), decimals);
  return text;
}

double error_of(const SampleSummary& sample) {
  return sample.count < 2 ? 0 : sample.deviation / std::sqrt(static_cast<double>(sample.count));
}

std::vector<Column> comparison_columns() {
  return {{"difference"}, {"interval"}, {"degrees of freedom"}, {"p-value"}, {"verdict", Align::left}};
}

std::vector<std::string> comparison_cells(const WelchComparison& comparison, int decimals) {
  constexpr std::array verdicts{"lower", "not decided", "higher"};
  // A single training has no interval.
  if (std::isnan(comparison.freedom))
    return {fmt::format("{:+.{}f}", comparison.difference, decimals), "–", "–", "–", verdicts[1]};
  return {fmt::format("{:+.{}f}", comparison.difference, decimals),
          fmt::format("{:+.{}f} to {:+.{}f}", comparison.low, decimals, comparison.high, decimals),
          fmt::format("{:.1f}", comparison.freedom), fmt::format("{:.2g}", comparison.probability),
          verdicts[static_cast<std::size_t>(sign_of(comparison) + 1)]};
}

std::string percent_cell(const std::optional<double>& share) {
  return share ? fmt::format("{:.2f}", 100 * *share) : "–";
}

std::string trainings_cell(const TrainingGroup& group) {
  const std::size_t all = group.runs.size() + group.others.size();
  return group.others.empty() ? fmt::format("{}", all) : fmt::format("{} of {}", group.runs.size(), all);
}

std::string distinct_text(std::span<const TrainingRecord> records, std::string TrainingRecord::*member) {
  std::set<std::string> values;
  for (const TrainingRecord& record : records)
    if (!(record.*member).empty()) values.insert(record.*member);
  return fmt::format("{}", fmt::join(values, ", "));
}

std::pair<std::string, std::string> group_configuration(const TrainingGroup& group) {
  std::vector<std::string> seeds;
  std::set<double> rates;
  for (const auto* list : {&group.runs, &group.others})
    for (const TrainingRecord* record : *list) {
      seeds.push_back(std::to_string(record->seed));
      if (record->lr) rates.insert(*record->lr);
    }
  return {group.name, fmt::format("configs/{}.toml, learning rate {}, seeds {}", group.config,
                                  fmt::join(rates, ", "), fmt::join(seeds, ", "))};
}

std::string left_out_remark(const std::vector<TrainingGroup>& groups, const TestRows& rows) {
  std::vector<std::string> left_out;
  for (const TrainingGroup& group : groups)
    for (const TrainingRecord* record : group.others) left_out.push_back(left_out_text(*record, rows));
  return left_out.empty()
             ? "No main training was left out."
             : fmt::format("These main trainings are in no mean: {}.", fmt::join(left_out, ", "));
}

}  // namespace attmirror
