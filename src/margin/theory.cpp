#include "margin/label_condition.hpp"
#include <attmirror/attention/gradient.hpp>
#include <attmirror/attention/smoothness.hpp>
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/margin/support.hpp>
#include <attmirror/margin/theory.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror {

namespace {

using enum AssumptionStatus;

constexpr std::array<std::string_view, all_assumptions.size()> assumption_names{
    "unique best",      "equal scores", "separable", "all support",
    "initial gradient", "label margin", "small step"};
constexpr std::array<std::string_view, all_assumptions.size()> assumption_meanings{
    "every selected token has a better score than all other tokens of its query",
    "all tokens of a query but the selected one have the same score",
    "some weights prefer the selected token of every query: the max-margin problem has a solution",
    "every other token is a support token of the max-margin solution",
    "the first step of descent separates the selected tokens from all others",
    "mixing another token into a support vector of the decoder SVM lowers the label margin",
    "the step size of plain gradient descent is at most 1/L"};
constexpr std::array<std::string_view, 4> status_names{"holds", "fails", "open", "does not apply"};

AssumptionCheck does_not_apply(Assumption what, std::string detail) {
  return {what, not_applicable, std::nan(""), std::move(detail)};
}

std::string query_name(const Dataset& data, std::ptrdiff_t j) {
  const std::ptrdiff_t i = data.sequence_of(j);
  return data.query_count(i) == 1 ? fmt::format("sequence {}", i)
                                  : fmt::format("sequence {}, query {}", i, j - data.first_query(i));
}

// ---- scores

struct ScoreSpread {
  double lead = std::numeric_limits<double>::infinity(), spread = 0;
  std::ptrdiff_t least_lead = -1, largest_spread = -1;  // queries
  double largest_score = 0;
};

ScoreSpread score_spread(const Dataset& data, const Selection& tokens) {
  const std::vector<Vector> scores = linear_scores(data, data.decoder().eigen().row(0).transpose());
  ScoreSpread result;
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    const Vector& score = scores[static_cast<std::size_t>(j)];
    const std::int64_t chosen = tokens.tokens[static_cast<std::size_t>(j)];
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (std::ptrdiff_t t = 0; t < data.attended_length(j); ++t) {
      if (!data.allows(j, t)) continue;
      result.largest_score = std::max(result.largest_score, std::abs(score[t]));
      if (t == chosen) continue;
      low = std::min(low, score[t]);
      high = std::max(high, score[t]);
    }
    if (low > high) continue;  // no other token
    if (score[chosen] - high < result.lead) {
      result.lead = score[chosen] - high;
      result.least_lead = j;
    }
    if (result.largest_spread < 0 || high - low > result.spread) {
      result.spread = high - low;
      result.largest_spread = j;
    }
  }
  return result;
}

void check_scores(const Dataset& data, const TheoryOptions& options, TheoryReport& report) {
  if (!data.has_decoder()) {
    for (const Assumption what : {Assumption::unique_best, Assumption::equal_scores})
      report.checks.push_back(does_not_apply(what, "the data have no decoder v, so tokens have no scores"));
    return;
  }
  const ScoreSpread found = score_spread(data, report.tokens);
  if (found.least_lead < 0) {
    report.checks.push_back({Assumption::unique_best, holds, found.lead, "no query has another token"});
    report.checks.push_back({Assumption::equal_scores, holds, 0, "no query has another token"});
    return;
  }
  const double slack = options.score_tolerance * found.largest_score;
  report.checks.push_back(
      {Assumption::unique_best, found.lead > slack ? holds : fails, found.lead,
       fmt::format("least lead over another token, in {}", query_name(data, found.least_lead))});
  report.checks.push_back({Assumption::equal_scores, found.spread <= slack ? holds : fails, found.spread,
                           fmt::format("largest spread of the other tokens' scores, in {}",
                                       query_name(data, found.largest_spread))});
}

// ---- the max-margin problem

MarginProblem problem_of(const TheoryOptions& options, const Selection& tokens) {
  if (const auto* prompt = std::get_if<Prompt>(&options.parameterization))
    return PromptSvm{tokens, prompt->key_weights};
  return AttentionSvm{tokens};
}

void check_solution(TheoryReport& report) {
  const MarginSolution& svm = report.svm;
  const std::ptrdiff_t others = svm.lambda.size();
  switch (svm.status) {
    case MarginStatus::certified: {
      const auto active = std::ssize(svm.support);
      report.checks.push_back(
          {Assumption::separable, holds, 1 / svm.norm,
           fmt::format("certified: the largest margin of weights of norm 1, gap {:.1g}", svm.gap)});
      report.checks.push_back({Assumption::all_support, active == others ? holds : fails,
                               others == 0 ? 1 : static_cast<double>(active) / static_cast<double>(others),
                               fmt::format("{} of {} other tokens are support tokens", active, others)});
      return;
    }
    case MarginStatus::infeasible:
      report.checks.push_back(
          {Assumption::separable, fails, 0,
           fmt::format("proved: {} constraints contradict each other", svm.conflict.size())});
      report.checks.push_back(
          does_not_apply(Assumption::all_support, "the max-margin problem has no solution"));
      return;
    case MarginStatus::stopped:
      report.checks.push_back(
          {Assumption::separable, open, std::nan(""), "the solver stopped: " + svm.reason});
      report.checks.push_back({Assumption::all_support, open, std::nan(""), "the solver stopped"});
  }
}

// ---- the first step

