// When can attention select any tokens at all? P3 proves: if d >= max(T - 1, n), then for almost every data set
// there is a W that separates any selection of tokens, one of each sequence, in cross-attention and in
// self-attention. The proof writes it down: with ztilde_j dual to the queries, and b_j of equal margin over the
// other tokens, W = sum b_j ztilde_j^T.
//
// Data on the unit sphere, for three shapes (n, T) and growing d. For each data set: the optimal tokens, a random
// selection, and a random selection in self-attention (the query is the first token), each either solved or proved
// infeasible; and where the theorem applies, the W of its proof. For the smallest dimension to which the theorem
// applies all T^n selections of some data sets are tried.
#include "base/random.hpp"
#include "papers/coordinate_ascent.hpp"
#include "papers/experiments.hpp"
#include "papers/shorthand.hpp"
#include "papers/training_set.hpp"
#include "papers/workers.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/margin/problems.hpp>

#include <array>
#include <atomic>
#include <cmath>
#include <deque>

#include <fmt/format.h>

namespace attmirror {

namespace {

struct FeasibilityShape {
  std::int64_t n, T;
  std::int64_t enough() const { return std::max(T - 1, n); }  // the theorem's dimension
};
constexpr std::array<FeasibilityShape, 3> checked_shapes{{{5, 5}, {10, 5}, {5, 10}}};
constexpr std::array<std::int64_t, 11> dimensions{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12};

enum Kind : std::size_t { optimal, random_tokens, self_attention };
constexpr std::array kind_names{"optimal tokens", "random tokens", "random tokens, self-attention"};

struct Outcome {
  bool feasible = false, stopped = false;
  bool found_by_ascent = false;  // feasible, and coordinate ascent arrives in time, as in p3_global.cpp
  bool written_down = false;     // the W of the proof exists
  double ratio = std::nan("");   // its norm over the least one
};

struct FeasibilityCell {
  FeasibilityShape shape{};
  std::int64_t d = 0;
  std::array<std::vector<Outcome>, 3> outcomes{};
};

Selection random_selection(std::int64_t n, std::int64_t T, std::uint64_t seed) {
  const CounterRandom random(seed, RandomStream::selection);
  Selection selection;
  for (std::int64_t i = 0; i < n; ++i)
    selection.tokens.push_back(static_cast<std::int64_t>(
        random.below(static_cast<std::uint64_t>(T), static_cast<std::uint64_t>(i))));
  return selection;
}

FeasibilityCell measure_feasibility(const ExperimentContext& context, const FeasibilityShape& shape,
                                    std::int64_t d, std::uint64_t seeds) {
  std::deque<Dataset> sets;
  std::vector<MarginTask> tasks;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const SphereData cross{.samples = shape.n, .tokens = shape.T, .dim = d, .seed = seed};
    SphereData self = cross;
    self.query_from = SphereData::QueryFrom::first_token;
    const Selection any = random_selection(shape.n, shape.T, seed);
    const Dataset& first = sets.emplace_back(generate(cross));
    const Dataset& second = sets.emplace_back(generate(self));
    tasks.push_back({&first, AttentionSvm{optimal_tokens(first)}, Norm::frobenius()});
    tasks.push_back({&first, AttentionSvm{any}, Norm::frobenius()});
    tasks.push_back({&second, AttentionSvm{any}, Norm::frobenius()});
  }
  const std::vector<MarginSolution> solutions = solve_all(context, tasks);
  FeasibilityCell cell{.shape = shape, .d = d};
  for (std::size_t i = 0; i < solutions.size(); ++i) {
    const MarginSolution& svm = solutions[i];
    Outcome outcome{.feasible = svm.status == MarginStatus::certified,
                    .stopped = svm.status == MarginStatus::stopped};
    if (i % 3 == optimal && outcome.feasible)
      outcome.found_by_ascent =
          coordinate_ascent_arrives(constraints(*tasks[i].data, tasks[i].problem), 1e-6, 20'000);
    if (d >= shape.enough()) {
      const std::optional<Matrix> W =
          constructive_weights(*tasks[i].data, std::get<AttentionSvm>(tasks[i].problem).tokens);
      outcome.written_down = W.has_value();
      if (W && outcome.feasible) outcome.ratio = W->norm() / svm.norm;
    }
    cell.outcomes[i % 3].push_back(outcome);
  }
  return cell;
}

// All T^n selections of data sets of the first shape at the theorem's dimension: how many, and how many the proof's
// W separates.
struct Enumeration {
  std::int64_t selections = 0, separated = 0;
};

Enumeration enumerate(const ExperimentContext& context, std::uint64_t seeds) {
  const FeasibilityShape shape = checked_shapes[0];
  std::int64_t each = 1;
  for (std::int64_t i = 0; i < shape.n; ++i) each *= shape.T;
  std::deque<Dataset> sets;
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    sets.push_back(
        generate(SphereData{.samples = shape.n, .tokens = shape.T, .dim = shape.enough(), .seed = seed}));
  std::atomic<std::int64_t> separated = 0;
  for_all(context, static_cast<std::ptrdiff_t>(seeds), [&](std::ptrdiff_t s) {
    const Dataset& data = sets[static_cast<std::size_t>(s)];
    for (std::int64_t code = 0; code < each; ++code) {
      Selection selection;
      for (std::int64_t i = 0, rest = code; i < shape.n; ++i, rest /= shape.T)
        selection.tokens.push_back(rest % shape.T);
      if (constructive_weights(data, selection)) ++separated;
    }
  });
  return {each * static_cast<std::int64_t>(seeds), separated};
}

Mean feasible_share(const FeasibilityCell& cell, Kind kind) {
  return share_of(std::ranges::count(cell.outcomes[kind], true, &Outcome::feasible),
                  std::ssize(cell.outcomes[kind]));
}

class P3Feasibility final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {
        .id = "p3-feasibility",
        .paper = "P3",
        .item = "theorem: any tokens can be selected if d >= max(T - 1, n)",
        .title = "Which tokens can attention select at all?",
        .summary =
            "Solves the attention SVM of optimal and of random tokens in each dimension, or proves it infeasible, and "
            "checks the weights that the theorem's proof constructs.",
        .seconds = 1.5,
        .quick_seconds = 0.2};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const std::uint64_t seeds = context.quick() ? 25 : 200, enumerated = context.quick() ? 2 : 20;
    std::vector<FeasibilityCell> cells;
    double done = 0;
    const double total = static_cast<double>(checked_shapes.size() * dimensions.size());
    for (const FeasibilityShape& shape : checked_shapes)
      for (const std::int64_t d : dimensions) {
        if (context.quick() && shape.n + shape.T > 10 && d != shape.enough()) continue;
        cells.push_back(
            measure_feasibility(context.part(.9 * done / total, .9 * (done + 1) / total), shape, d, seeds));
        ++done;
      }
    const Enumeration all = enumerate(context.part(.9, 1), enumerated);

