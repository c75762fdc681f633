// Every run of a sweep is checked before the first one starts: words, ranges, what goes with what, whether a model fits
// the data. The data themselves are not made for that; a stand-in of one short sequence with the same dimension answers
// the same questions. Internal.
#pragma once

#include "sweep/axes.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/sweep/plan.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_set>

namespace attmirror {

// Whether a model fits data, and whether files are there; each question is asked once.
class RunChecks {
 public:
  // The record must outlive the checks.
  RunChecks(const std::filesystem::path& folder, const RecordPlan& record)
      : folder_(folder), record_(record) {}

  // The settings of a run, resolved. Throws Error (bad input) where they do not go together.
  Values resolved(const Values& given);

 private:
  void check(const RunWords& words);
  void check_exists(const char* setting, const std::string& path);
  void check_model(const RunWords& words);

  std::filesystem::path folder_;
  const RecordPlan& record_;
  std::unordered_set<std::string> found_;
  std::unordered_set<std::uint64_t> answered_;
};

// Of a run and what is recorded of it; equal keys mean equal runs.
std::uint64_t run_key(const Values& resolved, std::string_view record_text);

// "it has the same settings as run 3 (optimizer = sign, p = 1.5)"
Error same_settings(const SweepAxes& axes, std::int64_t twin);

// The error of a run, which the message names with the settings that vary; `name` is that of the file.
Error of_run(const Error& error, const SweepAxes& axes, std::int64_t run, const std::string& name);

}  // namespace attmirror
