#include "cli/margin_report.hpp"

#include "cli/console.hpp"
#include "cli/margin_bounds.hpp"
#include "descent/selection_json.hpp"
#include <attmirror/margin/support.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::cli {

namespace {

using Indices = std::span<const std::ptrdiff_t>;

Json origin_json(const ConstraintOrigin& o) { return {o.sequence, o.query, o.token}; }

Json origins_json(const MarginConstraints& constraints, Indices which) {
  Json result = Json::array();
  for (const std::ptrdiff_t k : which)
    result.push_back(origin_json(constraints.origins()[static_cast<std::size_t>(k)]));
  return result;
}

Json numbers_json(const Vector& values) {
  Json result = Json::array();
  for (const double value : values) result.push_back(finite_or_null(value));
  return result;
}

// The numbers of a solution that both halves of a Gen-SVM have, too.
Json solution_json(const MarginConstraints& constraints, const MarginSolution& solution) {
  Json json = {{"norm", finite_or_null(solution.norm)},
               {"dual", finite_or_null(solution.dual)},
               {"gap", finite_or_null(solution.gap)},
               {"seconds", solution.seconds},
               {"support", origins_json(constraints, solution.support)},
               {"constraints", constraints.count()},
               {"iterations", solution.iterations},
               {"method", solution.method},
               {"worst_margin", finite_or_null(solution.certificate.worst_margin)},
               {"scaled_dual", finite_or_null(solution.certificate.scaled_dual)}};
  if (solution.singular_values.size() > 0) json["singular_values"] = numbers_json(solution.singular_values);
  if (!solution.kind.is_entrywise() && solution.status != MarginStatus::infeasible)
    json["dual_multiplicity"] = solution.dual_multiplicity;
  if (solution.status == MarginStatus::infeasible)
    json["conflict"] = origins_json(constraints, solution.conflict);
  if (!solution.reason.empty()) json["reason"] = solution.reason;
  return json;
}

std::int64_t queries_each(const Dataset& data) { return data.equal_query_counts() ? data.query_count(0) : 0; }

// ---- words

std::string line(std::string_view name, const std::string& value) {
  return fmt::format("{:<17} {}\n", name, value);
}

std::string query_text(const Dataset& data, const ConstraintOrigin& o) {
  if (data.query_count(o.sequence) == 1) return fmt::format("sequence {}", o.sequence);
  return fmt::format("sequence {}, query {}", o.sequence, o.query);
}

// What the constraints of one query with these tokens demand.
std::string demand_text(const MarginPlan& plan, ProblemWord word, const ConstraintOrigin& query,
                        const std::vector<std::int64_t>& tokens) {
  const std::string where = query_text(plan.data, query);
  if (word == ProblemWord::decoder) return fmt::format("{}, token {}", where, tokens.front());
  if (word == ProblemWord::general)
    return fmt::format("{}: token{} {}", where, tokens.size() == 1 ? "" : "s", fmt::join(tokens, ", "));
  const std::ptrdiff_t j = plan.data.first_query(query.sequence) + query.query;
  return fmt::format("{}: token {} over {}", where, plan.tokens->tokens[static_cast<std::size_t>(j)],
                     fmt::join(tokens, ", "));
}

// One line for each query that the constraints belong to.
std::vector<std::string> demands(const MarginPlan& plan, ProblemWord word,
                                 const MarginConstraints& constraints, Indices which) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::int64_t>> tokens;
  for (const std::ptrdiff_t k : which) {
    const ConstraintOrigin& o = constraints.origins()[static_cast<std::size_t>(k)];
    tokens[{o.sequence, o.query}].push_back(o.token);
  }
  std::vector<std::string> result;
  for (const auto& [query, list] : tokens)
    result.push_back(demand_text(plan, word, {query.first, query.second, 0}, list));
  return result;
}

