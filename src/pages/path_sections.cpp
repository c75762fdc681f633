// What a reader wants to know of regularization paths: does the least loss within a ball fall as the ball grows, on
// which tokens does attention settle, and does the direction approach the max-margin solution that theory predicts.
#include "base/numbers.hpp"
#include "descent/saved_path.hpp"
#include "pages/run_sections.hpp"
#include "pages/shown_names.hpp"
#include "pages/sources.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/margin/max_margin.hpp>
#include <attmirror/mirror/direction.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

namespace fs = std::filesystem;

struct ReportedPath {
  std::string name;
  SavedPath saved;
  std::vector<double>
      angles;  // 1 - cos from the max-margin solution of each point's tokens; NaN where there is none
  std::string without;  // why there are none: one sentence
};

// Below this the cosine is 1 up to rounding, which is not a curve.
constexpr double rounding = 1e-15;

std::string loss_conclusion(const ReportedPath& path);

// A solution for each set of tokens that a point selects; most paths have one or two.
void measure_angles(ReportedPath& path) {
  const SavedPath& saved = path.saved;
  path.angles.assign(saved.points.size(), nan_value);
  try {
    const Dataset data = saved.load_data();
    const Norm norm = parse_norm(saved.norm);
    std::map<std::vector<std::int64_t>, MarginSolution> solutions;
    for (std::size_t k = 0; k < saved.points.size(); ++k) {
      const PathPoint& point = saved.points[k];
      if (point.selected.tokens.empty()) continue;
      auto found = solutions.find(point.selected.tokens);
      if (found == solutions.end()) {
        MarginProblem problem = AttentionSvm{point.selected};
        if (saved.params == "prompt") problem = PromptSvm{point.selected, saved.key_weights};
        found = solutions.emplace(point.selected.tokens, max_margin(data, problem, norm, {.max_seconds = 30}))
                    .first;
      }
      if (found->second.status == MarginStatus::certified)
        path.angles[k] = 1 - correlation(found->second.W, attention_weights(point.parameters));
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::environment) throw;
    path.without =
        fmt::format("There is no max-margin solution to compare with: {}.", std::string(error.what()));
  }
}

// ---- figures

Figure path_curve(const std::vector<ReportedPath>& paths, const char* id, const char* title,
                  const char* label, const std::function<double(const ReportedPath&, std::size_t)>& value) {
  Figure figure;
  figure.id = fmt::format("paths-{}", id);
  figure.title = title;
  figure.y.label = label;
  for (std::size_t r = 0; r < paths.size(); ++r) {
    Series series;
    series.name = paths[r].name;
    series.color = static_cast<int>(r);  // the same in all figures
    series.mark = Series::Mark::both;
    for (std::size_t k = 0; k < paths[r].saved.points.size(); ++k) {
      const double y = value(paths[r], k);
      if (!std::isfinite(y)) continue;
      series.x.push_back(paths[r].saved.points[k].radius);
      series.y.push_back(y);
    }
    if (!series.x.empty()) figure.series.push_back(std::move(series));
  }
  figure.x = axis_for("radius of the ball, in the norm of the path", figure.series, &Series::x);
  figure.y = axis_for(label, figure.series, &Series::y);
  std::string ends;
  for (const Series& series : figure.series)
    ends += fmt::format("{}{}: {:.4g} at radius {:g}", ends.empty() ? "" : "; ", series.name, series.y.back(),
                        series.x.back());
  figure.description = fmt::format("{}, over the radius. {}.", title, ends);
  figure.caption = paths.size() == 1 && !figure.series.empty()
                       ? fmt::format("At radius {:g} it is {:.4g}.", figure.series.front().x.back(),
                                     figure.series.front().y.back())
                       : fmt::format("At the last radius: {}.", ends);
  return figure;
}

std::vector<Figure> path_curves(const std::vector<ReportedPath>& paths) {
  // On joint paths the loss falls below the smallest double, and its logarithm goes on.
  const bool underflows = std::ranges::any_of(paths, [](const ReportedPath& path) {
    return std::ranges::any_of(path.saved.points, [](const PathPoint& point) {
      return point.loss == 0 && std::isfinite(point.log_loss);
    });
  });
  std::vector<Figure> figures;
  figures.push_back(
      underflows
          ? path_curve(paths, "loss", "The least loss within the ball", "natural logarithm of the loss",
                       [](const ReportedPath& path, std::size_t k) { return path.saved.points[k].log_loss; })
          : path_curve(paths, "loss", "The least loss within the ball", "loss",
                       [](const ReportedPath& path, std::size_t k) { return path.saved.points[k].loss; }));
  figures.push_back(
      path_curve(paths, "saturation", "How much attention concentrates on one token",
                 "largest attention probability, mean over queries",
                 [](const ReportedPath& path, std::size_t k) { return path.saved.points[k].max_softmax; }));
  Figure angles =
      path_curve(paths, "angle", "How far the path is from the max-margin direction",
                 "1 − cos of the angle to the solution", [](const ReportedPath& path, std::size_t k) {
                   return path.angles[k] > rounding ? path.angles[k] : nan_value;
                 });
  angles.caption +=
      " Each point is compared with the certified max-margin solution of the tokens it selects, in the norm of its "
      "path.";
  figures.push_back(std::move(angles));
  std::erase_if(figures, [](const Figure& figure) { return figure.series.empty(); });
  return figures;
}

