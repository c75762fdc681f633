#include "papers/theory_study.hpp"

#include "papers/training_set.hpp"
#include <attmirror/attention/smoothness.hpp>
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/margin/support.hpp>
#include <attmirror/mirror/direction.hpp>

#include <algorithm>
#include <cmath>

namespace attmirror::theory {

namespace {

constexpr GradientDescent normalized_rule{.lr = 0.1, .normalized = true};

EndOn end_of(const DescentRun& run, const Attention& model, const Selection& best,
             const MarginSolution* svm) {
  if (run.max_softmax <= .99) return EndOn::neither;
  if (run.selected == best) return EndOn::global;
  if (!svm || svm->status != MarginStatus::certified) return EndOn::neither;
  const Dataset& data = model.data();
  return local_optimality(data, run.selected, constraints(data, AttentionSvm{run.selected}), svm->support,
                          token_scores(model, run.last()))
                 .holds
             ? EndOn::local
             : EndOn::neither;
}

}  // namespace

// With x <- x + (c - gamma) Y v for |v| = 1, the score Y v^T x becomes c and everything across v stays.
Dataset outcome_data(ScoreKind scores, std::int64_t d, std::uint64_t seed) {
  const SphereData sizes{.samples = 5, .tokens = 5, .dim = d, .seed = seed};
  const Dataset drawn = generate(sizes);
  if (scores == ScoreKind::drawn) return drawn;
  DatasetArrays arrays;
  arrays.tokens = drawn.all_tokens().eigen();
  arrays.lengths.assign(5, 5);
  arrays.queries = drawn.queries().eigen();
  arrays.labels.assign(drawn.labels().begin(), drawn.labels().end());
  arrays.decoder = drawn.decoder().eigen().row(0).transpose().normalized();
  const Selection best = optimal_tokens(drawn);
  for (std::ptrdiff_t i = 0; i < 5; ++i) {
    const double label = arrays.labels[static_cast<std::size_t>(i)];
    const std::ptrdiff_t chosen = best.tokens[static_cast<std::size_t>(i)];
    auto X = arrays.tokens.middleRows(5 * i, 5);
    const Vector gamma = label * (X * arrays.decoder);
    const double common = (gamma.sum() - gamma[chosen]) / 4;
    for (std::ptrdiff_t t = 0; t < 5; ++t)
      if (t != chosen) X.row(t) += (common - gamma[t]) * label * arrays.decoder.transpose();
  }
  return Dataset(arrays);
}

OutcomeColumn measure_outcomes(const ExperimentContext& context, ScoreKind scores, std::int64_t d,
                               std::uint64_t seeds) {
  TrainingSet set;
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    set.add(set.keep(outcome_data(scores, d, seed)), W{}, {}, normalized_rule,
            {.steps = 1500, .record = RecordSchedule::none()});
  const std::vector<DescentRun> runs = train_all(context.part(0, 0.6), set.tasks());
  OutcomeColumn column{.scores = scores, .d = d, .outcomes = std::vector<Outcome>(seeds)};
  std::vector<unsigned char> stopped(seeds, 0);
  for_all(context.part(0.6, 1), std::ssize(runs), [&](std::ptrdiff_t i) {
    const auto s = static_cast<std::size_t>(i);
    Outcome& one = column.outcomes[s];
    one.report = check_theory(set.data(s), {.joint = false});
    one.saturated = runs[s].max_softmax > .99;
    MarginSolution svm;
    const bool other = one.saturated && runs[s].selected != one.report.tokens;
    if (other) svm = max_margin(set.data(s), runs[s].selected, Norm::frobenius());
    one.end = end_of(runs[s], set.model(s), one.report.tokens, other ? &svm : nullptr);
    stopped[s] =
        one.report.svm.status == MarginStatus::stopped || (other && svm.status == MarginStatus::stopped);
  });
  column.uncertified = std::ranges::count(stopped, 1);
  return column;
}

std::vector<StepColumn> measure_steps(const ExperimentContext& context, const std::vector<double>& factors,
                                      std::uint64_t seeds) {
  TrainingSet set;
  for (const double factor : factors)
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      const Dataset& data = set.keep(outcome_data(ScoreKind::drawn, 10, seed));
      const double L = *gradient_lipschitz(Attention(data));
      set.add(data, W{}, {}, GradientDescent{.lr = factor / L},
              {.steps = 1000, .record = RecordSchedule::every(1), .keep = Keep::metrics});
    }
  const std::vector<DescentRun> runs = train_all(context, set.tasks());
  std::vector<StepColumn> columns;
  for (std::size_t k = 0; k < factors.size(); ++k) {
    StepColumn column{.factor = factors[k]};
    for (std::size_t s = 0; s < seeds; ++s) {
      const DescentRun& run = runs[k * seeds + s];
      ++column.runs;
      // The loss is a sum of five terms: what rounding can add does not count.
      column.never_rising += std::ranges::adjacent_find(run.records, [](const Record& a, const Record& b) {
                               return b.loss > a.loss * (1 + 1e-14);
                             }) == run.records.end();
      column.global += run.selected == optimal_tokens(set.data(k * seeds + s));
    }
    columns.push_back(column);
  }
  return columns;
}

std::vector<JointOutcome> measure_joint(const ExperimentContext& context, std::uint64_t seeds) {
  TrainingSet set;
  for (std::uint64_t seed = 0; seed < seeds; ++seed)
    set.add(set.keep(generate(SphereData{.samples = 4, .tokens = 4, .dim = 8, .seed = seed})), W{},
            {.train = {Block::W, Block::v}}, normalized_rule,
            {.steps = 4000,
             .record = RecordSchedule::none(),
             .init = {.kind = InitKind::normal, .std = 0.1, .seed = seed}});
  const std::vector<DescentRun> runs = train_all(context.part(0, 0.7), set.tasks());
  std::vector<JointOutcome> outcomes(seeds);
  for_all(context.part(0.7, 1), std::ssize(runs), [&](std::ptrdiff_t i) {
    const auto s = static_cast<std::size_t>(i);
    const Selection& tokens = runs[s].selected;
    const TheoryReport report = check_theory(set.data(s), {.tokens = tokens});
    JointOutcome& one = outcomes[s];
    one.label_margin = report.at(Assumption::label_margin).status;
    if (report.decoder.status != MarginStatus::certified) return;
    const MarginSolution svm =
        max_margin(set.data(s), AttentionSvm{tokens, relaxed_bounds(set.data(s), report.decoder.support)},
                   Norm::frobenius());
    if (svm.status != MarginStatus::certified) return;
    one.decided = true;
    one.v_distance = 1 - correlation(report.decoder.W, Matrix(runs[s].last().v));
    one.W_distance = 1 - correlation(svm.W, runs[s].last().W);
  });
  return outcomes;
}

}  // namespace attmirror::theory
