#include "sweep/axes.hpp"

#include "base/toml_fields.hpp"
#include "sweep/ranges.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace attmirror {

namespace {

// Ranges up to here are kept as the list that they stand for.
constexpr std::uint64_t longest_list = 1024;

// Reads the tables of one file; `name_` is that of the file in messages.
class AxesReader {
 public:
  AxesReader(const TomlTable& file, const std::string& name, std::int64_t max_runs)
      : file_(file), name_(name), max_runs_(max_runs) {
    result_.fixed.resize(settings().size());
  }

  SweepAxes read() {
    for (const auto& [key, value] : file_)
      if (key == "data" || key == "train") read_fixed(key, value);
    for (const auto& [key, value] : file_) {
      if (key == "grid") read_grid(value);
      if (key == "zip") read_zips(value);
      if (key == "list") read_list(value);
    }
    return std::move(result_);
  }

 private:
  const TomlTable& table_of(const TomlValue& value, const std::string& what) const {
    if (const auto* table = value.as<TomlTable>()) return *table;
    throw bad_input(fmt::format("{}: {} is {}: expected a table", name_, what, to_text(value)));
  }

  // [[zip]] and [[list]] are lists of tables.
  std::vector<const TomlTable*> tables_of(const TomlValue& value, const std::string& what) const {
    std::vector<const TomlTable*> tables;
    if (const auto* array = value.as<TomlArray>()) {
      for (const TomlValue& element : *array) tables.push_back(&table_of(element, what));
      return tables;
    }
    if (value.as<TomlTable>())
      throw bad_input(fmt::format("{}: [{}] has single brackets: expected [[{}]]", name_, what, what));
    throw bad_input(fmt::format("{}: {} is {}: expected [[{}]]", name_, what, to_text(value), what));
  }

  std::size_t setting_of(const std::string& key, const std::string& table) const {
    if (const auto found = find_setting(key)) {
      const std::string& home = settings()[*found].info.table;
      if ((table == "[data]" || table == "[train]") && table != fmt::format("[{}]", home))
        throw bad_input(fmt::format("{}: {} has \"{}\", which belongs to [{}]", name_, table, key, home));
      return *found;
    }
    std::vector<std::string_view> names;
    for (const Setting& setting : settings()) names.push_back(setting.info.name);
    throw bad_input(fmt::format("{}: {} has no setting {}{}", name_, table, in_double_quotes(key),
                                did_you_mean(key, names)));
  }

  void read_fixed(const std::string& key, const TomlValue& value) {
    const std::string table = fmt::format("[{}]", key);
    for (const auto& [name, given] : table_of(value, table)) {
      const std::size_t setting = setting_of(name, table);
      result_.fixed[setting] =
          read_value(settings()[setting], given, fmt::format("{}: {} {}", name_, table, name));
    }
  }

  // A setting that now stands on an axis: there must be no other place for it.
  void claim(std::size_t setting, const std::string& table) {
    const SweepSetting& info = settings()[setting].info;
    if (table != "[[list]]" && !std::holds_alternative<std::monostate>(result_.fixed[setting]))
      throw bad_input(fmt::format("{}: axis \"{}\" of {} is fixed in [{}] as well: expected one of the two",
                                  name_, info.name, table, info.table));
    if (std::ranges::find(result_.varied, setting) != result_.varied.end())
      throw bad_input(fmt::format("{}: axis \"{}\" is given in two places: expected one", name_, info.name));
    result_.varied.push_back(setting);
  }

  // The values of an axis. In a zip the word "default" leaves a setting out.
  AxisValues read_axis(std::size_t index, const TomlValue& value, const std::string& table) const {
    const Setting& setting = settings()[index];
    const std::string place = fmt::format("{}: axis \"{}\"", name_, setting.info.name);
    std::vector<Cell> values;
    if (const auto* array = value.as<TomlArray>()) {
      for (const TomlValue& element : *array) {
        const auto* word = element.as<std::string>();
        if (table == "[[zip]]" && word && *word == "default")
          values.emplace_back();
        else
          values.push_back(read_value(setting, element, place));
      }
    } else if (const auto* text = value.as<std::string>(); text && takes_ranges(setting)) {
      const ValueRange range(*text, setting, place);
      check_runs(static_cast<double>(range.count()));
      Cell before{};
      for (std::uint64_t i = 0; i < range.count(); ++i) {
        Cell cell = read_value(setting, range.at(i), place);
        // A range goes up or down, so that equal values, of rounding, are neighbours.
        if (table == "[grid]" && cell == before) throw twice(index, cell);
        before = cell;
        if (range.count() <= longest_list) values.push_back(std::move(cell));
      }
      if (range.count() > longest_list) return {setting, range};
    } else {
      throw bad_input(
          fmt::format("{}: {} is {}; a value that does not vary belongs under [{}]", place, to_text(value),
                      takes_ranges(setting) ? "neither a list of values nor a range" : "not a list of values",
                      setting.info.table));
    }
    if (values.empty()) throw bad_input(fmt::format("{} has no values: expected one or more", place));
    if (table == "[grid]") refuse_duplicates(index, values);
    return values;
  }

