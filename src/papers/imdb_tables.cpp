// The trainings of docs/results/imdb in tables: by optimizer, against l1.1 mirror descent, one by one.
#include "base/numbers.hpp"
#include "papers/imdb_study.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::pair<const char*, const char*> imdb_names[] = {{"md-1.1", "ℓ1.1 mirror descent"},
                                                              {"md-2", "gradient descent (ℓ2)"},
                                                              {"md-3", "ℓ3 mirror descent"},
                                                              {"adam", "Adam"},
                                                              {"adamw", "AdamW"},
                                                              {"muon", "Muon with AdamW"},
                                                              {"sgd-momentum", "SGD with momentum"}};

template <class Value>
SampleSummary summary_over(const ImdbGroup& group, const Value& value) {
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

std::string percent_cell(const std::optional<double>& share) {
  return share ? fmt::format("{:.2f}", 100 * *share) : "–";
}

template <class Number>
std::string cell_of(const std::optional<Number>& number, const char* format) {
  return number ? fmt::format(fmt::runtime(format), *number) : "–";
}

// "72.2 ± 1.3", or how many got there.
std::string epochs_cell(const ImdbGroup& group) {
  const SampleSummary epochs = group.counts(&TrainingRecord::epochs_to_stop);
  if (epochs.count == std::ssize(group.runs)) return mean_text(epochs, 1);
  return fmt::format("{} of {} got there", epochs.count, group.runs.size());
}

std::string comparison_verdict(const WelchComparison& comparison) {
  return comparison.low > 0 ? "higher" : comparison.high < 0 ? "lower" : "not decided";
}

}  // namespace

SampleSummary ImdbGroup::percent(RecordedNumber member) const {
  return summary_over(*this, [&](const TrainingRecord& run) {
    return run.*member ? std::optional(100 * *(run.*member)) : std::nullopt;
  });
}

SampleSummary ImdbGroup::numbers(RecordedNumber member) const {
  return summary_over(*this, [&](const TrainingRecord& run) { return run.*member; });
}

SampleSummary ImdbGroup::counts(RecordedCount member) const {
  return summary_over(*this, [&](const TrainingRecord& run) {
    return run.*member ? std::optional(static_cast<double>(*(run.*member))) : std::nullopt;
  });
}

SampleSummary ImdbGroup::mean_sparsity() const {
  return summary_over(*this, [](const TrainingRecord& run) {
    return mean_of_maps(run, [](const MapRecord& map) { return map.sparsity; });
  });
}

SampleSummary ImdbGroup::mean_above() const {
  return summary_over(*this, [](const TrainingRecord& run) {
    return mean_of_maps(
        run, [](const MapRecord& map) { return map.share ? std::optional(100 * *map.share) : std::nullopt; });
  });
}

std::string imdb_name(std::string_view config) {
  for (const auto& [id, name] : imdb_names)
    if (id == config) return name;
  return std::string(config);
}

std::vector<ImdbGroup> imdb_groups(std::span<const TrainingRecord> records) {
  std::map<std::tuple<std::size_t, std::string>, ImdbGroup> groups;
  for (const TrainingRecord& record : records) {
    if (record.role != TrainingRole::main) continue;
    const auto* known =
        std::ranges::find_if(imdb_names, [&](const auto& one) { return one.first == record.config; });
    ImdbGroup& group = groups[{static_cast<std::size_t>(known - std::begin(imdb_names)), record.config}];
    group.config = record.config;
    group.name = imdb_name(record.config);
    (record.is_comparable() ? group.runs : group.others).push_back(&record);
  }
  std::vector<ImdbGroup> list;
  for (auto& [place, group] : groups) list.push_back(std::move(group));
  return list;
}

const ImdbGroup& group_of(const std::vector<ImdbGroup>& groups, std::string_view config) {
  const auto found = std::ranges::find(groups, config, &ImdbGroup::config);
  if (found == groups.end()) throw bad_input(fmt::format("the records have no main training of {}", config));
  return *found;
}

std::string difference_text(const WelchComparison& comparison) {
  return fmt::format("{:+.2f} points (95 % interval {:.2f} to {:.2f})", comparison.difference, comparison.low,
                     comparison.high);
}

std::string mean_text(const SampleSummary& sample, int decimals) {
  if (sample.count == 0) return "–";
  std::string text = fmt::format("{:.{}f}", sample.mean, decimals);
  if (sample.count > 1) text += fmt::format(" ± {:.{}f}", mean_reach(sample), decimals);
  return text;
}

Table imdb_optimizer_table(const std::vector<ImdbGroup>& groups) {
  Table table;
  table.title = "Optimizers: means over seeds, with half of their 95 % intervals";
  table.columns = {
      {"optimizer", Align::left}, {"trainings"},     {"learning rate"},    {"best test, %"},
      {"last epoch, %"},          {"last ten, %"},   {"epochs to 99.5 %"}, {"token-selection score"},
      {"weights above 0.06, %"},  {"Hoyer sparsity"}};
  for (const ImdbGroup& group : groups) {
    const TrainingRecord& any = group.runs.empty() ? *group.others.front() : *group.runs.front();
    const std::size_t all = group.runs.size() + group.others.size();
    table.rows.push_back(
        {group.name,
         group.others.empty() ? fmt::format("{}", all) : fmt::format("{} of {}", group.runs.size(), all),
         cell_of(any.lr, "{:g}"), mean_text(group.percent(&TrainingRecord::best_test), 2),
         mean_text(group.percent(&TrainingRecord::last_test), 2),
         mean_text(group.percent(&TrainingRecord::last_ten_test), 2), epochs_cell(group),
         mean_text(group.numbers(&TrainingRecord::score), 3), mean_text(group.mean_above(), 2),
         mean_text(group.mean_sparsity(), 3)});
  }
  return table;
}

