// Runs experiments and keeps the results, so that a reproduction that was stopped continues where it stopped.
//
//   out/results/ID.json   the result of one experiment, written when it is done
//   out/report.html       all results of the folder on one page; out/figures, out/tables beside it
//
// A result in the folder is reused if it was made by the same version, commit, instruction set and extent;
// otherwise the experiment is run again. An experiment that throws does not stop the others.
#pragma once

#include <attmirror/papers/experiment.hpp>
#include <attmirror/report/page.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// How an experiment ended.
enum class ExperimentOutcome {
  done,
  failed,        // `error` says why
  interrupted,   // the user asked to stop; nothing is kept
  out_of_scope,  // listed, not run
};
std::string_view to_string(ExperimentOutcome outcome);

// An experiment's result with the circumstances that it was made under.
struct ExperimentReport {
  ExperimentInfo info;
  Extent extent = Extent::full;
  ExperimentOutcome outcome = ExperimentOutcome::done;
  std::string error{};
  ExperimentResult result{};
  double seconds = 0;
  bool from_folder = false;                // made earlier
  std::string version{}, commit{}, isa{};  // that made it

  // How many findings have this verdict.
  std::ptrdiff_t count(Verdict verdict) const;
  // Of records there is no smaller version: a quick call reads all of them.
  bool is_quick_version() const { return extent == Extent::quick && !info.recorded; }
};

// Which versions to run, and on how many threads.
struct ReproduceOptions {
  Extent extent = Extent::full;
  int threads = 0;
  std::filesystem::path folder{};  // empty: nothing is written
  bool again = false;              // reruns them even if the folder has results
};

// How far a reproduction is.
struct ReproduceProgress {
  std::string id;                          // under way
  std::ptrdiff_t finished = 0, total = 0;  // experiments
  double share = 0;                        // of all work, by the typical run times
};

// What is called while experiments run.
struct ReproduceCallbacks {
  std::function<void(const ReproduceProgress&)> on_progress{};
  std::function<void(const ExperimentReport&)> on_report{};  // each experiment as it ends
  StopRequest stop{};  // the current experiment ends as interrupted, and later ones are not started
};

// In the order given. With a folder, its report.html shows in the end what was done now and what was there
// before. Throws Error before any work is done: bad input if the folder holds other things, or if a link or a
// page that attmirror did not write is in the place of one of its files; environment if it cannot be written
// or another process writes to it.
std::vector<ExperimentReport> reproduce(const std::vector<const Experiment*>& chosen,
                                        const ReproduceOptions& options = {},
                                        const ReproduceCallbacks& callbacks = {});

// "377 numbers compared: 370 reproduced, 2 inconclusive, 4 artefacts, 1 differs; 8 new."
std::string verdict_summary(const std::vector<ExperimentReport>& reports);

// One line per finding of all experiments; and one line per experiment.
Table findings_table(const std::vector<ExperimentReport>& reports);
Table overview_table(const std::vector<ExperimentReport>& reports);

// The title of the page; a report.html with another title is never replaced.
inline constexpr std::string_view reproduction_title =
    "Attention trained by mirror descent: the papers, reproduced";

// The page, and the reports in a folder, in the order of the registry.
Page make_page(const std::vector<ExperimentReport>& reports);
std::vector<ExperimentReport> load_reports(const std::filesystem::path& folder);

// JSON, and back. parse_report() throws Error (bad input) for anything else.
std::string to_json(const ExperimentReport& report);
ExperimentReport parse_report(std::string_view text);

}  // namespace attmirror
