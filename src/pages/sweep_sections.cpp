// What a reader wants to know of a sweep: what was varied, how the runs ended, and how each quantity depends on what
// was varied, over the seeds that were not.
//
// Runs are read one after the other and only numbers by group are kept, so that a sweep need not fit into memory.
#include "base/fields.hpp"
#include "base/words.hpp"
#include "descent/run_text.hpp"
#include "pages/run_sections.hpp"
#include "pages/shown_names.hpp"
#include "report/short_numbers.hpp"
#include <attmirror/sweep/export.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

constexpr std::size_t most_series = 8, most_figures = 12, most_table_rows = 300;

// Four runs of five lie between these; as in the summary.
constexpr double low_quantile = 0.1, high_quantile = 0.9;

using Key = std::vector<Cell>;

std::string text_of(const Cell& cell) {
  return std::visit(
      [](const auto& value) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>)
          return "–";
        else if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>)
          return short_number(value);
        else
          return fmt::format("{}", value);
      },
      cell);
}

std::optional<double> number_of(const Cell& cell) {
  if (const auto* real = std::get_if<double>(&cell)) return *real;
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
  return std::nullopt;
}

struct Spread {
  double mean = std::numeric_limits<double>::quiet_NaN(), low = mean, high = mean;
};

double quantile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const double share = position - static_cast<double>(below);
  return share > 0 ? sorted[below] + share * (sorted[below + 1] - sorted[below]) : sorted[below];
}

Spread spread_of(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return {};
  std::ranges::sort(values);  // the sum, too, shall not depend on the order of the runs
  double sum = 0;
  for (const double value : values) sum += value;
  return {sum / static_cast<double>(values.size()), quantile(values, low_quantile),
          quantile(values, high_quantile)};
}

// A column of zeros and ones: its mean is a share, and its quantiles say nothing.
bool is_share(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double value) { return value == 0 || value == 1; });
}

bool all_equal(const std::vector<Series>& series) {
  std::optional<double> first;
  for (const Series& one : series)
    for (const auto* list : {&one.y, &one.low, &one.high})
      for (const double value : *list)
        if (value != first.value_or(value))
          return false;
        else
          first = value;
  return true;
}

void add_point(Series& series, double x, const Spread& spread) {
  series.x.push_back(x);
  series.y.push_back(spread.mean);
  series.low.push_back(spread.low);
  series.high.push_back(spread.high);
}

// What was varied, seeds apart: the columns of the summary before its metric.
std::vector<std::string> group_columns(const Table& summary) {
  std::vector<std::string> names;
  for (const Column& column : summary.columns) {
    if (column.name == "metric") break;
    names.push_back(column.name);
  }
  return names;
}

std::string name_of(const Key& key, const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < key.size(); ++i)
    text += fmt::format("{}{} = {}", i > 0 ? ", " : "", shortened(names[i]),
                        shortened(with_short_numbers(text_of(key[i]))));
  return text.empty() ? "all runs" : text;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + shortened(setting_name(name));
  return text;
}

// A cell that is a number with a point, to four digits that count.
std::string four_digits(const std::string& cell) {
  char* end = nullptr;
  const double value = std::strtod(cell.c_str(), &end);
  const bool number = !cell.empty() && *end == '\0' && cell.find('.') != std::string::npos;
  return number ? short_number(value) : cell;
}

std::string capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

// One figure of each kind of what was kept along the records.
struct CurveGroups {
  std::map<Key, std::map<double, std::vector<double>>> by_group;  // step -> values
};

class SweepReport {
 public:
  SweepReport(const std::filesystem::path& path, std::string id)
      : database_(path),
        snapshot_(database_),
        id_(std::move(id)),
        summary_(summarize(database_)),
        groups_(group_columns(summary_)) {
    read();
  }

  PagePart part() const { return {conclusion(), {section()}}; }

