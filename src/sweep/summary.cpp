// Groups of runs and what their metrics have in common.
#include "base/words.hpp"
#include "sweep/database_schema.hpp"
#include "sweep/summary_groups.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/sweep/export.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <type_traits>

#include <fmt/format.h>

namespace attmirror {
namespace {

struct RunGroup {
  std::map<std::string, std::int64_t> statuses;
  std::int64_t runs = 0;
  std::vector<std::vector<double>> values;  // one list per metric
};

// A column has one type, so the order of variants is that of their values: nothing first, then by number or by letter.
using Groups = std::map<std::vector<Cell>, RunGroup>;

std::string to_text(const Cell& cell) {
  return std::visit(
      [](const auto& value) -> std::string {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::monostate>)
          return "-";
        else
          return fmt::format("{}", value);
      },
      cell);
}

std::string to_text(double value, SummaryOptions::Digits digits) {
  return digits == SummaryOptions::Digits::six ? fmt::format("{:.6g}", value) : fmt::format("{}", value);
}

// As numpy.quantile(): position q (n - 1) among the sorted values, between two of them on the line.
double quantile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const double share = position - static_cast<double>(below);
  const double low = sorted[below];
  if (share == 0 || sorted[below + 1] == low) return low;  // infinities have no line between them
  const double high = sorted[below + 1], step = high - low;
  return share < 0.5 ? low + step * share : high - step * (1 - share);
}

std::string status_text(const std::map<std::string, std::int64_t>& statuses) {
  std::string text;
  const auto add = [&](const std::string& status, std::int64_t count) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", status, count);
  };
  if (const auto ok = statuses.find("ok"); ok != statuses.end()) add("ok", ok->second);
  for (const auto& [status, count] : statuses)
    if (status != "ok") add(status, count);
  return text;
}

MetricStatistics statistics_of(std::vector<double> values, const std::vector<double>& quantiles) {
  MetricStatistics result;
  result.count = static_cast<std::int64_t>(values.size());
  if (values.empty()) return result;
  const auto n = static_cast<double>(values.size());
  // Added in ascending order, so that the sums do not depend on the order of the runs in the file.
  std::sort(values.begin(), values.end());
  result.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() > 1) {
    double squares = 0;
    for (const double value : values) squares += (value - result.mean) * (value - result.mean);
    result.deviation = std::sqrt(squares / (n - 1));
    result.error = *result.deviation / std::sqrt(n);
  }
  for (const double q : quantiles) result.quantiles.push_back(quantile(values, q));
  return result;
}

// Mean, deviation, error and quantiles as cells, empty where there is none.
std::vector<std::string> numbers_of(const MetricStatistics& statistics, const SummaryOptions& options) {
  const auto text = [&](double value) { return to_text(value, options.digits); };
  std::vector<std::string> cells(3 + options.quantiles.size());
  if (statistics.count == 0) return cells;
  cells[0] = text(statistics.mean);
  if (statistics.deviation) cells[1] = text(*statistics.deviation);
  if (statistics.error) cells[2] = text(*statistics.error);
  for (std::size_t i = 0; i < statistics.quantiles.size(); ++i) cells[3 + i] = text(statistics.quantiles[i]);
  return cells;
}

const RowColumn& find_column(const std::vector<RowColumn>& columns, const std::string& name,
                             const char* what) {
  std::vector<std::string_view> known;
  for (const auto& column : columns) {
    if (column.name == name) return column;
    known.push_back(column.name);
  }
  throw bad_input(
      fmt::format("{} \"{}\" is not a column of the sweep{}", what, name, did_you_mean(name, known)));
}

// The axes, and what differs besides: rows of a sweep whose file was changed and resumed are not to be averaged
// into one.
std::vector<std::string> varying_settings(const SweepDatabase& database) {
  const SweepHeader& header = database.header();
  std::vector<std::string> names;
  for (const RowColumn& column : header.settings)
    if (!column.name.ends_with("seed")) names.push_back(column.name);
  std::vector<Cell> first;
  std::vector<bool> varies(names.size(), false);
  database.for_each_run(names, [&](std::span<const Cell> cells) {
    if (first.empty()) first.assign(cells.begin(), cells.end());
    for (std::size_t i = 0; i < names.size(); ++i) varies[i] = varies[i] || cells[i] != first[i];
  });
  std::vector<std::string> result;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (varies[i] || std::ranges::find(header.axes, names[i]) != header.axes.end())
      result.push_back(names[i]);
  return result;
}

}  // namespace