    ExperimentResult result;
    result.sample =
        fmt::format("{} for each shape and dimension, {} enumerated", counted(seeds, "data set"), enumerated);
    result.configuration = {
        {"data", fmt::format("unit sphere, (n, T) = (5, 5), (10, 5), (5, 10), seeds 0 to {}", seeds - 1)},
        {"selections",
         "the optimal tokens; one random selection each, seed of the data, in cross-attention and in "
         "self-attention with the first token as query"},
        {"enumeration", fmt::format("all 3,125 selections of {} data sets with n = T = d = 5", enumerated)},
        {"certificates", "relative gap 1e-10, or a proof that no W with a norm up to 1e10 exists"}};
    theorem_findings(cells, all, result.findings);
    known_findings(context, cells, result.findings);
    result.tables = {{"shares", shares_table(cells)}};
    result.figures = {shares_figure(cells)};
    const auto promised = std::ranges::count_if(
        cells, [](const FeasibilityCell& cell) { return cell.d >= cell.shape.enough(); });
    const auto kept = std::ranges::count_if(cells, [](const FeasibilityCell& cell) {
      return cell.d >= cell.shape.enough() && feasible_share(cell, optimal).value == 1;
    });
    result.conclusion = fmt::format(
        "Wherever the theorem applies, attention can select the optimal tokens of every data set tried ({} of {} "
        "combinations of size and dimension).",
        kept, promised);
    result.remarks = {
        "The condition of the theorem is sufficient, not necessary: n (T - 1) constraints on d^2 numbers can usually be "
        "satisfied for d well below max(T - 1, n).",
        "In dimension 1, tokens of norm 1 coincide and no selection can be separated.",
        "The weights of the proof give every token the same margin. Their norm is about twice the smallest possible in "
        "the median, and thousands of times that where queries or tokens are nearly dependent."};
    return result;
  }

