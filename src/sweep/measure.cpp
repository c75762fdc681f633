// From the end of a run to a row of numbers: how it ended, which tokens it selects and how good they are, its margins,
// and its distance from max-margin solutions, at the end and along the way.
//
// Everything about a solution comes after the run, because the tokens that it separates are those that the run selects:
// records keep the weights until then.
#include "sweep/measure.hpp"

#include "descent/selection_json.hpp"
#include "mirror/spectral.hpp"
#include "sweep/record_plan.hpp"
#include <attmirror/descent/comparison.hpp>
#include <attmirror/descent/run_folder.hpp>
#include <attmirror/margin/max_margin.hpp>
#include <attmirror/margin/support.hpp>
#include <attmirror/mirror/direction.hpp>
#include <attmirror/sweep/sweep.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

namespace attmirror {

namespace {

const std::vector<RowColumn> measured_columns{
    {"run_status", CellType::text},
    {"steps_taken", CellType::integer},
    {"final_loss"},
    {"max_softmax"},
    {"weight_norm"},
    {"weight_rank", CellType::integer},
    {"selected", CellType::text},
    {"optimal", CellType::text},
    {"global", CellType::integer},
};

// Of each solution, after its name and a dot.
const std::vector<RowColumn> solution_columns{
    {"status", CellType::text},
    {"norm"},
    {"gap"},
    {"bregman"},
    {"correlation"},
    {"margin_ratio"},
    {"rank", CellType::integer},
    {"support", CellType::integer},
    {"all_support", CellType::integer},
    {"local", CellType::integer},
};

// The cells of a row by name, so that the order of the columns is said once.
class Cells {
 public:
  explicit Cells(const std::vector<RowColumn>& columns) : values_(columns.size()) {
    for (std::size_t i = 0; i < columns.size(); ++i) places_[columns[i].name] = i;
  }
  void set(const std::string& name, double value) {
    if (!std::isnan(value)) values_[places_.at(name)] = value;
  }
  void set(const std::string& name, std::int64_t value) { values_[places_.at(name)] = value; }
  void set(const std::string& name, std::string text) { values_[places_.at(name)] = std::move(text); }
  std::vector<Cell> take() { return std::move(values_); }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<Cell> values_;
};

std::int64_t rank_of(const Matrix& weights, double tolerance) {
  if (weights.size() == 0 || !weights.allFinite()) return 0;
  Svd svd(weights.rows(), weights.cols());
  const PaddedMatrix copy(weights);
  svd.compute_values(copy.view());
  std::int64_t rank = 0;
  for (std::ptrdiff_t k = 0; k < svd.values().cols; ++k)
    rank += svd.value(k) > tolerance * svd.value(0) ? 1 : 0;
  return rank;
}

std::string tokens_text(const Selection& tokens, const Dataset& data) {
  const std::int64_t each = data.equal_query_counts() ? data.query_count(0) : 0;
  return selection_json(tokens, each).dump();
}

// One solution, solved once even where two names ask for it.
struct Solved {
  const SolutionPlan* plan;
  Selection tokens;
  MarginProblem problem;
  MarginSolution answer;
};

// The whole of what is measured of one run.
class Measurement {
 public:
  Measurement(const RecordPlan& plan, const PreparedRun& prepared, const DescentRun& run)
      : plan_(plan),
        prepared_(prepared),
        run_(run),
        columns_(metric_columns(plan)),
        cells_(columns_),
        measure_{geometry_p(prepared.optimizer), measuring_norm(prepared.optimizer)} {}

  Measured take() {
    end_of_run();
    if (run_.status != RunStatus::diverged) {
      for (const SolutionPlan& solution : plan_.solutions) add_solution(solution);
      keep_weights();
    }
    curves();
    result_.metrics = cells_.take();
    return std::move(result_);
  }

 private:
  const Dataset& data() const { return *prepared_.data; }
  const Attention& model() const { return *prepared_.model; }

  // The first thing that went wrong is the row's status.
  void fail(const char* status, std::string reason) {
    if (result_.status != "ok") return;
    result_.status = status;
    result_.reason = std::move(reason);
  }