// ---- words and tables

// "At radius 1000, the largest, the weights point along the max-margin direction of their tokens up to ..."
std::string angle_conclusion(const ReportedPath& path) {
  const std::vector<PathPoint>& points = path.saved.points;
  if (points.empty()) return "No radius was reached.";
  if (!std::isfinite(path.angles.back())) return loss_conclusion(path);
  return fmt::format(
      "At radius {:g}, the largest, the weights point along the max-margin direction of the tokens they "
      "select{}.",
      points.back().radius,
      path.angles.back() > rounding ? fmt::format(" up to 1 − cos = {:.1e}", path.angles.back())
                                    : std::string(" to rounding"));
}

// "At radius 1000 the least loss is 0.0012, ..."
std::string loss_conclusion(const ReportedPath& path) {
  const std::vector<PathPoint>& points = path.saved.points;
  if (points.empty()) return "No radius was reached.";
  const PathPoint& last = points.back();
  std::string text = fmt::format("At radius {:g}, the largest of {}, the least loss is {}", last.radius,
                                 points.size(), short_number(last.loss));
  if (last.loss == 0 && std::isfinite(last.log_loss))
    text += fmt::format(" in double precision (its logarithm is {})", short_number(last.log_loss));
  text += fmt::format(", and attention puts {} of its weight on one token of each query.",
                      percent(last.max_softmax));
  std::size_t first = points.size() - 1;
  while (first > 0 && points[first - 1].selected.tokens == last.selected.tokens) --first;
  if (points.size() > 1)
    text += first == 0
                ? std::string(" All radii select the same tokens.")
                : fmt::format(" These tokens are selected from radius {:.4g} on.", points[first].radius);
  return text;
}

std::string path_status(const SavedPath& path) {
  if (path.points.size() < path.radii.size()) return "interrupted";
  const bool all = std::ranges::all_of(
      path.points, [](const PathPoint& point) { return point.status == PointStatus::converged; });
  return all ? "converged" : "stopped";
}

// The same of several: what all of them have in common.
std::string common_conclusion(const std::vector<ReportedPath>& paths) {
  double largest = 0;
  std::size_t measured = 0, converged = 0;
  for (const ReportedPath& path : paths) {
    converged += path_status(path.saved) == "converged" ? 1 : 0;
    if (path.angles.empty() || !std::isfinite(path.angles.back())) continue;
    ++measured;
    largest = std::max(largest, path.angles.back());
  }
  std::string text = converged == paths.size()
                         ? fmt::format("All {} paths converged at every radius.", paths.size())
                         : fmt::format("{} of {} paths did not converge at every radius.",
                                       paths.size() - converged, paths.size());
  if (measured > 0)
    text += fmt::format(
        " At their largest radius, {} point along the max-margin directions of their tokens{}.",
        measured == paths.size() ? std::string("all")
                                 : fmt::format("the {} that could be compared", measured),
        largest > rounding ? fmt::format(" up to 1 − cos = {:.1e}", largest) : std::string(" to rounding"));
  return text;
}

std::string tokens_text(const std::vector<std::int64_t>& tokens) {
  constexpr std::size_t most = 12;
  if (tokens.size() <= most) return fmt::format("{}", fmt::join(tokens, " "));
  return fmt::format("{} … ({} queries)", fmt::join(tokens.begin(), tokens.begin() + most, " "),
                     tokens.size());
}

Table points_table(const ReportedPath& path) {
  Table table;
  table.title = "Points of the path";
  table.columns = {{"radius"},
                   {"loss"},
                   {"attention on one token"},
                   {"stationarity gap"},
                   {"gradients"},
                   {"status", Align::left},
                   {"1 − cos to max-margin"},
                   {"selected tokens", Align::left}};
  for (std::size_t k = 0; k < path.saved.points.size(); ++k) {
    const PathPoint& point = path.saved.points[k];
    table.rows.push_back({fmt::format("{:.6g}", point.radius), short_number(point.loss),
                          short_number(point.max_softmax), fmt::format("{:.1e}", point.gap),
                          fmt::format("{}", point.evaluations), std::string(to_string(point.status)),
                          short_number(path.angles[k]), tokens_text(point.selected.tokens)});
  }
  return table;
}

