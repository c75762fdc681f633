// attmirror sweep: runs a sweep file into a database, goes on with one, and looks at what is there.
#include "base/atomic_file.hpp"
#include "base/progress.hpp"
#include "base/signals.hpp"
#include "base/table_fold.hpp"
#include "base/words.hpp"
#include "cli/console.hpp"
#include "cli/masked_data.hpp"
#include "cli/options.hpp"
#include "cli/screen.hpp"
#include "cli/sweep_ranks.hpp"
#include "cli/sweep_report.hpp"
#include "sweep/outline.hpp"
#include "sweep/pivot.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/table.hpp>
#include <attmirror/sweep/database.hpp>
#include <attmirror/sweep/export.hpp>
#include <attmirror/sweep/plan.hpp>
#include <attmirror/sweep/sweep.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

struct SweepCommand {
  CommonOptions common;
  std::filesystem::path file, output;
  bool resume = false, overwrite = false, dry_run = false, summary = false, full = false;
  std::string engine = "auto", export_as, by, metrics;
};

// By its first bytes, not by its name.
bool is_database(const std::filesystem::path& path) {
  return beginning_of_file(path, 16).starts_with("SQLite format 3");
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t from = 0; from <= text.size() && !text.empty();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    words.push_back(text.substr(from, comma - from));
    from = comma + 1;
  }
  return words;
}

SweepOptions::Engine parse_engine(const std::string& name) {
  if (name == "auto") return SweepOptions::Engine::automatic;
  if (name == "single") return SweepOptions::Engine::single;
  throw bad_input(
      fmt::format("engine is \"{}\": expected {}", name, expected_choice(name, {"auto", "single"})));
}

void check_options(const SweepCommand& options) {
  if (options.resume && options.overwrite)
    throw bad_input("both --resume and --overwrite are given: expected one of them");
  if (!options.export_as.empty() && options.export_as != "csv" && options.export_as != "npz")
    throw bad_input(fmt::format("export is \"{}\": expected {}", options.export_as,
                                expected_choice(options.export_as, {"csv", "npz"})));
  if (!options.summary && (options.full || !options.by.empty() || !options.metrics.empty()))
    throw bad_input("--by, --metrics or --full is given without --summary, which it is for");
}

// What is asked of a database that is there: a summary, an export, or both.
struct Looks {
  std::optional<Table> summary;  // for programs
  std::string summary_text;      // for people
  std::filesystem::path exported;
};

std::string to_text(const Pivot& pivot, const SummaryGroups& groups) {
  if (groups.groups.empty()) return "no runs\n";
  std::string text;
  for (const std::string& fact : pivot.facts) text += fact + "\n";
  for (const Table& table : pivot.tables)
    text.append(text.empty() ? "" : "\n").append(to_text(table, {screen_width(), pivot.kept}));
  return text + "\nmean ± standard error; --full adds deviations and quantiles\n";
}

Looks look(const SweepDatabase& database, const SweepCommand& options,
           const std::filesystem::path& export_path) {
  Looks looks;
  if (options.summary) {
    SummaryOptions wanted;
    wanted.group_by = split(options.by);
    wanted.metrics = split(options.metrics);
    if (options.common.json) wanted.digits = SummaryOptions::Digits::all;
    const SummaryGroups groups = summary_groups(database, wanted);
    looks.summary = summary_table(groups, wanted);
    looks.summary_text = options.full ? to_text(*looks.summary, {screen_width(), groups.by.size() + 1})
                                      : to_text(make_pivot(groups), groups);
  }
  if (options.export_as == "csv") export_csv(database, export_path);
  if (options.export_as == "npz") export_npz(database, export_path);
  if (!options.export_as.empty()) looks.exported = export_path;
  return looks;
}

void add(const Looks& looks, Json& json) {
  if (looks.summary) json["summary"] = to_json(*looks.summary);
  if (!looks.exported.empty()) json["exported"] = looks.exported.string();
}

std::string text_of(const Looks& looks) {
  std::string text;
  if (looks.summary) text += "\n" + looks.summary_text;
  if (!looks.exported.empty()) text += fmt::format("exported   {}\n", looks.exported.string());
  return text;
}

std::filesystem::path beside(std::filesystem::path database, const std::string& extension) {
  return database.replace_extension(extension);
}

