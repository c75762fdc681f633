#include "papers/records.hpp"

#include "base/words.hpp"
#include "papers/record_rows.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::array record_roles{TrainingRole::main,     TrainingRole::tuning, TrainingRole::repeat,
                                  TrainingRole::ablation, TrainingRole::longer, TrainingRole::transfer};
constexpr std::array record_states{RecordStatus::completed, RecordStatus::reached_accuracy,
                                   RecordStatus::diverged, RecordStatus::unfinished, RecordStatus::failed};

using RunColumns = std::vector<RecordColumn<TrainingRecord>>;
using CurveColumns = std::vector<RecordColumn<std::pair<std::string, EpochRecord>>>;

RunColumns run_columns() {
  using R = TrainingRecord;
  using C = RecordCell;
  const auto share = [](std::optional<double> R::*member) {
    return [member](R& record, const C& cell) { record.*member = cell.share(); };
  };
  const auto number = [](std::optional<double> R::*member) {
    return [member](R& record, const C& cell) { record.*member = cell.number(); };
  };
  const auto count = [](std::optional<std::int64_t> R::*member) {
    return [member](R& record, const C& cell) { record.*member = cell.count(); };
  };
  const auto text = [](std::string R::*member) {
    return [member](R& record, const C& cell) { record.*member = cell.text; };
  };
  RunColumns columns{{"run", [](R& record, const C& cell) { record.run = cell.word(); }},
                     {"config", [](R& record, const C& cell) { record.config = cell.word(); }},
                     {"role", [](R& record, const C& cell) { record.role = cell.one_of(record_roles); }},
                     {"seed", [](R& record, const C& cell) { record.seed = cell.needed_count(); }},
                     {"lr", number(&R::lr)},
                     {"p", number(&R::p)},
                     {"data", text(&R::data), true},
                     {"settings", text(&R::settings), true},
                     {"state_bytes", count(&R::state_bytes), true},
                     {"status", [](R& record, const C& cell) { record.status = cell.one_of(record_states); }},
                     {"epochs", [](R& record, const C& cell) { record.epochs = cell.needed_count(); }},
                     {"best_test", share(&R::best_test)},
                     {"best_epoch", count(&R::best_epoch)},
                     {"last_test", share(&R::last_test)},
                     {"last_ten_test", share(&R::last_ten_test)},
                     {"epochs_to_stop", count(&R::epochs_to_stop)},
                     {"best_validation", share(&R::best_validation)},
                     {"train_loss", number(&R::train_loss)},
                     {"train_accuracy", share(&R::train_accuracy)},
                     {"score", share(&R::score)},
                     {"score_sentences", count(&R::score_sentences)},
                     {"word_score", share(&R::word_score)},
                     {"attended_share", share(&R::attended_share), true},
                     {"review_score", share(&R::review_score), true},
                     {"review_lift", number(&R::review_lift), true},
                     {"review_top", share(&R::review_top), true},
                     {"seconds", number(&R::seconds)},
                     {"device", text(&R::device)},
                     {"date", text(&R::date)},
                     {"commit", text(&R::commit)},
                     {"note", text(&R::note)}};
  for (std::size_t m = 0; m < map_names.size(); ++m) {
    const auto named = [&](const char* what) { return fmt::format("{}_{}", map_names[m], what); };
    columns.push_back({named("above"), [m](R& r, const C& cell) { r.maps[m].above = cell.count(); }});
    columns.push_back({named("share"), [m](R& r, const C& cell) { r.maps[m].share = cell.share(); }});
    columns.push_back({named("largest"), [m](R& r, const C& cell) { r.maps[m].largest = cell.number(); }});
    columns.push_back({named("sparsity"), [m](R& r, const C& cell) { r.maps[m].sparsity = cell.share(); }});
  }
  return columns;
}

CurveColumns curve_columns() {
  using R = std::pair<std::string, EpochRecord>;
  using C = RecordCell;
  CurveColumns columns{
      {"run", [](R& row, const C& cell) { row.first = cell.word(); }},
      {"epoch", [](R& row, const C& cell) { row.second.epoch = cell.needed_count(); }},
      {"train_loss", [](R& row, const C& cell) { row.second.train_loss = cell.number(); }},
      {"train_accuracy", [](R& row, const C& cell) { row.second.train_accuracy = cell.share(); }},
      {"test_loss", [](R& row, const C& cell) { row.second.test_loss = cell.number(); }},
      {"test_accuracy", [](R& row, const C& cell) { row.second.test_accuracy = cell.share(); }},
      {"validation_accuracy", [](R& row, const C& cell) { row.second.validation_accuracy = cell.share(); }}};
  for (std::size_t m = 0; m < map_names.size(); ++m) {
    const auto named = [&](const char* what) { return fmt::format("{}_{}", map_names[m], what); };
    columns.push_back(
        {named("sparsity"), [m](R& row, const C& cell) { row.second.sparsity[m] = cell.share(); }});
    columns.push_back(
        {named("share"), [m](R& row, const C& cell) { row.second.share[m] = cell.share(); }, true});
    columns.push_back(
        {named("largest"), [m](R& row, const C& cell) { row.second.largest[m] = cell.number(); }, true});
  }
  return columns;
}

}  // namespace

