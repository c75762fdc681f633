#include "papers/landscape_map.hpp"

#include "base/random.hpp"
#include "papers/shorthand.hpp"
#include "papers/training_set.hpp"
#include "papers/workers.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/papers/landscape.hpp>

#include <map>

#include <fmt/format.h>

namespace attmirror {

Matrix unit_noise(std::ptrdiff_t dim, std::uint64_t seed) {
  const CounterRandom random(seed, RandomStream::init_W);
  Matrix result(dim, dim);
  for (std::ptrdiff_t j = 0; j < result.size(); ++j)
    result.data()[j] = random.normal(static_cast<std::uint64_t>(j));
  return result / result.norm();
}

Figure basin_map(const ExperimentContext& context) {
  const Dataset data = generate(SphereData{.samples = 3, .tokens = 4, .dim = 3, .seed = 36});
  const Landscape landscape = enumerate_landscape(data);
  const LandscapeEntry& best = landscape.at(optimal_tokens(data));
  const LandscapeEntry* other = nullptr;
  for (const LandscapeEntry& entry : landscape.entries)
    if (entry.kind == SelectionClass::local && (!other || entry.solution.norm < other->solution.norm))
      other = &entry;
  Figure figure{
      .id = "basins",
      .title = "The start decides which selection training ends on",
      .caption =
          "Each point is a start W(0) = a U + b V; its color is the selection that the run ends on. U points "
          "along the max-margin solution of the globally optimal tokens, V is orthogonal to it toward another "
          "locally optimal one.",
      .x = {.label = "a, along the solution of the best tokens"},
      .y = {.label = "b, toward another locally optimal one"},
      .equal_axes = true};
  const Matrix U = best.solution.W / best.solution.W.norm();
  Matrix V = other ? other->solution.W : unit_noise(3, 1);
  V -= V.cwiseProduct(U).sum() * U;
  V /= V.norm();
  TrainingSet set;
  std::vector<std::pair<double, double>> points;
  const int half = context.quick() ? 4 : 9;
  for (int i = -half; i <= half; ++i)
    for (int j = -half; j <= half; ++j) {
      points.emplace_back(20.0 * i / half, 20.0 * j / half);
      DescentOptions options{.steps = 2000, .record = RecordSchedule::none()};
      options.init.given.W = points.back().first * U + points.back().second * V;
      set.add(data, W{}, {}, GradientDescent{.lr = 0.1, .normalized = true}, options);
    }
  const std::vector<DescentRun> runs = train_all(context, set.tasks());
  std::map<std::ptrdiff_t, std::vector<std::size_t>> ends;
  for (std::size_t k = 0; k < runs.size(); ++k) ends[landscape.index_of(runs[k].selected)].push_back(k);
  figure.description = "Starts in a plane, grouped by the selection they end on:";
  for (const auto& [index, members] : ends) {
    const LandscapeEntry& entry = landscape.entries[static_cast<std::size_t>(index)];
    Series series{.name = fmt::format("{}, {}", to_string(entry.tokens), to_string(entry.kind)),
                  .mark = Series::Mark::points};
    for (const std::size_t k : members) {
      series.x.push_back(points[k].first);
      series.y.push_back(points[k].second);
    }
    figure.description += fmt::format(" {} of {} on {} ({}).", members.size(), runs.size(),
                                      to_string(entry.tokens), to_string(entry.kind));
    figure.series.push_back(std::move(series));
  }
  const auto on_best = ends.find(landscape.index_of(best.tokens));
  lead_with(figure, fmt::format("{} of {} starts end on the globally optimal tokens, the others on {}.",
                                on_best == ends.end() ? 0 : on_best->second.size(), runs.size(),
                                counted(ends.size() - (on_best == ends.end() ? 0 : 1), "other selection")));
  return figure;
}

}  // namespace attmirror