  void end_of_run() {
    cells_.set("run_status", std::string(to_string(run_.status)));
    cells_.set("steps_taken", run_.steps);
    cells_.set("final_loss", run_.loss);
    cells_.set("max_softmax", run_.max_softmax);
    cells_.set("weight_norm", run_.norm);
    if (run_.status == RunStatus::diverged) {
      fail("diverged", fmt::format("the loss is no longer finite at step {}", run_.steps));
      return;
    }
    const RunResult ending = result_of(model(), run_);
    weights_ = attention_weights(run_.final_parameters);
    cells_.set("weight_rank", rank_of(weights_, plan_.rank_tolerance));
    cells_.set("selected", tokens_text(run_.selected, data()));
    optimal_ = ending.optimal;
    if (optimal_) {
      cells_.set("optimal", tokens_text(*optimal_, data()));
      cells_.set("global", std::int64_t{ending.globally_optimal()});
    }
    for (const Norm& norm : plan_.margins) cells_.set(margin_name(norm), margin_of(weights_, norm));
    if (plan_.saturated > 0 && !(run_.max_softmax > plan_.saturated))
      fail("unsaturated",
           fmt::format("the mean largest softmax probability is {:.6g} at the end: expected more than {:g}",
                       run_.max_softmax, plan_.saturated));
  }

  double margin_of(const Matrix& weights, const Norm& norm) const {
    const double size = attmirror::norm(weights, norm);
    if (size == 0 || run_.selected.tokens.empty()) return std::nan("");
    return selection_margin(model(), run_.selected, weights) / size;
  }

  MarginProblem problem_of(const SolutionPlan& solution, const Selection& tokens) const {
    if (solution.problem == SolutionPlan::Problem::decoder) return DecoderSvm{tokens};
    if (const auto* prompt = std::get_if<Prompt>(&model().parameterization()))
      return PromptSvm{tokens, prompt->key_weights};
    return AttentionSvm{tokens};
  }

  void add_solution(const SolutionPlan& solution) {
    const Norm norm = norm_of(solution, prepared_.optimizer);
    const auto column = [&](const char* name) { return solution.name + "." + name; };
    if (solution.tokens == SolutionPlan::Tokens::optimal && !optimal_) {
      cells_.set(column("status"), std::string("unknown"));
      fail("infeasible",
           fmt::format("solution {}: the optimal tokens are not known while v is 0", solution.name));
      return;
    }
    const Selection& tokens = solution.tokens == SolutionPlan::Tokens::optimal ? *optimal_ : run_.selected;
    Solved solved{&solution, tokens, problem_of(solution, tokens), {}};
    const auto same = std::ranges::find_if(solved_, [&](const Solved& other) {
      return other.tokens == tokens && other.plan->problem == solution.problem && other.answer.kind == norm;
    });
    solved.answer = same != solved_.end() ? same->answer : max_margin(data(), solved.problem, norm);
    const MarginSolution& svm = solved.answer;
    cells_.set(column("status"), std::string(to_string(svm.status)));
    if (svm.status == MarginStatus::infeasible)
      fail("infeasible", fmt::format("solution {}: no weights separate the tokens {}", solution.name,
                                     tokens_text(tokens, data())));
    else if (svm.status == MarginStatus::stopped)
      fail("stopped", fmt::format("solution {}: {} (gap {:.3g})", solution.name, svm.reason, svm.gap));
    if (svm.W.size() > 0 && svm.W.allFinite()) {
      cells_.set(column("norm"), svm.norm);
      cells_.set(column("gap"), svm.gap);
      describe(solved, column);
      solved_.push_back(std::move(solved));
    }
  }

  template <class Column>
  void describe(const Solved& solved, const Column& column) {
    const MarginSolution& svm = solved.answer;
    const auto constraint_count = static_cast<std::int64_t>(svm.lambda.size());
    const auto support_count = static_cast<std::int64_t>(svm.support.size());
    cells_.set(column("rank"), rank_of(svm.W, plan_.rank_tolerance));
    cells_.set(column("support"), support_count);
    cells_.set(column("all_support"), std::int64_t{support_count == constraint_count});
    const Comparison end = distance(solved, run_.final_parameters);
    cells_.set(column("bregman"), end.directional_bregman);
    cells_.set(column("correlation"), end.correlation);
    cells_.set(column("margin_ratio"), end.margin_ratio);
    if (solved.plan->problem == SolutionPlan::Problem::attention && optimal_) {
      const LocalOptimality local =
          local_optimality(data(), solved.tokens, constraints(data(), solved.problem), svm.support,
                           token_scores(model(), run_.final_parameters));
      cells_.set(column("local"), std::int64_t{local.holds});
    }
    if (plan_.keep_solutions) keep_solution(solved);
  }

  // Under the name, and in the shape, of the weights that it is compared with.
  void keep_solution(const Solved& solved) {
    const Matrix& W = solved.answer.W;
    const bool decoder = solved.plan->problem == SolutionPlan::Problem::decoder;
    const bool vector = decoder || std::holds_alternative<Prompt>(model().parameterization());
    add_array(solved.plan->name + (decoder ? ".v" : vector ? ".p" : ".W"), W);
    if (vector) result_.arrays.back().shape = {W.size()};
  }

