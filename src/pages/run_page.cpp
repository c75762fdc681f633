#include "next_token/run_folders.hpp"
#include "pages/run_sections.hpp"
#include "pages/sources.hpp"
#include <attmirror/base/build_info.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/base/fingerprint.hpp>
#include <attmirror/pages/run_page.hpp>
#include <attmirror/papers/reproduce.hpp>
#include <attmirror/sweep/database.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
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

std::string_view source_kind(const fs::path& path) {
  const ResultKind kind = result_kind(path);
  if (kind == ResultKind::sweep) const SweepDatabase database(path);  // says what is wrong with it
  if (kind != ResultKind::none) return to_string(kind);
  if (fs::is_directory(path))
    throw bad_input(fmt::format(
        "{} is not a folder of results: it has neither the config.json of a run nor the results of attmirror reproduce",
        path.string()));
  throw bad_input(fmt::format(
      "{} is neither the database of a sweep nor a max-margin solution written by attmirror margin",
      path.string()));
}

Page page_of(const std::vector<fs::path>& sources) {
  if (sources.empty())
    throw bad_input(
        "no source is given: expected folders of results, databases of sweeps or max-margin solutions");
  std::map<ResultKind, std::vector<fs::path>> by_kind;
  std::set<fs::path> seen;
  for (const fs::path& source : sources) {
    source_kind(source);  // says what is wrong with it
    const ResultKind kind = result_kind(source);
    if (!seen.insert(identity(source)).second)
      throw bad_input(fmt::format("{} is given twice", source.string()));
    if (kind == ResultKind::next_token) {  // its stages are runs
      const std::vector<fs::path> stages = next_token_stages(source);
      if (stages.empty()) throw bad_input(fmt::format("{} has no stage yet", source.string()));
      std::ranges::copy(stages, std::back_inserter(by_kind[ResultKind::run]));
    } else {
      by_kind[kind].push_back(source);
    }
  }
  const std::vector<fs::path>& reproductions = by_kind[ResultKind::reproduction];
  if (reproductions.size() > 1)
    throw bad_input(fmt::format("{} and {} are both folders of attmirror reproduce: expected one at a time",
                                reproductions[0].string(), reproductions[1].string()));
  Page reproduction;
  if (!reproductions.empty()) reproduction = make_page(load_reports(reproductions.front()));
  if (!reproductions.empty() && sources.size() == 1) return reproduction;

  Page page;
  page.footer = version_line();
  const auto add = [&](ResultKind kind, const char* title, const char* what, auto sections_of) {
    const std::vector<fs::path>& paths = by_kind[kind];
    if (paths.empty()) return;
    if (page.title.empty())
      page.title = fmt::format("{} {}", title, identity(sources.front()).filename().string());
    page.subtitle += (page.subtitle.empty() ? "" : ", ") + counted(paths.size(), what);
    PagePart part = sections_of(paths);
    page.conclusion += (page.conclusion.empty() ? "" : " ") + part.conclusion;
    std::ranges::move(part.sections, std::back_inserter(page.sections));
  };
  add(ResultKind::run, "Run", "run", run_sections);
  add(ResultKind::path, "Regularization path", "regularization path", path_sections);
  add(ResultKind::solution, "Max-margin solution", "max-margin solution", solution_sections);
  add(ResultKind::training, "Training", "training", training_sections);
  add(ResultKind::sweep, "Sweep", "sweep", [](const std::vector<fs::path>& sweeps) {
    PagePart all;
    for (std::size_t i = 0; i < sweeps.size(); ++i) {
      PagePart part = sweep_section(sweeps[i], fmt::format("sweep-{}", i + 1));
      all.conclusion += (all.conclusion.empty() ? "" : " ") + part.conclusion;
      std::ranges::move(part.sections, std::back_inserter(all.sections));
    }
    return all;
  });
  if (sources.size() > 1) page.title = fmt::format("Report of {} results", sources.size());
  if (!reproductions.empty()) {
    page.subtitle += ", the papers, reproduced";
    page.conclusion += (page.conclusion.empty() ? "" : " ") + reproduction.conclusion;
  }
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
  // Ids are names of files, too, which have 255 bytes at most.
  constexpr std::size_t longest = 80;
  if (id.size() <= longest) return id;
  Fingerprint print;
  print.add(text);
  return fmt::format("{}-{:016x}", std::string_view(id).substr(0, longest), print.value());
}

}  // namespace attmirror