// attmirror sweep results.db --summary
int run_look(const SweepCommand& options) {
  if (options.resume || options.overwrite || options.dry_run)
    throw bad_input(fmt::format("{} is a database: --resume, --overwrite and --dry-run go with a sweep file",
                                options.file.string()));
  if (!options.summary && options.export_as.empty())
    throw bad_input(
        fmt::format("{} is a database: give --summary or --export csv|npz, or a sweep file to run",
                    options.file.string()));
  if (!options.output.empty() && options.export_as.empty())
    throw bad_input("-o is given without --export: a summary is printed");
  const SweepDatabase database(options.file);
  const Looks looks = look(database, options,
                           options.output.empty() ? beside(options.file, options.export_as) : options.output);
  if (options.common.json) {
    Json json = {{"status", "done"}, {"database", options.file.string()}, {"rows", database.count()}};
    add(looks, json);
    print_json(json);
  } else {
    const std::string& name = database.header().name;
    const std::string head = fmt::format("{}: {} rows{}\n", options.file.string(), database.count(),
                                         name.empty() ? "" : " of " + one_line(name));
    if (!options.common.quiet || options.summary) print((options.common.quiet ? "" : head) + text_of(looks));
  }
  return done;
}

// Whether something is there that must not be replaced unasked. An empty file is what a sweep leaves that was killed
// at once.
bool has_content(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) &&
         !(std::filesystem::is_regular_file(path, ignored) && std::filesystem::file_size(path, ignored) == 0);
}

int worker_count(const SweepCommand& options, const Ranks& ranks) {
  if (options.common.threads > 0) return static_cast<int>(options.common.threads);
  const int each = ranks.threads_each();
  return each > 0 ? each : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int run_dry(const SweepCommand& options, int threads, int ranks) {
  std::optional<std::vector<std::string>> finished;
  if (options.resume && has_content(options.output)) finished = SweepDatabase(options.output).finished_keys();
  const SweepOutline outline = load_outline(options.file, finished ? &*finished : nullptr);
  DryRun dry;
  dry.runs = outline.runs;
  dry.missing = outline.missing;
  dry.steps = outline.steps;
  dry.workers = threads * ranks;
  dry.seconds = estimate_seconds(outline.plan, outline.shapes, outline.other_work) / dry.workers;
  if (options.common.json)
    print_json(to_json(outline.plan, dry));
  else
    print(to_text(outline.plan, dry, options.file));
  return done;
}

SweepDatabase open_database(const SweepCommand& options, const SweepPlan& plan) {
  using enum SweepDatabase::Mode;
  const bool there = has_content(options.output);
  if (there && !options.resume && !options.overwrite)
    throw bad_input(fmt::format(
        "{} already exists: give --resume to continue it, --overwrite to replace it, or another file",
        options.output.string()));
  // A sweep that was killed before its first batch, or never started, is resumed from nothing.
  return SweepDatabase(options.output,
                       options.overwrite         ? overwrite
                       : options.resume && there ? resume
                                                 : create,
                       header_of(plan));
}

// What a file holds that cannot be read is said by the rows of its runs.
void warn_of_padded_files(const SweepPlan& plan) {
  const auto column = std::ranges::find(plan.columns, "file", &RowColumn::name);
  if (column == plan.columns.end()) return;
  std::set<std::string> files;
  for (const RunSettings& run : plan.runs)
    if (const auto* file =
            std::get_if<std::string>(&run.cells[static_cast<std::size_t>(column - plan.columns.begin())]))
      files.insert(*file);
  for (const std::string& file : files) {
    try {
      warn_of_padding(plan.folder / file);
    } catch (const Error&) {
      continue;
    }
  }
}

int run_file(const SweepCommand& options, Ranks& ranks) {
  SweepOptions how;
  how.engine = parse_engine(options.engine);
  how.threads = worker_count(options, ranks);
  how.validate();
  if (options.dry_run) return run_dry(options, how.threads, ranks.size());
  const SweepPlan plan = load_sweep(options.file);
  if (options.output.empty())
    throw bad_input("no database is given: name the file for the results with -o FILE");
  warn_of_padded_files(plan);

  const SignalGuard guard;  // from here on a signal is a request: what has been computed is written
  SweepDatabase database = open_database(options, plan);
  const std::unique_ptr<SweepTeam> team = ranks.start(plan, options.file.string());
  Progress progress(stderr, {.label = "sweep",
                             .total = static_cast<std::int64_t>(plan.runs.size()),
                             .first = database.count(),
                             .unit = "runs",
                             .quiet = options.common.quiet});
  SweepAnswer answer;
  answer.outcome = run_sweep(
      plan, database, how,
      {.on_pulse = [&](const SweepProgress& now) { progress.update(now.done); }, .stop = SignalGuard::stop()},
      team.get());
  progress.finish();
  answer.database = options.output;
  answer.threads = how.threads;
  answer.ranks = ranks.size();
  answer.rows = database.count();
  const Looks looks = look(database, options, beside(options.output, options.export_as));
  if (options.common.json) {
    Json json = to_json(answer);
    add(looks, json);
    print_json(json);
  } else if (!options.common.quiet || options.summary) {
    print(to_text(plan, answer) + text_of(looks));
  }
  if (answer.outcome.interrupted) {
    note(fmt::format("interrupted; the same command with --resume{} computes the missing runs",
                     options.overwrite ? " instead of --overwrite" : ""));
    return signalled + SignalGuard::interrupted();
  }
  if (answer.rows > answer.outcome.total && !options.common.quiet)
    note(fmt::format(
        "{} of the rows in {} belong to runs that {} no longer has; summaries and exports still include them",
        answer.rows - answer.outcome.total, options.output.string(), options.file.string()));
  const auto errors = answer.outcome.by_status.find("error");
  if (errors == answer.outcome.by_status.end()) return done;
  note(fmt::format("{} of the runs could not be started; the column \"reason\" says why", errors->second));
  return negative;
}

int run_sweep_command(const SweepCommand& options) {
  Ranks ranks;
  if (ranks.rank() > 0) {
    const SignalGuard guard;  // rank 0 decides when to stop
    ranks.serve({.threads = worker_count(options, ranks), .engine = parse_engine(options.engine)});
    return done;
  }
  check_options(options);
  return is_database(options.file) ? run_look(options) : run_file(options, ranks);
}

}  // namespace

