#include "cli/margin_plan.hpp"

#include "base/words.hpp"
#include "cli/margin_bounds.hpp"
#include "cli/masked_data.hpp"
#include "data/npy.hpp"
#include "descent/model_fields.hpp"
#include "descent/saved_model.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/margin/support.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <system_error>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

constexpr std::array problem_words{"attention", "prompt", "decoder", "relaxed", "general"};

ProblemWord parse_problem(std::string_view word) {
  for (std::size_t i = 0; i < problem_words.size(); ++i)
    if (word == problem_words[i]) return static_cast<ProblemWord>(i);
  throw bad_input(fmt::format("problem is \"{}\": expected {}", word,
                              expected_choice(word, {problem_words.begin(), problem_words.end()})));
}

MarginOptions::Generation parse_generation(std::string_view word) {
  using enum MarginOptions::Generation;
  if (word == "auto") return automatic;
  if (word == "on") return on;
  if (word == "off") return off;
  throw bad_input(
      fmt::format("generation is \"{}\": expected {}", word, expected_choice(word, {"auto", "on", "off"})));
}

// ---- tokens

Selection parse_list(const std::string& text) {
  Selection selection;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (word.empty() || word.find_first_not_of("0123456789") != std::string::npos)
      throw bad_input(fmt::format(
          "select is \"{}\": expected global, run:RUN, file:ALPHA.npy or tokens such as 0,3,2", text));
    selection.tokens.push_back(parse_count("select", word));
    begin = end + 1;
  }
  return selection;
}

// alpha from an .npy file, or by its name from an .npz such as an svm.npz.
Selection load_selection(const std::filesystem::path& path, const Dataset& data) {
  Array array;
  std::string name = path.string();
  if (path.extension() == ".npz") {
    const NamedArrays arrays = load_npz(path);
    const auto found = arrays.find("alpha");
    if (found == arrays.end())
      throw bad_input(fmt::format("{}: missing array alpha: expected the selected tokens", name));
    array = found->second;
    name += ": alpha";
  } else {
    array = load_npy(path);
  }
  const Shape one_axis{data.total_queries()};
  const Shape expected = data.one_query_each() || !data.equal_query_counts()
                             ? one_axis
                             : Shape{data.samples(), data.query_count(0)};
  if (array.shape() != expected && array.shape() != one_axis)
    throw bad_input(fmt::format("{} has shape {}: expected {}, one token per query", name,
                                attmirror::to_string(array.shape()), attmirror::to_string(expected)));
  return {array.to_int64(name)};
}

Selection global_tokens(const Dataset& data, const std::filesystem::path& path) {
  if (!data.has_decoder())
    throw bad_input(fmt::format(
        "{} has no decoder v, which decides the globally optimal tokens: give --select run:RUN, file:ALPHA.npy or tokens such as 0,3,2",
        path.string()));
  return optimal_tokens(data);
}

void check_tokens(const Selection& tokens, const Dataset& data, const std::string& select) {
  try {
    tokens.validate(data);
  } catch (const Error& error) {
    throw bad_input(fmt::format("select is {}: {}", select, error.what()));
  }
}

// ---- data, norm, problem

Dataset load_data(const MarginCommand& options, const std::optional<SavedRun>& run) {
  if (options.mask != "none" && options.mask != "causal")
    throw bad_input(fmt::format(
        "mask is \"{}\": expected none or causal (a mask of your own is the array mask of the data)",
        options.mask));
  if (run) return load_run_data(run->config, options.data);
  return load_masked_dataset(options.data, options.mask == "causal" ? Mask::causal : Mask::none);
}

Norm norm_of(const RunConfig& config) {
  if (const auto norm = limit_norm(config)) return *norm;
  const std::optional<Norm> geometry = geometry_norm(config.optimizer);
  if (!geometry)
    throw bad_input(
        fmt::format("norm is not given, and theory names no norm whose margin {} maximizes: give --norm",
                    method_name(config.optimizer)));
  throw bad_input(fmt::format(
      "norm is not given, and no theorem says to which norm's solution K, Q of a run in the geometry {} converge: give --norm",
      to_string(*geometry)));
}

