// From the text of a sweep file to its runs.
//
// Every run is checked (run_checks.hpp) before the first one starts.
#include "base/atomic_file.hpp"
#include "base/words.hpp"
#include "sweep/axes.hpp"
#include "sweep/cache.hpp"
#include "sweep/run_checks.hpp"
#include "sweep/settings.hpp"
#include "sweep/sweep_file.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/sweep/plan.hpp>

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

namespace attmirror {

namespace {

// Gathers resolved runs; a column joins when the first run has a value for it.
class RunTable {
 public:
  explicit RunTable(const SweepAxes& axes, SweepPlan& plan) : axes_(axes), plan_(plan) {
    plan_.runs.reserve(static_cast<std::size_t>(axes.runs));
    numbers_.reserve(static_cast<std::size_t>(axes.runs));
  }

  // Returns the number of an equal run, if there is one.
  std::optional<std::size_t> add(Values resolved) {
    const std::uint64_t key = run_key(resolved, plan_.record_text);
    const auto [known, is_new] = numbers_.emplace(key, plan_.runs.size());
    if (!is_new) return known->second;
    for (std::size_t i = 0; i < resolved.size(); ++i)
      if (!std::holds_alternative<std::monostate>(resolved[i])) add_column(i);
    RunSettings run{.key = fmt::format("{:016x}", key), .cells = {}};
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

void add_runs(const SweepAxes& axes, const std::string& name, SweepPlan& plan) {
  RunChecks checks(plan.folder, plan.record);
  RunTable table(axes, plan);
  for (std::int64_t run = 0; run < axes.runs; ++run) {
    try {
      if (const auto twin = table.add(checks.resolved(values_of(axes, run))))
        throw same_settings(axes, static_cast<std::int64_t>(*twin));
    } catch (const Error& error) {
      throw of_run(error, axes, run, name);
    }
  }
  table.finish();
}

SweepPlan read_sweep(std::string_view text, const std::string& name, const std::filesystem::path& folder,
                     const SweepLimits& limits) {
  SweepFile file = read_sweep_file(text, name, folder, limits);
  add_runs(file.axes, name, file.plan);
  file.plan.cache = std::make_shared<SweepCache>();
  return std::move(file.plan);
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
  return parse_sweep(read_text_file(path), path.filename().string(), path.parent_path(), limits);
}

}  // namespace attmirror
