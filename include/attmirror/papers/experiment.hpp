// A published experiment that can be rerun: its settings, what was published, what is measured, the verdict.
//
// One experiment is one file of src/papers: it opens with the paper's problem and settings, and reads like the paper.
// The registry lists them; reproduce.hpp runs them.
#pragma once

#include <attmirror/base/figure.hpp>
#include <attmirror/base/stop.hpp>
#include <attmirror/base/table.hpp>
#include <attmirror/papers/finding.hpp>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attmirror {

// What an experiment is: its name, its paper, how long it takes.
struct ExperimentInfo {
  std::string id;       // "p1-setting-a": letters, digits and dashes
  std::string paper;    // "P1" to "P4", several of them, or "ours"
  std::string item;     // which part of the paper: a figure, a table, a lemma
  std::string title;    // a few words
  std::string summary;  // one sentence: what is done, whatever the extent
  double seconds = 1;   // typical run time on two cores
  double quick_seconds = 0.1;
  std::string out_of_scope{};  // why it cannot be run; empty: it can
  bool recorded = false;       // reads trainings that were recorded, of which there is no quick version
};

// The full experiment, or its quick version.
enum class Extent {
  full,   // as published
  quick,  // a smoke test: fewer seeds or sizes, same settings otherwise, about a second
};
std::string_view to_string(Extent extent);

// Thrown to stop an experiment when the user asked for it; reproduce() catches it.
struct Interrupted {};

// What an experiment is given: its extent, threads, a request to stop.
struct ExperimentContext {
  Extent extent = Extent::full;
  int threads = 0;  // 0: as many as the machine runs at once; results do not depend on it
  // Called with the share that is done, 0 to 1, from any thread but one at a time.
  std::function<void(double)> on_progress{};
  StopRequest stop{};

  bool quick() const { return extent == Extent::quick; }
  // Reports progress, and throws Interrupted if `stop` was requested. Call it between pieces of work, about
  // ten times a second.
  void progress(double share) const;
  // The same context for a part of the work, whose 0 to 1 is `from` to `to` of this one.
  ExperimentContext part(double from, double to) const;
};

// A table with the name of its file.
struct NamedTable {
  std::string id;  // unique in the experiment: letters, digits and dashes
  Table table;
};

// What an experiment found: findings, figures, tables, configuration.
struct ExperimentResult {
  // What came out, in a few sentences, computed from the numbers; empty: the count of verdicts stands for it.
  std::string conclusion{};
  // What it rests on where a sentence is not enough: a paragraph each, computed, too.
  std::vector<std::string> details{};
  // How much was sampled, computed from what was run: "12 data sets, 1 start each". Empty: nothing is random.
  std::string sample{};
  std::vector<Finding> findings;  // at least one
  std::vector<NamedTable> tables;
  std::vector<Figure> figures;  // the most telling first; their ids are unique in the experiment
  std::vector<std::pair<std::string, std::string>> configuration;  // every setting, seeds included
  std::vector<std::string> remarks;  // what a reader should know: a sentence or two each
};

// A published experiment, or one of your own.
class Experiment {
 public:
  virtual ~Experiment() = default;
  virtual ExperimentInfo info() const = 0;
  // The same bits for any number of threads. Throws Error if the experiment cannot be done, Interrupted if
  // the context says so.
  virtual ExperimentResult run(const ExperimentContext& context) const = 0;
};

// All experiments, in the order of the papers. The pointers stay valid.
std::vector<const Experiment*> experiments();
// Throws Error (bad input) for an unknown id, naming the nearest.
const Experiment& find_experiment(std::string_view id);
// For rooms above this one, and for users' own. Throws Error (bad input) for an id that is taken.
void add_experiment(std::unique_ptr<const Experiment> experiment);

}  // namespace attmirror
