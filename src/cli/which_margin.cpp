// attmirror which-margin: which margin each optimizer, or each run, maximizes.
#include "base/progress.hpp"
#include "base/result_folder.hpp"
#include "base/signals.hpp"
#include "base/words.hpp"
#include "cli/console.hpp"
#include "cli/field_options.hpp"
#include "cli/options.hpp"
#include "cli/page_output.hpp"
#include "descent/data_scale.hpp"
#include "descent/optimizer_words.hpp"
#include "descent/saved_model.hpp"
#include "pages/which_margin_page.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/data/dataset.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::cli {

namespace {

namespace fs = std::filesystem;

struct WhichMarginCommand {
  CommonOptions common;
  fs::path data;
  std::vector<fs::path> runs;
  std::string optimizers, p, norms;
  Given given;  // steps, lr and loss
  PageOutput output;
};

std::vector<double> parse_numbers(std::string_view name, const std::string& text) {
  std::vector<double> numbers;
  for (const std::string& word : split_words(text)) numbers.push_back(parse_number(name, word));
  return numbers;
}

// A folder stands for the page report.html in it.
fs::path page_path(const fs::path& output) {
  const std::string extension = output.extension().string();
  return extension == ".html" || extension == ".htm" ? output : output / "report.html";
}

std::vector<MarginOptimizer> chosen_optimizers(const WhichMarginCommand& options) {
  if (options.optimizers.empty() && !options.runs.empty()) {
    for (const char* name : {"steps", "lr", "loss"})
      if (options.given.has(name))
        throw bad_input(
            fmt::format("{} is given, but nothing is trained: runs are measured as they are; "
                        "--optimizers adds rows that are trained",
                        field_name(name)));
    if (!options.p.empty()) throw bad_input("--p is given without --optimizers, which it is for");
    return {};
  }
  const std::vector<double> p = parse_numbers("p", options.p);
  if (options.optimizers.empty() && p.empty()) return default_margin_optimizers();
  const std::vector<std::string> words =
      options.optimizers.empty() ? std::vector<std::string>{"md"} : split_words(options.optimizers);
  std::vector<MarginOptimizer> all;
  for (NamedOptimizer& one : parse_optimizer_words(words, p))
    all.push_back({std::move(one.word), std::move(one.title), std::move(one.optimizer)});
  return all;
}

// Entrywise norms by p, then those of singular values.
bool comes_before(const Norm& a, const Norm& b) {
  return std::pair(!a.is_entrywise(), a.p()) < std::pair(!b.is_entrywise(), b.p());
}

// The default ones, and the norms that theory predicts for rows.
std::vector<Norm> chosen_norms(const WhichMarginCommand& options, const std::vector<MarginRun>& runs) {
  if (!options.norms.empty()) return parse_norm_words(split_words(options.norms));
  std::vector<Norm> norms = default_margin_norms();
  for (const MarginRun& run : runs)
    if (const auto own = limit_norm(run.optimizer, run.model->parameterization());
        own && std::ranges::find(norms, *own) == norms.end())
      norms.insert(std::ranges::find_if(norms, [&](const Norm& norm) { return comes_before(*own, norm); }),
                   *own);
  return norms;
}

// A run folder as a row. Its model views the data, with the mask that the run put on them.
MarginRun load_row(const fs::path& folder, const fs::path& data_path, std::deque<Dataset>& data,
                   std::deque<Attention>& models) {
  SavedRun saved = load_trained_run(folder);
  data.push_back(load_run_data(saved.config, data_path));
  models.push_back(model_of(saved, data.back()));
  const Attention& model = models.back();
  if (attention_weights(saved.parameters).isZero(0))
    throw bad_input(
        fmt::format("the weights of the run in {} are 0: they have no direction", folder.string()));
  MarginRun row;
  row.name =
      folder.filename().empty() ? folder.parent_path().filename().string() : folder.filename().string();
  row.title = row.name;
  row.model = &model;
  row.optimizer = saved.config.optimizer;
  row.run.status = saved.result ? saved.result->status : RunStatus::interrupted;
  row.run.steps = saved.step;
  row.run.selected = selected_tokens(model, saved.parameters);
  double sum = 0;
  const std::vector<Vector> probabilities = attention_probabilities(model, saved.parameters);
  for (const Vector& one : probabilities) sum += one.maxCoeff();
  row.run.max_softmax = sum / static_cast<double>(probabilities.size());
  row.run.records = std::move(saved.records);
  row.run.final_parameters = std::move(saved.parameters);
  return row;
}

Json number_or_null(double value) { return finite_or_null(value); }

Json to_json(const WhichMargin& table, const std::string& data) {
  Json norms = Json::array(), rows = Json::array();
  for (const Norm& norm : table.norms) norms.push_back(to_string(norm));
  for (const MarginRow& row : table.rows) {
    Json shares = Json::array(), gaps = Json::array(), certificates = Json::array();
    for (const MarginShare& share : row.shares) {
      shares.push_back(number_or_null(share.share));
      gaps.push_back(number_or_null(share.gap));
      certificates.push_back(to_string(share.status));
    }
    const auto largest = row.largest_column();
    rows.push_back({{"name", row.name},
                    {"optimizer", method_name(row.optimizer)},
                    {"settings", to_string(row.optimizer)},
                    {"lr", lr_of(row.optimizer)},
                    {"steps", row.steps},
                    {"max_softmax", number_or_null(row.max_softmax)},
                    {"globally_optimal", row.globally_optimal},
                    {"predicted", row.predicted ? Json(to_string(*row.predicted)) : Json()},
                    {"largest", largest ? Json(to_string(table.norms[*largest])) : Json()},
                    {"shares", std::move(shares)},
                    {"gaps", std::move(gaps)},
                    {"certificates", std::move(certificates)},
                    {"halfway", number_or_null(row.halfway)},
                    {"state", to_string(row.state)},
                    {"remark", row.remark}});
  }
  return {{"status", "done"},
          {"data", data},
          {"conclusion", which_margin_conclusion(table, Lettering::plain)},
          {"norms", std::move(norms)},
          {"rows", std::move(rows)},
          {"problems", table.problems},
          {"uncertified", table.uncertified},
          {"worst_gap", table.worst_gap}};
}

std::string to_text(const WhichMargin& table) {
  std::string text = attmirror::to_text(which_margin_table(table, Lettering::plain)) + "\n";
  for (const std::string& note : which_margin_notes(table, Lettering::plain)) text += note + "\n";
  return text + "\n" + which_margin_conclusion(table, Lettering::plain) + "\n";
}

std::vector<std::pair<std::string, std::string>> page_facts(const WhichMarginCommand& options,
                                                            const Dataset& data, bool trained) {
  std::vector<std::pair<std::string, std::string>> facts{
      {"data", fmt::format("{}: {}", options.data.string(), to_string(data))}};
  if (!options.runs.empty()) {
    std::vector<std::string> names;
    for (const fs::path& run : options.runs) names.push_back(run.string());
    facts.emplace_back("runs", fmt::format("{}", fmt::join(names, ", ")));
  }
  if (trained) {
    facts.emplace_back("start", "W = 0");
    facts.emplace_back(
        "step sizes",
        options.given.has("lr")
            ? "as given"
            : "by the data's scale: a step changes a logit by about 0.3 at most (0.1 for methods that "
              "average gradients), whatever the units of tokens and queries");
    facts.emplace_back(
        "decoder", "divided by the typical size of the scores vᵀx, so that its units do not matter either");
  }
  return facts;
}

int run_which_margin(const WhichMarginCommand& options) {
  if (!options.output.path.empty()) {
    PageOutput page = options.output;
    page.path = page_path(page.path);
    check_page_output(page);
  }
  const std::vector<MarginOptimizer> optimizers = chosen_optimizers(options);
  if (!options.norms.empty()) parse_norm_words(split_words(options.norms));  // before anything long begins
  const ModelPlan plan =
      plan_model(options.given.has("loss") ? Given{{"loss", *options.given.find("loss")}} : Given{});
  WhichMarginOptions how;
  if (const auto steps = options.given.get<std::int64_t>("steps")) how.steps = *steps;
  how.work.threads = static_cast<int>(options.common.threads);
  how.validate();

  const Dataset data = load_dataset(options.data);
  std::deque<Dataset> run_data;
  std::deque<Attention> models;
  std::vector<MarginRun> runs;
  for (const fs::path& folder : options.runs)
    runs.push_back(load_row(folder, options.data, run_data, models));

  const SignalGuard guard;
  constexpr std::int64_t units = 10'000;
  Progress progress(stderr,
                    {.label = "which-margin", .total = units, .unit = "", .quiet = options.common.quiet});
  how.work.on_progress = [&](double share) { progress.update(std::llround(share * units)); };
  how.work.stop = SignalGuard::stop();
  if (!optimizers.empty()) {
    models.push_back(make_attention(data, plan));
    std::vector<MarginOptimizer> entries = optimizers;
    if (const auto lr = options.given.get<double>("lr"))
      for (MarginOptimizer& entry : entries) entry.optimizer = with_lr(entry.optimizer, *lr);
    how.scaled_lr = !options.given.has("lr");
    std::ranges::move(train_margin_runs(models.back(), entries, how), std::back_inserter(runs));
  }
  const WhichMargin table = which_margin(runs, chosen_norms(options, runs), how.work);
  progress.finish();
  if (table.interrupted) {
    note("interrupted; nothing was written");
    return signalled + SignalGuard::interrupted();
  }

  std::vector<fs::path> files;
  if (!options.output.path.empty()) {
    PageOutput page = options.output;
    page.path = page_path(page.path);
    if (page.path != options.output.path) make_folders(options.output.path);
    Page content = which_margin_page(table, page_facts(options, data, !optimizers.empty()));
    content.subtitle = options.data.string();
    files = write_output_page(std::move(content), page);
  }
  if (options.common.json) {
    Json json = to_json(table, options.data.string());
    if (!files.empty()) json.update(written_json(files));
    print_json(json);
  } else {
    std::string text = to_text(table);
    if (!files.empty() && !options.common.quiet) text += fmt::format("report   {}\n", written_text(files));
    print(text);
  }
  const bool whole = std::ranges::none_of(table.rows, [](const MarginRow& row) {
    return row.state == RowState::diverged || row.state == RowState::infeasible ||
           row.state == RowState::uncertified;
  });
  return whole ? done : negative;
}

}  // namespace