Table paths_table(const std::vector<ReportedPath>& paths) {
  Table table;
  table.title = "Paths, at their largest radius";
  table.columns = {
      {"path", Align::left},     {"norm", Align::left},  {"radius"}, {"loss"}, {"attention on one token"},
      {"1 − cos to max-margin"}, {"status", Align::left}};
  for (const ReportedPath& path : paths) {
    const SavedPath& saved = path.saved;
    const bool any = !saved.points.empty();
    table.rows.push_back({path.name, saved.norm, any ? short_number(saved.points.back().radius) : "–",
                          any ? short_number(saved.points.back().loss) : "–",
                          any ? short_number(saved.points.back().max_softmax) : "–",
                          any ? short_number(path.angles.back()) : "–", path_status(saved)});
  }
  return table;
}

Facts path_facts(const SavedPath& path) {
  Facts facts{"Configuration", {}};
  const auto add = [&](const char* name, std::string value) {
    facts.entries.emplace_back(name, std::move(value));
  };
  add("data", path.data_path.string());
  add("model", fmt::format("{}, {} loss, {} head, trains {}", path.params, path.loss, path.head,
                           fmt::join(path.trained, ", ")));
  add("kind", path.kind == "global"
                  ? fmt::format("global: the best of several starts at each radius, {} random", path.starts)
                  : fmt::format("local, from {}", path.start));
  add("norm", path.norm);
  add("radii", path.radii.empty() ? std::string("none")
                                  : fmt::format("{} of {}, {:g} to {:g}", path.points.size(),
                                                path.radii.size(), path.radii.front(), path.radii.back()));
  add("tolerance of the gap", fmt::format("{:g}", path.tol));
  if (path.starts > 0 && path.kind == "global") add("seed", fmt::format("{}", path.seed));
  add("made by", fmt::format("attmirror {} ({}), {}", path.version, path.commit, path.isa));
  return facts;
}

Section section_of(const ReportedPath& path, const std::string& id) {
  const std::string status = path_status(path.saved);
  Section section{.id = id, .title = "Path " + path.name, .badge = status, .blocks = {}};
  section.badge_tone = status == "converged" ? Tone::neutral : Tone::caution;
  if (!path.without.empty()) section.blocks.push_back(Paragraph{path.without});
  TableBlock points{.id = id + "-points", .table = points_table(path)};
  for (const PathPoint& point : path.saved.points)
    points.tones.push_back(point.status == PointStatus::converged ? Tone::good : Tone::caution);
  points.tone_column = 5;
  points.legend = {{Tone::good, "converged to the tolerance"}, {Tone::caution, "stopped before"}};
  if (!path.saved.points.empty()) section.blocks.push_back(std::move(points));
  section.blocks.push_back(path_facts(path.saved));
  return section;
}

}  // namespace

PagePart path_sections(const std::vector<fs::path>& folders) {
  const std::vector<std::string> names = short_names(folders);
  std::vector<ReportedPath> paths;
  for (std::size_t r = 0; r < folders.size(); ++r) {
    ReportedPath& path = paths.emplace_back();
    path.name = names[r];
    path.saved = load_saved_path(folders[r]);
    measure_angles(path);
  }
  Section overview{
      .id = "paths", .title = paths.size() == 1 ? "How the path went" : "How the paths went", .blocks = {}};
  if (paths.size() == 1) {
    overview.blocks.push_back(Paragraph{loss_conclusion(paths.front())});
  } else {
    overview.blocks.push_back(TableBlock{.id = "paths", .table = paths_table(paths)});
  }
  for (Figure& figure : path_curves(paths)) overview.blocks.push_back(std::move(figure));
  std::vector<Section> sections{std::move(overview)};
  for (std::size_t r = 0; r < paths.size(); ++r) {
    Section& section = sections.emplace_back(section_of(paths[r], fmt::format("path-{}", r + 1)));
    if (paths.size() > 1) {
      section.blocks.insert(section.blocks.begin(), Paragraph{loss_conclusion(paths[r])});
      section.blocks.insert(section.blocks.begin(), Paragraph{angle_conclusion(paths[r])});
    }
  }
  return {paths.size() == 1 ? angle_conclusion(paths.front()) : common_conclusion(paths),
          std::move(sections)};
}

}  // namespace attmirror