// Files that hold the whole answer say "general direction" nowhere; their problem is a word of --problem.
std::optional<ProblemWord> problem_of(const SavedSolution& saved, const std::filesystem::path& path) {
  if (saved.problem.empty()) {
    if (saved.W.size() == 0 && saved.p.size() > 0) return ProblemWord::prompt;
    return std::nullopt;
  }
  try {
    return parse_problem(saved.problem);
  } catch (const Error& error) {
    throw bad_input(fmt::format("{}: {}", path.string(), error.what()));
  }
}

void choose_problem(const MarginCommand& options, MarginPlan& plan) {
  if (!options.problem.empty()) {
    plan.problem = parse_problem(options.problem);
    return;
  }
  if (plan.to_check)
    if (const auto word = problem_of(*plan.to_check, options.check)) {
      plan.problem = *word;
      // A file with bounds of the user's own calls its problem relaxed, too.
      if (*word == ProblemWord::relaxed && !options.bounds.empty())
        plan.problem = relaxes_prompt(plan) ? ProblemWord::prompt : ProblemWord::attention;
      return;
    }
  if (plan.run && plan.run->config.params == "prompt") plan.problem = ProblemWord::prompt;
}

void choose_norm(const MarginCommand& options, MarginPlan& plan) {
  if (!options.norm.empty())
    plan.norm = parse_norm(options.norm);
  else if (plan.to_check && plan.to_check->kind)
    plan.norm = *plan.to_check->kind;
  else if (plan.run && plan.problem != ProblemWord::decoder)
    plan.norm = norm_of(plan.run->config);
}

void choose_bounds(const MarginCommand& options, MarginPlan& plan) {
  if (options.bounds.empty()) return;
  if (plan.problem != ProblemWord::attention && plan.problem != ProblemWord::prompt)
    throw bad_input(fmt::format("bounds is given, but problem is {}: expected attention or prompt",
                                to_string(plan.problem)));
  plan.bounds = parse_bounds(options.bounds, plan.data);
}

void choose_key_weights(const MarginCommand& options, MarginPlan& plan) {
  if (!plan.of_prompt) {
    if (!options.key_weights.empty())
      throw bad_input(fmt::format("key-weights is given, but problem is {}{}: only a prompt has them",
                                  to_string(plan.problem),
                                  plan.problem == ProblemWord::relaxed ? " of a run without a prompt" : ""));
    return;
  }
  if (!options.key_weights.empty())
    plan.key_weights = to_matrix(load_npy(options.key_weights), options.key_weights.string());
  else if (plan.run && plan.run->config.params == "prompt")
    plan.key_weights = plan.run->key_weights;
  else if (plan.to_check)
    plan.key_weights = plan.to_check->key_weights;
}

// The tokens that the run keeps, and its logits in the scale of W: those of a model with logits / sqrt(d) are
// divided out.
GeneralFiniteSvm general_problem(const MarginPlan& plan, const Attention& model, double threshold) {
  GeneralFiniteSvm problem;
  problem.kept = kept_tokens(attention_probabilities(model, plan.run->parameters), threshold);
  problem.logits = logits(model, plan.run->parameters);
  for (Vector& a : problem.logits) a /= model.logit_scale();
  return problem;
}

void choose_tokens(const MarginCommand& options, MarginPlan& plan) {
  std::optional<Attention> model;
  if (plan.run) {
    model.emplace(model_of(*plan.run, plan.data));
    plan.run_weights = attention_weights(plan.run->parameters);
    plan.scores = token_scores(*model, plan.run->parameters);
    if (std::holds_alternative<LinearHead>(model->head())) plan.v = plan.run->parameters.v;
  } else if (plan.data.has_decoder()) {
    plan.v = plan.data.decoder().eigen().row(0).transpose();
    plan.scores = linear_scores(plan.data, plan.v);
  }
  if (plan.problem == ProblemWord::general) {
    if (!plan.run)
      throw bad_input("problem is general: give the run whose probabilities it is about, --select run:RUN");
    if (plan.run->config.params == "prompt")
      throw bad_input("problem is general: the run has a prompt, and the problem is one of W or K, Q");
    plan.general = general_problem(plan, *model, options.keep_threshold);
    return;
  }
  const std::string& select = options.select;
  if (model)
    plan.tokens = selected_tokens(*model, plan.run->parameters);
  else if (select.empty() && plan.to_check && plan.to_check->alpha)
    plan.tokens = plan.to_check->alpha;
  else
    plan.tokens = parse_selection(select.empty() ? "global" : select, plan.data, options.data);
  check_tokens(*plan.tokens, plan.data, select.empty() ? "global" : select);
}