  void read_grid(const TomlValue& value) {
    for (const auto& [key, given] : table_of(value, "[grid]")) {
      const std::size_t setting = setting_of(key, "[grid]");
      claim(setting, "[grid]");
      add(Axis(setting, read_axis(setting, given, "[grid]")));
    }
  }

  Error twice(std::size_t setting, const Cell& cell) const {
    return bad_input(fmt::format("{}: axis \"{}\": {} is given twice", name_, settings()[setting].info.name,
                                 to_text(settings()[setting], cell)));
  }

  void refuse_duplicates(std::size_t setting, const std::vector<Cell>& values) const {
    std::set<Cell> seen;
    for (const Cell& cell : values)
      if (!seen.insert(cell).second) throw twice(setting, cell);
  }

  void read_zips(const TomlValue& value) {
    for (const TomlTable* table : tables_of(value, "zip")) {
      if (table->empty())
        throw bad_input(fmt::format("{}: a [[zip]] has no axes: expected two or more", name_));
      std::optional<Axis> axis;
      for (const auto& [key, given] : *table) {
        const std::size_t setting = setting_of(key, "[[zip]]");
        claim(setting, "[[zip]]");
        AxisValues values = read_axis(setting, given, "[[zip]]");
        if (!axis) {
          axis.emplace(setting, std::move(values));
          continue;
        }
        if (values.size() != axis->size())
          throw bad_input(
              fmt::format("{}: [[zip]]: axis \"{}\" has {} values and axis \"{}\" {}: expected equally many",
                          name_, table->front().key, axis->size(), key, values.size()));
        axis->zip_with(setting, std::move(values));
      }
      add(std::move(*axis));
    }
  }

  void read_list(const TomlValue& value) {
    std::vector<Point> points;
    std::vector<std::size_t> named;
    for (const TomlTable* table : tables_of(value, "list")) {
      Point point;
      const std::size_t number = points.size() + 1;
      for (const auto& [key, given] : *table) {
        const std::size_t setting = setting_of(key, "[[list]]");
        if (std::ranges::find(named, setting) == named.end()) {
          claim(setting, "[[list]]");
          named.push_back(setting);
        }
        point.push_back({setting, read_value(settings()[setting], given,
                                             fmt::format("{}: [[list]] number {}: {}", name_, number, key))});
      }
      points.push_back(std::move(point));
    }
    if (points.empty()) throw bad_input(fmt::format("{}: list has no tables: expected one or more", name_));
    add(Axis(std::move(points)));
  }

  void add(Axis axis) {
    check_runs(static_cast<double>(axis.size()));
    result_.runs *= static_cast<std::int64_t>(axis.size());
    result_.axes.push_back(std::move(axis));
  }

  // Whether an axis with so many points is too much, told before memory is taken for it.
  void check_runs(double points) const {
    const double runs = static_cast<double>(result_.runs) * points;
    if (runs > static_cast<double>(max_runs_))
      throw bad_input(
          fmt::format("{}: the axes make {:.0f} runs or more: expected at most {}", name_, runs, max_runs_));
  }

  const TomlTable& file_;
  const std::string& name_;
  const std::int64_t max_runs_;
  SweepAxes result_;
};

}  // namespace

SweepAxes read_axes(const TomlTable& file, const std::string& name, std::int64_t max_runs) {
  return AxesReader(file, name, max_runs).read();
}

Cell AxisValues::at(std::size_t i) const {
  return range_ ? to_cell(read_toml(setting_->field, range_->at(i))) : list_[i];
}

void Axis::assign(std::size_t i, Values& values) const {
  for (const ValueColumn& column : columns_) values[column.setting] = column.values.at(i);
  if (points_.empty()) return;
  for (const Assignment& given : points_[i]) values[given.setting] = given.value;
}

Values values_at(const SweepAxes& axes, const std::vector<std::size_t>& points) {
  Values values = axes.fixed;
  // The first axis has the last word, where [[list]] stands before others.
  for (std::size_t a = axes.axes.size(); a-- > 0;) axes.axes[a].assign(points[a], values);
  return values;
}

Values values_of(const SweepAxes& axes, std::int64_t index) {
  std::vector<std::size_t> points(axes.axes.size());
  for (std::size_t a = axes.axes.size(); a-- > 0;) {
    const auto count = static_cast<std::int64_t>(axes.axes[a].size());
    points[a] = static_cast<std::size_t>(index % count);
    index /= count;
  }
  return values_at(axes, points);
}

std::int64_t run_at(const SweepAxes& axes, const std::vector<std::size_t>& points) {
  std::int64_t run = 0;
  for (std::size_t a = 0; a < axes.axes.size(); ++a)
    run = run * static_cast<std::int64_t>(axes.axes[a].size()) + static_cast<std::int64_t>(points[a]);
  return run;
}

}  // namespace attmirror
