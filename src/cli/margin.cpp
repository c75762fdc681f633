// attmirror margin: the exact problem that training converges to, solved with a proof; or the proof of another's
// answer checked.
#include "base/atomic_file.hpp"
#include "base/signals.hpp"
#include "cli/console.hpp"
#include "cli/margin_bounds.hpp"
#include "cli/margin_plan.hpp"
#include "cli/margin_report.hpp"
#include "cli/options.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/margin/general_svm.hpp>
#include <attmirror/mirror/direction.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

// ---- solving

WarmStart warm_start(const MarginPlan& plan, const MarginProblem& problem,
                     const MarginConstraints& constraints) {
  if (!plan.start) return {};
  return {plan.start->weights(problem), matched_multipliers(plan.start->lambda, plan.start->constraints,
                                                            constraints, Unmatched::drop, "lambda")};
}

SolvedMargin solve(const MarginPlan& plan, ProblemWord word, MarginProblem problem) {
  MarginConstraints all = constraints(plan.data, problem);
  const WarmStart start = warm_start(plan, problem, all);
  MarginSolution solution;
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < plan.repeat; ++i) {
    solution = max_margin(plan.data, problem, plan.norm, plan.options, start);
    seconds.push_back(solution.seconds);
    if (solution.interrupted) break;
  }
  const auto middle = seconds.begin() + std::ssize(seconds) / 2;
  std::nth_element(seconds.begin(), middle, seconds.end());
  solution.seconds = *middle;
  return {word, std::move(problem), std::move(all), std::move(solution)};
}

// The support vectors of the decoder SVM in the norm that v was trained in, whatever that of the problem is.
SolvedMargin solve_decoder(const MarginPlan& plan) {
  MarginOptions options = plan.options;
  options.tol.reset();
  options.max_rank = 0;
  options.method = MarginMethod::automatic;
  MarginProblem problem = DecoderSvm{*plan.tokens};
  MarginConstraints all = constraints(plan.data, problem);
  MarginSolution solution = max_margin(plan.data, problem, decoder_norm(plan), options);
  return {ProblemWord::decoder, std::move(problem), std::move(all), std::move(solution)};
}

// The relaxed problem, or the decoder's answer where that is no.
struct Relaxed {
  std::optional<MarginProblem> problem;
  SolvedMargin decoder;
};

Relaxed relaxed_problem(const MarginPlan& plan) {
  SolvedMargin decoder = solve_decoder(plan);
  if (decoder.solution.status != MarginStatus::certified) return {std::nullopt, std::move(decoder)};
  std::vector<double> bounds = relaxed_bounds(plan.data, decoder.solution.support);
  if (plan.of_prompt)
    return {PromptSvm{*plan.tokens, plan.key_weights, std::move(bounds)}, std::move(decoder)};
  return {AttentionSvm{*plan.tokens, std::move(bounds)}, std::move(decoder)};
}

SolvedMargin solve_plan(const MarginPlan& plan) {
  if (plan.problem != ProblemWord::relaxed) return solve(plan, plan.problem, plain_problem(plan));
  Relaxed relaxed = relaxed_problem(plan);
  if (!relaxed.problem) return std::move(relaxed.decoder);
  return solve(plan, plan.problem, std::move(*relaxed.problem));
}

SolvedGeneral solve_general(const MarginPlan& plan) {
  const MarginProblem direction = GeneralDirectionSvm{plan.general->kept}, finite = *plan.general;
  SolvedGeneral solved{constraints(plan.data, direction),
                       constraints(plan.data, finite),
                       {max_margin(plan.data, direction, plan.norm, plan.options),
                        max_margin(plan.data, finite, plan.norm, plan.options), std::nullopt},
                       std::numeric_limits<double>::quiet_NaN()};
  GeneralSolution& solution = solved.solution;
  if (!solution.direction.W.allFinite() || !solution.finite.W.allFinite()) return solved;
  const SvmEquivalent equivalent = svm_equivalent(solution.finite.W, solution.direction.W, plan.run_weights);
  solution.R = equivalent.R;
  if (!equivalent.W.isZero(0) && !plan.run_weights.isZero(0))
    solved.correlation = correlation(equivalent.W, plan.run_weights);
  return solved;
}

// ---- checking

