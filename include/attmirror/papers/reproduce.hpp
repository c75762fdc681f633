// Runs experiments and keeps what came out, so that a reproduction that was stopped goes on where it was.
//
//   out/results/ID.json   the result of one experiment, written when it is done
//   out/report.html       all results of the folder on one page; out/figures, out/tables beside it
//
// A result is taken over from the folder if it was made by the same version, commit, instruction set and extent;
// otherwise the experiment is done again. An experiment that throws does not stop the others.
#pragma once

#include <attmirror/papers/experiment.hpp>
#include <attmirror/report/page.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

enum class ExperimentOutcome {
  done,
  failed,        // `error` says why
  interrupted,   // the user asked to stop; nothing of it is kept
  out_of_scope,  // listed, not run
};
std::string_view to_string(ExperimentOutcome outcome);

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
};

struct ReproduceOptions {
  Extent extent = Extent::full;
  int threads = 0;
  std::filesystem::path folder{};  // empty: nothing is written
  bool again = false;              // does them again even if the folder has results
};

struct ReproduceProgress {
  std::string id;                          // under way
  std::ptrdiff_t finished = 0, total = 0;  // experiments
  double share = 0;                        // of all work, by the typical run times
};

struct ReproduceCallbacks {
  std::function<void(const ReproduceProgress&)> on_progress{};
  std::function<void(const ExperimentReport&)> on_report{};  // each experiment as it ends
  StopRequest stop{};  // the experiment under way ends as interrupted, and those after it are not begun
};

// In the order given. With a folder, its report.html shows in the end what was done now and what was there before.
// Throws Error before any work is done: bad input where the folder holds other things, or a link or a page of
// somebody else in the place of a file of its own; environment where it cannot be written or another process writes
// to it.
std::vector<ExperimentReport> reproduce(const std::vector<const Experiment*>& chosen,
                                        const ReproduceOptions& options = {},
                                        const ReproduceCallbacks& callbacks = {});

// "377 numbers compared: 370 reproduced, 2 inconclusive, 4 artefacts, 1 differs; 8 new."
std::string verdict_summary(const std::vector<ExperimentReport>& reports);

// One line per finding of all experiments; and one line per experiment.
Table findings_table(const std::vector<ExperimentReport>& reports);
Table overview_table(const std::vector<ExperimentReport>& reports);

// What the page is called; report.html under another title is not ours to replace.
inline constexpr std::string_view reproduction_title =
    "Attention trained by mirror descent: the papers, reproduced";

// The page, and the reports that a folder has, in the order of the registry.
Page make_page(const std::vector<ExperimentReport>& reports);
std::vector<ExperimentReport> load_reports(const std::filesystem::path& folder);

// JSON, and back. parse_report() throws Error (bad input) for anything else.
std::string to_json(const ExperimentReport& report);
ExperimentReport parse_report(std::string_view text);

}  // namespace attmirror
