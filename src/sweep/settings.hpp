// The schema of a sweep: every setting that a run can have, once.
//
// From this one table come the keys of the file, the columns of the results, the fingerprint of a run, the messages
// and the commands that repeat a run. A setting is a word of `attmirror generate` or `attmirror train` with underscores
// for dashes; how words become objects is the business of those rooms (data/generator_kinds.hpp,
// descent/optimizer_words.hpp, descent/model_words.hpp). Internal.
#pragma once

#include "base/words.hpp"
#include <attmirror/data/generator_kinds.hpp>
#include <attmirror/descent/model_words.hpp>
#include <attmirror/descent/optimizer_words.hpp>
#include <attmirror/sweep/plan.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// All words of a run; what is empty was not given.
struct RunWords {
  std::optional<std::string> generator{}, file{};
  GeneratorSettings data{};
  OptimizerWords optimizer{};
  ModelWords model{};
  std::optional<std::string> init_seed{};  // "seed" or "own"; a number is in model.init_seed
  std::optional<std::int64_t> steps{};
  std::optional<double> saturation{};
  std::optional<std::string> data_path{}, storage{};
};

enum class ValueKind { integer, seed, real, flag, text, norm, seed_or_word };

// What numbers a setting may have.
enum class Range { any, above_zero, from_zero, above_one, from_one, probability, below_one };

struct Setting {
  SweepSetting info;
  ValueKind kind = ValueKind::text;
  CellType type = CellType::text;
  Range range = Range::any;
  void (*check)(const std::string& text) = nullptr;  // throws for a text that does not parse
  void (*put)(RunWords& words, const Cell& value) = nullptr;
  Cell (*get)(const RunWords& words) = nullptr;

  bool is_data() const { return info.table == "data"; }
};

const std::vector<Setting>& settings();

// Its position in the schema, or nothing.
std::optional<std::size_t> find_setting(std::string_view name);

// The settings of one run, one per setting of the schema; nothing where one is not given.
using Values = std::vector<Cell>;

RunWords to_words(const Values& values);

// Every setting that matters for the run, defaults included, and nothing for the others. Throws Error (bad input) when
// settings do not go together.
Values resolve(const Values& given);

// Names and values.
std::uint64_t fingerprint(const Values& resolved);

// As a message, a list of axes or a command shows it: 0.1, 20000, md, true.
std::string to_text(const Setting& setting, const Cell& value);

// A message of another room with settings spelled as in a sweep file: "--entropy-beta" is entropy_beta here.
std::string in_words_of_sweeps(std::string message);

}  // namespace attmirror
