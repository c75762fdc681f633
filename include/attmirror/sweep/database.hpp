// The results of a sweep in one SQLite file that survives anything.
//
// Rows are written in batches, one transaction each, into a write-ahead log: killed at any moment, or with the disk
// full, the file holds every batch that was written before and nothing of the one in flight. One process writes at a
// time (others are refused with a sentence); any number may read meanwhile, with attmirror or with sqlite3.
//
//   runs     one row per run: key, run, the settings, config, status, reason, the metrics, seconds, engine, ...
//   arrays   key, name, shape, data: curves and weights as little-endian doubles
//   meta     format_version, the sweep file, which columns are settings, axes and metrics
//
// An object is for one thread at a time. Several objects may read and one may write the same file, in one process or in
// many. The file must lie on a disk of this machine: the log is shared through memory, which network file systems lack.
#pragma once

#include <attmirror/sweep/row.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace attmirror {

// What a database says of its sweep.
struct SweepHeader {
  std::string name, description, file_text, record_text;
  std::vector<RowColumn> settings, metrics;
  std::vector<std::string> axes;

  friend bool operator==(const SweepHeader&, const SweepHeader&) = default;

  // Throws Error (bad input) where a setting or metric has no name, or has that of another column: names of SQL are the
  // same in capitals and small letters.
  void validate() const;
};

// The results of a sweep, in one SQLite file.
class SweepDatabase {
 public:
  // How a database is opened.
  enum class Mode {
    create,  // the file must not be there, or be empty
    // Goes on with a file of the same settings, metrics and records; new runs may have joined the sweep, and what.
    resume,
    // the header says of axes and file text replaces what was there
    // Replaces what is there, if that is a sweep of ours; killed in between it is the old or the new.
    overwrite,
  };

  // To write. Throws Error: bad input where the file is there (create), is none of ours or of another sweep (naming
  // what differs); environment where it is in use by another writer, read-only, or the disk is full.
  SweepDatabase(const std::filesystem::path& path, Mode mode, const SweepHeader& header);
  // To read, also while another writes. Throws Error (bad input) where there is no such file, or it is damaged or
  // none of ours.
  explicit SweepDatabase(const std::filesystem::path& path);
  // Brings the log into the file, so that a sweep that is done is one file (unless somebody is reading: then the last
  // reader does it).
  ~SweepDatabase();
  SweepDatabase(SweepDatabase&&) noexcept;
  SweepDatabase& operator=(SweepDatabase&&) noexcept;

  const SweepHeader& header() const;
  const std::filesystem::path& path() const;
  // Sorted. Without runs that could not be made (status "error"): their reason may be gone, so they are tried again.
  std::vector<std::string> finished_keys() const;
  std::int64_t count() const;

  // One transaction: all rows or none. A key that is there already is left as it is, unless it is that of an "error".
  // Throws Error (environment), after which the object can still be used (a disk that was full may have room again);
  // bad input for a row that does not fit the columns.
  void write(std::span<const RunRow> rows);

  // In the order of `run`, then of key. Without the arrays unless asked for.
  enum class Arrays { leave, load };
  std::vector<RunRow> rows(Arrays arrays = Arrays::leave) const;
  std::vector<RowArray> arrays(const std::string& key) const;

  // The same piece by piece, for sweeps that do not fit into memory. All of these go by `run`, then by key.
  void for_each_row(const std::function<void(const RunRow&)>& visit, Arrays arrays = Arrays::leave) const;
  // Some columns of table runs; see columns(). Throws Error (bad input) for names that are none, with the nearest
  // that is.
  void for_each_run(std::span<const std::string> columns,
                    const std::function<void(std::span<const Cell>)>& visit) const;
  // The array of this name of every run; nothing for a run without.
  void for_each_array(const std::string& name,
                      const std::function<void(const std::optional<RowArray>&)>& visit) const;

  // All columns of table runs, in order.
  std::vector<RowColumn> columns() const;
  // The names of the arrays that any run has, each with all shapes in which it occurs.
  std::map<std::string, std::vector<std::vector<std::int64_t>>> array_shapes() const;

  // While it lives, everything that this object reads is the state of one moment, though others write on.
  class Snapshot {
   public:
    explicit Snapshot(const SweepDatabase& database);
    ~Snapshot();
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;

   private:
    const SweepDatabase& database_;
  };

  // Of a writer: throws Error (environment) if the file was removed, replaced or emptied meanwhile. write() asks, too.
  void require_in_place() const;

  // PRAGMA integrity_check: empty if all is well.
  std::string integrity() const;

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace attmirror