std::string indented(const std::vector<std::string>& lines) {
  constexpr std::size_t most = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), most); ++i) text += "  " + lines[i] + "\n";
  if (lines.size() > most) text += fmt::format("  ... and {} more\n", lines.size() - most);
  return text;
}

std::string seconds_text(double seconds) {
  return seconds < 1 ? fmt::format("{:.3g} ms", 1e3 * seconds) : fmt::format("{:.3g} s", seconds);
}

std::string shape_text(const MarginConstraints& constraints) {
  return constraints.cols() == 1 ? fmt::format("{} numbers", constraints.rows())
                                 : fmt::format("{} x {} numbers", constraints.rows(), constraints.cols());
}

// "norm 2", "nuclear norm".
std::string norm_words(const Norm& norm) {
  const std::string text = to_string(norm);
  return norm.is_entrywise() || text.starts_with("schatten") ? "norm " + text : text + " norm";
}

std::string title(const MarginPlan& plan) {
  std::string name(to_string(plan.problem));
  if (plan.problem == ProblemWord::relaxed) name += plan.of_prompt ? " prompt" : " attention";
  return fmt::format("{}\n{} SVM, {}{}\n\n", to_string(plan.data), name, norm_words(plan.norm),
                     plan.bounds.empty() ? "" : ", with the bounds given");
}

// What is proved where there is no solution: the bound is infinite if sum lambda_k A_k is exactly 0.
std::string bound_text(const MarginSolution& solution) {
  return std::isinf(solution.dual) ? "no weights satisfy the constraints"
                                   : fmt::format("every solution has a norm above {:.4g}", solution.dual);
}

std::string status_text(const MarginSolution& solution, double tol, double max_norm) {
  switch (solution.status) {
    case MarginStatus::certified:
      return fmt::format("certified: the gap is at most {:g}", tol);
    case MarginStatus::infeasible:
      return fmt::format("infeasible: {}{}", bound_text(solution),
                         std::isinf(solution.dual) ? ""
                                                   : fmt::format(" ({:.4g} in units of the data, above {:g})",
                                                                 solution.certificate.scaled_dual, max_norm));
    case MarginStatus::stopped:
      break;
  }
  return fmt::format("stopped: {}", solution.reason.empty() ? "the gap is not reached" : solution.reason);
}

// Whether training can end at these tokens, and how well they are classified.
struct TokenQuality {
  std::optional<LocalOptimality> local;
  std::optional<double> label_margin;
};

TokenQuality quality(const MarginPlan& plan, const SolvedMargin& solved) {
  TokenQuality result;
  if (plan.v.size() > 0) result.label_margin = label_margins(plan.data, *plan.tokens, plan.v).smallest;
  if (!plan.scores.empty() && solved.word != ProblemWord::decoder &&
      solved.solution.status == MarginStatus::certified)
    result.local =
        local_optimality(plan.data, *plan.tokens, solved.constraints, solved.solution.support, plan.scores);
  return result;
}

std::string local_text(const MarginPlan& plan, const LocalOptimality& local) {
  if (!local.worst) return "yes: there are no support tokens";
  if (local.holds)
    return fmt::format("yes: every support token has a lower score, by {:.3g} or more",
                       local.least_advantage);
  return fmt::format(
      "no: in {} the support token {} has {}", query_text(plan.data, *local.worst), local.worst->token,
      local.least_advantage == 0 ? "the same score"
                                 : fmt::format("a score higher by {:.3g}", -local.least_advantage));
}

