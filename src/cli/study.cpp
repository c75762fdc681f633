// attmirror study: several optimizers on one dataset, from several starts, held against their max-margin
// solutions; one command instead of a sweep file and four others.
#include "sweep/study.hpp"

#include "base/atomic_file.hpp"
#include "base/progress.hpp"
#include "base/result_folder.hpp"
#include "base/signals.hpp"
#include "cli/console.hpp"
#include "cli/field_options.hpp"
#include "cli/options.hpp"
#include "cli/page_output.hpp"
#include "cli/sweep_report.hpp"
#include "pages/study_page.hpp"
#include "sweep/outline.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/isa.hpp>
#include <attmirror/data/dataset.hpp>
#include <attmirror/sweep/plan.hpp>
#include <attmirror/sweep/sweep.hpp>

#include <algorithm>
#include <memory>
#include <thread>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

namespace fs = std::filesystem;

struct StudyCommand {
  CommonOptions common;
  fs::path data, output;
  std::string optimizers = "md,gd,sign,adam:0.95", p;
  std::int64_t seeds = StudyOptions{}.seeds;
  Given given;  // steps, lr, loss and init
  bool resume = false, overwrite = false, dry_run = false;
};

// The files of a study.
struct StudyFiles {
  fs::path file, database, page;
  explicit StudyFiles(const fs::path& folder)
      : file(folder / "sweep.toml"), database(folder / "results.db"), page(folder / "report.html") {}
};

// Where the sweep file finds the data: relative to its folder where that is possible, so that both may move
// together.
std::string data_from(const fs::path& folder, const fs::path& data) {
  std::error_code error;
  const fs::path there = fs::weakly_canonical(fs::absolute(folder), error);
  const fs::path file = fs::weakly_canonical(fs::absolute(data), error);
  const fs::path relative = error ? fs::path() : file.lexically_relative(there);
  return relative.empty() ? fs::absolute(data).string() : relative.string();
}

StudyOptions study_options(const StudyCommand& options) {
  StudyOptions study;
  std::vector<double> p;
  for (const std::string& word : split_words(options.p)) p.push_back(parse_number("p", word));
  const std::vector<std::string> words = split_words(options.optimizers);
  // Without --p the words that take one have the p of P1.
  const bool md = std::ranges::find(words, "md") != words.end();
  if (options.p.empty() && md) p = {1.1, 1.75, 3};
  study.optimizers = parse_optimizer_words(words, p);
  study.file = data_from(options.output, options.data);
  study.seeds = options.seeds;
  if (const auto steps = options.given.get<std::int64_t>("steps")) study.steps = *steps;
  study.lr = options.given.get<double>("lr");
  for (const char* name : {"loss", "init"})
    if (const FieldValue* value = options.given.find(name)) study.model.put(name, *value);
  study.validate();
  return study;
}

void check_study_options(const StudyCommand& options) {
  if (options.resume && options.overwrite)
    throw bad_input("both --resume and --overwrite are given: expected one of them");
}

// What is in the folder must be a study of ours, and the user must have said what becomes of it.
void check_folder(const StudyCommand& options, const StudyFiles& files) {
  for (const fs::path& path : {files.file, files.database, files.page}) refuse_link(path);
  if (is_there(files.file) && !read_text_file(files.file).starts_with(study_file_mark))
    throw bad_input(
        fmt::format("{} is there already and was not written by attmirror study: give another folder",
                    files.file.string()));
  if (!options.resume && !options.overwrite)
    for (const fs::path& path : {files.file, files.database, files.page})
      if (is_there(path))
        throw bad_input(fmt::format(
            "{} is there already: give --resume to go on with the study, --overwrite to replace it, or "
            "another folder",
            path.string()));
  check_page_output({.path = files.page, .title = {}, .overwrite = true});
}