MarginOptions solver_options(const CLI::App& app, const MarginCommand& options, const Norm& norm) {
  MarginOptions result;
  if (app.count("--tol") > 0) result.tol = options.tol;
  result.max_norm = options.max_norm;
  if (options.max_iterations < 1 || options.max_iterations > std::numeric_limits<int>::max())
    throw bad_input(fmt::format("max-iterations is {}: expected a number from 1 to {}",
                                options.max_iterations, std::numeric_limits<int>::max()));
  result.max_iterations = static_cast<int>(options.max_iterations);
  result.max_seconds = options.max_seconds;
  result.method = parse_margin_method(options.method);
  result.generation = parse_generation(options.generation);
  result.threads = static_cast<int>(options.common.threads);
  if (options.rank < 0) throw bad_input(fmt::format("rank is {}: expected 0 or more", options.rank));
  result.max_rank = options.rank;
  result.validate(norm);
  return result;
}

// The answer must not replace what it is about. (It may replace an older one, that of --select or --start.)
void check_output(const MarginCommand& options) {
  for (const std::filesystem::path& input : {options.data, options.key_weights}) {
    std::error_code none;  // one of them is not there, hence they are not the same
    if (!options.output.empty() && std::filesystem::equivalent(options.output, input, none))
      throw bad_input(fmt::format("output is {}, which is the input itself: expected another file",
                                  options.output.string()));
  }
}

void check_combination(const CLI::App& app, const MarginCommand& options) {
  check_output(options);
  if (app.count("--select") > 0 && options.select.starts_with("run:") && app.count("--mask") > 0)
    throw bad_input("mask is given with a run, whose own mask applies");
  if (app.count("--keep-threshold") > 0 && options.problem != "general" && options.check.empty())
    throw bad_input("keep-threshold is given, but problem is not general");
  if (app.count("--repeat") > 0 && options.problem == "general")
    throw bad_input("repeat is given, but problem is general, which is solved once");
  if (options.check.empty()) {
    if (options.as_is) throw bad_input("as-is is given without --check FILE");
    return;
  }
  for (const char* name : {"--output", "--start", "--max-iterations", "--max-seconds", "--repeat", "--method",
                           "--generation", "--rank"})
    if (app.count(name) > 0)
      throw bad_input(fmt::format("{} is given with --check, which solves nothing", name));
}

}  // namespace

Selection parse_selection(const std::string& select, const Dataset& data, const std::filesystem::path& path) {
  if (select.starts_with("run:"))  // margin itself reads a run's tokens, and does not ask here
    throw bad_input(
        fmt::format("select is \"{}\": expected global, file:ALPHA.npy or tokens such as 0,3,2", select));
  Selection tokens = select.starts_with("file:") ? load_selection(select.substr(5), data)
                     : select == "global"        ? global_tokens(data, path)
                                                 : parse_list(select);
  check_tokens(tokens, data, select);
  return tokens;
}

std::string_view to_string(ProblemWord word) { return problem_words[static_cast<std::size_t>(word)]; }

