// attmirror reproduce: reruns the papers' experiments, sets published numbers beside ours, and writes the
// page.
#include "base/progress.hpp"
#include "base/signals.hpp"
#include "cli/console.hpp"
#include "cli/options.hpp"
#include "cli/screen.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/base/isa.hpp>
#include <attmirror/papers/experiment.hpp>
#include <attmirror/papers/reproduce.hpp>
#include <attmirror/report/page.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace attmirror::cli {

namespace {

struct ReproduceCommand {
  CommonOptions common;
  std::vector<std::string> ids;
  std::filesystem::path output;
  bool list = false, quick = false, summary = false, resume = false, overwrite = false;
};

std::string estimate_text(double seconds) { return fmt::format("{:.{}f} s", seconds, seconds < 1 ? 1 : 0); }

// A paragraph on the screen, which need not be wider than a page.
std::string paragraph(std::string_view text, std::string_view indent) {
  return wrapped(text, indent, std::min<std::size_t>(screen_width(), 98));
}

int run_list(const ReproduceCommand& options) {
  if (!options.ids.empty() || !options.output.empty() || options.quick || options.summary || options.resume ||
      options.overwrite)
    throw bad_input("--list is given together with something to run: expected one of them");
  if (options.common.json) {
    Json list = Json::array();
    for (const Experiment* experiment : experiments()) {
      const ExperimentInfo info = experiment->info();
      list.push_back({{"id", info.id},
                      {"paper", info.paper},
                      {"item", info.item},
                      {"title", info.title},
                      {"summary", info.summary},
                      {"seconds", info.seconds},
                      {"quick_seconds", info.quick_seconds},
                      {"out_of_scope", info.out_of_scope.empty() ? Json() : Json(info.out_of_scope)}});
    }
    print_json({{"status", "done"}, {"experiments", list}});
    return done;
  }
  std::string text;
  for (const Experiment* experiment : experiments()) {
    const ExperimentInfo info = experiment->info();
    const bool runs = info.out_of_scope.empty();
    text += fmt::format(
        "{:<18} {:<11} {}{}\n", info.id, info.paper, info.item,
        runs ? fmt::format("  ({}, quick {})", estimate_text(info.seconds), estimate_text(info.quick_seconds))
             : std::string());
    text += paragraph(runs ? info.summary : "Out of scope: " + info.out_of_scope, "    ");
  }
  print(text + "\nTimes are for two cores. attmirror reproduce all -o out/ runs them all.\n");
  return done;
}

std::vector<const Experiment*> choose(const std::vector<std::string>& ids) {
  if (ids.empty())
    throw bad_input("no experiment is given: expected all, or ids from attmirror reproduce --list");
  if (std::ranges::find(ids, "all") != ids.end()) {
    if (ids.size() > 1) throw bad_input("all is given together with other ids: expected one or the other");
    return experiments();
  }
  std::vector<const Experiment*> chosen;
  for (const std::string& id : ids) {
    const Experiment* experiment = &find_experiment(id);
    if (std::ranges::find(chosen, experiment) != chosen.end())
      throw bad_input(fmt::format("{} is given twice", id));
    chosen.push_back(experiment);
  }
  return chosen;
}

struct Totals {
  std::ptrdiff_t reproduced = 0, inconclusive = 0, artefact = 0, differs = 0, unpublished = 0, failed = 0;
  double seconds = 0;
};

Totals totals_of(const std::vector<ExperimentReport>& reports) {
  Totals totals;
  for (const ExperimentReport& report : reports) {
    totals.reproduced += report.count(Verdict::reproduced);
    totals.inconclusive += report.count(Verdict::inconclusive);
    totals.artefact += report.count(Verdict::artefact);
    totals.differs += report.count(Verdict::differs);
    totals.unpublished += report.count(Verdict::unpublished);
    totals.failed += report.outcome == ExperimentOutcome::failed ? 1 : 0;
    if (!report.from_folder) totals.seconds += report.seconds;
  }
  return totals;
}

Json json_of(const ExperimentReport& report) {
  Json findings = Json::array();
  for (const Finding& finding : report.result.findings) {
    Json one{{"quantity", finding.quantity}};
    if (finding.published_text) {
      one["published"] = *finding.published_text;
      one["ours"] = finding.ours_text;
    } else {
      one["published"] = finding.published ? finite_or_null(*finding.published) : Json();
      one["ours"] = finite_or_null(finding.ours);
      one["standard_error"] = finding.standard_error > 0 ? finite_or_null(finding.standard_error) : Json();
      one["imitated"] = finding.imitated ? finite_or_null(*finding.imitated) : Json();
    }
    one["source"] = finding.published || finding.published_text ? Json(to_string(finding.source)) : Json();
    one["tolerance"] = tolerance_text(finding);
    one["verdict"] = to_string(judge(finding));
    one["note"] = finding.note;
    findings.push_back(std::move(one));
  }
  return {{"id", report.info.id},           {"paper", report.info.paper},
          {"title", report.info.title},     {"outcome", to_string(report.outcome)},
          {"sample", report.result.sample}, {"error", report.error.empty() ? Json() : Json(report.error)},
          {"seconds", report.seconds},      {"from_folder", report.from_folder},
          {"findings", std::move(findings)}};
}

// Without the columns that the page has room for and a terminal has not.
Table screen_table(const ExperimentReport& report) {
  Table table;
  table.title = fmt::format("{}  {}: {}", report.info.id, report.info.paper, report.info.title);
  if (!report.result.sample.empty())
    table.title +=
        fmt::format(" ({}{})", report.is_quick_version() ? "smoke test: " : "", report.result.sample);
  table.columns = {
      {"quantity", Align::left}, {"published"}, {"source", Align::left}, {"ours"}, {"verdict", Align::left}};
  for (const Finding& finding : report.result.findings) {
    std::vector<std::string> cells = finding_cells(finding);
    table.rows.push_back({cells[0], cells[1], cells[2], cells[3], cells[5]});
  }
  return table;
}

std::string screen_text(const std::vector<ExperimentReport>& reports) {
  std::string text;
  for (const ExperimentReport& report : reports) {
    if (report.outcome == ExperimentOutcome::done) {
      text += to_text(screen_table(report)) + "\n";
      // Quick versions are too small for a conclusion.
      if (!report.result.conclusion.empty() && !report.is_quick_version()) {
        text += paragraph(report.result.conclusion, "") + "\n";
        for (const std::string& detail : report.result.details) text += paragraph(detail, "") + "\n";
      }
    }
    if (report.outcome == ExperimentOutcome::failed)
      text += fmt::format("{}  failed: {}\n\n", report.info.id, report.error);
    if (report.outcome == ExperimentOutcome::out_of_scope)
      text +=
          fmt::format("{}  out of scope:\n{}\n", report.info.id, paragraph(report.info.out_of_scope, "    "));
  }
  return text;
}

// The beginning of the sample, as far as a column has room for it: "12 data sets" of "12 data sets with 10 starts each",
// "records" of "records of 17 trainings on NVIDIA H200".
std::string short_sample(std::string_view sample) {
  std::size_t end = sample.size();
  for (const std::string_view rest : {" with ", " in ", " at ", " for ", " of ", " accepted", " (", ","})
    end = std::min(end, sample.find(rest));
  return sample.empty() ? "-" : std::string(sample.substr(0, end));
}

// One line per experiment, for a terminal of 80 columns.
Table summary_table(const std::vector<ExperimentReport>& reports) {
  const bool quick = std::ranges::any_of(reports, &ExperimentReport::is_quick_version);
  Table table;
  table.columns = {{"experiment", Align::left},
                   {"reproduced"},
                   {"inconclusive"},
                   {"artefact"},
                   {"differ"},
                   {"new"},
                   // Of a quick version nobody needs the time, but everybody how much it sampled.
                   {quick ? "sample" : "seconds"}};
  for (const ExperimentReport& report : reports) {
    const auto count = [&](Verdict verdict) { return fmt::format("{}", report.count(verdict)); };
    if (report.outcome == ExperimentOutcome::done)
      table.rows.push_back({report.info.id, count(Verdict::reproduced), count(Verdict::inconclusive),
                            count(Verdict::artefact), count(Verdict::differs), count(Verdict::unpublished),
                            quick                ? short_sample(report.result.sample)
                            : report.from_folder ? "earlier"
                                                 : fmt::format("{:.2f}", report.seconds)});
    else
      table.rows.push_back({report.info.id, "", "", "", "", "", std::string(to_string(report.outcome))});
  }
  return table;
}

// What a reader of a summary must not miss.
std::string differing_text(const std::vector<ExperimentReport>& reports) {
  std::string text;
  for (const ExperimentReport& report : reports)
    for (const Finding& finding : report.result.findings)
      if (judge(finding) == Verdict::differs) {
        const std::vector<std::string> cells = finding_cells(finding);
        text += paragraph(
            fmt::format("{}: {}: published {}, ours {}", report.info.id, cells[0], cells[1], cells[3]), "  ");
      }
  return text.empty() ? text : "These differ (the page says more):\n" + text + "\n";
}

int run_experiments(const ReproduceCommand& options) {
  if (options.resume && options.overwrite)
    throw bad_input("both --resume and --overwrite are given: expected one of them");
  if ((options.resume || options.overwrite) && options.output.empty())
    throw bad_input(fmt::format("{} is given without -o FOLDER, which it applies to",
                                options.resume ? "--resume" : "--overwrite"));
  const std::vector<const Experiment*> chosen = choose(options.ids);
  ReproduceOptions how;
  how.extent = options.quick ? Extent::quick : Extent::full;
  how.threads = static_cast<int>(options.common.threads);
  how.folder = options.output;
  how.again = options.overwrite;

  const SignalGuard guard;
  constexpr std::int64_t units = 10'000;
  Progress progress(stderr,
                    {.label = "reproduce", .total = units, .unit = "", .quiet = options.common.quiet});
  const std::vector<ExperimentReport> reports =
      reproduce(chosen, how,
                {.on_progress =
                     [&](const ReproduceProgress& now) {
                       progress.relabel(fmt::format(
                           "reproduce  {}/{} {}", std::min(now.finished + 1, now.total), now.total, now.id));
                       progress.update(std::llround(now.share * units));
                     },
                 .stop = SignalGuard::stop()});
  progress.finish();
  const bool interrupted = !reports.empty() && reports.back().outcome == ExperimentOutcome::interrupted;
  const std::filesystem::path page =
      options.output.empty() ? std::filesystem::path() : options.output / "report.html";
  const Totals totals = totals_of(reports);
  const bool negative_answer = totals.failed > 0 || totals.differs > 0;
  if (options.common.json) {
    Json list = Json::array();
    for (const ExperimentReport& report : reports) list.push_back(json_of(report));
    print_json({{"status", interrupted         ? "interrupted"
                           : totals.failed > 0 ? "failed"
                           : negative_answer   ? "differs"
                                               : "done"},
                {"extent", to_string(how.extent)},
                {"reproduced", totals.reproduced},
                {"inconclusive", totals.inconclusive},
                {"artefact", totals.artefact},
                {"differs", totals.differs},
                {"new", totals.unpublished},
                {"failed", totals.failed},
                {"seconds", totals.seconds},
                {"report", page.empty() ? Json() : Json(page.string())},
                {"isa", to_string(active_isa())},
                {"version", version()},
                {"experiments", std::move(list)}});
  } else if (!options.common.quiet) {
    std::string text = options.summary ? to_text(summary_table(reports)) + "\n" + differing_text(reports)
                                       : screen_text(reports) + to_text(overview_table(reports)) + "\n";
    text += paragraph(fmt::format("{} {:.1f} s.", verdict_summary(reports), totals.seconds), "");
    const auto has_quick_version = [](const Experiment* experiment) { return !experiment->info().recorded; };
    if (options.quick && std::ranges::any_of(chosen, has_quick_version))
      text += "Quick versions are smoke tests: few data sets, small sizes.\n";
    if (!page.empty()) text += fmt::format("report   {}\n", page.string());
    print(text);
  }
  for (const ExperimentReport& report : reports)
    if (report.outcome == ExperimentOutcome::failed)
      note(fmt::format("{} failed: {}", report.info.id, report.error));
  if (interrupted) {
    note(options.output.empty() ? std::string("interrupted")
                                : std::string("interrupted; the same command continues where it stopped"));
    return signalled + SignalGuard::interrupted();
  }
  return negative_answer ? negative : done;
}

}  // namespace