 private:
  static void theorem_findings(const std::vector<FeasibilityCell>& cells, const Enumeration& all,
                               std::vector<Finding>& findings) {
    const auto theory = [&](std::string quantity, double published, double ours, std::string note = {}) {
      findings.push_back({.quantity = std::move(quantity),
                          .published = published,
                          .source = ReferenceSource::theory,
                          .ours = ours,
                          .tolerance = Tolerance::absolute(0),
                          .note = std::move(note)});
    };
    for (const std::size_t kind : {optimal, random_tokens, self_attention}) {
      double feasible = 0, written = 0, count = 0;
      for (const FeasibilityCell& cell : cells)
        if (cell.d >= cell.shape.enough())
          for (const Outcome& outcome : cell.outcomes[kind]) {
            feasible += outcome.feasible ? 1 : 0;
            written += outcome.written_down ? 1 : 0;
            ++count;
          }
      theory(fmt::format("d >= max(T - 1, n), {}: share that can be separated", kind_names[kind]), 1,
             feasible / count, fmt::format("{:.0f} problems", count));
      theory(fmt::format("d >= max(T - 1, n), {}: share with the weights of the proof", kind_names[kind]), 1,
             written / count);
    }
    theory("n = T = d = 5: share of all selections that the weights of the proof separate", 1,
           static_cast<double>(all.separated) / static_cast<double>(all.selections),
           fmt::format("{} selections", all.selections));
    double stopped = 0;
    std::vector<double> ratios;
    for (const FeasibilityCell& cell : cells)
      for (const auto& kind : cell.outcomes)
        for (const Outcome& outcome : kind) {
          stopped += outcome.stopped ? 1 : 0;
          if (!std::isnan(outcome.ratio)) ratios.push_back(outcome.ratio);
        }
    theory("problems neither solved nor proved infeasible", 0, stopped);
    findings.push_back(
        {.quantity = "norm of the proof's weights over the least one, smallest",
         .published = 1,
         .source = ReferenceSource::theory,
         .ours = std::ranges::min(ratios),
         .tolerance = Tolerance::at_least(1e-9),
         .note = fmt::format("median {:.2f}, largest {:.0f}", median_of(ratios), std::ranges::max(ratios))});
  }

  static void known_findings(const ExperimentContext& context, const std::vector<FeasibilityCell>& cells,
                             std::vector<Finding>& findings) {
    const std::vector<std::pair<std::int64_t, double>> known{{2, .270}, {3, .885}, {4, 1}, {5, 1},
                                                             {6, 1},    {8, 1},    {10, 1}};
    for (const FeasibilityCell& cell : cells) {
      const auto found = std::ranges::find(known, cell.d, &std::pair<std::int64_t, double>::first);
      const bool recomputed = cell.shape.n == 5 && cell.shape.T == 5 && found != known.end();
      const Mean share = feasible_share(cell, optimal), any = feasible_share(cell, random_tokens);
      if (recomputed) {
        findings.push_back(
            {.quantity = fmt::format("n = T = 5, d = {}: share of data whose optimal tokens can be separated",
                                     cell.d),
             .published = found->second,
             .source = ReferenceSource::recomputed,
             .ours = share.value,
             .standard_error = context.quick() ? share.error : 0,
             .resolution = share_resolution,
             // The same 200 data sets: all but one must agree.
             .tolerance = context.quick() ? Tolerance::standard_errors(3) : Tolerance::absolute(.0051)});
        const Mean by_ascent =
            share_of(std::ranges::count(cell.outcomes[optimal], true, &Outcome::found_by_ascent),
                     std::ssize(cell.outcomes[optimal]));
        if (by_ascent.value < share.value) {
          findings.back().imitated = by_ascent.value;
          findings.back().imitated_error = context.quick() ? by_ascent.error : 0;
          findings.back().note =
              "coordinate ascent gives up after 20,000 sweeps; each problem here is certified";
        }
        findings.push_back(
            {.quantity =
                 fmt::format("n = T = 5, d = {}: share of random selections that can be separated", cell.d),
             .ours = any.value,
             .standard_error = any.error});
      }
    }
  }