 private:
  Section section() const {
    const SweepHeader& header = database_.header();
    const std::string file = database_.path().filename().string();
    Section section{
        .id = id_, .title = "Sweep " + shortened(header.name.empty() ? file : header.name), .blocks = {}};
    const auto ok = statuses_.find("ok");
    const bool all_ok = ok != statuses_.end() && statuses_.size() == 1;
    section.badge = statuses_text();
    section.badge_tone = statuses_.empty() ? Tone::neutral : all_ok ? Tone::good : Tone::caution;
    if (!header.description.empty()) section.blocks.push_back(Paragraph{header.description});
    section.blocks.push_back(facts());
    std::size_t figures = 0;
    for (auto& figure : curve_figures()) {
      if (figures++ == most_figures) break;
      section.blocks.push_back(std::move(figure));
    }
    for (auto& figure : metric_figures()) {
      if (figures++ >= most_figures) break;
      section.blocks.push_back(std::move(figure));
    }
    Table table = summary_;
    const std::size_t rows = table.rows.size();
    if (rows > most_table_rows) table.rows.resize(most_table_rows);
    table.title = "What was measured, by group";
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      std::string& name = table.columns[c].name;
      const bool metric = c == groups_.size();
      name = shortened(metric ? "quantity" : setting_name(name));
      for (auto& row : table.rows) row[c] = shortened(metric ? metric_name(row[c]) : four_digits(row[c]));
    }
    section.blocks.push_back(Folded{"What was measured, by group",
                                    {TableBlock{.id = id_ + "-summary", .table = std::move(table)}}});
    if (rows > most_table_rows || figures > most_figures)
      section.blocks.push_back(Paragraph{fmt::format(
          "The page shows up to {} figures and the first {} of {} rows of the summary; `attmirror sweep {} "
          "--summary` prints them all.",
          most_figures, std::min(rows, most_table_rows), rows, shell_path(database_.path()))});
    section.blocks.push_back(Folded{"The sweep's file", {CodeBlock{header.file_text}}});
    return section;
  }

  // "All 60 runs succeeded; on average the divergence from ... is smallest for p = 2 (0.004) and largest for ..."
  std::string conclusion() const {
    const auto ok = statuses_.find("ok");
    const std::int64_t good = ok == statuses_.end() ? 0 : ok->second, all = database_.count();
    if (all == 0) return "The sweep has no runs yet.";
    std::string text =
        good == all ? fmt::format("All {} runs succeeded", all)
                    : fmt::format("{} of {} runs did not succeed ({})", all - good, all, statuses_text());
    const auto& metrics = database_.header().metrics;
    for (const std::string_view wanted : {".bregman", ".margin_ratio", "global", "final_loss"})
      for (std::size_t m = 0; m < metrics.size(); ++m) {
        if (!metrics[m].name.ends_with(wanted) || metrics_.size() < 2) continue;
        std::vector<std::pair<double, const Key*>> means;
        for (const auto& [key, values] : metrics_)
          if (const Spread spread = spread_of(values[m]); std::isfinite(spread.mean))
            means.emplace_back(spread.mean, &key);
        if (means.size() < 2) continue;
        const auto [low, high] = std::ranges::minmax_element(means);
        return text + fmt::format("; on average the {} is smallest for {} ({}) and largest for {} ({}).",
                                  metric_name(metrics[m].name), name_of(*low->second, groups_),
                                  short_number(low->first), name_of(*high->second, groups_),
                                  short_number(high->first));
      }
    return text + ".";
  }

  void read() {
    const SweepHeader& header = database_.header();
    std::vector<std::size_t> columns;
    for (const std::string& name : groups_)
      for (std::size_t i = 0; i < header.settings.size(); ++i)
        if (header.settings[i].name == name) columns.push_back(i);
    database_.for_each_row(
        [&](const RunRow& row) {
          ++statuses_[row.status];
          Key key;
          for (const std::size_t column : columns) key.push_back(row.settings[column]);
          auto& metrics = metrics_[key];
          metrics.resize(header.metrics.size());
          for (std::size_t m = 0; m < header.metrics.size(); ++m)
            if (const auto value = number_of(row.metrics[m])) metrics[m].push_back(*value);
          read_curves(row, key);
        },
        SweepDatabase::Arrays::load);
  }

  // Arrays as long as the list of recorded steps.
  void read_curves(const RunRow& row, const Key& key) {
    const auto steps = std::ranges::find(row.arrays, "step", &RowArray::name);
    if (steps == row.arrays.end()) return;
    for (const RowArray& array : row.arrays) {
      if (array.name == "step" || array.shape != steps->shape) continue;
      auto& curve = curves_[array.name].by_group[key];
      for (std::size_t i = 0; i < array.values.size(); ++i)
        curve[steps->values[i]].push_back(array.values[i]);
    }
  }

  std::string statuses_text() const {
    std::vector<std::string> parts;
    for (const auto& [status, count] : statuses_)
      parts.push_back(fmt::format("{} {}", count, shortened(status)));
    return parts.empty() ? "no runs yet" : fmt::format("{}", fmt::join(parts, ", "));
  }

  Facts facts() const {
    const SweepHeader& header = database_.header();
    return Facts{"",
                 {{"database", database_.path().string()},
                  {"runs", fmt::format("{}", database_.count())},
                  {"axes", header.axes.empty() ? "none" : list_of(header.axes)},
                  {"groups", fmt::format("{}, by {}", metrics_.size(),
                                         groups_.empty() ? "nothing" : list_of(groups_))}}};
  }

  static constexpr std::string_view band_text =
      "Means over the runs of a group; bands contain four runs in five.";

  Figure figure_of(const std::string& kind, const std::string& what) const {
    Figure figure;
    figure.id = id_of(fmt::format("{}-{}-{}", id_, kind, what));
    figure.title = capitalized(shortened(metric_name(what)));
    figure.caption = band_text;
    return figure;
  }

  void describe(Figure& figure, const std::string& x, std::size_t left_out) const {
    figure.description = fmt::format("{} against the {}.", figure.title, x);
    const Series *low = nullptr, *high = nullptr;
    for (const Series& one : figure.series) {
      if (one.y.empty() || !std::isfinite(one.y.back())) continue;
      figure.description += fmt::format(" {}: {:.4g} at {:g}.", one.name, one.y.back(), one.x.back());
      if (!low || one.y.back() < low->y.back()) low = &one;
      if (!high || one.y.back() > high->y.back()) high = &one;
    }
    std::string outcome;
    if (low && low != high)
      outcome = fmt::format("At the {} {}, {} is lowest ({:.4g}) and {} highest ({:.4g}). ",
                            x == "step" ? "last" : "largest", x, low->name, low->y.back(), high->name,
                            high->y.back());
    else if (low)
      outcome = fmt::format("It goes from {:.4g} at {} {:g} to {:.4g} at {:g}. ", low->y.front(), x,
                            low->x.front(), low->y.back(), low->x.back());
    figure.caption = outcome + figure.caption;
    if (left_out > 0) figure.caption += fmt::format(" {} more groups are in the summary.", left_out);
  }

  std::vector<Figure> curve_figures() const {
    std::vector<Figure> figures;
    for (const auto& [name, groups] : curves_) {
      if (is_solver_gap(name)) continue;
      Figure figure = figure_of("curve", name);
      figure.title += " during training";
      for (const auto& [key, points] : groups.by_group) {
        if (figure.series.size() == most_series) break;
        Series series;
        series.name = name_of(key, groups_);
        std::vector<std::pair<double, Spread>> all;
        for (const auto& [step, values] : points) all.emplace_back(step, spread_of(values));
        for (const std::size_t i : thinned(all.size())) add_point(series, all[i].first, all[i].second);
        figure.series.push_back(std::move(series));
      }
      figure.x = axis_for("step k", figure.series, &Series::x);
      figure.x.whole = true;
      figure.y = axis_for(shortened(metric_name(name)), figure.series, &Series::y);
      describe(figure, "step", groups.by_group.size() - figure.series.size());
      figures.push_back(std::move(figure));
    }
    return figures;
  }

  // Each metric against the first axis that is a number and has several values; a series for each of what else
  // was varied.
  std::vector<Figure> metric_figures() const {
    std::vector<Figure> figures;
    const auto axis = numeric_axis();
    if (axis == groups_.size()) return figures;
    std::vector<std::string> others = groups_;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(axis));
    const auto& metrics = database_.header().metrics;
    for (std::size_t m = 0; m < metrics.size(); ++m) {
      // How exact the solver was is no result; the table has it.
      if (metrics[m].type == CellType::text || is_solver_gap(metrics[m].name)) continue;
      std::map<Key, Series> series;
      const bool share =
          std::ranges::all_of(metrics_, [m](const auto& group) { return is_share(group.second[m]); });
      for (const auto& [key, values] : metrics_) {
        Key rest = key;
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(axis));
        const auto x = number_of(key[axis]);
        const Spread spread = spread_of(values[m]);
        if (x && std::isfinite(spread.mean)) add_point(series[rest], *x, spread);
      }
      Figure figure = figure_of("metric", metrics[m].name);
      figure.title += fmt::format(", by {}", setting_name(groups_[axis]));
      if (share) figure.caption = "The share of runs in each group.";
      for (auto& [rest, one] : series) {
        if (figure.series.size() == most_series) break;
        one.name = name_of(rest, others);
        one.mark = Series::Mark::both;
        if (share) {
          one.low.clear();
          one.high.clear();
        }
        figure.series.push_back(std::move(one));
      }
      if (all_equal(figure.series)) continue;  // nothing, or the same everywhere: the summary says it
      figure.x = axis_for(shortened(setting_name(groups_[axis])), figure.series, &Series::x);
      figure.y = axis_for(shortened(metric_name(metrics[m].name)), figure.series, &Series::y);
      describe(figure, shortened(setting_name(groups_[axis])), series.size() - figure.series.size());
      figures.push_back(std::move(figure));
    }
    return figures;
  }

  std::size_t numeric_axis() const {
    for (std::size_t a = 0; a < groups_.size(); ++a) {
      std::vector<double> values;
      for (const auto& [key, ignored] : metrics_)
        if (const auto value = number_of(key[a]); value && std::ranges::find(values, *value) == values.end())
          values.push_back(*value);
      if (values.size() > 1) return a;
    }
    return groups_.size();
  }

  SweepDatabase database_;
  SweepDatabase::Snapshot snapshot_;
  std::string id_;
  Table summary_;
  std::vector<std::string> groups_;
  std::map<std::string, std::int64_t> statuses_;
  std::map<Key, std::vector<std::vector<double>>> metrics_;
  std::map<std::string, CurveGroups> curves_;
};

}  // namespace

PagePart sweep_section(const std::filesystem::path& database, const std::string& id) {
  return SweepReport(database, id).part();
}

}  // namespace attmirror
