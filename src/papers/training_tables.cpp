// The trainings of a study in tables: by optimizer, against l1.1 mirror descent, one by one.
#include "papers/training_views.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

// "72.2 ± 1.3", or how many got there.
std::string epochs_cell(const TrainingGroup& group) {
  const SampleSummary epochs = group.counts(&TrainingRecord::epochs_to_stop);
  if (epochs.count == std::ssize(group.runs)) return mean_text(epochs, 1);
  return fmt::format("{} of {} got there", epochs.count, group.runs.size());
}

}  // namespace

Table training_optimizer_table(const std::vector<TrainingGroup>& groups) {
  Table table;
  table.title = "Optimizers: means over seeds, with half of their 95 % intervals";
  table.columns = {
      {"optimizer", Align::left}, {"trainings"},     {"learning rate"},    {"best test, %"},
      {"last epoch, %"},          {"last ten, %"},   {"epochs to 99.5 %"}, {"token-selection score"},
      {"weights above 0.06, %"},  {"Hoyer sparsity"}};
  for (const TrainingGroup& group : groups) {
    table.rows.push_back({group.name, trainings_cell(group), cell_of(group.any().lr, "{:g}"),
                          mean_text(group.percent(&TrainingRecord::best_test), 2),
                          mean_text(group.percent(&TrainingRecord::last_test), 2),
                          mean_text(group.percent(&TrainingRecord::last_ten_test), 2), epochs_cell(group),
                          mean_text(group.numbers(&TrainingRecord::score), 3),
                          mean_text(group.mean_above(), 2), mean_text(group.mean_sparsity(), 3)});
  }
  return table;
}

Table training_comparison_table(const std::vector<TrainingGroup>& groups) {
  Table table;
  table.title =
      "Test accuracy against that of ℓ1.1 mirror descent: Welch's 95 % intervals of the difference, in points";
  table.columns = {{"optimizer", Align::left}, {"measure", Align::left}};
  for (Column& column : comparison_columns()) table.columns.push_back(std::move(column));
  constexpr std::pair<const char*, RecordedNumber> measures[] = {
      {"best epoch", &TrainingRecord::best_test},
      {"last epoch", &TrainingRecord::last_test},
      {"mean of the last ten", &TrainingRecord::last_ten_test}};
  const TrainingGroup& base = group_of(groups, "md-1.1");
  for (const TrainingGroup& group : groups) {
    if (&group == &base || group.runs.size() < 2 || base.runs.size() < 2) continue;
    for (const auto& [name, member] : measures) {
      std::vector<std::string> row{group.name, name};
      for (std::string& cell : comparison_cells(welch(group.percent(member), base.percent(member))))
        row.push_back(std::move(cell));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

Table training_tuning_table(std::span<const TrainingRecord> records, std::string_view held_out) {
  Table table;
  table.title = fmt::format("Learning rates: best accuracy on {}", held_out);
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
        {optimizer_name(record.config), cell_of(record.lr, "{:g}"), std::to_string(record.epochs),
         record.status == RecordStatus::diverged ? "diverged" : percent_cell(record.best_validation),
         chosen ? "yes" : ""});
  }
  return table;
}

Table training_runs_table(std::span<const TrainingRecord> records) {
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

Table training_weights_table(std::span<const TrainingRecord> records) {
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

Table training_repeat_table(std::span<const TrainingRecord> records, const std::vector<TrainingGroup>& groups,
                            std::string_view measure, RecordedNumber member) {
  Table table;
  table.title = "Trained again with the same seed: a GPU adds in varying order";
  table.columns = {{"run", Align::left},   {fmt::format("{}, %", measure)}, {"again, %"},
                   {"difference, points"}, {"deviation of seeds, points"},  {"verdict", Align::left}};
  for (const TrainingRecord& record : records) {
    if (record.role != TrainingRole::repeat || !record.is_comparable()) continue;
    const TrainingGroup& group = group_of(groups, record.config);
    const auto first = std::ranges::find(group.runs, record.seed, &TrainingRecord::seed);
    if (first == group.runs.end() || !(record.*member) || !((*first)->*member)) continue;
    const double difference = 100 * (*(record.*member) - *((*first)->*member));
    const double deviation = group.percent(member).deviation;
    // Two seeds differ by more than twice this in one case of twenty.
    const double noise = std::sqrt(2.0) * deviation;
    table.rows.push_back({(*first)->run, percent_cell((*first)->*member), percent_cell(record.*member),
                          fmt::format("{:+.2f}", difference),
                          std::isnan(deviation) ? "–" : fmt::format("{:.2f}", deviation),
                          std::isnan(noise)                   ? "one seed"
                          : std::abs(difference) <= 2 * noise ? "within the noise of seeds"
                                                              : "more than the noise of seeds"});
  }
  return table;
}

}  // namespace attmirror