std::string_view to_string(TrainingRole role) {
  switch (role) {
    case TrainingRole::main:
      return "main";
    case TrainingRole::tuning:
      return "tuning";
    case TrainingRole::repeat:
      return "repeat";
    case TrainingRole::ablation:
      return "ablation";
    case TrainingRole::longer:
      return "longer";
    case TrainingRole::transfer:
      return "transfer";
  }
  return "?";
}

std::string_view to_string(RecordStatus status) {
  switch (status) {
    case RecordStatus::completed:
      return "completed";
    case RecordStatus::reached_accuracy:
      return "reached accuracy";
    case RecordStatus::diverged:
      return "diverged";
    case RecordStatus::unfinished:
      return "unfinished";
    case RecordStatus::failed:
      return "failed";
  }
  return "?";
}

bool TrainingRecord::is_comparable() const {
  return (status == RecordStatus::completed || status == RecordStatus::reached_accuracy) && best_test;
}

bool RecordTexts::has_runs() const {
  const std::size_t names = runs.find('\n');
  return names != std::string_view::npos && runs.find_first_not_of("\r\n", names) != std::string_view::npos;
}

std::vector<TrainingRecord> read_records(const RecordTexts& texts) {
  std::vector<TrainingRecord> records;
  RecordPlaces place;
  std::vector<std::size_t> lines;  // of the trainings in runs.csv
  std::set<std::tuple<std::string, TrainingRole, std::int64_t, double, std::string, std::string>> seen;
  read_rows<TrainingRecord>(
      texts.runs, "runs.csv", run_columns(), [&](std::size_t line, TrainingRecord record) {
        if (std::ranges::find(texts.configs, record.config) == texts.configs.end())
          throw bad_input(fmt::format("runs.csv line {}: config is \"{}\": there is no configs/{}.toml", line,
                                      one_line(record.config), one_line(record.config)));
        const bool again = !place.emplace(record.run, records.size()).second;
        // One that failed early may not know its learning rate.
        if (again || (record.lr && !seen.emplace(record.config, record.role, record.seed, *record.lr,
                                                 record.data, record.settings)
                                        .second))
          throw bad_input(fmt::format("runs.csv line {}: {} is there already", line, one_line(record.run)));
        records.push_back(std::move(record));
        lines.push_back(line);
      });
  read_rows<std::pair<std::string, EpochRecord>>(
      texts.curves, "curves.csv", curve_columns(), [&](std::size_t line, const auto& row) {
        std::vector<EpochRecord>& curve = records[known_place(place, "curves.csv", line, row.first)].curve;
        if (row.second.epoch != std::ssize(curve) + 1)
          throw bad_input(fmt::format("curves.csv line {}: epoch of {} is {}: expected {}", line, row.first,
                                      row.second.epoch, curve.size() + 1));
        curve.push_back(row.second);
      });
  for (std::size_t r = 0; r < records.size(); ++r) check_run(records[r], lines[r]);
  read_sentences(texts.sentences, place, records);
  read_attention(texts.attention, place, records);
  read_histograms(texts.histograms, place, records);
  return records;
}

std::vector<SpeedRecord> read_speeds(const RecordTexts& texts) {
  std::vector<SpeedRecord> speeds;
  if (texts.speed.empty()) return speeds;
  using R = SpeedRecord;
  using C = RecordCell;
  const std::vector<RecordColumn<R>> columns{
      {"optimizer", [](R& record, const C& cell) { record.optimizer = cell.word(); }},
      {"epoch_seconds", [](R& record, const C& cell) { record.epoch_seconds = cell.needed_positive(); }},
      {"parameters", [](R& record, const C& cell) { record.parameters = cell.needed_count(); }}};
  read_rows<R>(texts.speed, "speed.csv", columns, [&](std::size_t line, R record) {
    if (std::ranges::find(speeds, record.optimizer, &R::optimizer) != speeds.end())
      throw bad_input(
          fmt::format("speed.csv line {}: {} is there already", line, one_line(record.optimizer)));
    if (record.parameters == 0 || (!speeds.empty() && record.parameters != speeds.front().parameters))
      throw bad_input(
          fmt::format("speed.csv line {}: parameters is \"{}\": expected {}", line, record.parameters,
                      speeds.empty() ? "a positive number"
                                     : fmt::format("{}, as in the first row", speeds.front().parameters)));
    speeds.push_back(std::move(record));
  });
  return speeds;
}

}  // namespace attmirror
