// attmirror compare: the weights of a run against a max-margin solution, in the geometry of the run; or against another
// run on the same data (compare_runs.cpp).
#include "cli/compare_runs.hpp"
#include "cli/console.hpp"
#include "cli/options.hpp"
#include "descent/saved_model.hpp"
#include "descent/selection_differences.hpp"
#include "descent/selection_json.hpp"
#include "margin/solution_set.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/descent/comparison.hpp>
#include <attmirror/descent/run_folder.hpp>
#include <attmirror/margin/svm_file.hpp>
#include <attmirror/mirror/lp_map.hpp>

#include <cmath>
#include <limits>
#include <memory>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

struct CompareOptions {
  CommonOptions common;
  std::filesystem::path run, other, data;
  double p = 0;  // 0: the run's
  bool trace = false;
};

struct Solution {
  Matrix weights;                  // W (d, d), or a prompt as one column
  std::optional<Selection> alpha;  // the tokens it separates from the others
  std::optional<Norm> kind;        // the norm that it is the smallest in
  bool certified = false;
  bool relaxed = false;  // some of its constraints have other bounds than 1, which margins do not know of
  std::optional<MarginProblem>
      problem{};  // of which all solutions are known; none for problems of other kinds
};

std::optional<MarginProblem> known_problem(const SavedSolution& saved, bool prompt) {
  if (!saved.alpha) return std::nullopt;
  if (!prompt && saved.problem == "attention") return AttentionSvm{*saved.alpha};
  if (prompt && saved.problem == "prompt") return PromptSvm{*saved.alpha, saved.key_weights};
  return std::nullopt;
}

Solution read_solution(const std::filesystem::path& path, const Dataset& data, bool prompt) {
  const SavedSolution saved = load_solution(path, data);
  const char* name = prompt ? "p" : "W";
  const Matrix weights = prompt ? Matrix(saved.p) : saved.W;
  if (weights.size() == 0 && saved.status == MarginStatus::infeasible)
    throw bad_input(
        fmt::format("{}: the problem is infeasible: there is no solution to compare with", path.string()));
  if (weights.size() == 0)
    throw bad_input(fmt::format("{}: missing array {}: a {} is compared with it", path.string(), name,
                                prompt ? "prompt" : "run that trains W or K, Q"));
  if (weights.isZero(0))
    throw bad_input(fmt::format("{}: {} is zero: it has no direction", path.string(), name));
  return {weights,
          saved.alpha,
          saved.kind,
          saved.status == MarginStatus::certified,
          saved.problem == "relaxed",
          known_problem(saved, prompt)};
}

// What a run is measured against: one solution, or all of them.
class Target {
 public:
  Target(const Attention& model, const Solution& svm, const Selection& tokens, const Measure& measure)
      : model_(model), svm_(svm), tokens_(tokens), measure_(measure) {
    const bool several = svm.kind && solutions_of(*svm.kind) == Solutions::several;
    if (!several) return;
    one_ = false;
    if (!svm.kind->is_entrywise() || !svm.problem) return;
    try {
      set_.emplace(constraints(model.data(), *svm.problem), *svm.kind, svm.weights);
    } catch (const Error& error) {
      reason_ = error.what();
    }
  }

  // Divergence and angle mean something where there is one solution, the distance where all of them are known.
  struct Row {
    Comparison numbers;
    double distance = std::numeric_limits<double>::quiet_NaN();
  };
  Row at(const Matrix& weights) const {
    Row row{compare(model_, svm_.weights, weights, tokens_, measure_)};
    if (!one_) row.numbers.directional_bregman = row.numbers.correlation = row.distance;
    if (set_)
      if (const auto nearest = set_->nearest(weights)) row.distance = nearest->distance;
    return row;
  }

  bool has_distance() const { return set_.has_value(); }
  bool has_one_solution() const { return one_; }
  const std::string& reason() const { return reason_; }

 private:
  const Attention& model_;
  const Solution& svm_;
  const Selection& tokens_;
  Measure measure_;
  bool one_ = true;
  std::optional<SolutionSet> set_;
  std::string reason_;  // why all solutions are not known
};

Json to_json(const Target::Row& row) {
  return {{"directional_bregman", finite_or_null(row.numbers.directional_bregman)},
          {"correlation", finite_or_null(row.numbers.correlation)},
          {"margin_ratio", finite_or_null(row.numbers.margin_ratio)},
          {"distance", finite_or_null(row.distance)}};
}

