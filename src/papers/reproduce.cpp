// An experiment at a time, each result written as soon as it is there.
#include "base/atomic_file.hpp"
#include "base/result_folder.hpp"
#include "base/stopwatch.hpp"
#include "base/words.hpp"
#include "report/page_html.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/base/isa.hpp>
#include <attmirror/papers/reproduce.hpp>

#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

namespace fs = std::filesystem;

fs::path result_path(const fs::path& folder, const std::string& id) {
  return folder / "results" / (id + ".json");
}

double typical_seconds(const Experiment& experiment, Extent extent) {
  const ExperimentInfo info = experiment.info();
  if (!info.out_of_scope.empty()) return 0;
  return std::max(1e-3, extent == Extent::quick ? info.quick_seconds : info.seconds);
}

// The result that the folder has, if it is what would be computed now. A file that cannot be read is no result: the
// experiment is done again and the file replaced.
std::optional<ExperimentReport> kept_result(const fs::path& folder, const ExperimentInfo& info,
                                            Extent extent) {
  std::error_code ignored;
  const fs::path path = result_path(folder, info.id);
  if (!fs::is_regular_file(path, ignored)) return {};
  try {
    ExperimentReport report = parse_report(read_text_file(path));
    if (report.info.id != info.id || report.extent != extent || report.outcome != ExperimentOutcome::done ||
        report.version != version() || report.commit != commit() || report.isa != to_string(active_isa()))
      return {};
    report.from_folder = true;
    return report;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::environment) throw;
    return {};
  }
}

// A page that shows less than what was measured would be worse than none.
void check(const ExperimentResult& result) {
  if (result.findings.empty()) throw bad_input("it has no findings");
  for (const Figure& figure : result.figures) figure.validate();
  for (const NamedTable& named : result.tables) named.table.validate();
}

ExperimentReport run_one(const Experiment& experiment, const ExperimentContext& context) {
  ExperimentReport report;
  report.info = experiment.info();
  report.extent = context.extent;
  report.version = version();
  report.commit = commit();
  report.isa = to_string(active_isa());
  if (!report.info.out_of_scope.empty()) {
    report.outcome = ExperimentOutcome::out_of_scope;
    return report;
  }
  const Clock::time_point start = Clock::now();
  const auto fail = [&](const std::string& why) {
    report.outcome = ExperimentOutcome::failed;
    report.error = one_line(why);
    report.result = {};
  };
  try {
    context.progress(0);
    report.result = experiment.run(context);
    check(report.result);
  } catch (const Interrupted&) {
    report.outcome = ExperimentOutcome::interrupted;
    report.result = {};
  } catch (const std::bad_alloc&) {
    fail("there is not enough memory for it");
  } catch (const std::exception& error) {
    fail(error.what());
  }
  report.seconds = seconds_since(start);
  return report;
}

// In the order of the registry; experiments that it does not have come last, by their ids.
void sort_as_registered(std::vector<ExperimentReport>& reports) {
  std::vector<std::string> order;
  for (const Experiment* experiment : experiments()) order.push_back(experiment->info().id);
  std::ranges::sort(reports, {}, [&](const ExperimentReport& report) {
    return std::pair(std::ranges::find(order, report.info.id) - order.begin(), report.info.id);
  });
}

constexpr std::array<std::string_view, 5> reproduction_files{"results/*.json", "figures/*.svg",
                                                             "tables/*.csv", "tables/*.tex", "report.html"};

// Whether nothing is there that somebody may miss: results/ is what we make first, and a kill may leave the beginning
// of a result in it.
bool is_empty_but_for_results(const fs::path& folder) {
  std::error_code ignored;
  const auto is_beginning = [](const fs::path& path) { return is_unfinished(path.filename().string()); };
  return std::ranges::all_of(entries_of(folder), [&](const fs::path& path) {
    return path.filename() == "results" && fs::is_directory(path, ignored) &&
           std::ranges::all_of(entries_of(path), is_beginning);
  });
}

// The folder of a reproduction while this process writes it.
class ReproductionFolder {
 public:
  // Throws Error: bad input where it holds anything that attmirror reproduce did not write in the place of what it
  // would write; environment where it cannot be written or another process writes to it.
  explicit ReproductionFolder(const fs::path& path)
      : files_(checked(path), ResultKind::reproduction, reproduction_files) {
    // One that was interrupted before its first result has a page alone.
    if (folder_kind(path) == ResultKind::none && page_title(path / "report.html") != reproduction_title &&
        !is_empty_but_for_results(path))
      throw bad_input(
          fmt::format("{} holds other things than results of experiments: give a new folder", path.string()));
    check_page();
    make_folders(path / "results");
    check_writable(path / "results" / "any.json");
    files_.remove_leftovers();
  }
  ~ReproductionFolder() {
    std::error_code ignored;
    fs::remove(files_ / "results", ignored);  // if it is empty
  }
  ReproductionFolder(const ReproductionFolder&) = delete;
  ReproductionFolder& operator=(const ReproductionFolder&) = delete;