Table imdb_comparison_table(const std::vector<ImdbGroup>& groups) {
  Table table;
  table.title =
      "Test accuracy against that of ℓ1.1 mirror descent: Welch's 95 % intervals of the difference, in points";
  table.columns = {{"optimizer", Align::left},
                   {"measure", Align::left},
                   {"difference"},
                   {"interval"},
                   {"degrees of freedom"},
                   {"p-value"},
                   {"verdict", Align::left}};
  constexpr std::pair<const char*, RecordedNumber> measures[] = {
      {"best epoch", &TrainingRecord::best_test},
      {"last epoch", &TrainingRecord::last_test},
      {"mean of the last ten", &TrainingRecord::last_ten_test}};
  const ImdbGroup& base = group_of(groups, "md-1.1");
  for (const ImdbGroup& group : groups) {
    if (&group == &base || group.runs.size() < 2 || base.runs.size() < 2) continue;
    for (const auto& [name, member] : measures) {
      const WelchComparison comparison = welch(group.percent(member), base.percent(member));
      table.rows.push_back({group.name, name, fmt::format("{:+.2f}", comparison.difference),
                            fmt::format("{:+.2f} to {:+.2f}", comparison.low, comparison.high),
                            fmt::format("{:.1f}", comparison.freedom),
                            fmt::format("{:.2g}", comparison.probability), comparison_verdict(comparison)});
    }
  }
  return table;
}

Table imdb_tuning_table(std::span<const TrainingRecord> records) {
  Table table;
  table.title = "Learning rates: best accuracy on 5,000 held-out training reviews";
  table.columns = {{"optimizer", Align::left},
                   {"learning rate"},
                   {"epochs"},
                   {"validation accuracy, %"},
                   {"chosen", Align::left}};
  for (const TrainingRecord& record : records) {
    if (record.role != TrainingRole::tuning) continue;
    // The rate that main trainings of the same configuration have.
    const bool chosen = std::ranges::any_of(records, [&](const TrainingRecord& other) {
      return other.role == TrainingRole::main && other.config == record.config && other.lr == record.lr;
    });
    table.rows.push_back(
        {imdb_name(record.config), cell_of(record.lr, "{:g}"), std::to_string(record.epochs),
         record.status == RecordStatus::diverged ? "diverged" : percent_cell(record.best_validation),
         chosen ? "yes" : ""});
  }
  return table;
}

Table imdb_runs_table(std::span<const TrainingRecord> records) {
  Table table;
  table.title = "All trainings";
  table.columns = {{"run", Align::left},
                   {"status", Align::left},
                   {"learning rate"},
                   {"epochs"},
                   {"best test, %"},
                   {"at epoch"},
                   {"last, %"},
                   {"last ten, %"},
                   {"epochs to 99.5 %"},
                   {"validation, %"},
                   {"score"},
                   {"seconds"}};
  for (const TrainingRecord& record : records)
    table.rows.push_back({record.run, std::string(to_string(record.status)), cell_of(record.lr, "{:g}"),
                          std::to_string(record.epochs), percent_cell(record.best_test),
                          cell_of(record.best_epoch, "{}"), percent_cell(record.last_test),
                          percent_cell(record.last_ten_test), cell_of(record.epochs_to_stop, "{}"),
                          percent_cell(record.best_validation), cell_of(record.score, "{:.3f}"),
                          cell_of(record.seconds, "{:.0f}")});
  return table;
}

Table imdb_weights_table(std::span<const TrainingRecord> records) {
  Table table;
  table.title = "Weights of K, Q and V after the last epoch";
  table.columns = {{"run", Align::left}};
  for (const char* map : {"K", "Q", "V"})
    for (const char* what : {"above 0.06", "largest", "sparsity"})
      table.columns.push_back({fmt::format("{}: {}", map, what)});
  for (const TrainingRecord& record : records) {
    if (record.role == TrainingRole::tuning) continue;
    std::vector<std::string> row{record.run};
    for (const MapRecord& map : record.maps) {
      row.push_back(cell_of(map.above, "{}"));
      row.push_back(cell_of(map.largest, "{:.3f}"));
      row.push_back(cell_of(map.sparsity, "{:.3f}"));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table imdb_repeat_table(std::span<const TrainingRecord> records, const std::vector<ImdbGroup>& groups) {
  Table table;
  table.title = "Trained again with the same seed: a GPU adds in varying order";
  table.columns = {
      {"run", Align::left},           {"best test, %"},        {"again, %"}, {"difference, points"},
      {"deviation of seeds, points"}, {"verdict", Align::left}};
  for (const TrainingRecord& record : records) {
    if (record.role != TrainingRole::repeat || !record.is_comparable()) continue;
    const ImdbGroup& group = group_of(groups, record.config);
    const auto first = std::ranges::find(group.runs, record.seed, &TrainingRecord::seed);
    if (first == group.runs.end()) continue;
    const double difference = 100 * (*record.best_test - *(*first)->best_test);
    const double deviation = group.percent(&TrainingRecord::best_test).deviation;
    // Two seeds differ by more than twice this in one case of twenty.
    const double noise = std::sqrt(2.0) * deviation;
    table.rows.push_back({(*first)->run, percent_cell((*first)->best_test), percent_cell(record.best_test),
                          fmt::format("{:+.2f}", difference),
                          std::isnan(deviation) ? "–" : fmt::format("{:.2f}", deviation),
                          std::isnan(noise)                   ? "one seed"
                          : std::abs(difference) <= 2 * noise ? "within the noise of seeds"
                                                              : "more than the noise of seeds"});
  }
  return table;
}

}  // namespace attmirror