void add_margin_options(CLI::App& app, MarginCommand& o) {
  add_path(app, "data", o.data, "FILE", "the dataset: .npz with X, Y, Z and v (see attmirror info)")
      ->required();
  add_path(
      app, "-o,--output", o.output, "FILE",
      "write the solution (W, lambda, alpha and support) to this .npz file; without it the answer is only printed");

  const char* group = "Problem";
  add_text(
      app, "--norm", o.norm, "2|1|inf|NUMBER|nuclear|spectral|frobenius|schatten:P",
      "the norm to minimize; a NUMBER is p >= 1; by default 2, or the norm of the run's geometry with --select run:RUN")
      ->group(group);
  add_text(
      app, "--problem", o.problem, "attention|prompt|decoder|relaxed|general",
      "the max-margin problem; by default attention, or prompt with --select run:RUN where the run trained a prompt; relaxed is the problem of what the run trained together with v, or of a prompt if no run is given")
      ->group(group);
  add_text(
      app, "--select", o.select, "global|run:RUN|file:PATH|TOKENS",
      "the tokens alpha to select: global for those with the best scores under the data's v, those of a run, an .npy file or the alpha of an .npz file, or a list such as 0,3,2; by default global")
      ->group(group);
  add_text(app, "--mask", o.mask, "none|causal", training_field("mask").help)->group(group);
  add_text(
      app, "--bounds", o.bounds, "BOUNDS|file:PATH",
      "for attention and prompt: the bounds c of the constraints, one per query, such as 1,0,1, or an .npy file of them; by default 1")
      ->group(group);
  add_path(
      app, "--key-weights", o.key_weights, "FILE",
      "for a prompt: A of the keys A x, a .npy file of shape (d, d); by default the run's, or the identity")
      ->group(group);
  add_number(app, "--keep-threshold", o.keep_threshold,
             "for general: the softmax probability from which a token counts as kept")
      ->group(group);
  add_count(app, "--rank", o.rank,
            "for norm nuclear: certify only if the optimum has at most this rank; 0: any rank")
      ->group(group);

  group = "Solver";
  add_number(
      app, "--tol", o.tol,
      "the relative gap to certify; by default 1e-10 for 1 < p < infinity, and 1e-8 for 1, inf and the norms of singular values")
      ->default_str("")
      ->group(group);
  add_number(
      app, "--max-norm", o.max_norm,
      "call the problem infeasible once every solution is known to have a norm above this, in units of the data")
      ->group(group);
  add_count(app, "--max-iterations", o.max_iterations, "stop after this many Newton steps")->group(group);
  add_number(app, "--max-seconds", o.max_seconds, "stop after so many seconds")->group(group);
  add_count(app, "--repeat", o.repeat, "for timing: solve so many times and report the median time")
      ->group(group);
  add_text(app, "--method", o.method, "auto|active-set|interior-point",
           "the solver; auto chooses by norm and size")
      ->group(group);
  add_text(app, "--generation", o.generation, "auto|on|off",
           "start with few constraints and add those that are violated; auto decides by size")
      ->group(group);
  add_path(
      app, "--start", o.start, "FILE",
      "a solution to start from, such as one for a similar p or selection; the answer does not depend on it")
      ->group(group);

  group = "Check";
  add_path(app, "--check", o.check, "FILE",
           "solve nothing; certify the W and lambda of this file, whoever made it, against the data")
      ->group(group);
  add_flag(app, "--as-is", o.as_is,
           "with --check: take W as it is instead of dividing it by its worst margin")
      ->group(group);
}

MarginPlan make_margin_plan(const CLI::App& app, const MarginCommand& options) {
  check_combination(app, options);
  if (!options.norm.empty()) parse_norm(options.norm);  // options are told before files
  if (!options.problem.empty()) parse_problem(options.problem);
  std::optional<SavedRun> run;
  if (options.select.starts_with("run:")) run = load_trained_run(options.select.substr(4));
  MarginPlan plan(load_data(options, run));
  plan.run = std::move(run);
  if (!options.check.empty()) plan.to_check = load_solution(options.check, plan.data);
  if (!options.start.empty()) plan.start = load_solution(options.start, plan.data);
  choose_problem(options, plan);
  choose_norm(options, plan);
  plan.options = solver_options(app, options, plan.norm);
  if (options.repeat < 1) throw bad_input(fmt::format("repeat is {}: expected 1 or more", options.repeat));
  plan.repeat = options.repeat;
  plan.of_prompt =
      plan.problem == ProblemWord::relaxed ? relaxes_prompt(plan) : plan.problem == ProblemWord::prompt;
  choose_bounds(options, plan);
  choose_key_weights(options, plan);
  choose_tokens(options, plan);
  return plan;
}

MarginProblem plain_problem(const MarginPlan& plan) {
  if (plan.problem == ProblemWord::prompt) return PromptSvm{*plan.tokens, plan.key_weights, plan.bounds};
  if (plan.problem == ProblemWord::decoder) return DecoderSvm{*plan.tokens};
  return AttentionSvm{*plan.tokens, plan.bounds};
}

}  // namespace attmirror::cli