// A study may be resumed with more seeds or optimizers; rows that it no longer has would be averaged with the
// others.
void check_same_study(const SweepPlan& plan, const fs::path& database) {
  std::vector<std::string> keys;
  for (const RunSettings& run : plan.runs) keys.push_back(run.key);
  std::ranges::sort(keys);
  const std::vector<std::string> finished = SweepDatabase(database).finished_keys();
  const auto foreign = std::ranges::count_if(
      finished, [&](const std::string& key) { return !std::ranges::binary_search(keys, key); });
  if (foreign > 0)
    throw bad_input(
        fmt::format("{} has {} runs that are not those of this command: repeat the options that it was made "
                    "with (more seeds or optimizers may join), or give --overwrite",
                    database.string(), foreign));
}

bool has_rows(const fs::path& database) {
  std::error_code ignored;
  return fs::is_regular_file(database, ignored) && fs::file_size(database, ignored) > 0;
}

Json group_json(const StudyGroup& group) {
  const StudyMean share = study_mean(group.shares);
  const auto number = [](const StudyMean& mean) { return finite_or_null(mean.value); };
  Json shares = Json::array();
  for (const double value : group.shares) shares.push_back(finite_or_null(value));
  return {{"optimizer", group.word},
          {"norm", group.norm},
          {"lr", finite_or_null(group.lr)},
          {"runs", group.runs},
          {"by_status", group.statuses},
          {"margin_ratio", number(share)},
          {"margin_ratio_error", share.count > 1 ? Json(share.error) : Json()},
          {"margin_ratios", std::move(shares)},
          {"directional_bregman", number(study_mean(group.divergences))},
          {"correlation", number(study_mean(group.correlations))},
          {"globally_optimal", group.optimal}};
}

int run_dry(const StudyCommand& options, const std::string& text, const SweepOutline& outline, int threads) {
  const SweepPlan& plan = outline.plan;
  DryRun dry;
  dry.runs = dry.missing = outline.runs;
  dry.steps = outline.steps;
  dry.workers = threads;
  dry.seconds = estimate_seconds(plan, outline.shapes, outline.other_work) / threads;
  if (options.common.json)
    print_json(to_json(plan, dry));
  else
    print(to_text(plan, dry, options.output / "sweep.toml") + "\n" + text);
  return done;
}

// The study as it is in the database, as a page and on the screen.
int report_study(const StudyCommand& options, const StudyFiles& files, const SweepDatabase& database,
                 const std::string& text, const SweepOutcome& outcome) {
  const Study study = read_study(database);
  const std::vector<fs::path> written =
      write_output_page(study_page(study, options.data.filename().string(), options.output, text),
                        {.path = files.page, .title = {}, .overwrite = true});
  const auto errors = study.statuses.find("error");
  if (options.common.json) {
    Json groups = Json::array();
    for (const StudyGroup& group : study.groups) groups.push_back(group_json(group));
    Json json = written_json(written);
    json.update({{"status", "done"},
                 {"conclusion", study_conclusion(study, Lettering::plain)},
                 {"data", options.data.string()},
                 {"sweep", files.file.string()},
                 {"database", files.database.string()},
                 {"report", files.page.string()},
                 {"runs", outcome.total},
                 {"computed", outcome.computed},
                 {"by_status", study.statuses},
                 {"seconds", outcome.seconds},
                 {"isa", to_string(active_isa())},
                 {"groups", std::move(groups)}});
    print_json(json);
  } else if (!options.common.quiet) {
    print(
        fmt::format("{}\n{}\nmargin      in the optimizer's own norm, as a share of the largest\n"
                    "divergence  from the max-margin solution; correlation with it\n"
                    "best        starts that select the best token of every sequence\n"
                    "runs        that ended as they should; the means are over these\n\n"
                    "runs     {} of {} computed in {:.1f} s\nsweep    {}\nresults  {}\nreport   {}\n",
                    study_conclusion(study, Lettering::plain) + "\n",
                    to_text(study_table(study, Lettering::plain)), outcome.computed, outcome.total,
                    outcome.seconds, files.file.string(), files.database.string(), written_text(written)));
  }
  if (errors == study.statuses.end()) return done;
  note(fmt::format("{} of the runs could not be made; the column reason of {} says why", errors->second,
                   files.database.string()));
  return negative;
}

