// The generators by name, with their settings as a user gives them: some, in words and numbers, the rest by default.
//
//   const GeneratorKind& kind = find_generator("sphere");
//   const Dataset data = generate(kind, {.samples = 6, .tokens = 8, .dim = 10, .seed = 1});
//
// One table says what kinds there are, which settings each takes and how it is made. `attmirror generate` and the
// files of sweeps both read it, so that a setting has one name, one default and one meaning.
#pragma once

#include <attmirror/data/dataset.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// What was asked; the kind has defaults for the rest. The options of generators.hpp, prompt_data.hpp, head_data.hpp and
// visualization_data.hpp say what each means.
struct GeneratorSettings {
  std::optional<std::int64_t> samples{}, tokens{}, dim{};
  std::optional<std::uint64_t> seed{};
  std::optional<std::int64_t> min_tokens{};  // 0: all lengths are equal
  std::optional<std::int64_t> queries{};
  std::optional<std::string> query_from{};    // draw, first, last, all
  std::optional<std::string> scores{};        // equal, unequal
  std::optional<std::string> label_margin{};  // tight, slack
  std::optional<double> score{};

  friend bool operator==(const GeneratorSettings&, const GeneratorSettings&) = default;
};

// What is known of data before they are made: all that decides whether a model fits them.
struct DataOutline {
  std::int64_t dim = 1;
  bool has_decoder = true, has_head_weights = false, queries_are_tokens = false;

  friend bool operator==(const DataOutline&, const DataOutline&) = default;
};

struct GeneratorKind {
  std::string name, description;
  std::vector<std::string> settings;  // the names of those it takes
  bool score_blind = false;           // a prompt on these data takes score_blind_key_weights()

  // With the defaults of this kind in place of what was not given; settings of other kinds stay empty. Throws Error
  // (bad input) for values that do not make sense.
  GeneratorSettings (*resolve)(const GeneratorSettings& given) = nullptr;
  Dataset (*make)(const GeneratorSettings& given) = nullptr;
  DataOutline (*outline)(const GeneratorSettings& given) = nullptr;

  bool takes(std::string_view setting) const;
};

const std::vector<GeneratorKind>& generator_kinds();

// Throws Error (bad input) with all names for another one.
const GeneratorKind& find_generator(std::string_view name);

// All settings, checked: throws Error (bad input) also for one that the kind does not take.
GeneratorSettings resolved(const GeneratorKind& kind, const GeneratorSettings& given);

Dataset generate(const GeneratorKind& kind, const GeneratorSettings& given);

}  // namespace attmirror