CheckedMargin check(const MarginPlan& plan, const MarginProblem& problem, const MarginCommand& options) {
  const SavedSolution& file = *plan.to_check;
  const bool finite = std::holds_alternative<GeneralFiniteSvm>(problem);
  CheckedMargin checked{constraints(plan.data, problem), {}, file.weights(problem), {}, 1};
  if (checked.W.size() == 0 && file.status != MarginStatus::infeasible)
    throw bad_input(fmt::format("{}: missing array {}: expected the solution of the {} problem",
                                options.check.string(), finite ? "W_fin" : weights_name(problem),
                                to_string(plan.problem)));
  if (plan.problem == ProblemWord::relaxed || !plan.bounds.empty())
    check_saved_bounds(file, options.check, checked.constraints);
  const std::string name = finite ? "lambda_fin" : "lambda";
  checked.lambda = matched_multipliers(
      finite ? file.lambda_fin : file.lambda, finite ? file.constraints_fin : file.constraints,
      checked.constraints, Unmatched::refuse, fmt::format("{}: {}", options.check.string(), name));
  if (checked.lambda.size() == 0 && checked.constraints.count() > 0)
    throw bad_input(
        fmt::format("{}: missing array {}: without multipliers nothing bounds the norm from below",
                    options.check.string(), name));
  const auto look = [&] { return certify(plan.data, problem, plan.norm, checked.W, checked.lambda); };
  checked.certificate = look();
  const double worst = checked.certificate.worst_margin;
  if (options.as_is || checked.W.size() == 0 || !(worst > 0) || !std::isfinite(worst) || worst == 1)
    return checked;
  checked.scale = worst;
  checked.W /= worst;
  checked.certificate = look();
  return checked;
}

MarginAnswer check_plan(const MarginPlan& plan, const MarginCommand& options) {
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  if (plan.general) {
    const CheckedMargin direction = check(plan, GeneralDirectionSvm{plan.general->kept}, options),
                        finite = check(plan, *plan.general, options);
    return describe(plan, direction, &finite, seconds());
  }
  MarginProblem problem = plain_problem(plan);
  if (plan.problem == ProblemWord::relaxed) {
    Relaxed relaxed = relaxed_problem(plan);
    if (!relaxed.problem) return describe(plan, relaxed.decoder);
    problem = std::move(*relaxed.problem);
  }
  const CheckedMargin checked = check(plan, problem, options);
  return describe(plan, checked, nullptr, seconds());
}

// ---- the command

MarginAnswer solve_and_save(const MarginPlan& plan, const MarginCommand& options) {
  if (!options.output.empty()) {
    refuse_link(options.output);
    check_writable(options.output);
  }
  if (plan.general) {
    const SolvedGeneral solved = solve_general(plan);
    MarginAnswer answer = describe(plan, solved);
    answer.interrupted = solved.solution.direction.interrupted || solved.solution.finite.interrupted;
    answer.written = !options.output.empty() && !answer.interrupted;
    if (answer.written) save_solution(options.output, plan.data, *plan.general, solved.solution);
    return answer;
  }
  const SolvedMargin solved = solve_plan(plan);
  MarginAnswer answer = describe(plan, solved);
  // What a relaxed problem needs first is not its answer.
  answer.interrupted = solved.solution.interrupted;
  answer.written = !options.output.empty() && solved.word == plan.problem && !answer.interrupted;
  if (answer.written) save_solution(options.output, plan.data, solved.problem, solved.solution);
  return answer;
}

// What a signal ended. Nothing was written: a W without a proof is no answer that a file should hold.
int report_interruption(MarginAnswer& answer, const MarginCommand& options) {
  if (options.common.json) {
    answer.json["status"] = "interrupted";
    answer.json["output"] = Json();
    print_json(answer.json);
  }
  note(options.output.empty()
           ? std::string("interrupted before the solution was certified")
           : fmt::format("interrupted before the solution was certified; {} is not written",
                         options.output.string()));
  return signalled + SignalGuard::interrupted();
}

int run_margin(const CLI::App& app, const MarginCommand& options) {
  MarginPlan plan = make_margin_plan(app, options);
  std::optional<SignalGuard> guard;
  if (options.check.empty()) {
    guard.emplace();  // from here on a signal is a request
    plan.options.stop = SignalGuard::stop();
  }
  MarginAnswer answer = options.check.empty() ? solve_and_save(plan, options) : check_plan(plan, options);
  if (answer.interrupted) return report_interruption(answer, options);
  // With --quiet a file is the answer; without a file the text is.
  const bool in_words = !options.common.json && !(options.common.quiet && !options.output.empty());
  if (options.common.json) {
    answer.json["output"] = answer.written ? Json(options.output.string()) : Json();
    print_json(answer.json);
  } else if (in_words) {
    if (answer.written) answer.text += fmt::format("{:<17} {}\n", "file", options.output.string());
    print(answer.text);
  }
  if (answer.negative.empty()) return done;
  if (!in_words) note(answer.negative);
  return negative;
}

}  // namespace

Subcommand add_margin(CLI::App& parent) {
  auto options = std::make_shared<MarginCommand>();
  CLI::App& app = *parent.add_subcommand("margin", "solve the max-margin problem that training converges to");
  add_margin_options(app, *options);
  add_common_options(app, options->common);
  app.footer(
      "Exit code 0: certified. 1: infeasible, or stopped before the gap was reached.\n\n"
      "Examples:\n"
      "  attmirror margin data.npz --norm 1.75 -o svm.npz\n"
      "  attmirror margin data.npz --select run:run/ -o svm.npz && attmirror compare run/ svm.npz\n"
      "  attmirror margin data.npz --norm nuclear --select 3,2,6,2,6,2 --json\n"
      "  attmirror margin data.npz --check svm.npz");
  return {&app, &options->common, [options, &app] { return run_margin(app, *options); }};
}

}  // namespace attmirror::cli