Table table_of(const std::vector<std::pair<std::int64_t, Target::Row>>& rows, const Target& target,
               const Solution& svm, const Measure& measure) {
  const auto cell = [](double value, const char* format) {
    return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : std::string("-");
  };
  Table table;
  table.columns = {{"step"}};
  if (target.has_one_solution()) {
    table.columns.push_back({fmt::format("Bregman, p = {:g}", measure.p)});
    table.columns.push_back({"correlation"});
  }
  if (target.has_distance())
    table.columns.push_back({fmt::format("distance, norm {}", to_string(*svm.kind))});
  table.columns.push_back({fmt::format("margin ratio, norm {}", to_string(measure.norm))});
  for (const auto& [step, row] : rows) {
    std::vector<std::string> cells{fmt::format("{}", step)};
    if (target.has_one_solution()) {
      cells.push_back(cell(row.numbers.directional_bregman, "{:.6g}"));
      cells.push_back(cell(row.numbers.correlation, "{:.9f}"));
    }
    if (target.has_distance()) cells.push_back(cell(row.distance, "{:.6g}"));
    cells.push_back(cell(row.numbers.margin_ratio, "{:.9f}"));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// What the reader would otherwise have to know: several solutions, and ratios that surprise.
std::vector<std::string> remarks(const Target& target, const Target::Row& last, const Solution& svm,
                                 const Measure& measure, const CompareOptions& options) {
  std::vector<std::string> result;
  const std::string norm = to_string(measure.norm), file = options.other.string();
  if (!target.has_one_solution()) {
    const std::string kind = to_string(*svm.kind);
    if (target.has_distance())
      result.push_back(fmt::format(
          "Solutions in the norm {} need not be unique: the distance is that of the run's direction from the nearest "
          "of all of them, in the same norm, between 0 and 2.",
          kind));
    else
      result.push_back(fmt::format(
          "Solutions in the norm {} are not unique, so no distance from the one in {} is given{}.", kind,
          file, target.reason().empty() ? "" : fmt::format(" ({})", target.reason())));
  } else if (svm.kind && solutions_of(*svm.kind) == Solutions::seldom_several) {
    result.push_back(fmt::format(
        "Solutions in the nuclear norm are unique for most data, not for all: the distance is from the one in {}.",
        file));
  }
  const double ratio = last.numbers.margin_ratio;
  if (ratio > 1 + 1e-6) {
    const std::string reason =
        svm.kind && *svm.kind != measure.norm
            ? fmt::format("it was solved for the norm {}", to_string(*svm.kind))
        : svm.relaxed
            ? "it is that of a relaxed problem, whose bounds are not all 1, and the ratio counts all queries alike"
        : svm.certified ? "its certificate does not hold for these data"
                        : "it is not certified";
    result.push_back(
        fmt::format("The margin ratio is above 1: in the norm {} the run's direction has a larger margin "
                    "than {}, because {}.",
                    norm, file, reason));
  }
  if (ratio < 0)
    result.push_back(
        fmt::format("The margin ratio is below 0: the run prefers another token than that of {} in at "
                    "least one sequence.",
                    file));
  return result;
}

int compare_with_solution(const CompareOptions& options, bool p_given) {
  if (p_given) validate_p(options.p);
  const SavedRun run = load_trained_run(options.run);
  const Measure measure =
      p_given ? Measure{options.p, Norm::l(options.p)}
              : Measure{geometry_p(run.config.optimizer), measuring_norm(run.config.optimizer)};
  const Dataset data = load_compared_data(run, options.data);
  const Attention model = model_of(run, data);
  const Solution svm = read_solution(options.other, data, run.config.params == "prompt");

  const Selection selected = selected_tokens(model, run.parameters);
  const Selection& alpha = svm.alpha ? *svm.alpha : selected;
  if (!svm.alpha && !options.common.quiet)
    note(fmt::format("{} has no alpha: margins are taken on the tokens that the run selects",
                     options.other.string()));
  if (!p_given && !geometry_norm(run.config.optimizer) && !options.common.quiet)
    note(
        fmt::format("theory names no norm whose margin {} maximizes: compared at p = 2, with margins in the "
                    "Frobenius norm",
                    method_name(run.config.optimizer)));
  if (!run.result && !options.common.quiet)
    note(fmt::format("the run in {} has not ended: compared at its checkpoint, step {}", options.run.string(),
                     run.step));
  const Matrix weights = attention_weights(run.parameters);
  if (weights.isZero(0))
    throw bad_input(
        fmt::format("the weights of the run in {} are 0: they have no direction", options.run.string()));
  const Target target(model, svm, alpha, measure);
  const Target::Row last = target.at(weights);
  const std::vector<SelectionDifference> differences = selection_differences(selected, alpha);
  const std::size_t agreeing = alpha.tokens.size() - differences.size();
  const std::vector<std::string> sentences = remarks(target, last, svm, measure, options);

  if (options.trace && run.config.keep == Keep::metrics)
    throw bad_input(fmt::format("the run in {} kept metrics only: --trace needs --keep parameters",
                                options.run.string()));
  std::vector<std::pair<std::int64_t, Target::Row>> trace;
  if (options.trace)
    for (const Record& record : run.records)
      trace.emplace_back(record.step, target.at(attention_weights(record.parameters)));

  if (options.common.json) {
    Json json = {{"status", "done"}, {"p", measure.p}, {"norm", to_string(measure.norm)}};
    json.update(to_json(last));
    json["svm_norm"] = svm.kind ? Json(to_string(*svm.kind)) : Json();
    json["unique"] = svm.kind ? Json(solutions_of(*svm.kind) == Solutions::one) : Json();
    json["remarks"] = sentences;
    json["step"] = run.step;
    json["run_status"] = run.result ? to_string(run.result->status) : "unfinished";
    json["selected"] = selection_json(selected, run.config.queries_each);
    json["alpha"] = selection_json(alpha, run.config.queries_each);
    json["alpha_from"] = svm.alpha ? "svm" : "run";
    json["same_tokens"] = agreeing == alpha.tokens.size();
    json["agreeing_tokens"] = agreeing;
    json["differences"] = differences_json(differences, run.config.queries_each, "selected", "alpha");
    if (options.trace) {
      json["trace"] = Json::array();
      for (const auto& [step, c] : trace) {
        Json row = {{"step", step}};
        row.update(to_json(c));
        json["trace"].push_back(row);
      }
    }
    print_json(json);
    return done;
  }
  if (trace.empty() || trace.back().first != run.step) trace.emplace_back(run.step, last);
  Table table = table_of(trace, target, svm, measure);
  table.title = fmt::format("{} against {}", options.run.string(), options.other.string());
  std::string text = to_text(table) + "\n";
  for (const std::string& sentence : sentences) text += sentence + "\n";
  text += fmt::format("{}selected tokens   {}\n", sentences.empty() ? "" : "\n", short_list(selected.tokens));
  if (svm.alpha)
    text += differences.empty() ? std::string("those of the svm  the same\n")
                                : fmt::format("those of the svm  {}: {} of {} agree\n",
                                              short_list(alpha.tokens), agreeing, alpha.tokens.size());
  text += difference_lines(differences, [&](const SelectionDifference& one) {
    return fmt::format("{} selects token {}; that of the svm is {}",
                       place_text(one.position, run.config.queries_each), one.first, one.second);
  });
  print(text);
  return done;
}

int run_compare(const CompareOptions& options, bool p_given) {
  if (!std::filesystem::is_directory(options.other)) return compare_with_solution(options, p_given);
  if (options.trace) throw bad_input("--trace is given with two runs: it goes with a max-margin solution");
  return compare_runs({.common = options.common,
                       .runs = {options.run, options.other},
                       .data = options.data,
                       .p = p_given ? std::optional(options.p) : std::nullopt});
}

}  // namespace

Subcommand add_compare(CLI::App& parent) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App& app =
      *parent.add_subcommand("compare", "compare a run with a max-margin solution or with another run");
  add_path(app, "run", options->run, "FOLDER", "the folder of a run")->required();
  add_path(
      app, "other", options->other, "FILE",
      ".npz with the solution W (p for a prompt) and its tokens alpha; or the folder of another run on the same data")
      ->required();
  CLI::Option* p =
      add_number(app, "--p", options->p, "the geometry to compare in; by default that of the run")
          ->default_str("");
  add_path(app, "--data", options->data, "FILE", "the dataset of the run, if it is no longer where it was");
  add_flag(app, "--trace", options->trace, "compare every record of the run");
  add_common_options(app, options->common);
  app.footer(
      "Examples:\n"
      "  attmirror compare run/ svm.npz --trace\n"
      "  attmirror compare run1/ run2/");
  return {&app, &options->common, [options, p] { return run_compare(*options, p->count() > 0); }};
}

}  // namespace attmirror::cli
