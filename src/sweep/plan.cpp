// From the text of a sweep file to its runs.
//
// Every run is checked here, before the first one starts: words, ranges, what goes with what, whether a model fits the
// data. The data themselves are not made for that; a stand-in of one short sequence with the same dimension answers the
// same questions.
#include "base/atomic_file.hpp"
#include "base/toml_document.hpp"
#include "base/words.hpp"
#include "sweep/axes.hpp"
#include "sweep/cache.hpp"
#include "sweep/record_plan.hpp"
#include "sweep/settings.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/fingerprint.hpp>
#include <attmirror/sweep/plan.hpp>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

namespace attmirror {

namespace {

void check_tables(const TomlTable& file, const std::string& name) {
  static const std::vector<std::string_view> tables{"sweep", "data", "train", "grid",
                                                    "zip",   "list", "record"};
  for (const auto& [key, value] : file) {
    if (std::ranges::find(tables, key) != tables.end()) continue;
    throw bad_input(fmt::format(
        "{}: line {}: there is no table {}: expected [sweep], [data], [train], [grid], [[zip]], [[list]] or "
        "[record]{}",
        name, value.line, in_double_quotes(key), did_you_mean(key, tables)));
  }
}

void read_names(const TomlTable& file, const std::string& name, SweepPlan& plan) {
  const auto found = std::ranges::find(file, "sweep", &TomlEntry::key);
  if (found == file.end()) return;
  const auto* table = found->value.as<TomlTable>();
  if (!table) throw bad_input(fmt::format("{}: sweep is {}: expected a table", name, to_text(found->value)));
  static const std::vector<std::string_view> keys{"name", "description"};
  for (const auto& [key, value] : *table) {
    if (key != "name" && key != "description")
      throw bad_input(
          fmt::format("{}: [sweep] has no key {}{}", name, in_double_quotes(key), did_you_mean(key, keys)));
    const auto* text = value.as<std::string>();
    if (!text) throw bad_input(fmt::format("{}: [sweep] {}: {} is no text", name, key, to_text(value)));
    (key == "name" ? plan.name : plan.description) = *text;
  }
}

void add(Fingerprint& print, const FieldValue& value) {
  if (const auto* word = std::get_if<std::string>(&value))
    print.add(std::string_view(*word));
  else if (const auto* number = std::get_if<double>(&value))
    print.add(*number);
  else
    print.add(std::string_view(to_text(value)));
}

// Whether a model fits data, and whether files are there; each question is asked once.
class Checks {
 public:
  explicit Checks(const std::filesystem::path& folder) : folder_(folder) {}

  void check(const RunWords& words) {
    if (words.file) check_exists("file", *words.file);
    if (const auto path = words.training.get<std::string>("key_weights")) check_exists("key_weights", *path);
    if (const std::string init = words.training.word("init"); init.starts_with("file:"))
      check_exists("init", init.substr(5));
    if (words.file) return;  // what a file holds is known when it is read
    check_model(words);
  }

 private:
  void check_exists(const char* setting, const std::string& path) {
    if (found_.contains(path)) return;
    std::error_code error;
    if (!std::filesystem::is_regular_file(folder_ / path, error))
      throw bad_input(fmt::format("{} is {}: there is no such file", setting,
                                  in_double_quotes((folder_ / path).string())));
    found_.insert(path);
  }

  void check_model(const RunWords& words) {
    const DataOutline data = find_generator(*words.generator).outline(words.data);
    Fingerprint question;
    question.add(std::ptrdiff_t{data.dim});
    question.add(std::ptrdiff_t{data.has_decoder + 2 * data.has_head_weights + 4 * data.queries_are_tokens});
    for (const char* name : {"params", "rank", "head", "mask", "penalty", "train", "init"})
      if (const FieldValue* value = words.training.find(name)) add(question, *value);
    if (!answered_.insert(question.value()).second) return;
    fit(data, plan_model(words.training));
  }

  static void fit(const DataOutline& outline, const ModelPlan& plan) {
    constexpr std::int64_t largest = 4096;  // more than that is not worth the memory just to ask
    if (outline.dim > largest) return;
    DatasetArrays arrays;
    arrays.tokens = Matrix::Zero(2, outline.dim);
    arrays.tokens(0, 0) = 1;
    arrays.lengths = {2};
    arrays.labels = {1};
    if (outline.queries_are_tokens)
      arrays.query_index = {1};
    else
      arrays.queries = arrays.tokens.topRows(1);
    if (outline.has_decoder) arrays.decoder = arrays.tokens.row(0).transpose();
    if (outline.has_head_weights) arrays.head = arrays.tokens.row(0).transpose();
    Dataset data(arrays);
    if (plan.mask == Mask::causal) data = with_causal_mask(std::move(data));
    const Attention model = make_attention(data, plan);
    if (std::holds_alternative<KQ>(plan.parameterization) && plan.init_path.empty())
      initial_parameters(model, plan.init);  // K = Q = 0 does not move
  }

