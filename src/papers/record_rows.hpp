// The rows of a file of records: cells that know where they are, and columns that read them. Internal.
#pragma once

#include "base/csv.hpp"
#include "base/words.hpp"
#include "papers/records.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace attmirror {

// One cell, and where it is.
struct RecordCell {
  std::string_view file, column, text;
  std::size_t line;

  Error error(std::string_view expected) const {
    return bad_input(
        fmt::format("{} line {}: {} is \"{}\": expected {}", file, line, column, one_line(text), expected));
  }

  std::optional<double> number() const {
    if (text.empty()) return {};
    double value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
      throw error("a number");
    return value;
  }

  std::optional<double> share() const {
    const std::optional<double> value = number();
    if (value && !(*value >= 0 && *value <= 1)) throw error("a share between 0 and 1");
    return value;
  }

  std::optional<std::int64_t> count() const {
    if (text.empty()) return {};
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size() || value < 0)
      throw error("a whole number from 0 on");
    return value;
  }

  std::int64_t needed_count() const {
    const std::optional<std::int64_t> value = count();
    return value ? *value : throw error("a whole number from 0 on");
  }

  double needed_number() const {
    const std::optional<double> value = number();
    return value ? *value : throw error("a number");
  }

  double needed_size() const {
    const std::optional<double> value = number();
    return value && *value >= 0 ? *value : throw error("a number from 0 on");
  }

  double needed_share() const {
    const std::optional<double> value = share();
    return value ? *value : throw error("a share between 0 and 1");
  }

  double needed_positive() const {
    const std::optional<double> value = number();
    return value && *value > 0 ? *value : throw error("a positive number");
  }

  std::string word() const { return text.empty() ? throw error("a word") : std::string(text); }

  template <class Words>
  auto one_of(const Words& words) const {
    std::vector<std::string_view> names;
    for (const auto one : words) {
      if (to_string(one) == text) return one;
      names.push_back(to_string(one));
    }
    throw error(expected_choice(text, names));
  }
};

template <class Record>
struct RecordColumn {
  std::string name;
  std::function<void(Record&, const RecordCell&)> read;
  bool may_lack = false;
};

// Calls use(line, record) for each row of a file.
template <class Record, class Use>
void read_rows(std::string_view text, std::string_view file, const std::vector<RecordColumn<Record>>& columns,
               const Use& use) {
  const std::vector<CsvRow> rows = parse_csv(text, file);
  if (rows.empty()) throw bad_input(fmt::format("{} is empty: expected the names of its columns", file));
  const std::vector<std::string>& names = rows.front().cells;
  std::vector<const RecordColumn<Record>*> order;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(columns, name, &RecordColumn<Record>::name);
    if (found == columns.end())
      throw bad_input(fmt::format("{} has an unknown column {}", file, one_line(name)));
    if (std::ranges::count(names, name) > 1)
      throw bad_input(fmt::format("{} has the column {} twice", file, name));
    order.push_back(&*found);
  }
  for (const RecordColumn<Record>& column : columns)
    if (!column.may_lack && std::ranges::find(names, column.name) == names.end())
      throw bad_input(fmt::format("{} has no column {}", file, column.name));
  for (std::size_t r = 1; r < rows.size(); ++r) {
    Record record;
    for (std::size_t c = 0; c < order.size(); ++c)
      order[c]->read(record, {file, order[c]->name, rows[r].cells[c], rows[r].line});
    use(rows[r].line, std::move(record));
  }
}

// Where each training is in the list.
using RecordPlaces = std::map<std::string, std::size_t, std::less<>>;

inline std::size_t known_place(const RecordPlaces& places, std::string_view file, std::size_t line,
                               std::string_view run) {
  const auto found = places.find(run);
  if (found == places.end())
    throw bad_input(
        fmt::format("{} line {}: run is \"{}\", which runs.csv does not have", file, line, one_line(run)));
  return found->second;
}

// Refuses a training, in this line of runs.csv, that does not fit its curve (record_checks.cpp): the number of its
// epochs, its accuracies, the shares of large weights. Its counts of them must fit the shares.
void check_run(const TrainingRecord& record, std::size_t line);

// sentences.csv, attention.csv and histograms.csv, into the trainings that they name (attention_records.cpp). An empty
// text has none.
void read_sentences(std::string_view text, const RecordPlaces& places, std::vector<TrainingRecord>& records);
void read_attention(std::string_view text, const RecordPlaces& places, std::vector<TrainingRecord>& records);
void read_histograms(std::string_view text, const RecordPlaces& places, std::vector<TrainingRecord>& records);

}  // namespace attmirror
