// The tables of a sweep's database, and the header as JSON. Internal.
//
//   runs     key, run, SETTINGS, config, status, reason, METRICS, seconds, engine, isa, version, commit, finished
//   arrays   key, name, shape (JSON), data (little-endian float64)
//   meta     name, value: format, format_version, header (JSON)
//
// One wide table, so that a study is one line of plain SQL. Columns of whole numbers are INTEGER, of texts TEXT;
// those of real numbers have no declared type: SQLite keeps a value of a REAL column that is a whole number as an
// integer, and -0.0 would come back as 0.0.
#pragma once

#include "sweep/sqlite.hpp"
#include <attmirror/sweep/database.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// In the header of every SQLite file stands whose it is: "atmS", and which version of these tables.
inline constexpr std::int64_t sweep_application_id = 0x61746d53;
inline constexpr std::int64_t sweep_format_version = 1;

// All columns of table runs.
std::vector<RowColumn> run_columns(const SweepHeader& header);

// `columns` as SQL lists them: "key", "run", ...
std::string column_list(const std::vector<RowColumn>& columns);

// Makes the tables, within a transaction. `drop_tables` removes those of a sweep.
void make_tables(const Sqlite& database, const SweepHeader& header);
void drop_tables(const Sqlite& database);
void store_header(const Sqlite& database, const SweepHeader& header);

// The header, once everything is as this version writes it; throws Error (bad input) otherwise.
SweepHeader load_header(const Sqlite& database);

// Throws Error (bad input) naming the first column, or the records, in which a sweep differs from that in the file.
void require_same_sweep(const SweepHeader& stored, const SweepHeader& wanted, const std::string& name);

}  // namespace attmirror
