// The results of a sweep in one SQLite file that survives kills, full disks and concurrent readers.
//
// Rows are written in batches, one transaction each, into a write-ahead log: after a kill at any moment, or with a
// full disk, the file has every batch that was written before and nothing of the one in flight. One process writes
// at a time (others are refused with a message); any number may read meanwhile, with attmirror or with sqlite3.
//
//   runs     one row per run: key, run, the settings, config, status, reason, the metrics, seconds, engine, ...
//   arrays   key, name, shape, data: curves and weights as little-endian doubles
//   meta     format_version, the sweep file, which columns are settings, axes and metrics
//
// An object is for one thread at a time. Several objects may read and one may write the same file, in one or many
// processes. The file must be on a local disk: the log is shared through memory, which network file systems lack.
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

// What a database says about its sweep.
struct SweepHeader {
  std::string name, description, file_text, record_text;
  std::vector<RowColumn> settings, metrics;
  std::vector<std::string> axes;

  friend bool operator==(const SweepHeader&, const SweepHeader&) = default;

  // Throws Error (bad input) if a setting or metric has no name, or the name of another column: SQL names do
  // not distinguish upper and lower case.
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

  // To write. Throws Error: bad input if the file exists (create), is not a sweep or is of another sweep
  // (naming what differs); environment if another writer uses it, it is read-only, or the disk is full.
  SweepDatabase(const std::filesystem::path& path, Mode mode, const SweepHeader& header);
  // To read, also while another process writes. Throws Error (bad input) if there is no such file, or if it
  // is damaged or not a sweep.
  explicit SweepDatabase(const std::filesystem::path& path);
  // Moves the log into the file, so that a finished sweep is one file (unless someone is reading: then the
  // last reader does it).
  ~SweepDatabase();
  SweepDatabase(SweepDatabase&&) noexcept;
  SweepDatabase& operator=(SweepDatabase&&) noexcept;

  const SweepHeader& header() const;
  const std::filesystem::path& path() const;
  // Sorted, without runs that could not be made (status "error"): the cause may be gone, so they are tried again.
  std::vector<std::string> finished_keys() const;
  std::int64_t count() const;

  // One transaction: all rows or none. A key that exists already is left as it is, unless it is that of an
  // "error". Throws Error (environment), after which the object can still be used (a full disk may have room
  // again); bad input for a row that does not fit the columns.
  void write(std::span<const RunRow> rows);

  // In the order of `run`, then of key. Without the arrays, unless you ask for them.
  enum class Arrays { leave, load };
  std::vector<RunRow> rows(Arrays arrays = Arrays::leave) const;
  std::vector<RowArray> arrays(const std::string& key) const;

  // The same piece by piece, for sweeps that do not fit into memory. All of these are ordered by `run`, then by key.
  void for_each_row(const std::function<void(const RunRow&)>& visit, Arrays arrays = Arrays::leave) const;
  // Some columns of table runs; see columns(). Throws Error (bad input) for unknown names, with the nearest
  // known one.
  void for_each_run(std::span<const std::string> columns,
                    const std::function<void(std::span<const Cell>)>& visit) const;
  // The array of this name for every run; nothing for a run without one.
  void for_each_array(const std::string& name,
                      const std::function<void(const std::optional<RowArray>&)>& visit) const;

  // All columns of table runs, in order.
  std::vector<RowColumn> columns() const;
  // The names of the arrays that any run has, each with all shapes in which it occurs.
  std::map<std::string, std::vector<std::vector<std::int64_t>>> array_shapes() const;

  // While it lives, everything that this object reads is a snapshot, even if others keep writing.
  class Snapshot {
   public:
    explicit Snapshot(const SweepDatabase& database);
    ~Snapshot();
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;

   private:
    const SweepDatabase& database_;
  };

  // For a writer: throws Error (environment) if the file was removed, replaced or emptied. write() checks, too.
  void require_in_place() const;

  // PRAGMA integrity_check: empty if all is well.
  std::string integrity() const;

 private:
  struct Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace attmirror
