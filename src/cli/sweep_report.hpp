// What `attmirror sweep` prints.
#pragma once

#include "base/json.hpp"
#include <attmirror/base/table.hpp>
#include <attmirror/sweep/sweep.hpp>

#include <filesystem>
#include <string>

namespace attmirror::cli {

// A sweep that was not run.
struct DryRun {
  std::int64_t runs = 0, missing = 0;
  double steps = 0;    // of the missing runs
  double seconds = 0;  // estimated, with all workers
  int workers = 1;
};
Json to_json(const SweepPlan& plan, const DryRun& dry);
std::string to_text(const SweepPlan& plan, const DryRun& dry, const std::filesystem::path& file);

// One that was.
struct SweepAnswer {
  std::filesystem::path database;
  SweepOutcome outcome;
  int threads = 1, ranks = 1;
  std::int64_t rows = 0;  // in the database now
};
Json to_json(const SweepAnswer& answer);
std::string to_text(const SweepPlan& plan, const SweepAnswer& answer);

// A table as one object per row.
Json to_json(const Table& table);

}  // namespace attmirror::cli
