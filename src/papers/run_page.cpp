#include "papers/run_sections.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/descent/run_folder.hpp>
#include <attmirror/next_token/run_folders.hpp>
#include <attmirror/papers/reproduce.hpp>
#include <attmirror/papers/run_page.hpp>
#include <attmirror/papers/training_folder.hpp>
#include <attmirror/sweep/database.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <system_error>

#include <fmt/format.h>

namespace attmirror {

namespace {

namespace fs = std::filesystem;

// The same folder under two names is still one.
fs::path identity(const fs::path& path) {
  std::error_code error;
  fs::path known = fs::weakly_canonical(path, error);
  if (error) known = path;
  return known.filename().empty() ? known.parent_path() : known;
}

std::string counted(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

std::string_view to_string(SourceKind kind) {
  switch (kind) {
    case SourceKind::run:
      return "run";
    case SourceKind::sweep:
      return "sweep";
    case SourceKind::training:
      return "training";
    case SourceKind::reproduction:
      break;
  }
  return "reproduction";
}

SourceKind source_kind(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    throw bad_input(fmt::format("cannot read {}: No such file or directory", path.string()));
  if (!fs::is_directory(status)) {
    const SweepDatabase database(path);  // says what is wrong with it
    return SourceKind::sweep;
  }
  if (is_training_folder(path)) return SourceKind::training;
  if (is_run_folder(path) || is_next_token_folder(path)) return SourceKind::run;
  if (fs::is_directory(path / "results", error)) return SourceKind::reproduction;
  throw bad_input(fmt::format(
      "{} is neither the folder of a run (it has no config.json of ours) nor one of attmirror reproduce "
      "(it has no folder results)",
      path.string()));
}

Page page_of(const std::vector<fs::path>& sources) {
  if (sources.empty()) throw bad_input("no source is given: expected run folders or databases of sweeps");
  std::vector<fs::path> runs, trainings, sweeps, reproductions;
  std::set<fs::path> seen;
  for (const fs::path& source : sources) {
    const SourceKind kind = source_kind(source);
    if (!seen.insert(identity(source)).second)
      throw bad_input(fmt::format("{} is given twice", source.string()));
    if (is_next_token_folder(source)) {
      const std::vector<fs::path> stages = next_token_stages(source);
      if (stages.empty()) throw bad_input(fmt::format("{} has no stage yet", source.string()));
      runs.insert(runs.end(), stages.begin(), stages.end());
      continue;
    }
    (kind == SourceKind::run        ? runs
     : kind == SourceKind::training ? trainings
     : kind == SourceKind::sweep    ? sweeps
                                    : reproductions)
        .push_back(source);
  }
  if (reproductions.size() > 1)
    throw bad_input(fmt::format("{} and {} are both folders of attmirror reproduce: expected one at a time",
                                reproductions[0].string(), reproductions[1].string()));
  Page reproduction;
  if (!reproductions.empty()) reproduction = make_page(load_reports(reproductions.front()));
  if (!reproductions.empty() && sources.size() == 1) return reproduction;

  Page page;
  const std::string name = identity(sources.front()).filename().string();
  page.title = sources.size() > 1   ? fmt::format("Report of {} results", sources.size())
               : !runs.empty()      ? fmt::format("Run {}", name)
               : !trainings.empty() ? fmt::format("Training {}", name)
                                    : fmt::format("Sweep {}", name);
  std::vector<std::string> parts;
  if (!runs.empty()) parts.push_back(counted(runs.size(), "run"));
  if (!trainings.empty()) parts.push_back(counted(trainings.size(), "training"));
  if (!sweeps.empty()) parts.push_back(counted(sweeps.size(), "sweep"));
  if (!reproductions.empty()) parts.push_back("the papers, reproduced");
  for (const std::string& part : parts) page.subtitle += (page.subtitle.empty() ? "" : ", ") + part;
  page.footer = version_line();
  if (!runs.empty()) page.sections = run_sections(runs);
  if (!trainings.empty()) std::ranges::move(training_sections(trainings), std::back_inserter(page.sections));
  for (std::size_t i = 0; i < sweeps.size(); ++i)
    page.sections.push_back(sweep_section(sweeps[i], fmt::format("sweep-{}", i + 1)));
  std::ranges::move(reproduction.sections, std::back_inserter(page.sections));
  return page;
}

Axis axis_for(std::string label, const std::vector<Series>& series,
              const std::vector<double> Series::*values) {
  Axis axis;
  axis.label = std::move(label);
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const Series& one : series)
    for (const double value : one.*values) {
      if (!std::isfinite(value)) continue;
      if (value < 0) return axis;
      if (value > 0) least = std::min(least, value);
      most = std::max(most, value);
    }
  if (most >= 100 * least) axis.scale = Axis::Scale::log;
  return axis;
}

std::vector<std::size_t> thinned(std::size_t count, std::size_t most) {
  std::vector<std::size_t> kept;
  if (count <= most) {
    for (std::size_t i = 0; i < count; ++i) kept.push_back(i);
    return kept;
  }
  for (std::size_t i = 0; i < most; ++i) kept.push_back(i * (count - 1) / (most - 1));
  return kept;
}

std::string id_of(std::string_view text) {
  std::string id;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter)
      id += c;
    else if (!id.empty() && id.back() != '-')
      id += '-';
  }
  while (!id.empty() && id.back() == '-') id.pop_back();
  return id;
}

}  // namespace attmirror
