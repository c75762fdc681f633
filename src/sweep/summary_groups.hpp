// A summary of a sweep as numbers, from which come the long table (export.hpp) and the pivot tables of the
// screen (pivot.hpp). Internal.
#pragma once

#include <attmirror/base/table.hpp>
#include <attmirror/sweep/export.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace attmirror {

// Of the runs of a group that have the metric.
struct MetricStatistics {
  std::int64_t count = 0;
  double mean = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> deviation{}, error{};  // of two runs or more: with n - 1; of the mean
  std::vector<double> quantiles{};
};

struct SummaryGroup {
  std::vector<std::string> key;  // the values of `by`
  std::int64_t runs = 0;
  std::string statuses;  // "ok 97, diverged 3"
  bool all_ok = false;
  std::vector<MetricStatistics> metrics;
};

struct SummaryGroups {
  std::string title;
  std::vector<Column> by;
  std::vector<std::string> metrics;
  std::vector<SummaryGroup> groups;  // in ascending order
};

// Throws Error (bad input) as summarize() does.
SummaryGroups summary_groups(const SweepDatabase& database, const SummaryOptions& options);
Table summary_table(const SummaryGroups& summary, const SummaryOptions& options);

}  // namespace attmirror