Subcommand add_sweep(CLI::App& parent) {
  auto options = std::make_shared<SweepCommand>();
  options->common.threads = 0;  // sweeps are for all cores
  CLI::App& app =
      *parent.add_subcommand("sweep", "run thousands of trainings into a database, or look at one");
  add_path(app, "file", options->file, "FILE",
           "a sweep file (.toml, see docs/sweep.md), or a database to look at")
      ->required();
  add_path(app, "-o,--output", options->output, "FILE",
           "the database to write; for --export of a database, the exported file");
  add_flag(app, "--resume", options->resume, "compute the runs that the database lacks");
  add_flag(app, "--overwrite", options->overwrite, "replace the database");
  add_flag(app, "--dry-run", options->dry_run,
           "print the number of runs and the estimated time, and run nothing");
  add_text(
      app, "--engine", options->engine, "auto|single",
      "single computes one run at a time in each thread, to check the vectorized engine; the results are the same to the bit");
  const char* group = "Looking at results";
  add_flag(app, "--summary", options->summary,
           "print the mean of each metric with its standard error, by group")
      ->group(group);
  add_text(
      app, "--by", options->by, "COLUMNS",
      "what to group by, as in p,lr: the values of the last one go across; by default every setting that "
      "differs between rows, except seeds")
      ->group(group);
  add_text(app, "--metrics", options->metrics, "COLUMNS",
           "the metrics to summarize, as in final_loss,own.bregman; by default all of them")
      ->group(group);
  add_flag(app, "--full", options->full,
           "with --summary: a line per group and metric, with counts, deviations and quantiles")
      ->group(group);
  add_text(app, "--export", options->export_as, "csv|npz",
           "write the rows to a .csv or .npz file beside the database")
      ->group(group);
  add_common_options(app, options->common);
  app.footer(
      "Examples:\n"
      "  attmirror sweep sweep.toml --dry-run\n"
      "  attmirror sweep sweep.toml -o results.db\n"
      "  mpirun -n 4 attmirror sweep sweep.toml --resume -o results.db\n"
      "  attmirror sweep results.db --summary --by p --metrics own.bregman,global");
  return {&app, &options->common, [options] { return run_sweep_command(*options); }};
}

}  // namespace attmirror::cli
