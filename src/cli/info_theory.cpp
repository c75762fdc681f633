#include "cli/info_theory.hpp"

#include "base/words.hpp"
#include "cli/console.hpp"
#include "cli/margin_plan.hpp"
#include "cli/masked_data.hpp"
#include "data/npy.hpp"
#include "descent/model_fields.hpp"
#include "descent/selection_json.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/margin/theory.hpp>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

Parameterization theory_parameterization(const TheoryCommand& options) {
  if (options.params != "prompt" && !options.key_weights.empty())
    throw bad_input(
        fmt::format("key-weights is given, but params is {}: only prompt has them", options.params));
  if (options.params == "W") return W{};
  if (options.params == "KQ") return KQ{};
  if (options.params != "prompt")
    throw bad_input(fmt::format("params is \"{}\": expected {}", options.params,
                                expected_choice(options.params, {"W", "KQ", "prompt"})));
  return Prompt{options.key_weights.empty()
                    ? Matrix()
                    : to_matrix(load_npy(options.key_weights), options.key_weights.string())};
}

Mask theory_mask(const std::string& word) {
  if (word == "none") return Mask::none;
  if (word == "causal") return Mask::causal;
  throw bad_input(
      fmt::format("mask is \"{}\": expected {}", word, expected_choice(word, {"none", "causal"})));
}

Json theory_json(const TheoryReport& report, const Dataset& data) {
  Json json = {{"tokens", selection_json(report.tokens, data.equal_query_counts() ? data.query_count(0) : 0)},
               {"norm", to_string(report.norm)},
               {"lipschitz", report.lipschitz ? finite_or_null(*report.lipschitz) : Json()},
               {"assumptions", Json::array()}};
  for (const AssumptionCheck& check : report.checks)
    json["assumptions"].push_back({{"name", to_string(check.what)},
                                   {"status", to_string(check.status)},
                                   {"value", finite_or_null(check.value)},
                                   {"meaning", meaning(check.what)},
                                   {"detail", check.detail}});
  return json;
}

}  // namespace

void add_theory_options(CLI::App& app, TheoryCommand& o) {
  const char* group = "Theory";
  add_flag(
      app, "--theory", o.on,
      "of a dataset: check which assumptions of the papers' theorems hold on it, in versions that can be decided")
      ->group(group);
  add_text(app, "--params", o.params, "W|KQ|prompt", training_field("params").help)->group(group);
  add_text(
      app, "--select", o.select, "global|file:PATH|TOKENS",
      "the tokens that are to be selected: those with the best scores under the data's v, or others as for margin")
      ->group(group);
  add_text(app, "--mask", o.mask, "none|causal", training_field("mask").help)->group(group);
  add_path(app, "--key-weights", o.key_weights, "FILE",
           "for a prompt: A of the keys A x, a .npy file of shape (d, d); by default the identity")
      ->group(group);
  add_number(app, "--lr", o.lr, "the step size of plain gradient descent, to be compared with 1/L")
      ->default_str("")
      ->group(group);
}

void check_theory_options(const CLI::App& app, const TheoryCommand& options) {
  if (options.on) return;
  for (const char* name : {"--params", "--select", "--mask", "--key-weights", "--lr"})
    if (app.count(name) > 0) throw bad_input(fmt::format("{} is given without --theory", name));
}

void add_theory(const CLI::App& app, const TheoryCommand& options, const std::filesystem::path& path,
                int threads, InfoAnswer& answer) {
  if (answer.json["kind"] != "dataset")
    throw bad_input(fmt::format("--theory is given, but {} is not a dataset", one_line(path.string())));
  TheoryOptions checks{.parameterization = theory_parameterization(options)};
  const Mask mask = theory_mask(options.mask);
  const Dataset data = mask == Mask::causal ? with_causal_mask(load_dataset(path)) : load_dataset(path);
  if (options.select != "global" || !data.has_decoder())
    checks.tokens = parse_selection(options.select, data, path);
  if (app.count("--lr") > 0) checks.lr = options.lr;
  checks.margin.threads = threads;
  const TheoryReport report = check_theory(data, checks);
  answer.json["theory"] = theory_json(report, data);
  answer.text += fmt::format("\nAssumptions of the theorems, for {} and the tokens {}\n\n{}", options.params,
                             short_list(report.tokens.tokens), to_text(theory_table(report)));
  answer.text += "\nThese are versions that can be decided on data; --json says what each means.\n";
}

}  // namespace attmirror::cli
