// The results of a sweep in one SQLite file that survives anything.
//
// Rows are written in batches, one transaction each, into a write-ahead log: killed at any moment, or with the disk full,
// the file holds every batch that was written before and nothing of the one in flight. One process writes at a time
// (others are refused with a sentence); any number may read meanwhile, with attmirror or with sqlite3.
//
//   runs     one row per run: key, run, the settings, config, status, reason, the metrics, seconds, engine, ...
//   arrays   key, name, shape, data: curves and weights as little-endian doubles
//   meta     format_version, the sweep file, which columns are settings, axes and metrics
#pragma once

#include <attmirror/base/table.hpp>
#include <attmirror/sweep/row.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace attmirror {

// What a database says of its sweep.
struct SweepHeader {
  std::string name, description, file_text, record_text;
  std::vector<RowColumn> settings, metrics;
  std::vector<std::string> axes;
};

class SweepDatabase {
 public:
  enum class Mode {
    create,  // the file must not be there, or be empty
    resume,  // goes on with a file of the same settings, metrics and records; new runs may have joined the sweep
    overwrite,  // replaces what is there, if that is a sweep of ours
  };

  // To write. Throws Error: bad input where the file is there (create), is none of ours or of another sweep (naming what
  // differs); environment where it is in use by another writer, read-only, or the disk is full.
  SweepDatabase(const std::filesystem::path& path, Mode mode, const SweepHeader& header);
  // To read.
  explicit SweepDatabase(const std::filesystem::path& path);
  ~SweepDatabase();
  SweepDatabase(SweepDatabase&&) noexcept;
  SweepDatabase& operator=(SweepDatabase&&) noexcept;

  const SweepHeader& header() const;
  std::vector<std::string> finished_keys() const;  // sorted
  std::int64_t count() const;

  // One transaction: all rows or none. A key that is there already is left as it is. Throws Error (environment), after
  // which the object can still be used (a disk that was full may have room again).
  void write(std::span<const RunRow> rows);

  // In the order of `run`, then of key. Without the arrays unless asked for.
  enum class Arrays { leave, load };
  std::vector<RunRow> rows(Arrays arrays = Arrays::leave) const;
  std::vector<RowArray> arrays(const std::string& key) const;

  // PRAGMA integrity_check: empty if all is well.
  std::string integrity() const;

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

// One line per run: run, settings, status, reason, metrics, seconds, engine, ... Numbers with as many digits as they need.
void export_csv(const SweepDatabase& database, const std::filesystem::path& path);
// One array per column (numbers as doubles or int64, texts as fixed-width strings), and the curves stacked as
// "curve.NAME" (runs, records), short ones filled up with NaN, with "curve.step".
void export_npz(const SweepDatabase& database, const std::filesystem::path& path);

struct SummaryOptions {
  std::vector<std::string> group_by;  // setting columns; empty: the axes other than seeds
  std::vector<std::string> metrics;   // empty: all that are numbers
  std::vector<double> quantiles{0.1, 0.5, 0.9};
};
// One table per metric, or one in all with rows (group, metric): count, mean, standard deviation, standard error,
// quantiles; and how many runs of each group have which status.
Table summarize(const SweepDatabase& database, const SummaryOptions& options = {});

}  // namespace attmirror
