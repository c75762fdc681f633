// A sweep as its file describes it: which runs, and what to record about each.
//
//   [data]                     what all runs have in common, by the names of `attmirror generate`
//   generator = "sphere"       or file = "reviews.npz"
//   samples = 6
//
//   [train]                    the same by the names of `attmirror train`
//   optimizer = "md"
//   normalized = true
//
//   [grid]                     axes: every combination
//   seed = "1:100"
//   p = [1.75, 2, 3]
//
//   [[zip]]                    axes that go together: first with first, second with second
//   p = [1.75, 2, 3]
//   steps = [1500, 2000, 20000]
//
//   [[list]]                   single runs: each table replaces what it names
//   p = 1.1
//   lr = 0.01
//
//   [record]
//   steps = "log"
//   ...
//
// A setting has one name wherever it appears. docs/sweep.md lists all of them.
#pragma once

#include <attmirror/descent/descend.hpp>
#include <attmirror/mirror/norm.hpp>
#include <attmirror/sweep/row.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// A max-margin solution to compare a run with.
struct SolutionPlan {
  // Whose tokens a solution is of.
  enum class Tokens {
    selected,  // those that the run selects at its end
    optimal,   // those with the best scores
  };
  // Which problem a solution is of.
  enum class Problem {
    attention,  // for W and (K,Q), or for the prompt
    decoder,    // for a trained v
  };
  std::string name;            // prefix of its columns
  std::optional<Norm> norm{};  // empty ("own"): geometry_norm() of the run's optimizer, which must have one
  Tokens tokens = Tokens::selected;
  Problem problem = Problem::attention;
};

// What is recorded of each run.
struct RecordPlan {
  RecordSchedule schedule = RecordSchedule::none();  // of the curves
  std::vector<std::string> curves;  // "loss", "max_softmax", "norm", "NAME.bregman", "NAME.correlation",
                                    // "margin.NORM", for solutions NAME and norms NORM below
  std::vector<Norm> margins;  // normalized margins of the selected tokens: min (x_alpha - x_t)^T W z / ||W||
  std::vector<SolutionPlan> solutions;
  // A run that ends below this mean largest probability is "unsaturated"; 0: none is.
  double saturated = 0.99;
  double rank_tolerance = 1e-3;  // singular values above this share of the largest count in a rank
  bool keep_weights = false;     // final blocks, as arrays "W", "K", "Q", "p", "v"
  bool keep_solutions = false;   // W of each solution, as arrays "NAME.W"
  bool keep_path = false;        // recorded blocks, as arrays "path.W" with the record as first axis
};

// A setting that a sweep file may fix or vary. docs/sweep.md lists them from this table.
struct SweepSetting {
  std::string name;          // p
  std::string table;         // where it may be fixed: data or train
  std::string type;          // whole number, seed, number, true or false, text, norm
  std::string default_text;  // 2; empty: it has none
  std::string meaning;
  std::string choices;  // of texts: "lp|schatten|entropy"; capitals stand for something of the user's
};

// All settings that a sweep file may have.
const std::vector<SweepSetting>& sweep_settings();

// One run: its settings, in the order of the columns.
struct RunSettings {
  std::string key;
  std::vector<Cell> cells;
};

// The objects of a run. The model views the data.
struct PreparedRun {
  std::shared_ptr<const Dataset> data;
  std::unique_ptr<const Attention> model;
  Optimizer optimizer;
  DescentOptions descent;
  std::string config;  // the resolved configuration as JSON: what `attmirror train` writes to config.json
};

class SweepCache;

// All runs of a sweep, and what to record of them.
struct SweepPlan {
  std::string name, description;
  std::string text;                // of the file
  std::filesystem::path folder;    // what relative paths are relative to
  std::vector<RowColumn> columns;  // the settings that any run of this sweep has, in the order of the schema
  std::vector<std::string> axes;   // those that vary
  std::vector<RunSettings> runs;
  RecordPlan record;
  std::string record_text;  // equal texts mean equal records; part of each run's key

  std::shared_ptr<SweepCache> cache;  // data that several runs share; null: every run makes its own

  // May be called from several threads at once. Throws Error (bad input) naming the run and what is wrong with it.
  PreparedRun prepare(std::size_t run) const;
};

// The two commands that repeat a run on its own, `attmirror generate ... -o data.npz` (none for data from a
// file) and `attmirror train ...`, with the same bits. Arguments are quoted for a shell if necessary.
std::vector<std::string> commands_of(const SweepPlan& plan, std::size_t run);

// Throws Error (bad input) naming the file, the table and the key: `sweep.toml: axis "p": 0.9 is not > 1`.
// More runs than `max_runs` are refused before memory is allocated for them.
struct SweepLimits {
  std::int64_t max_runs = 10'000'000;  // about a kilobyte each
};
SweepPlan parse_sweep(std::string_view text, const std::string& name, const std::filesystem::path& folder,
                      const SweepLimits& limits = {});
SweepPlan load_sweep(const std::filesystem::path& path, const SweepLimits& limits = {});

}  // namespace attmirror
