// What you can get out of a sweep's database: a table for a spreadsheet, arrays for numpy, a summary to read.
//
// All three read a snapshot, so they may run while the sweep runs, and they read row by row or column by
// column, so that a million runs need little more memory than one column.
#pragma once

#include <attmirror/base/table.hpp>
#include <attmirror/sweep/database.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace attmirror {

// One line per run, after a line of names: run, key, settings, status, reason, metrics, seconds, engine, isa,
// version, commit, finished. RFC 4180: lines end with CR LF, and texts with commas, quotes or line ends are
// in quotes. Numbers have as many digits as they need to be read back exactly; missing values are empty;
// infinities are "inf" and "-inf". Written atomically.
void export_csv(const SweepDatabase& database, const std::filesystem::path& path);

// One array per column: real numbers as float64 (NaN if missing), whole numbers as int64 (float64 if one is
// missing), texts as fixed-width strings (numpy's "<U12"; empty if missing). Curves, the arrays along the records,
// are stacked as "curve.NAME" (runs, records) with "curve.step"; weights and all other arrays as "array.NAME" (runs,
// ...). Short arrays are filled up with NaN at the end of each axis; missing ones are all NaN. Written atomically.
//
// numpy.load() reads all of it; load_npz() does not, because an Array holds only numbers.
void export_npz(const SweepDatabase& database, const std::filesystem::path& path);

// What a summary groups by, and which columns it summarizes.
struct SummaryOptions {
  // Setting columns, or "status"; empty: the axes and all other settings that differ between rows, except
  // seeds, which a study averages over.
  std::vector<std::string> group_by{};
  // Columns with numbers; empty: all metrics that are numbers.
  std::vector<std::string> metrics{};
  // The median and the range that contains four runs in five, by linear interpolation like numpy.quantile().
  std::vector<double> quantiles{0.1, 0.5, 0.9};
  // Six are enough for reading; `all` is as many as needed to read the same numbers back.
  enum class Digits { six, all } digits = Digits::six;

  // Throws Error (bad input) for a quantile outside [0, 1].
  void validate() const;
};

// One line per group and metric, groups in ascending order: the group's values, the metric, the number of
// runs with it (count) and without it (missing), mean, standard deviation (n - 1), standard error of the
// mean, quantiles; and how the runs of the group ended ("ok 97, diverged 3"). Throws Error (bad input) for
// names that are not columns, with the nearest that is, and for metrics that are texts.
Table summarize(const SweepDatabase& database, const SummaryOptions& options = {});

}  // namespace attmirror