// Status to singular values: what does not depend on the problem.
std::string solution_text(const MarginPlan& plan, ProblemWord word, const MarginConstraints& constraints,
                          const MarginSolution& solution) {
  std::string text =
      line("status", status_text(solution, plan.options.tolerance(plan.norm), plan.options.max_norm));
  if (solution.status != MarginStatus::infeasible) {
    text += line("norm", fmt::format("{:.15g}", solution.norm));
    text += line("lower bound", fmt::format("{:.15g}", solution.dual));
    text += line("gap", fmt::format("{:.2g}", solution.gap));
  }
  text += line("constraints", fmt::format("{} on {}", constraints.count(), shape_text(constraints)));
  text += line("method", fmt::format("{}; {} Newton step{}, {}", solution.method, solution.iterations,
                                     solution.iterations == 1 ? "" : "s", seconds_text(solution.seconds)));
  if (solution.status == MarginStatus::infeasible) {
    text += line("in conflict", solution.conflict.size() == 1
                                    ? std::string("1 constraint that no weights satisfy")
                                    : fmt::format("{} constraints that no weights satisfy together",
                                                  solution.conflict.size()));
    return text + indented(demands(plan, word, constraints, solution.conflict));
  }
  if (!solution.kind.is_entrywise() && solution.singular_values.size() > 0) {
    std::vector<std::string> values;
    for (const double s :
         solution.singular_values.head(std::min<Eigen::Index>(12, solution.singular_values.size())))
      values.push_back(fmt::format("{:.4g}", s));
    text += line("singular values", fmt::format("{}{}", fmt::join(values, ", "),
                                                solution.singular_values.size() > 12 ? ", ..." : ""));
    text += line("dual multiplicity", fmt::format("{}", solution.dual_multiplicity));
  }
  if (!solution.certificate.feasible()) return text;
  text += line("support", fmt::format("{} of {} constraints hold with equality", solution.support.size(),
                                      constraints.count()));
  return text + indented(demands(plan, word, constraints, solution.support));
}

// The bounds of a problem that has its own, one per query; none where all of them are 1 by definition.
struct BoundsOf {
  const std::vector<double>* operator()(const AttentionSvm& svm) const { return &svm.bounds; }
  const std::vector<double>* operator()(const PromptSvm& svm) const { return &svm.bounds; }
  const std::vector<double>* operator()(const auto&) const { return nullptr; }
};

void tell_bounds(const MarginPlan& plan, const MarginProblem& problem, MarginAnswer& answer) {
  const std::vector<double>* bounds = std::visit(BoundsOf{}, problem);
  if (!bounds || bounds->empty()) return;
  answer.json["bounds"] = *bounds;
  std::string text = fmt::format("1 for {} of {} queries", std::ranges::count(*bounds, 1.0), bounds->size());
  if (plan.problem == ProblemWord::relaxed) {
    answer.json["decoder_norm"] = to_string(decoder_norm(plan));
    text += fmt::format(", the support vectors of the decoder SVM in {}; 0 for the rest",
                        norm_words(decoder_norm(plan)));
  } else {
    text += fmt::format(", {:g} to {:g} over all", std::ranges::min(*bounds), std::ranges::max(*bounds));
  }
  answer.text += line("bounds", text);
}

// One sentence for stderr where the answer is no.
std::string negative_text(const MarginPlan& plan, ProblemWord word, const MarginConstraints& constraints,
                          const MarginSolution& solution) {
  if (solution.status == MarginStatus::certified) return "";
  if (solution.status == MarginStatus::stopped)
    return fmt::format("stopped with a gap of {:.2g}; {:g} was requested{}", solution.gap,
                       plan.options.tolerance(plan.norm),
                       solution.reason.empty() ? "" : ": " + solution.reason);
  std::vector<std::string> lines = demands(plan, word, constraints, solution.conflict);
  constexpr std::size_t most = 4;
  const std::string more = lines.size() > most ? fmt::format("; ... {} more", lines.size() - most) : "";
  lines.resize(std::min(lines.size(), most));
  return fmt::format("infeasible: {}; in conflict are {}{}", bound_text(solution), fmt::join(lines, "; "),
                     more);
}

Json heading(const MarginPlan& plan, std::string_view status, ProblemWord word) {
  return {{"status", status}, {"kind", to_string(plan.norm)}, {"problem", to_string(word)}};
}

}  // namespace