// The direction in which the first small step moves W (or p): for K and Q that of K Q^T, -(G_K Q^T + K G_Q^T).
Matrix first_step(const Attention& model, const Parameters& start) {
  const Parameters gradient = loss_and_gradient(model, start).gradient;
  if (std::holds_alternative<Prompt>(model.parameterization())) return -gradient.p;
  if (std::holds_alternative<KQ>(model.parameterization()))
    return -(gradient.K * start.Q.transpose() + start.K * gradient.Q.transpose());
  return -gradient.W;
}

AssumptionCheck check_first_step(const Dataset& data, const TheoryOptions& options,
                                 const TheoryReport& report) {
  const Assumption what = Assumption::initial_gradient;
  if (!data.has_decoder())
    return does_not_apply(what, "the data have no decoder v, so the gradient is unknown");
  const Attention model(data, options.parameterization, options.loss);
  Parameters start = model.zero_parameters();
  if (options.start) {
    const Vector v = start.v;
    start = *options.start;
    if (start.v.size() == 0) start.v = v;
  } else if (std::holds_alternative<KQ>(options.parameterization)) {
    return does_not_apply(what, "K and Q do not move from 0: a start is needed");
  }
  const Matrix step = first_step(model, start);
  if (std::isinf(selection_margin(model, report.tokens, step)))
    return {what, holds, 1, "no query has another token"};
  const double length = step.norm();
  if (!(length > 0)) return {what, fails, 0, "the gradient is 0 at the start"};
  // In the Frobenius norm, whose largest margin is that of the report for W and prompts.
  const double margin = selection_margin(model, report.tokens, step) / length;
  AssumptionCheck check{what, margin > 0 ? holds : fails, margin};
  const bool known = report.norm == Norm::frobenius() && report.svm.status == MarginStatus::certified;
  if (known) check.value = margin * report.svm.norm;
  check.detail = fmt::format("least margin of the first step{}{}", options.start ? "" : " from 0",
                             known ? ", as a share of the largest possible" : ", for a step of length 1");
  return check;
}

// ---- joint training, step size

void check_labels(const Dataset& data, const TheoryOptions& options, TheoryReport& report) {
  const Assumption what = Assumption::label_margin;
  if (!options.joint) {
    report.checks.push_back(does_not_apply(what, "not asked for"));
    return;
  }
  report.decoder = max_margin(data, DecoderSvm{report.tokens}, Norm::frobenius(), options.margin);
  if (report.decoder.status == MarginStatus::certified)
    report.checks.push_back(check_label_margin(data, report.tokens, report.decoder, options.margin));
  else if (report.decoder.status == MarginStatus::infeasible)
    report.checks.push_back(
        {what, fails, 0, "no decoder v has all selected tokens on the side of their label"});
  else
    report.checks.push_back({what, open, std::nan(""), "the solver stopped: " + report.decoder.reason});
}

AssumptionCheck check_step(const Dataset& data, const TheoryOptions& options, TheoryReport& report) {
  const Assumption what = Assumption::step_size;
  if (!data.has_decoder())
    return does_not_apply(what, "the data have no decoder v, so the gradient is unknown");
  const Attention model(data, options.parameterization, options.loss);
  report.lipschitz = gradient_lipschitz(model);
  if (!report.lipschitz)
    return does_not_apply(what, std::holds_alternative<KQ>(options.parameterization)
                                    ? "K and Q multiply each other: no L holds for all of them"
                                    : "no L is known for this loss");
  const double bound = 1 / *report.lipschitz;
  if (!options.lr) {
    AssumptionCheck check =
        does_not_apply(what, fmt::format("L = {:.4g}; no step size is given", *report.lipschitz));
    check.value = bound;
    return check;
  }
  return {what, *options.lr <= bound ? holds : fails, bound,
          fmt::format("L = {:.4g}, lr = {:.4g}", *report.lipschitz, *options.lr)};
}

}  // namespace

std::string_view to_string(Assumption assumption) {
  return assumption_names[static_cast<std::size_t>(assumption)];
}
std::string_view meaning(Assumption assumption) {
  return assumption_meanings[static_cast<std::size_t>(assumption)];
}
std::string_view to_string(AssumptionStatus status) { return status_names[static_cast<std::size_t>(status)]; }

void TheoryOptions::validate() const {
  if (lr && !(*lr > 0 && std::isfinite(*lr)))
    throw bad_input(fmt::format("lr is {}: expected a finite number greater than 0", *lr));
  if (!(score_tolerance >= 0 && score_tolerance < 1))
    throw bad_input(
        fmt::format("score_tolerance is {}: expected a number from 0 to below 1", score_tolerance));
}

TheoryReport check_theory(const Dataset& data, const TheoryOptions& options) {
  options.validate();
  if (!options.tokens && !data.has_decoder())
    throw bad_input("the data have no decoder v, which decides the best tokens: tokens must be given");
  TheoryReport report;
  report.tokens = options.tokens ? *options.tokens : optimal_tokens(data);
  report.tokens.validate(data);
  if (std::holds_alternative<KQ>(options.parameterization)) report.norm = Norm::nuclear();
  report.svm = max_margin(data, problem_of(options, report.tokens), report.norm, options.margin);
  check_scores(data, options, report);
  check_solution(report);
  report.checks.push_back(check_first_step(data, options, report));
  check_labels(data, options, report);
  report.checks.push_back(check_step(data, options, report));
  return report;
}

Table theory_table(const TheoryReport& report) {
  Table table{
      .columns = {{"assumption", Align::left}, {"", Align::left}, {"value"}, {"detail", Align::left}}};
  for (const AssumptionCheck& check : report.checks)
    table.rows.push_back({std::string(to_string(check.what)), std::string(to_string(check.status)),
                          std::isnan(check.value) ? "–" : fmt::format("{:.4g}", check.value), check.detail});
  return table;
}

}  // namespace attmirror