Subcommand add_which_margin(CLI::App& parent) {
  auto options = std::make_shared<WhichMarginCommand>();
  options->common.threads = 0;
  CLI::App& app =
      *parent.add_subcommand("which-margin", "measure which margin each optimizer, or each run, maximizes");
  add_path(app, "data", options->data, "FILE", "the dataset: .npz with X, Y, Z and v")->required();
  app.add_option("runs", options->runs,
                 "folders of attmirror train on these data, to be measured instead of optimizers")
      ->type_name("FOLDER");
  add_text(
      app, "--optimizers", options->optimizers, "WORDS",
      "rows to train, separated by commas: words of train --optimizer, and md:P, steepest:NORM, adam:BETA2; "
      "without runs by default md:1.1, md:1.75, gd, md:3, coordinate, sign, adam:0.95, spectral and steepest:nuclear");
  add_text(app, "--p", options->p, "NUMBERS", "a row for each of these p in the place of md, as in 1.1,2,3");
  add_text(
      app, "--norms", options->norms, "NORMS",
      "columns, separated by commas, as in 1,2,inf,nuclear; by default 1, 1.1, 1.75, 2, 3, inf, nuclear, spectral, "
      "and the norms that theory predicts for the rows");
  add_page_options(app, options->output,
                   "a page (.html), or a folder for report.html, with the figure and the tables beside it");
  const auto default_text = [](const FieldInfo& field) -> std::string {
    if (field.name == "steps") return fmt::format("{}", WhichMarginOptions{}.steps);
    if (field.name == "lr") return "by the data's scale";
    return "logistic";
  };
  add_field_options(app, {&training_field("steps"), &training_field("lr"), &training_field("loss")},
                    options->given, "Training", default_text);
  add_common_options(app, options->common);
  app.footer(
      "Examples:\n"
      "  attmirror which-margin data.npz\n"
      "  attmirror which-margin data.npz --optimizers md,gd,sign,muon --p 1.1,3 -o margins.html\n"
      "  attmirror which-margin data.npz run1/ run2/ --norms 1,2,inf");
  return {&app, &options->common, [options] { return run_which_margin(*options); }};
}

}  // namespace attmirror::cli
