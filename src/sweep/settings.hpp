// The schema of a sweep: every setting that a run can have, once.
//
// From this one table come the keys of the file, the columns of the results, the fingerprint of a run and the messages.
// The settings of a training are the fields of optimizer, model and length (descent/optimizer_fields.hpp,
// descent/model_fields.hpp); those of data are the words of `attmirror generate` (data/generator_kinds.hpp). Internal.
#pragma once

#include "base/words.hpp"
#include "data/generator_fields.hpp"
#include "descent/model_fields.hpp"
#include "descent/optimizer_fields.hpp"
#include <attmirror/sweep/plan.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// All that a run was given.
struct RunWords {
  std::optional<std::string> generator{}, file{};
  GeneratorSettings data{};
  Given training{};
  std::optional<std::string> init_seed{};  // "seed" or "own"; a number is in `training`
};

struct Setting {
  SweepSetting info;
  FieldInfo field;
  CellType type = CellType::text;
  std::function<void(const std::string& text)> check{};  // throws for a text that does not parse
  std::function<void(RunWords& words, const Cell& value)> put{};
  std::function<Cell(const RunWords& words)> get{};

  bool is_data() const { return info.table == "data"; }
};

const std::vector<Setting>& settings();

// Its position in the schema, or nothing.
std::optional<std::size_t> find_setting(std::string_view name);

// The settings of one run, one per setting of the schema; nothing where one is not given.
using Values = std::vector<Cell>;

Cell to_cell(const FieldValue& value);

RunWords to_words(const Values& values);

// Every setting that matters for the run, defaults included, and nothing for the others. Throws Error (bad input) when
// settings do not go together.
Values resolve(const Values& given);

// Names and values.
std::uint64_t fingerprint(const Values& resolved);

// A value as results hold it.
Cell to_cell(const FieldValue& value);

// As a message, a list of axes or a command shows it: 0.1, 20000, md, true.
std::string to_text(const Setting& setting, const Cell& value);

// A setting as sweep files spell it.
std::string setting_spelling(std::string_view field);

}  // namespace attmirror
