// The axes of a sweep: what varies, as the file says it. Internal.
//
// An axis is one setting with a list of values ([grid]), several settings that go together ([[zip]]), or the tables of
// [[list]]. The runs are all combinations of one point of each axis; the last axis of the file varies fastest.
#pragma once

#include "base/toml_document.hpp"
#include "sweep/settings.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace attmirror {

// One point of an axis: what it gives to a run.
struct Assignment {
  std::size_t setting = 0;  // of the schema
  Cell value{};             // nothing: the run does without this setting
};
using Point = std::vector<Assignment>;

using Axis = std::vector<Point>;

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

// The settings that run `index` is given.
Values values_of(const SweepAxes& axes, std::int64_t index);

}  // namespace attmirror