  void save(const ExperimentReport& report) const {
    write_file_atomically(result_path(files_.path(), report.info.id), to_json(report));
  }

  void save_page(const std::vector<ExperimentReport>& reports) const {
    check_page();
    write_page(make_page(with_earlier(reports)), files_ / "report.html");
  }

 private:
  static const fs::path& checked(const fs::path& path) {
    std::error_code error;
    if (fs::exists(path, error) && !fs::is_directory(path, error))
      throw bad_input(fmt::format("{} is a file: expected a folder", path.string()));
    return path;
  }

  // A page of somebody else, or one that attmirror report made of other things, is not ours to replace.
  void check_page() const {
    const fs::path page = files_ / "report.html";
    if (is_there(page) && page_title(page) != reproduction_title)
      throw bad_input(
          fmt::format("{} is no page of attmirror reproduce: it is left as it is", page.string()));
  }

  // The reports of this call, and those that the folder has of other experiments, for one page.
  std::vector<ExperimentReport> with_earlier(const std::vector<ExperimentReport>& reports) const {
    std::vector<ExperimentReport> all = reports;
    try {
      for (ExperimentReport& report : load_reports(files_.path()))
        if (std::ranges::none_of(reports,
                                 [&](const ExperimentReport& now) { return now.info.id == report.info.id; }))
          all.push_back(std::move(report));
    } catch (const Error& error) {
      // No results yet, or one of them is damaged: then the page shows what was done now.
      if (error.kind() == ErrorKind::environment) throw;
    }
    sort_as_registered(all);
    return all;
  }

  ResultFolder files_;
};

}  // namespace

std::string_view to_string(ExperimentOutcome outcome) {
  switch (outcome) {
    case ExperimentOutcome::done:
      return "done";
    case ExperimentOutcome::failed:
      return "failed";
    case ExperimentOutcome::interrupted:
      return "interrupted";
    case ExperimentOutcome::out_of_scope:
      return "out of scope";
  }
  return "?";
}

std::ptrdiff_t ExperimentReport::count(Verdict verdict) const {
  return std::ranges::count(result.findings, verdict, judge);
}

std::vector<ExperimentReport> reproduce(const std::vector<const Experiment*>& chosen,
                                        const ReproduceOptions& options,
                                        const ReproduceCallbacks& callbacks) {
  std::optional<ReproductionFolder> folder;
  if (!options.folder.empty()) folder.emplace(options.folder);
  std::vector<std::optional<ExperimentReport>> kept(chosen.size());
  double total = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (!options.folder.empty() && !options.again)
      kept[i] = kept_result(options.folder, chosen[i]->info(), options.extent);
    if (!kept[i]) total += typical_seconds(*chosen[i], options.extent);
  }
  std::vector<ExperimentReport> reports;
  double done = 0;
  bool stopped = false;
  for (std::size_t i = 0; i < chosen.size() && !stopped; ++i) {
    const double work = typical_seconds(*chosen[i], options.extent);
    ExperimentContext context{
        .extent = options.extent, .threads = options.threads, .on_progress = {}, .stop = callbacks.stop};
    if (callbacks.on_progress)
      context.on_progress = [&](double share) {
        callbacks.on_progress({.id = chosen[i]->info().id,
                               .finished = static_cast<std::ptrdiff_t>(i),
                               .total = static_cast<std::ptrdiff_t>(chosen.size()),
                               .share = total > 0 ? (done + work * share) / total : 1});
      };
    reports.push_back(kept[i] ? std::move(*kept[i]) : run_one(*chosen[i], context));
    const ExperimentReport& report = reports.back();
    if (!report.from_folder) {
      done += work;
      if (report.outcome == ExperimentOutcome::done && folder) folder->save(report);
    }
    stopped = report.outcome == ExperimentOutcome::interrupted;
    if (callbacks.on_report) callbacks.on_report(report);
  }
  if (folder) folder->save_page(reports);
  return reports;
}

std::vector<ExperimentReport> load_reports(const fs::path& folder) {
  const fs::path results = folder / "results";
  std::error_code ignored;
  if (!fs::is_directory(results, ignored))
    throw bad_input(fmt::format("cannot read {}: there is no such folder", results.string()));
  std::vector<ExperimentReport> reports;
  for (const fs::path& file : entries_of(results)) {
    if (file.extension() != ".json") continue;
    try {
      reports.push_back(parse_report(read_text_file(file)));
    } catch (const Error& wrong) {
      throw wrong.in(file.string());
    }
    reports.back().from_folder = true;
  }
  if (reports.empty()) throw bad_input(fmt::format("{} has no results of experiments", results.string()));
  sort_as_registered(reports);
  return reports;
}

}  // namespace attmirror