  std::filesystem::path folder_;
  std::unordered_set<std::string> found_;
  std::unordered_set<std::uint64_t> answered_;
};

// Gathers resolved runs; a column joins when the first run has a value for it.
class RunTable {
 public:
  explicit RunTable(const SweepAxes& axes, SweepPlan& plan) : axes_(axes), plan_(plan) {
    plan_.runs.reserve(static_cast<std::size_t>(axes.runs));
    numbers_.reserve(static_cast<std::size_t>(axes.runs));
  }

  // Returns the number of an equal run, if there is one.
  std::optional<std::size_t> add(Values resolved) {
    Fingerprint print;
    print.add(fingerprint(resolved));
    print.add(std::string_view(plan_.record_text));
    const auto [known, is_new] = numbers_.emplace(print.value(), plan_.runs.size());
    if (!is_new) return known->second;
    for (std::size_t i = 0; i < resolved.size(); ++i)
      if (!std::holds_alternative<std::monostate>(resolved[i])) add_column(i);
    RunSettings run{.key = fmt::format("{:016x}", print.value()), .cells = {}};
    run.cells.reserve(columns_.size());
    for (const std::size_t column : columns_) run.cells.push_back(std::move(resolved[column]));
    plan_.runs.push_back(std::move(run));
    return std::nullopt;
  }

  void finish() {
    for (const std::size_t column : columns_)
      plan_.columns.push_back({settings()[column].info.name, settings()[column].type});
    for (const std::size_t setting : axes_.varied) {
      const auto at = std::ranges::find(columns_, setting);
      if (at == columns_.end()) continue;
      const auto i = static_cast<std::size_t>(at - columns_.begin());
      const Cell& first = plan_.runs.front().cells[i];
      if (std::ranges::any_of(plan_.runs, [&](const RunSettings& run) { return run.cells[i] != first; }))
        plan_.axes.push_back(settings()[setting].info.name);
    }
  }

 private:
  void add_column(std::size_t setting) {
    const auto at = std::ranges::lower_bound(columns_, setting);
    if (at != columns_.end() && *at == setting) return;
    const auto position = at - columns_.begin();
    columns_.insert(at, setting);
    const Cell nothing{};
    for (RunSettings& run : plan_.runs) run.cells.insert(run.cells.begin() + position, nothing);
  }

  const SweepAxes& axes_;
  SweepPlan& plan_;
  std::vector<std::size_t> columns_;  // settings, in the order of the schema
  std::unordered_map<std::uint64_t, std::size_t> numbers_;
};

// "run 3 (optimizer = sign, p = 1.5)": the settings that vary.
std::string run_text(const SweepAxes& axes, std::int64_t run) {
  std::string text = fmt::format("run {}", run);
  if (axes.varied.empty()) return text;
  const Values values = values_of(axes, run);
  std::string list;
  for (const std::size_t setting : axes.varied) {
    if (std::holds_alternative<std::monostate>(values[setting])) continue;
    list += fmt::format("{}{} = {}", list.empty() ? "" : ", ", settings()[setting].info.name,
                        to_text(settings()[setting], values[setting]));
  }
  return list.empty() ? text : fmt::format("{} ({})", text, list);
}

void add_runs(const SweepAxes& axes, const std::string& name, SweepPlan& plan) {
  Checks checks(plan.folder);
  RunTable table(axes, plan);
  for (std::int64_t run = 0; run < axes.runs; ++run) {
    try {
      Values resolved = resolve(values_of(axes, run));
      const RunWords words = to_words(resolved);
      checks.check(words);
      for (const SolutionPlan& solution : plan.record.solutions)
        if (!solution.norm)
          norm_of(solution, make_optimizer(words.training));  // throws where theory names none
      if (const auto twin = table.add(std::move(resolved)))
        throw bad_input(
            fmt::format("it has the same settings as {}", run_text(axes, static_cast<std::int64_t>(*twin))));
    } catch (const Error& error) {
      throw Error(error.kind(),
                  fmt::format("{}: {}: {}", name, run_text(axes, run), error.message(setting_spelling)));
    }
  }
  table.finish();
}

SweepPlan read_sweep(std::string_view text, const std::string& name, const std::filesystem::path& folder,
                     const SweepLimits& limits) {
  const TomlTable file = parse_toml(text, name);
  check_tables(file, name);
  SweepPlan plan;
  plan.text = text;
  plan.folder = folder;
  read_names(file, name, plan);
  plan.record = read_record(file, name);
  plan.record_text = to_text(plan.record);
  const SweepAxes axes = read_axes(file, name, limits.max_runs);
  add_runs(axes, name, plan);
  plan.cache = std::make_shared<SweepCache>();
  return plan;
}

}  // namespace

SweepPlan parse_sweep(std::string_view text, const std::string& name, const std::filesystem::path& folder,
                      const SweepLimits& limits) {
  try {
    return read_sweep(text, name, folder, limits);
  } catch (const Error& error) {
    throw Error(error.kind(), one_line(error.what()));  // which may quote anything that the file holds
  }
}

SweepPlan load_sweep(const std::filesystem::path& path, const SweepLimits& limits) {
  const std::vector<std::byte> bytes = read_file(path);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return parse_sweep(text, path.filename().string(), path.parent_path(), limits);
}

}  // namespace attmirror
