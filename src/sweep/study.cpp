#include "sweep/study.hpp"

#include "base/numbers.hpp"
#include "base/utf8.hpp"
#include "descent/data_scale.hpp"
#include "descent/model_fields.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

// A text of TOML, which knows UTF-8 alone.
std::string toml_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      result += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte == 0x7f)
      result += fmt::format("\\u{:04x}", byte);
    else
      result += c;
  }
  return result + "\"";
}

// The value of a setting in a sweep file.
std::string toml_value(const FieldValue* value) {
  if (value == nullptr) return "\"default\"";
  const bool text = std::holds_alternative<std::string>(*value);
  return text ? toml_text(std::get<std::string>(*value)) : to_text(*value);
}

// One axis of [[zip]]: a value for each optimizer; nothing where none of them has the setting.
std::string zip_axis(const std::vector<Given>& all, std::string_view name) {
  std::vector<std::string> values;
  bool given = false;
  for (const Given& one : all) {
    values.push_back(toml_value(one.find(name)));
    given = given || one.has(name);
  }
  return given ? fmt::format("{} = [{}]\n", name, fmt::join(values, ", ")) : "";
}

// Every run is held against the solution in its own norm, so it must have one.
void require_own_norm(const NamedOptimizer& one) {
  if (geometry_norm(one.optimizer)) return;
  throw bad_input(fmt::format(
      "optimizer \"{}\": theory predicts no norm whose margin it maximizes, so a study has nothing to compare it with; "
      "attmirror which-margin measures it in any norm",
      one.word));
}

// The columns of a row by name.
class NamedCells {
 public:
  NamedCells(const std::vector<RowColumn>& columns, const std::vector<Cell>& cells)
      : columns_(columns), cells_(cells) {}

  std::optional<double> number(std::string_view name) const {
    const Cell* cell = find(name);
    if (cell == nullptr) return std::nullopt;
    if (const auto* real = std::get_if<double>(cell)) return *real;
    if (const auto* whole = std::get_if<std::int64_t>(cell)) return static_cast<double>(*whole);
    return std::nullopt;
  }
  std::string text(std::string_view name) const {
    const Cell* cell = find(name);
    const auto* text = cell == nullptr ? nullptr : std::get_if<std::string>(cell);
    return text == nullptr ? "" : *text;
  }

 private:
  const Cell* find(std::string_view name) const {
    const auto found = std::ranges::find(columns_, name, &RowColumn::name);
    return found == columns_.end() ? nullptr : &cells_[static_cast<std::size_t>(found - columns_.begin())];
  }

  const std::vector<RowColumn>& columns_;
  const std::vector<Cell>& cells_;
};

std::string word_of(const NamedCells& settings) {
  const std::string method = settings.text("optimizer");
  if (method == "md") return fmt::format("md:{}", settings.number("p").value_or(2));
  if (method == "steepest") return "steepest:" + settings.text("norm");
  if (method == "adam") return fmt::format("adam:{}", settings.number("beta2").value_or(0));
  return method;
}

StudyGroup new_group(const std::string& word, const NamedCells& settings) {
  const std::vector<std::string> words{word};
  const NamedOptimizer named = parse_optimizer_words(words, {}).front();
  const std::optional<Norm> own = geometry_norm(named.optimizer);
  StudyGroup group;
  group.word = word;
  group.title = named.title;
  group.norm = own ? norm_symbol(*own) : "";
  group.lr = settings.number("lr").value_or(nan_value);
  return group;
}

void add_curve(StudyGroup& group, const RunRow& row) {
  const auto steps = std::ranges::find(row.arrays, "step", &RowArray::name);
  const auto curve = std::ranges::find(row.arrays, "own.bregman", &RowArray::name);
  if (steps == row.arrays.end() || curve == row.arrays.end()) return;
  for (std::size_t i = 0; i < std::min(steps->values.size(), curve->values.size()); ++i)
    if (std::isfinite(curve->values[i])) group.curve[steps->values[i]].push_back(curve->values[i]);
}

}  // namespace

