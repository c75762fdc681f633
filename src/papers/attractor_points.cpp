#include "papers/attractor_points.hpp"

#include "descent/data_scale.hpp"
#include "papers/workers.hpp"
#include <attmirror/data/generators.hpp>
#include <attmirror/descent/mirror_flow.hpp>
#include <attmirror/sweep/attractors.hpp>

#include <deque>

namespace attmirror {

namespace {

constexpr std::uint64_t seeds_tried = 4000;  // for one point, until enough data are feasible

Dataset equal_score_data(const AttractorPoint& point, std::uint64_t seed) {
  const Dataset sphere =
      generate(SphereData{.samples = point.samples, .tokens = point.tokens, .dim = point.dim, .seed = seed});
  DatasetArrays arrays;
  arrays.tokens = Matrix::Constant(sphere.total_tokens(), point.dim + 1, 0.5);
  arrays.tokens.leftCols(point.dim) = sphere.all_tokens().eigen();
  for (std::ptrdiff_t i = 0; i < sphere.samples(); ++i) arrays.tokens(sphere.offset(i), point.dim) = 1;
  arrays.queries = Matrix::Zero(sphere.samples(), point.dim + 1);
  arrays.queries.leftCols(point.dim) = sphere.queries().eigen();
  arrays.lengths.assign(static_cast<std::size_t>(point.samples), point.tokens);
  arrays.labels.assign(static_cast<std::size_t>(point.samples), 1.0);
  arrays.decoder = Vector::Unit(point.dim + 1, point.dim);
  return Dataset(arrays);
}

Attention equal_score_model(const AttractorPoint& point, const Dataset& data) {
  if (point.params == "W") return Attention(data, W{});
  if (point.params == "KQ") return Attention(data, KQ{});
  Matrix keys = Matrix::Identity(point.dim + 1, point.dim + 1);
  keys(point.dim, point.dim) = 0;
  return Attention(data, Prompt{keys});
}

AttractorOutcome run_attractor_set(const AttractorPoint& point, const Attention& model, std::uint64_t seed,
                                   std::uint64_t starts, bool confirm) {
  AttractorOutcome outcome;
  Attractors found = attractors(model, {.p = point.p, .work = {.threads = 1}});
  outcome.attractors = std::ssize(found.list);
  outcome.partial = found.count(AttractorKind::partial);
  outcome.undecided = found.undecided;
  outcome.factored = point.params == "KQ";
  outcome.condition = global_condition(model).holds() && point.p == 2;
  StartOptions options{
      .starts = static_cast<std::int64_t>(starts), .seed = 1000 * seed, .work = {.threads = 1}};
  options.std = point.start * start_deviation(model);
  const StartShares shares = train_starts(model, found, options);
  outcome.whole_ends = shares.total(found, AttractorKind::whole);
  outcome.partial_ends = shares.total(found, AttractorKind::partial);
  outcome.elsewhere = shares.elsewhere;
  outcome.undecided_ends = shares.undecided;
  if (!confirm) return outcome;
  for (const AttractorCheck& check : confirm_attractors(model, found, {.threads = 1})) {
    ++outcome.checks;
    outcome.checks_held += check.holds();
  }
  // The first two starts again, by the flow.
  for (std::size_t k = 0; k < 2; ++k) {
    MirrorFlow flow{.p = point.p, .times = {1e300}, .tol = 1e-6, .keep = Keep::metrics};
    flow.init = {.kind = InitKind::normal, .std = options.std, .seed = options.seed + k};
    const FlowRun run = mirror_flow(model, flow);
    if (run.status != FlowStatus::completed) continue;
    const auto end = found.find(model, run.selected);
    ++outcome.flows;
    outcome.same_flows += end && shares.ends[k] == static_cast<std::int64_t>(*end);
  }
  return outcome;
}

}  // namespace

std::vector<AttractorOutcome> run_attractor_point(const ExperimentContext& context,
                                                  const AttractorPoint& point, std::uint64_t sets,
                                                  std::uint64_t starts, std::size_t confirmed) {
  std::deque<Dataset> kept;
  std::deque<Attention> models;
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t seed = 0; seeds.size() < sets && seed < seeds_tried; ++seed) {
    kept.push_back(equal_score_data(point, seed));
    models.push_back(equal_score_model(point, kept.back()));
    if (global_condition(models.back()).feasible) {
      seeds.push_back(seed);
      continue;
    }
    models.pop_back();
    kept.pop_back();
  }
  std::vector<AttractorOutcome> outcomes(seeds.size());
  for_all(context, std::ssize(outcomes), [&](std::ptrdiff_t index) {
    const auto i = static_cast<std::size_t>(index);
    outcomes[i] = run_attractor_set(point, models[i], seeds[i], starts, i < confirmed);
  });
  return outcomes;
}

}  // namespace attmirror