MarginAnswer describe(const MarginPlan& plan, const SolvedMargin& solved) {
  const MarginSolution& solution = solved.solution;
  MarginAnswer answer;
  answer.json = heading(plan, to_string(solution.status), solved.word);
  answer.json.update(solution_json(solved.constraints, solution));
  answer.json["tol"] = plan.options.tolerance(plan.norm);
  answer.json["alpha"] = selection_json(*plan.tokens, queries_each(plan.data));
  const TokenQuality tokens = quality(plan, solved);
  answer.json["locally_optimal"] = tokens.local ? Json(tokens.local->holds) : Json();
  answer.json["label_margin"] = tokens.label_margin ? finite_or_null(*tokens.label_margin) : Json();
  answer.text = title(plan);
  if (solved.word != plan.problem)
    answer.text +=
        fmt::format("the {} SVM comes first, and it has no certified solution:\n", to_string(solved.word));
  answer.text += line("selected tokens", short_list(plan.tokens->tokens));
  tell_bounds(plan, solved.problem, answer);
  answer.text += solution_text(plan, solved.word, solved.constraints, solution);
  if (tokens.local) answer.text += line("locally optimal", local_text(plan, *tokens.local));
  if (tokens.label_margin) answer.text += line("label margin", fmt::format("{:.6g}", *tokens.label_margin));
  answer.negative = negative_text(plan, solved.word, solved.constraints, solution);
  return answer;
}

MarginAnswer describe(const MarginPlan& plan, const SolvedGeneral& solved) {
  const MarginSolution &direction = solved.solution.direction, &finite = solved.solution.finite;
  MarginAnswer answer;
  answer.json = heading(plan, to_string(solved.solution.status()), ProblemWord::general);
  answer.json.update(solution_json(solved.direction, direction));
  answer.json["seconds"] = direction.seconds + finite.seconds;
  answer.json["tol"] = plan.options.tolerance(plan.norm);
  answer.json["direction_status"] = to_string(direction.status);
  answer.json["finite"] = {{"status", to_string(finite.status)}};
  answer.json["finite"].update(solution_json(solved.finite, finite));
  answer.json["R"] = solved.solution.R ? Json(*solved.solution.R) : Json();
  answer.json["correlation"] = finite_or_null(solved.correlation);
  answer.json["kept"] = plan.general->kept.tokens;

  std::size_t kept = 0;
  for (const auto& tokens : plan.general->kept.tokens) kept += tokens.size();
  answer.text = title(plan);
  answer.text += line("kept tokens", fmt::format("{}, of {} queries", kept, plan.data.total_queries()));
  answer.text += "\nW_dir, the direction that grows\n";
  answer.text += solution_text(plan, ProblemWord::general, solved.direction, direction);
  answer.text += "\nW_fin, the part that stays finite\n";
  answer.text += solution_text(plan, ProblemWord::general, solved.finite, finite);
  if (std::isfinite(solved.correlation))
    answer.text += fmt::format("\nW_fin + R W_dir with R = {:.6g} has the correlation {:.9f} with the run\n",
                               solved.solution.R.value_or(0), solved.correlation);
  answer.negative = negative_text(plan, ProblemWord::general, solved.direction, direction);
  if (answer.negative.empty())
    answer.negative = negative_text(plan, ProblemWord::general, solved.finite, finite);
  return answer;
}