int run_study(const StudyCommand& options) {
  check_study_options(options);
  const StudyFiles files(options.output);
  StudyOptions study = study_options(options);
  const Dataset data = load_dataset(options.data);
  const std::string text = study_file(data, study);
  // Every run is checked before the folder is made, which the paths of the file are relative to.
  study.file = fs::absolute(options.data).string();
  const SweepOutline outline = outline_sweep(study_file(data, study), "sweep.toml", ".");
  SweepOptions how;
  how.threads = options.common.threads > 0
                    ? static_cast<int>(options.common.threads)
                    : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (options.dry_run) return run_dry(options, text, outline, how.threads);
  check_folder(options, files);
  make_folders(options.output);
  const SweepPlan plan = parse_sweep(text, files.file.string(), options.output);
  const bool goes_on = options.resume && has_rows(files.database);
  if (goes_on) check_same_study(plan, files.database);

  const SignalGuard guard;  // from here on a signal is a request: what has been computed is written
  using enum SweepDatabase::Mode;
  SweepDatabase database(files.database,
                         options.overwrite ? overwrite
                         : goes_on         ? resume
                                           : create,
                         header_of(plan));
  write_file_atomically(files.file, text);
  Progress progress(stderr, {.label = "study",
                             .total = static_cast<std::int64_t>(plan.runs.size()),
                             .first = database.count(),
                             .unit = "runs",
                             .quiet = options.common.quiet});
  const SweepOutcome outcome =
      run_sweep(plan, database, how,
                {.on_pulse = [&](const SweepProgress& now) { progress.update(now.done); },
                 .stop = SignalGuard::stop()});
  progress.finish();
  if (outcome.interrupted) {
    if (options.common.json)
      print_json({{"status", "interrupted"},
                  {"database", files.database.string()},
                  {"runs", outcome.total},
                  {"computed", outcome.computed}});
    note(fmt::format("interrupted; the same command with --resume{} computes what is missing",
                     options.overwrite ? " instead of --overwrite" : ""));
    return signalled + SignalGuard::interrupted();
  }
  return report_study(options, files, database, text, outcome);
}

}  // namespace

Subcommand add_study(CLI::App& parent) {
  auto options = std::make_shared<StudyCommand>();
  options->common.threads = 0;  // as a sweep
  CLI::App& app = *parent.add_subcommand(
      "study",
      "train optimizers on your data from several starts, compare each run with its max-margin solution, make a page");
  add_path(app, "data", options->data, "FILE", "the dataset: .npz with X, Y, Z and v")->required();
  add_path(app, "-o,--output", options->output, "FOLDER", "for sweep.toml, results.db and report.html")
      ->required();
  add_text(app, "--optimizers", options->optimizers, "WORDS",
           "separated by commas: words of train --optimizer, and md:P, steepest:NORM, adam:BETA2");
  add_text(app, "--p", options->p, "NUMBERS", "those of md, separated by commas; by default 1.1,1.75,3");
  add_count(app, "--seeds", options->seeds, "random starts of each optimizer, the same for all");
  add_flag(app, "--resume", options->resume,
           "compute the runs that the study lacks; there may be more seeds or optimizers");
  add_flag(app, "--overwrite", options->overwrite, "replace the study in the folder");
  add_flag(app, "--dry-run", options->dry_run,
           "print the sweep file and an estimate of the time, and run nothing");
  const auto default_text = [](const FieldInfo& field) -> std::string {
    if (field.name == "steps") return fmt::format("{}", StudyOptions{}.steps);
    if (field.name == "lr") return "by the data's scale";
    if (field.name == "init") return "normal, by the data's scale";
    return "logistic";
  };
  add_field_options(
      app,
      {&training_field("steps"), &training_field("lr"), &training_field("loss"), &training_field("init")},
      options->given, "Training", default_text);
  add_common_options(app, options->common);
  app.footer(
      "Examples:\n"
      "  attmirror study data.npz -o study/\n"
      "  attmirror study data.npz --optimizers md,gd,sign,adam --p 1.1,1.5,2,3,5 --seeds 10 -o study/\n"
      "  attmirror study data.npz -o study/ --seeds 20 --resume");
  return {&app, &options->common, [options] { return run_study(*options); }};
}

}  // namespace attmirror::cli
