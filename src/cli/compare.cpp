// attmirror compare: the weights of a run against a max-margin solution, in the geometry of the run.
#include "cli/console.hpp"
#include "cli/options.hpp"
#include "descent/saved_model.hpp"
#include "descent/selection_json.hpp"
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
  std::filesystem::path run, svm, data;
  double p = 0;  // 0: the run's
  bool trace = false;
};

struct Solution {
  Matrix weights;                  // W (d, d), or a prompt as one column
  std::optional<Selection> alpha;  // the tokens it separates from the others
};

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
  return {weights, saved.alpha};
}

Dataset load_data(const SavedRun& run, const CompareOptions& options) {
  if (!options.data.empty()) return load_run_data(run.config, options.data);
  try {
    return load_run_data(run.config, run.config.data_path);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}; give the run's data with --data FILE", error.what()));
  }
}

Json to_json(const Comparison& c) {
  return {{"directional_bregman", finite_or_null(c.directional_bregman)},
          {"correlation", finite_or_null(c.correlation)},
          {"margin_ratio", finite_or_null(c.margin_ratio)}};
}

std::vector<std::string> cells(const Comparison& c) {
  const auto cell = [](double value, const char* format) {
    return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : std::string("-");
  };
  return {cell(c.directional_bregman, "{:.6g}"), cell(c.correlation, "{:.9f}"),
          cell(c.margin_ratio, "{:.9f}")};
}

int run_compare(const CompareOptions& options, bool p_given) {
  if (p_given) validate_p(options.p);
  const SavedRun run = load_trained_run(options.run);
  const Measure measure =
      p_given ? Measure{options.p, Norm::l(options.p)}
              : Measure{geometry_p(run.config.optimizer), measuring_norm(run.config.optimizer)};
  const Dataset data = load_data(run, options);
  const Attention model = model_of(run, data);
  const Solution svm = read_solution(options.svm, data, run.config.params == "prompt");

  const Selection selected = selected_tokens(model, run.parameters);
  const Selection& alpha = svm.alpha ? *svm.alpha : selected;
  if (!svm.alpha && !options.common.quiet)
    note(fmt::format("{} has no alpha: margins are taken on the tokens that the run selects",
                     options.svm.string()));
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
  const Comparison last = compare(model, svm.weights, weights, alpha, measure);
  std::size_t agreeing = 0;
  for (std::size_t i = 0; i < alpha.tokens.size(); ++i)
    agreeing += alpha.tokens[i] == selected.tokens[i] ? 1 : 0;

  if (options.trace && run.config.keep == Keep::metrics)
    throw bad_input(fmt::format("the run in {} kept metrics only: --trace needs --keep parameters",
                                options.run.string()));
  std::vector<std::pair<std::int64_t, Comparison>> trace;
  if (options.trace)
    for (const Record& record : run.records)
      trace.emplace_back(record.step,
                         compare(model, svm.weights, attention_weights(record.parameters), alpha, measure));

  if (options.common.json) {
    Json json = {{"status", "done"}, {"p", measure.p}, {"norm", to_string(measure.norm)}};
    json.update(to_json(last));
    json["step"] = run.step;
    json["run_status"] = run.result ? to_string(run.result->status) : "unfinished";
    json["selected"] = selection_json(selected, run.config.queries_each);
    json["alpha"] = selection_json(alpha, run.config.queries_each);
    json["alpha_from"] = svm.alpha ? "svm" : "run";
    json["same_tokens"] = agreeing == alpha.tokens.size();
    json["agreeing_tokens"] = agreeing;
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
  Table table;
  table.title = fmt::format(
      "{} against {} in the geometry of p = {:g}{}", options.run.string(), options.svm.string(), measure.p,
      measure.norm == Norm::l(measure.p) ? ""
                                         : fmt::format("; margins in the norm {}", to_string(measure.norm)));
  table.columns = {{"step"}, {"directional Bregman"}, {"correlation"}, {"margin ratio"}};
  const auto add_row = [&](std::int64_t step, const Comparison& c) {
    std::vector<std::string> row = cells(c);
    row.insert(row.begin(), fmt::format("{}", step));
    table.rows.push_back(std::move(row));
  };
  for (const auto& [step, c] : trace) add_row(step, c);
  if (trace.empty() || trace.back().first != run.step) add_row(run.step, last);
  std::string text = to_text(table);
  text += fmt::format("\nselected tokens   {}\n", short_list(selected.tokens));
  if (svm.alpha)
    text += agreeing == alpha.tokens.size()
                ? std::string("those of the svm  the same\n")
                : fmt::format("those of the svm  {}: {} of {} agree\n", short_list(alpha.tokens), agreeing,
                              alpha.tokens.size());
  print(text);
  return done;
}

}  // namespace

Subcommand add_compare(CLI::App& parent) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App& app = *parent.add_subcommand("compare", "compare a run with a max-margin solution");
  add_path(app, "run", options->run, "FOLDER", "the folder of a run")->required();
  add_path(app, "svm", options->svm, "FILE", ".npz with the solution W (p for a prompt) and its tokens alpha")
      ->required();
  CLI::Option* p =
      add_number(app, "--p", options->p, "the geometry to compare in; by default that of the run")
          ->default_str("");
  add_path(app, "--data", options->data, "FILE", "the dataset of the run, if it is no longer where it was");
  add_flag(app, "--trace", options->trace, "compare every record of the run");
  add_common_options(app, options->common);
  app.footer("Example:\n  attmirror compare run/ svm.npz --trace");
  return {&app, &options->common, [options, p] { return run_compare(*options, p->count() > 0); }};
}

}  // namespace attmirror::cli