void StudyOptions::validate() const {
  if (seeds < 1 || seeds > 100'000) throw bad_value("seeds", seeds, "1 to 100000");
  if (steps < 1) throw bad_value("steps", steps, "1 or more");
  if (lr && !(*lr > 0 && *lr < infinity)) throw bad_value("lr", *lr, "a finite number greater than 0");
  if (optimizers.empty()) throw bad_input("no optimizer is given: expected words such as md,gd,sign");
}

std::string study_file(const Dataset& data, const StudyOptions& options) {
  options.validate();
  if (valid_utf8(options.file) != options.file)
    throw bad_input(
        fmt::format("the path of the data is {}: a sweep file can only name it in UTF-8", options.file));
  const ModelPlan plan = plan_model(options.model);
  const Attention model = make_attention(data, plan);
  std::vector<Given> runs;
  for (const NamedOptimizer& one : options.optimizers) {
    require_own_norm(one);
    Given given = one.given;
    given.put("lr", options.lr ? *options.lr : lr_of(scaled_to(model, one.optimizer)));
    runs.push_back(std::move(given));
  }
  Given start = options.model;
  if (!start.has("init")) start.put("init", fmt::format("normal:{}", start_deviation(model)));
  const std::string init = start.word("init");
  const bool random = init.starts_with("normal") || init == "uniform";
  if (!random && options.seeds > 1)
    throw bad_input(fmt::format("{} is {}, but {} is {}: all starts are equal; expected 1",
                                field_name("seeds"), options.seeds, field_name("init"), init));

  std::string text = fmt::format(
      "{}: the same runs, to the bit, are those of\n#   attmirror sweep sweep.toml -o results.db\n\n[sweep]\nname = {}\n\n"
      "[data]\nfile = {}\n\n[train]\n",
      study_file_mark, toml_text("study of " + options.file), toml_text(options.file));
  for (const auto& [name, value] : start) text += fmt::format("{} = {}\n", name, toml_value(&value));
  text += fmt::format("steps = {}\n", options.steps);
  if (random) text += fmt::format("\n[grid]\ninit_seed = \"1:{}\"\n", options.seeds);
  text += "\n# One optimizer after the other";
  text += options.lr ? ".\n" : "; lr by the scale of the data (docs/study.md).\n";
  text += "[[zip]]\n";
  for (const char* name : {"optimizer", "p", "norm", "beta2", "normalized", "lr"})
    text += zip_axis(runs, name);
  text +=
      "\n[record]\nsolutions = [\"own\"]\ncurves = [\"own.bregman\"]\nsteps = \"log\"\nkeep = [\"weights\"]\n";
  return text;
}

Study read_study(const SweepDatabase& results) {
  const SweepHeader& header = results.header();
  Study study;
  std::map<std::string, std::map<std::int64_t, std::size_t>> places;  // of a seed's share, by optimizer
  std::set<std::int64_t> seeds;
  results.for_each_row(
      [&](const RunRow& row) {
        const NamedCells settings(header.settings, row.settings), metrics(header.metrics, row.metrics);
        const std::string word = word_of(settings);
        auto group = std::ranges::find(study.groups, word, &StudyGroup::word);
        if (group == study.groups.end()) {
          study.groups.push_back(new_group(word, settings));
          group = study.groups.end() - 1;
        }
        const auto seed = static_cast<std::int64_t>(settings.number("init_seed").value_or(0));
        seeds.insert(seed);
        places[word][seed] = group->shares.size();
        const bool ok = row.status == "ok";
        ++study.runs;
        ++study.statuses[row.status];
        ++group->runs;
        ++group->statuses[row.status];
        group->saturated += ok ? 1 : 0;
        group->optimal += metrics.number("global") == 1.0 ? 1 : 0;
        study.steps = std::max(study.steps, static_cast<std::int64_t>(settings.number("steps").value_or(0)));
        group->shares.push_back(ok ? metrics.number("own.margin_ratio").value_or(nan_value) : nan_value);
        group->divergences.push_back(ok ? metrics.number("own.bregman").value_or(nan_value) : nan_value);
        group->correlations.push_back(ok ? metrics.number("own.correlation").value_or(nan_value) : nan_value);
        if (ok) add_curve(*group, row);
      },
      SweepDatabase::Arrays::load);
  study.seeds.assign(seeds.begin(), seeds.end());
  // By seed, with gaps where a run is missing.
  for (StudyGroup& group : study.groups)
    for (std::vector<double>* list : {&group.shares, &group.divergences, &group.correlations}) {
      std::vector<double> sorted;
      for (const std::int64_t seed : study.seeds) {
        const auto place = places[group.word].find(seed);
        sorted.push_back(place == places[group.word].end() ? nan_value : (*list)[place->second]);
      }
      *list = std::move(sorted);
    }
  return study;
}

}  // namespace attmirror