void SummaryOptions::validate() const {
  for (std::size_t i = 0; i < quantiles.size(); ++i)
    if (!(quantiles[i] >= 0 && quantiles[i] <= 1))
      throw bad_input(fmt::format("quantiles[{}] is {}: expected a number from 0 to 1", i, quantiles[i]));
}

SummaryGroups summary_groups(const SweepDatabase& database, const SummaryOptions& options) {
  options.validate();
  const std::vector<RowColumn> columns = database.columns();
  std::vector<std::string> group_by = options.group_by, metrics = options.metrics;
  if (group_by.empty()) group_by = varying_settings(database);
  if (metrics.empty())
    for (const auto& metric : database.header().metrics)
      if (metric.type != CellType::text) metrics.push_back(metric.name);

  SummaryGroups summary;
  summary.title = database.header().name;
  summary.metrics = metrics;
  for (const auto& name : group_by) {
    const RowColumn& column = find_column(columns, name, "group");
    summary.by.push_back({name, column.type == CellType::text ? Align::left : Align::right});
  }
  for (const auto& name : metrics)
    if (find_column(columns, name, "metric").type == CellType::text)
      throw bad_input(fmt::format("metric \"{}\" is a text: expected numbers", name));

  std::vector<std::string> needed = group_by;
  needed.push_back("status");
  needed.insert(needed.end(), metrics.begin(), metrics.end());
  Groups groups;
  database.for_each_run(needed, [&](std::span<const Cell> cells) {
    const auto key = cells.first(group_by.size());
    RunGroup& group = groups[{key.begin(), key.end()}];
    group.values.resize(metrics.size());
    ++group.runs;
    const auto* status = std::get_if<std::string>(&cells[group_by.size()]);
    ++group.statuses[status ? *status : "-"];
    for (std::size_t i = 0; i < metrics.size(); ++i) {
      const Cell& cell = cells[group_by.size() + 1 + i];
      if (const auto* real = std::get_if<double>(&cell)) group.values[i].push_back(*real);
      if (const auto* whole = std::get_if<std::int64_t>(&cell))
        group.values[i].push_back(static_cast<double>(*whole));
    }
  });
  for (auto& [key, group] : groups) {
    SummaryGroup& one = summary.groups.emplace_back();
    for (const Cell& cell : key) one.key.push_back(to_text(cell));
    one.runs = group.runs;
    one.statuses = status_text(group.statuses);
    one.all_ok = group.statuses.size() == 1 && group.statuses.contains("ok");
    for (std::size_t i = 0; i < metrics.size(); ++i)
      one.metrics.push_back(statistics_of(std::move(group.values[i]), options.quantiles));
  }
  return summary;
}

Table summarize(const SweepDatabase& database, const SummaryOptions& options) {
  return summary_table(summary_groups(database, options), options);
}

Table summary_table(const SummaryGroups& summary, const SummaryOptions& options) {
  Table table;
  table.title = summary.title;
  table.columns = summary.by;
  table.columns.push_back({"metric", Align::left});
  for (const char* name : {"count", "missing", "mean", "std", "sem"}) table.columns.push_back({name});
  for (const double q : options.quantiles) table.columns.push_back({fmt::format("q{}", q)});
  table.columns.push_back({"status", Align::left});
  for (const SummaryGroup& group : summary.groups) {
    // A sweep that measures nothing still says how its runs ended.
    for (std::size_t i = 0; i < std::max<std::size_t>(1, summary.metrics.size()); ++i) {
      std::vector<std::string> line = group.key;
      const MetricStatistics statistics = summary.metrics.empty() ? MetricStatistics{} : group.metrics[i];
      line.push_back(summary.metrics.empty() ? "-" : summary.metrics[i]);
      line.push_back(fmt::format("{}", statistics.count));
      line.push_back(fmt::format("{}", group.runs - statistics.count));
      for (auto& cell : numbers_of(statistics, options)) line.push_back(std::move(cell));
      line.push_back(group.statuses);
      table.rows.push_back(std::move(line));
    }
  }
  return table;
}

}  // namespace attmirror