  Comparison distance(const Solved& solved, const Parameters& at) const {
    if (solved.answer.W.isZero(0)) return {};  // one token each: nothing to separate
    if (solved.plan->problem == SolutionPlan::Problem::attention)
      return compare(model(), solved.answer.W, attention_weights(at), solved.tokens, measure_);
    return compare_decoder(solved, at.v);
  }

  Comparison compare_decoder(const Solved& solved, const Vector& v) const {
    Comparison result;
    if (v.size() == 0 || v.isZero(0) || !v.allFinite()) return result;
    const Matrix weights = v, best = solved.answer.W;
    result.directional_bregman = directional_bregman(best, weights, measure_.p);
    result.correlation = correlation(best, weights);
    const auto margin = [&](const Matrix& w) {
      return label_margins(data(), solved.tokens, Vector(w.col(0))).smallest / norm(w, measure_.norm);
    };
    result.margin_ratio = margin(weights) / margin(best);
    return result;
  }

  void add_array(const std::string& name, const Matrix& values) {
    RowArray array{name, {values.rows(), values.cols()}, {}};
    array.values.assign(values.data(), values.data() + values.size());
    result_.arrays.push_back(std::move(array));
  }

  void keep_weights() {
    if (!plan_.keep_weights) return;
    for (const Block& block : attention_blocks)
      visit_block(run_.final_parameters, block, [&](const auto& values) {
        if (values.size() == 0) return;
        add_array(std::string(to_string(block)), Matrix(values));
        if (is_vector<decltype(values)>) result_.arrays.back().shape = {values.size()};
      });
  }

  void curves() {
    const auto count = static_cast<std::int64_t>(run_.records.size());
    if (!plan_.curves.empty() || plan_.keep_path) {
      RowArray steps{"step", {count}, {}};
      for (const Record& record : run_.records) steps.values.push_back(static_cast<double>(record.step));
      result_.arrays.push_back(std::move(steps));
    }
    for (const std::string& name : plan_.curves) {
      RowArray curve{name, {count}, {}};
      for (const Record& record : run_.records) curve.values.push_back(point(name, record));
      result_.arrays.push_back(std::move(curve));
    }
    if (plan_.keep_path) keep_path();
  }

  double point(const std::string& curve, const Record& record) const {
    if (curve == "loss") return record.loss;
    if (curve == "max_softmax") return record.max_softmax;
    if (curve == "norm") return record.norm;
    for (const Norm& norm : plan_.margins)
      if (curve == margin_name(norm)) return margin_of(attention_weights(record.parameters), norm);
    const std::size_t dot = curve.rfind('.');
    const std::string name = curve.substr(0, dot), what = curve.substr(dot + 1);
    const auto solved = std::ranges::find_if(solved_, [&](const Solved& s) { return s.plan->name == name; });
    if (solved == solved_.end()) return std::nan("");  // infeasible, or the run diverged
    const Comparison at = distance(*solved, record.parameters);
    return what == "bregman" ? at.directional_bregman : at.correlation;
  }

  void keep_path() {
    for (const Block& block : attention_blocks) {
      RowArray path{"path." + std::string(to_string(block)), {}, {}};
      for (const Record& record : run_.records)
        visit_block(record.parameters, block, [&](const auto& values) {
          if (values.size() == 0) return;
          const Matrix rows = values;
          path.shape = {static_cast<std::int64_t>(run_.records.size()), rows.rows(), rows.cols()};
          if (is_vector<decltype(values)>) path.shape.pop_back();
          path.values.insert(path.values.end(), rows.data(), rows.data() + rows.size());
        });
      if (!path.values.empty()) result_.arrays.push_back(std::move(path));
    }
  }

  const RecordPlan& plan_;
  const PreparedRun& prepared_;
  const DescentRun& run_;
  std::vector<RowColumn> columns_;
  Cells cells_;
  Measure measure_;
  Matrix weights_;
  std::optional<Selection> optimal_;
  std::vector<Solved> solved_;
  Measured result_;
};

}  // namespace

std::string margin_name(const Norm& norm) { return "margin." + to_string(norm); }

std::vector<RowColumn> metric_columns(const RecordPlan& record) {
  std::vector<RowColumn> columns = measured_columns;
  for (const Norm& norm : record.margins) columns.push_back({margin_name(norm)});
  for (const SolutionPlan& solution : record.solutions)
    for (const RowColumn& column : solution_columns)
      columns.push_back({solution.name + "." + column.name, column.type});
  return columns;
}

Measured measure(const RecordPlan& plan, const PreparedRun& prepared, const DescentRun& run) {
  return Measurement(plan, prepared, run).take();
}

}  // namespace attmirror
