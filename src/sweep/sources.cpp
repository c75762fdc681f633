#include "sweep/sources.hpp"

#include "base/json.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string>

#include <fmt/format.h>

namespace attmirror {

namespace {

// The settings of a run that name files, as one text; empty: there are none.
std::string files_of(const SweepPlan& plan, const RunSettings& run) {
  std::string text;
  for (std::size_t i = 0; i < plan.columns.size(); ++i) {
    const std::string& name = plan.columns[i].name;
    if (name != "file" && name != "key_weights" && name != "init") continue;
    const auto* value = std::get_if<std::string>(&run.cells[i]);
    if (value != nullptr && (name != "init" || value->starts_with("file:")))
      text += name + "=" + *value + ";";
  }
  return text;
}

}  // namespace

void check_sources(const SweepPlan& plan, const SweepDatabase& results) {
  // One finished run for each combination of files.
  if (std::ranges::all_of(plan.runs, [&](const RunSettings& run) { return files_of(plan, run).empty(); }))
    return;
  std::map<std::string, std::size_t> by_key;
  std::set<std::string> seen;
  const std::vector<std::string> finished = results.finished_keys();
  for (std::size_t i = 0; i < plan.runs.size() && !finished.empty(); ++i) {
    const std::string files = files_of(plan, plan.runs[i]);
    if (files.empty() || seen.contains(files)) continue;
    if (!std::ranges::binary_search(finished, plan.runs[i].key)) continue;
    seen.insert(files);
    by_key.emplace(plan.runs[i].key, i);
  }
  if (by_key.empty()) return;
  const std::array<std::string, 2> columns{"key", "config"};
  results.for_each_run(columns, [&](std::span<const Cell> cells) {
    const auto* key = std::get_if<std::string>(&cells[0]);
    const auto* config = std::get_if<std::string>(&cells[1]);
    const auto found = key == nullptr ? by_key.end() : by_key.find(*key);
    if (found == by_key.end() || config == nullptr) return;
    std::string now_text;
    try {
      now_text = plan.prepare(found->second).config;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::environment) throw;
      return;  // a file that is gone harms the runs that still want it; their rows will say so
    }
    const Json then = Json::parse(*config, nullptr, false), now = Json::parse(now_text);
    for (const char* field :
         {"/data/fingerprint", "/model/key_weights/fingerprint", "/init/file/fingerprint"}) {
      const Json::json_pointer place(field);
      if (then.is_object() && then.contains(place) && now.contains(place) && then.at(place) != now.at(place))
        throw bad_input(
            fmt::format("{} was computed from files that have changed since ({}: {} is {} there, {} now): "
                        "restore them, or choose "
                        "another database",
                        results.path().string(), files_of(plan, plan.runs[found->second]), field + 1,
                        then.at(place).get<std::string>(), now.at(place).get<std::string>()));
    }
  });
}

}  // namespace attmirror
