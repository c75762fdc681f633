// attmirror attractors: on which tokens training can end, each with its certificate and its share of random
// starts.
#include "base/progress.hpp"
#include "base/signals.hpp"
#include "cli/console.hpp"
#include "cli/field_options.hpp"
#include "cli/masked_data.hpp"
#include "cli/options.hpp"
#include "cli/page_output.hpp"
#include "pages/attractors_page.hpp"
#include <attmirror/base/error.hpp>

#include <cmath>
#include <memory>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

struct AttractorsCommand {
  CommonOptions common;
  std::filesystem::path data;
  Given given;
  PageOutput output;
};

Json rows_json(const Matrix& W) {
  Json rows = Json::array();
  for (std::ptrdiff_t i = 0; i < W.rows(); ++i) {
    Json row = Json::array();
    for (std::ptrdiff_t j = 0; j < W.cols(); ++j) row.push_back(W(i, j));
    rows.push_back(std::move(row));
  }
  return rows;
}

Json confirmation_json(const Confirmation& one) {
  if (!one.finished) return {};
  return {{"stayed", one.stayed}, {"correlation", one.correlation}, {"lead", finite_or_null(one.lead)}};
}

Json attractor_json(const AttractorStudy& study, std::size_t k) {
  const Attractor& one = study.found.list[k];
  Json deficits = Json::array();
  for (const Deficit& deficit : one.deficits)
    deficits.push_back({{"query", deficit.query}, {"token", deficit.token}, {"size", deficit.size}});
  Json json{{"kind", to_string(one.kind)},
            {"tokens", one.tokens.tokens},
            {"held", one.held},
            {"deficits", std::move(deficits)},
            {"norm", one.solution.norm},
            {"gap", one.certificate.margin.gap},
            {"least_margin", finite_or_null(one.certificate.least_margin)},
            {"least_deficit", finite_or_null(one.certificate.least_deficit)},
            {"deficit_error", finite_or_null(one.certificate.deficit_error)},
            {"certified", one.certificate.holds()},
            {"locally_optimal", one.locally_optimal},
            {"W", rows_json(one.solution.W)},
            {"lambda", std::vector<double>(one.solution.lambda.begin(), one.solution.lambda.end())}};
  if (study.shares.starts > 0) json["starts"] = study.shares.counts[k];
  if (!study.checks.empty()) {
    const AttractorCheck& check = study.checks[k];
    json["confirmed"] = check.holds();
    json["plain"] = confirmation_json(check.plain);
    json["normalized"] = confirmation_json(check.normalized);
    json["flow"] = confirmation_json(check.flow);
  }
  return json;
}

Json to_json(const AttractorStudy& study, const std::string& data, const ModelPlan& plan) {
  Json list = Json::array();
  for (std::size_t k = 0; k < study.found.list.size(); ++k) list.push_back(attractor_json(study, k));
  const GlobalCondition& condition = study.condition;
  return {{"status", "done"},
          {"data", data},
          {"params", to_string(plan.parameterization)},
          {"norm", to_string(study.found.norm)},
          {"conclusion", attractor_conclusion(study)},
          {"attractors", std::move(list)},
          {"candidates", study.found.candidates},
          {"examined", study.found.examined},
          {"complete", study.found.complete},
          {"infeasible", study.found.infeasible},
          {"undecided", study.found.undecided},
          {"starts",
           {{"count", study.shares.starts},
            {"std", study.start_std},
            {"elsewhere", study.shares.elsewhere},
            {"undecided", study.shares.undecided}}},
          {"global_condition",
           {{"holds", condition.holds()},
            {"applies", condition.applies},
            {"unique_best", condition.unique_best},
            {"equal_scores", condition.equal_scores},
            {"feasible", condition.feasible},
            {"least_cosine", condition.least_cosine}}}};
}

std::vector<std::pair<std::string, std::string>> attractor_facts(const AttractorsCommand& options,
                                                                 const Dataset& data, const ModelPlan& plan,
                                                                 const AttractorStudy& study) {
  std::vector<std::pair<std::string, std::string>> facts{
      {"data", fmt::format("{}: {}", options.data.string(), to_string(data))},
      {"trained", std::string(to_string(plan.parameterization))},
      {"norm of the max-margin problems", to_string(study.found.norm)},
      {"choices of tokens",
       fmt::format("{:.6g}, of which {} examined", study.found.candidates, study.found.examined)}};
  if (study.shares.starts > 0)
    facts.emplace_back("random starts",
                       fmt::format("{}, entries N(0, {:.3g}²)", study.shares.starts, study.start_std));
  return facts;
}

int run_attractors(const AttractorsCommand& options) {
  if (!options.output.path.empty()) check_page_output(options.output);
  AttractorSettings settings;
  attmirror::apply(attractor_fields(), options.given, settings);
  const ModelPlan plan = load_files(plan_model(options.given));
  const Dataset data = load_masked_dataset(options.data, plan.mask);
  const Attention model = make_attention(data, plan);

  const SignalGuard guard;
  constexpr std::int64_t units = 10'000;
  Progress progress(stderr,
                    {.label = "attractors", .total = units, .unit = "", .quiet = options.common.quiet});
  const AttractorStudy study =
      study_attractors(model, settings,
                       {.threads = static_cast<int>(options.common.threads),
                        .on_progress = [&](double share) { progress.update(std::llround(share * units)); },
                        .stop = SignalGuard::stop()});
  progress.finish();
  if (study.interrupted) {
    note("interrupted; nothing was written");
    return signalled + SignalGuard::interrupted();
  }
  std::vector<std::filesystem::path> files;
  if (!options.output.path.empty()) {
    Page page = attractors_page(study, attractor_facts(options, data, plan, study));
    page.subtitle = options.data.string();
    files = write_output_page(std::move(page), options.output);
  }
  if (options.common.json) {
    Json json = to_json(study, options.data.string(), plan);
    if (!files.empty()) json.update(written_json(files));
    print_json(json);
  } else {
    std::string text;
    if (!study.found.list.empty()) text = to_text(attractor_table(study)) + "\n";
    for (const std::string& sentence : attractor_notes(study)) text += sentence + "\n";
    text += "\n" + attractor_conclusion(study) + "\n";
    if (!files.empty() && !options.common.quiet) text += fmt::format("report   {}\n", written_text(files));
    print(text);
  }
  return study.found.list.empty() ? negative : done;
}

}  // namespace

Subcommand add_attractors(CLI::App& parent) {
  auto options = std::make_shared<AttractorsCommand>();
  options->common.threads = 0;
  CLI::App& app = *parent.add_subcommand("attractors",
                                         "find the tokens on which training can end, and how often it does");
  add_path(app, "data", options->data, "FILE", "the dataset: .npz with X, Y, Z and v")->required();
  add_page_options(app, options->output, "a page (.html), with the figure and the tables beside it");
  add_field_options(app, attractor_fields(), options->given, "Attractors");
  add_field_options(app, model_fields(), options->given, "Model",
                    {"params", "rank", "key_weights", "loss", "mask"});
  add_common_options(app, options->common);
  app.footer(
      "Examples:\n"
      "  attmirror attractors data.npz\n"
      "  attmirror attractors data.npz --params prompt --starts 10000 -o attractors.html\n"
      "  attmirror attractors data.npz --p 1.5 --no-confirm --json");
  return {&app, &options->common, [options] { return run_attractors(*options); }};
}

}  // namespace attmirror::cli
