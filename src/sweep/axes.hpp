// The axes of a sweep: what varies, as the file says it. Internal.
//
// An axis is one setting with a list of values ([grid]), several settings that go together ([[zip]]), or the tables of
// [[list]]. The runs are all combinations of one point of each axis; the last axis of the file varies fastest.
#pragma once

#include "base/toml_document.hpp"
#include "sweep/ranges.hpp"
#include "sweep/settings.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace attmirror {

// What an axis gives to a run.
struct Assignment {
  std::size_t setting = 0;  // of the schema
  Cell value{};             // nothing: the run does without this setting
};
using Point = std::vector<Assignment>;

// The values of one setting, as a list or as a long range.
class AxisValues {
 public:
  AxisValues(std::vector<Cell> list) : list_(std::move(list)) {}
  AxisValues(const Setting& setting, ValueRange range) : setting_(&setting), range_(std::move(range)) {}

  std::size_t size() const { return range_ ? static_cast<std::size_t>(range_->count()) : list_.size(); }
  Cell at(std::size_t i) const;

 private:
  std::vector<Cell> list_;
  const Setting* setting_ = nullptr;
  std::optional<ValueRange> range_;
};

// Settings that go together, value by value, or the tables of [[list]].
class Axis {
 public:
  explicit Axis(std::vector<Point> points) : points_(std::move(points)), size_(points_.size()) {}
  Axis(std::size_t setting, AxisValues values) : size_(values.size()) {
    columns_.push_back({setting, std::move(values)});
  }

  void zip_with(std::size_t setting, AxisValues values) { columns_.push_back({setting, std::move(values)}); }
  std::size_t size() const { return size_; }
  void assign(std::size_t i, Values& values) const;

  // The one setting that it varies, if it is one.
  std::optional<std::size_t> only_setting() const {
    return columns_.size() == 1 ? std::optional(columns_.front().setting) : std::nullopt;
  }

 private:
  struct ValueColumn {
    std::size_t setting;
    AxisValues values;
  };
  std::vector<ValueColumn> columns_;
  std::vector<Point> points_;
  std::size_t size_;
};

struct SweepAxes {
  Values fixed;  // by [data] and [train]
  std::vector<Axis> axes;
  std::vector<std::size_t> varied;  // settings that stand on an axis, in the order of the file
  std::int64_t runs = 1;
};

// One value of a setting. `place` is what messages begin with, as in `sweep.toml: axis "p"`. Throws Error (bad input)
// for another type or a number out of range.
Cell read_value(const Setting& setting, const TomlValue& value, const std::string& place);

// Reads [data], [train], [grid], [[zip]] and [[list]] of the file. Takes no memory for more than `max_runs` runs.
SweepAxes read_axes(const TomlTable& file, const std::string& name, std::int64_t max_runs);

// The settings that run `index` is given, and the same by the points of the axes.
Values values_of(const SweepAxes& axes, std::int64_t index);
Values values_at(const SweepAxes& axes, const std::vector<std::size_t>& points);

// The run with these points.
std::int64_t run_at(const SweepAxes& axes, const std::vector<std::size_t>& points);

}  // namespace attmirror