Subcommand add_reproduce(CLI::App& parent) {
  auto options = std::make_shared<ReproduceCommand>();
  options->common.threads = 0;  // experiments are for all cores
  CLI::App& app =
      *parent.add_subcommand("reproduce", "rerun the papers' experiments and compare the numbers");
  app.add_option("ids", options->ids, "ids of experiments, or all")->type_name("EXPERIMENT|all");
  add_path(
      app, "-o,--output", options->output, "FOLDER",
      "folder for the page report.html, its figures and tables, and the results; results that are there already are reused");
  add_flag(app, "--list", options->list, "list the experiments and run none");
  add_flag(app, "--quick", options->quick,
           "run reduced versions, with fewer seeds and sizes, which take seconds");
  add_flag(app, "--summary", options->summary, "print one line per experiment instead of each number");
  add_flag(app, "--resume", options->resume, "reuse the results in the folder, which is the default");
  add_flag(app, "--overwrite", options->overwrite, "rerun experiments whose results are in the folder");
  add_common_options(app, options->common);
  app.footer(
      "Examples:\n"
      "  attmirror reproduce --list\n"
      "  attmirror reproduce all --quick -o out/\n"
      "  attmirror reproduce p1-setting-a p3-ranks -o out/");
  return {&app, &options->common,
          [options] { return options->list ? run_list(*options) : run_experiments(*options); }};
}

}  // namespace attmirror::cli
