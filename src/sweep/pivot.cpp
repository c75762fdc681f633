#include "sweep/pivot.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <system_error>

#include <fmt/format.h>

namespace attmirror {

namespace {

using CellText = std::function<std::string(const SummaryGroup&)>;

std::string metric_text(const SummaryGroup& group, std::size_t metric) {
  const MetricStatistics& statistics = group.metrics[metric];
  if (statistics.count == 0) return "-";
  const std::string text = mean_text(statistics.mean, statistics.error);
  if (statistics.count == group.runs) return text;
  return fmt::format("{} ({} of {})", text, statistics.count, group.runs);
}

// The value that a metric has in every run of the sweep, if there is one.
std::optional<double> constant_value(const SummaryGroups& summary, std::size_t metric) {
  if (summary.groups.empty()) return std::nullopt;
  const double first = summary.groups.front().metrics[metric].mean;
  const bool same = std::ranges::all_of(summary.groups, [&](const SummaryGroup& group) {
    const MetricStatistics& one = group.metrics[metric];
    return one.count == group.runs && one.mean == first && one.error.value_or(0) == 0;
  });
  return same ? std::optional(first) : std::nullopt;
}

bool have_equal_runs(const SummaryGroups& summary) {
  return std::ranges::all_of(summary.groups, [&](const SummaryGroup& group) {
    return group.all_ok && group.runs == summary.groups.front().runs;
  });
}

// In ascending order, if all are numbers; the lines of a pivot need not have them all.
void sort_numbers(std::vector<std::string>& values) {
  const auto number = [](const std::string& text) -> std::optional<double> {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
  };
  if (std::ranges::all_of(values, [&](const std::string& text) { return number(text).has_value(); }))
    std::ranges::sort(values, {}, number);
}

// A line for each value of the columns but the last, a column for each value of the last.
Table crossed_table(const SummaryGroups& summary, std::string title, Align align, const CellText& cell) {
  const std::size_t across = summary.by.size() - 1;
  Table table;
  table.title = std::move(title);
  table.columns.assign(summary.by.begin(), summary.by.end() - 1);
  std::vector<std::string> values;
  for (const SummaryGroup& group : summary.groups)
    if (std::ranges::find(values, group.key[across]) == values.end()) values.push_back(group.key[across]);
  sort_numbers(values);
  for (const std::string& value : values)
    table.columns.push_back({fmt::format("{} {}", summary.by[across].name, value), align});
  for (const SummaryGroup& group : summary.groups) {
    const bool same_line =
        !table.rows.empty() && std::equal(group.key.begin(), group.key.end() - 1, table.rows.back().begin());
    if (!same_line) {
      std::vector<std::string>& line = table.rows.emplace_back(group.key.begin(), group.key.end() - 1);
      line.resize(table.columns.size(), "-");
    }
    const auto at = std::ranges::find(values, group.key[across]) - values.begin();
    table.rows.back()[across + static_cast<std::size_t>(at)] = cell(group);
  }
  return table;
}

}  // namespace

std::string mean_text(double mean, std::optional<double> error) {
  if (!std::isfinite(mean)) return fmt::format("{}", mean);
  const double size = std::abs(mean);
  if (!error || !std::isfinite(*error) || *error <= 1e-6 * size) return fmt::format("{:.4g}", mean);
  const double larger = std::max(size, *error);
  const int exponent = static_cast<int>(std::floor(std::log10(larger)));
  const bool scientific = exponent < -3 || exponent > 5;
  const double unit = scientific ? std::pow(10.0, exponent) : 1;
  const int place =
      static_cast<int>(std::floor(std::log10(*error / unit))) - 1;  // of the error's second digit
  const int digits = std::max(0, -place);
  const std::string text = fmt::format("{:.{}f} ± {:.{}f}", mean / unit, digits, *error / unit, digits);
  return scientific ? fmt::format("({})e{:+03d}", text, exponent) : text;
}

Pivot make_pivot(const SummaryGroups& summary) {
  Pivot pivot;
  if (summary.groups.empty()) return pivot;
  std::vector<std::size_t> metrics;
  const bool equal_runs = have_equal_runs(summary);
  if (equal_runs)
    pivot.facts.push_back(fmt::format("runs: {}{}, all ok", summary.groups.front().runs,
                                      summary.groups.size() > 1 ? " in each group" : ""));
  for (std::size_t m = 0; m < summary.metrics.size(); ++m) {
    if (const auto value = constant_value(summary, m))
      pivot.facts.push_back(fmt::format("{}: {:.6g} in every run", summary.metrics[m], *value));
    else
      metrics.push_back(m);
  }
  const CellText runs = [](const SummaryGroup& group) {
    return group.all_ok ? fmt::format("{}", group.runs) : group.statuses;
  };
  if (summary.by.size() >= 2) {
    pivot.kept = summary.by.size() - 1;
    if (!equal_runs) pivot.tables.push_back(crossed_table(summary, "runs", Align::left, runs));
    for (const std::size_t m : metrics)
      pivot.tables.push_back(crossed_table(summary, summary.metrics[m], Align::right,
                                           [m](const SummaryGroup& group) { return metric_text(group, m); }));
    return pivot;
  }
  pivot.kept = summary.by.size();
  Table table;
  table.columns = summary.by;
  if (!equal_runs) table.columns.push_back({"runs", Align::left});
  for (const std::size_t m : metrics) table.columns.push_back({summary.metrics[m]});
  for (const SummaryGroup& group : summary.groups) {
    std::vector<std::string> line = group.key;
    if (!equal_runs) line.push_back(runs(group));
    for (const std::size_t m : metrics) line.push_back(metric_text(group, m));
    table.rows.push_back(std::move(line));
  }
  if (table.columns.size() > pivot.kept) pivot.tables.push_back(std::move(table));
  return pivot;
}

}  // namespace attmirror
