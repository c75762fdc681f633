// The options of `attmirror margin`, and what they come to: the data with their mask, the tokens, the problem,
// the norm.
//
// What is not given follows from what is: a run says its mask, its key weights, whether it has a prompt, and the norm
// that its geometry maximises the margin in; a file to be checked says its problem, its norm and its tokens.
#pragma once

#include "cli/options.hpp"
#include <attmirror/data/dataset.hpp>
#include <attmirror/descent/run_folder.hpp>
#include <attmirror/margin/general_svm.hpp>
#include <attmirror/margin/max_margin.hpp>
#include <attmirror/margin/svm_file.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attmirror::cli {

struct MarginCommand {
  CommonOptions common;
  std::filesystem::path data, output, key_weights, check, start;
  std::string norm, problem, select, bounds, mask = "none";
  std::string method = "auto", generation = "auto";
  double tol = 0, max_norm = MarginOptions{}.max_norm, max_seconds = MarginOptions{}.max_seconds;
  double keep_threshold = kept_threshold;
  std::int64_t max_iterations = MarginOptions{}.max_iterations, rank = 0, repeat = 1;
  bool as_is = false;
};

void add_margin_options(CLI::App& app, MarginCommand& options);

enum class ProblemWord { attention, prompt, decoder, relaxed, general };
std::string_view to_string(ProblemWord word);

struct MarginPlan {
  explicit MarginPlan(Dataset read) : data(std::move(read)) {}

  Dataset data;
  Norm norm = Norm::frobenius();
  MarginOptions options;
  std::int64_t repeat = 1;  // solves, for the median of their times
  ProblemWord problem = ProblemWord::attention;
  std::optional<SavedRun> run;              // of --select run:RUN
  Matrix run_weights;                       // W, K Q^T or p of that run
  std::optional<Selection> tokens;          // for all but a Gen-SVM
  std::optional<GeneralFiniteSvm> general;  // for a Gen-SVM: the kept tokens and the logits of the run
  Matrix key_weights;                       // of a prompt; empty: the identity
  bool of_prompt = false;                   // the problem, relaxed or not, is one of a prompt
  std::vector<double> bounds;               // one per query, of --bounds; empty: 1
  std::vector<Vector>
      scores;  // of all tokens, by the run's head or the data's v; empty where there is neither
  Vector v;    // the decoder of the run or of the data, or empty
  std::optional<SavedSolution> to_check;  // of --check
  std::optional<SavedSolution> start;     // of --start
};

// The tokens that a word of --select names, but run:RUN: global, file:PATH or a list. `path` is that of the data,
// for messages.
Selection parse_selection(const std::string& select, const Dataset& data, const std::filesystem::path& path);

// Reads all files that the options name. Throws Error (bad input) in one sentence for whatever does not fit.
MarginPlan make_margin_plan(const CLI::App& app, const MarginCommand& options);

// The problem of a plan that is neither relaxed nor general.
MarginProblem plain_problem(const MarginPlan& plan);

}  // namespace attmirror::cli