  static Table shares_table(const std::vector<FeasibilityCell>& cells) {
    Table table{
        .title = "Shares that can be separated",
        .columns = {
            {"n"}, {"T"}, {"d"}, {"theorem", Align::left}, {"optimal"}, {"random"}, {"self-attention"}}};
    for (const FeasibilityCell& cell : cells) {
      std::vector<std::string> row{fmt::format("{}", cell.shape.n), fmt::format("{}", cell.shape.T),
                                   fmt::format("{}", cell.d), cell.d >= cell.shape.enough() ? "applies" : ""};
      for (const Kind kind : {optimal, random_tokens, self_attention})
        row.push_back(fmt::format("{:.3f}", feasible_share(cell, kind).value));
      table.rows.push_back(std::move(row));
    }
    return table;
  }

  static Figure shares_figure(const std::vector<FeasibilityCell>& cells) {
    Figure figure{
        .id = "feasible",
        .title = "From a small dimension on, every selection can be separated",
        .caption =
            "Solid: optimal tokens; dashed: random ones; bands are standard errors. The theorem guarantees a share of 1 "
            "from d = max(T - 1, n) on.",
        .x = {.label = "dimension d"},
        .y = {.label = "share of data sets that can be separated", .range = {{0, 1.02}}}};
    std::string outcome;
    std::int64_t first_always = 0;
    for (std::size_t s = 0; s < checked_shapes.size(); ++s)
      for (const Kind kind : {optimal, random_tokens}) {
        Series series{.name = fmt::format("n = {}, T = {}, {}", checked_shapes[s].n, checked_shapes[s].T,
                                          kind_names[kind]),
                      .mark = Series::Mark::both,
                      .dash = kind == optimal ? Series::Dash::solid : Series::Dash::dashed,
                      .color = static_cast<int>(s)};
        std::int64_t always = 0;
        for (const FeasibilityCell& cell : cells) {
          if (cell.shape.n != checked_shapes[s].n || cell.shape.T != checked_shapes[s].T) continue;
          const Mean share = feasible_share(cell, kind);
          series.x.push_back(static_cast<double>(cell.d));
          series.y.push_back(share.value);
          series.low.push_back(std::max(0.0, share.value - share.error));
          series.high.push_back(std::min(1.0, share.value + share.error));
          if (share.value == 1 && always == 0) always = cell.d;
        }
        if (s == 0 && kind == optimal) first_always = always;
        outcome += fmt::format(" n = {}, T = {}, {}: all from d = {} on (theorem: {}).", checked_shapes[s].n,
                               checked_shapes[s].T, kind_names[kind], always, checked_shapes[s].enough());
        figure.series.push_back(std::move(series));
      }
    lead_with(figure,
              fmt::format("With n = {} and T = {}, {}", checked_shapes[0].n, checked_shapes[0].T,
                          first_always == 0
                              ? fmt::format("not all optimal tokens can be separated at any d tried.")
                              : fmt::format("all optimal tokens can be separated from d = {} on; the theorem "
                                            "guarantees it from d = {}.",
                                            first_always, checked_shapes[0].enough())));
    figure.description = "Shares of feasible problems against the dimension." + outcome;
    return figure;
  }
};

}  // namespace

ExperimentPointer make_p3_feasibility() { return std::make_unique<P3Feasibility>(); }

}  // namespace attmirror
