#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/margin/support.hpp>
#include <attmirror/papers/landscape.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror {

namespace {

// The tokens that each query may attend to.
std::vector<std::vector<std::int64_t>> choices(const Dataset& data) {
  std::vector<std::vector<std::int64_t>> result;
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j) {
    result.emplace_back();
    for (std::ptrdiff_t t = 0; t < data.attended_length(j); ++t)
      if (data.allows(j, t)) result.back().push_back(t);
  }
  return result;
}

// The index-th selection, the last query's token running fastest.
Selection selection_at(const std::vector<std::vector<std::int64_t>>& allowed, std::ptrdiff_t index) {
  Selection tokens{std::vector<std::int64_t>(allowed.size())};
  for (std::size_t j = allowed.size(); j-- > 0;) {
    const std::ptrdiff_t count = std::ssize(allowed[j]);
    tokens.tokens[j] = allowed[j][static_cast<std::size_t>(index % count)];
    index /= count;
  }
  return tokens;
}

}  // namespace

std::string_view to_string(SelectionClass kind) {
  switch (kind) {
    case SelectionClass::infeasible:
      return "infeasible";
    case SelectionClass::feasible:
      return "feasible";
    case SelectionClass::local:
      return "local";
    case SelectionClass::global:
      return "global";
    case SelectionClass::undecided:
      return "undecided";
  }
  return "unknown";
}

void LandscapeOptions::validate() const {
  margin.validate(norm);
  if (max_selections < 1)
    throw bad_input(fmt::format("max_selections is {}: expected 1 or more", max_selections));
}

double selection_count(const Dataset& data) {
  double count = 1;
  for (const auto& allowed : choices(data)) count *= static_cast<double>(allowed.size());
  return count;
}

std::ptrdiff_t Landscape::count(SelectionClass kind) const {
  return std::ranges::count(entries, kind, &LandscapeEntry::kind);
}

std::ptrdiff_t Landscape::index_of(const Selection& tokens) const {
  const auto found = std::ranges::lower_bound(entries, tokens.tokens, {},
                                              [](const LandscapeEntry& e) { return e.tokens.tokens; });
  if (found == entries.end() || found->tokens != tokens)
    throw bad_input(fmt::format("the landscape has no selection {}", to_string(tokens)));
  return found - entries.begin();
}

const LandscapeEntry& Landscape::at(const Selection& tokens) const {
  return entries[static_cast<std::size_t>(index_of(tokens))];
}

Landscape enumerate_landscape(const Dataset& data, const LandscapeOptions& options) {
  options.validate();
  if (!data.has_decoder())
    throw bad_input("the data have no decoder: its scores say which tokens are better");
  const double total = selection_count(data);
  if (!(total <= static_cast<double>(options.max_selections)))
    throw bad_input(
        fmt::format("there are {:g} selections: expected at most {}", total, options.max_selections));
  const auto allowed = choices(data);
  const Selection best = optimal_tokens(data);
  const Vector v = data.decoder().eigen().transpose();
  const std::vector<Vector> scores = linear_scores(data, v);
  Landscape landscape;
  const auto count = static_cast<std::ptrdiff_t>(total);
  // In pieces, so that there is progress in between.
  const std::ptrdiff_t piece = 512;
  for (std::ptrdiff_t first = 0; first < count; first += piece) {
    if (options.on_progress) options.on_progress(static_cast<double>(first) / total);
    if (options.stop.requested()) {
      landscape.interrupted = true;
      return landscape;
    }
    std::vector<MarginTask> tasks;
    for (std::ptrdiff_t index = first; index < std::min(first + piece, count); ++index)
      tasks.push_back({&data, AttentionSvm{selection_at(allowed, index)}, options.norm});
    std::vector<MarginSolution> solutions = max_margins(tasks, options.margin);
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      LandscapeEntry entry;
      entry.tokens = std::get<AttentionSvm>(tasks[k].problem).tokens;
      entry.solution = std::move(solutions[k]);
      entry.least_advantage = std::numeric_limits<double>::quiet_NaN();
      if (entry.solution.status == MarginStatus::infeasible) entry.kind = SelectionClass::infeasible;
      if (entry.solution.status == MarginStatus::certified) {
        const LocalOptimality optimality = local_optimality(
            data, entry.tokens, constraints(data, tasks[k].problem), entry.solution.support, scores);
        entry.least_advantage = optimality.least_advantage;
        entry.kind = entry.tokens == best ? SelectionClass::global
                     : optimality.holds   ? SelectionClass::local
                                          : SelectionClass::feasible;
      }
      landscape.entries.push_back(std::move(entry));
    }
  }
  return landscape;
}

}  // namespace attmirror