namespace {

// certified; infeasible, where there is no W and lambda proves that there is none; or refused.
std::string_view verdict(const MarginPlan& plan, const CheckedMargin& checked) {
  if (checked.W.size() == 0)
    return checked.certificate.proves_norm_above(plan.options.max_norm) ? "infeasible" : "refused";
  return checked.certificate.certifies(plan.options.tolerance(plan.norm)) ? "certified" : "refused";
}

const ConstraintOrigin* worst_origin(const CheckedMargin& checked) {
  const std::ptrdiff_t k = checked.certificate.worst_constraint;
  return k < 0 ? nullptr : &checked.constraints.origins()[static_cast<std::size_t>(k)];
}

Json check_json(const CheckedMargin& checked) {
  const Certificate& c = checked.certificate;
  const ConstraintOrigin* worst = worst_origin(checked);
  return {{"norm", finite_or_null(c.norm)},
          {"dual", finite_or_null(c.dual)},
          {"gap", finite_or_null(c.gap)},
          {"scaled_dual", finite_or_null(c.scaled_dual)},
          {"worst_margin", finite_or_null(c.worst_margin)},
          {"worst_violation", finite_or_null(c.worst_violation)},
          {"worst_constraint", worst ? origin_json(*worst) : Json()},
          {"divided_by", finite_or_null(checked.scale)},
          {"support", checked.W.size() == 0
                          ? Json::array()
                          : origins_json(checked.constraints, support(checked.constraints, checked.W))}};
}

std::string refusal(const MarginPlan& plan, const CheckedMargin& checked) {
  const Certificate& c = checked.certificate;
  if (checked.W.size() == 0)
    return fmt::format(
        "there is no W, and lambda proves a norm above {:.4g} in units of the data only, not {:g}",
        c.scaled_dual, plan.options.max_norm);
  if (!c.feasible()) {
    const ConstraintOrigin* worst = worst_origin(checked);
    return fmt::format(
        "W violates a constraint by {:.2g} of its bound{}", c.worst_violation,
        worst ? fmt::format(" ({}, token {})", query_text(plan.data, *worst), worst->token) : "");
  }
  return fmt::format("the gap is {:.2g}, above {:g}", c.gap, plan.options.tolerance(plan.norm));
}

std::string check_text(const MarginPlan& plan, const CheckedMargin& checked) {
  const Certificate& c = checked.certificate;
  const std::string_view word = verdict(plan, checked);
  std::string why;
  if (word == "certified") why = fmt::format("the gap is at most {:g}", plan.options.tolerance(plan.norm));
  if (word == "infeasible") why = "lambda proves that there is no solution";
  if (word == "refused") why = refusal(plan, checked);
  std::string text = line("status", fmt::format("{}: {}", word, why));
  if (checked.W.size() > 0) text += line("norm", fmt::format("{:.15g}", c.norm));
  text += line("lower bound", fmt::format("{:.15g}", c.dual));
  if (checked.W.size() > 0) {
    text += line("gap", fmt::format("{:.2g}", c.gap));
    text += line("worst violation", fmt::format("{:.2g} of the bound", c.worst_violation));
    if (checked.scale != 1)
      text += line("divided by", fmt::format("{:.15g}, the worst margin", checked.scale));
  }
  return text;
}

}  // namespace

MarginAnswer describe(const MarginPlan& plan, const CheckedMargin& checked, const CheckedMargin* finite,
                      double seconds) {
  std::string_view word = verdict(plan, checked);
  if (finite && word == "certified") word = verdict(plan, *finite);
  MarginAnswer answer;
  answer.json = heading(plan, word, plan.problem);
  answer.json.update(check_json(checked));
  answer.json["seconds"] = seconds;
  answer.json["tol"] = plan.options.tolerance(plan.norm);
  if (plan.tokens) answer.json["alpha"] = selection_json(*plan.tokens, queries_each(plan.data));
  answer.text = title(plan);
  if (plan.tokens) answer.text += line("selected tokens", short_list(plan.tokens->tokens));
  answer.text += finite ? "\nW_dir\n" + check_text(plan, checked) : check_text(plan, checked);
  if (finite) {
    answer.json["finite"] = {{"status", verdict(plan, *finite)}};
    answer.json["finite"].update(check_json(*finite));
    answer.text += "\nW_fin\n" + check_text(plan, *finite);
  }
  if (word == "infeasible") answer.negative = "infeasible: lambda proves that there is no solution";
  if (word == "refused")
    answer.negative = "refused: " + refusal(plan, verdict(plan, checked) == "refused" ? checked : *finite);
  return answer;
}

}  // namespace attmirror::cli
