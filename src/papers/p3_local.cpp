// P3 trains W and (K, Q) from random starts and asks where each ends: on tokens that are locally optimal, in the
// direction of the max-margin solution of those tokens; of least Frobenius norm for W, of least nuclear norm for
// (K, Q).
//
// 100 data sets on the unit sphere (n = 6 sequences of T = 8 tokens, d = 10, seeds 0 to 99), normalized gradient
// descent with step 0.1 and eps = 2.2e-16 for 2,000 steps, started as nn.Linear does, uniform in +-1/sqrt(d). The
// original seeded the data and not the starts, so means over runs are compared, within their standard errors: ours
// over several starts for each data set. The tokens of a run are those that its softmax prefers in the end. The
// original reads probabilities before a step and weights after it, so the probability beside the weights of step k is
// that of step k - 1.
//
// The second published plot names its curves "W" and "(K, Q)". Both are of the run of W: its correlation with either
// solution. The curve of (K, Q) is the one below.
#include "papers/experiments.hpp"
#include "papers/shorthand.hpp"
#include "papers/training_set.hpp"
#include "papers/workers.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/margin/support.hpp>
#include <attmirror/mirror/direction.hpp>

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr GradientDescent published_rule{
    .lr = 0.1, .normalized = true, .eps = EpsPolicy::paper, .jacobian = Jacobian::safe};
constexpr double penalty = 0x1p-52;  // of |K|^2 + |Q|^2, as in the original

enum Curve : std::size_t { probability, with_frobenius, with_nuclear };
constexpr std::array curve_names{"mean largest attention probability",
                                 "correlation with the Frobenius solution",
                                 "correlation with the nuclear solution"};
enum Model : std::size_t { of_W, of_KQ };
constexpr std::array model_names{"W", "(K, Q)"};

// A cell of the table of means over 100 runs; NaN: a standard deviation that is not known.
struct Known {
  double mean, deviation = std::nan(""), reading = 5e-4;
};
struct KnownRow {
  std::int64_t step;
  std::array<std::array<Known, 3>, 2> cells;  // [model][curve]
};

std::vector<KnownRow> known_rows() {
  // Of the probabilities near 1 all digits are given.
  return {
      {50, {{{{{.416}, {.595}, {.571}}}, {{{.843}, {.650}, {.714}}}}}},
      {100, {{{{{.721, .067}, {.739, .072}, {.688, .074}}}, {{{.999}, {.772, .063}, {.861, .089}}}}}},
      {200, {{{{{.956}, {.882}, {.797}}}, {{{.9998, std::nan(""), 5e-5}, {.828}, {.944}}}}}},
      {400, {{{{{.9988, std::nan(""), 5e-5}, {.961}, {.849}}}, {{{1}, {.850}, {.983}}}}}},
      {1000, {{{{{1}, {.989, .030}, {.859, .050}}}, {{{1}, {.852}, {.995, .005}}}}}},
      {2000, {{{{{1}, {.9955, .006, 5e-5}, {.862, .045}}}, {{{1}, {.851}, {.9965, .003, 5e-5}}}}}},
  };
}

struct LocalEnding {
  double norm = 0;
  bool global = false, local = false;
  double rank_frobenius = 0, rank_nuclear = 0, between = 0;  // correlation of the two solutions
};

struct Measured {
  std::vector<std::int64_t> steps;
  std::array<std::array<std::vector<std::vector<double>>, 3>, 2> curves;  // [model][curve][record][run]
  std::array<std::vector<LocalEnding>, 2> endings;
  std::ptrdiff_t uncertified = 0, unsaturated = 0;
  std::size_t record_at(std::int64_t step) const {
    return static_cast<std::size_t>(std::ranges::find(steps, step) - steps.begin());
  }
  // Of all runs, as the original writes it down in step `step`.
  const std::vector<double>& at(std::size_t model, std::size_t curve, std::int64_t step) const {
    return curves[model][curve][record_at(curve == probability ? step - 1 : step)];
  }
};

Measured measure_runs(const ExperimentContext& context, std::uint64_t seeds, std::uint64_t starts) {
  Measured all;
  for (std::int64_t step = 0; step <= 200; step += 10) all.steps.push_back(step);
  for (std::int64_t step = 220; step <= 400; step += 20) all.steps.push_back(step);
  for (std::int64_t step = 450; step <= 2000; step += 50) all.steps.push_back(step);
  for (const KnownRow& row : known_rows()) all.steps.push_back(row.step - 1);
  std::ranges::sort(all.steps);

  TrainingSet set;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Dataset& data = set.keep(generate(SphereData{.samples = 6, .tokens = 8, .dim = 10, .seed = seed}));
    for (std::uint64_t start = 0; start < starts; ++start) {
      const DescentOptions options{.steps = 2000,
                                   .record = RecordSchedule::at(all.steps),
                                   .init = {.kind = InitKind::uniform, .seed = seed + 1000 * start}};
      set.add(data, W{}, {}, published_rule, options);
      set.add(data, KQ{}, {.penalty = penalty}, published_rule, options);
    }
  }
  const std::vector<DescentRun> runs = train_all(context.part(0, 0.5), set.tasks());
  std::vector<MarginTask> problems;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    problems.push_back({&set.data(i), AttentionSvm{runs[i].selected}, Norm::frobenius()});
    problems.push_back({&set.data(i), AttentionSvm{runs[i].selected}, Norm::nuclear()});
  }
  const std::vector<MarginSolution> solutions = solve_all(context.part(0.5, 0.9), problems);

  for (auto& model : all.curves)
    for (auto& curve : model) curve.assign(all.steps.size(), {});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const DescentRun& run = runs[i];
    const std::size_t model = i % 2;
    const MarginSolution &frobenius = solutions[2 * i], &nuclear = solutions[2 * i + 1];
    all.uncertified +=
        (frobenius.status != MarginStatus::certified) + (nuclear.status != MarginStatus::certified);
    all.unsaturated += run.max_softmax > .99 ? 0 : 1;
    for (std::size_t r = 0; r < all.steps.size(); ++r) {
      const Matrix weights = combined_weights(run.records[r].parameters);
      all.curves[model][probability][r].push_back(run.records[r].max_softmax);
      all.curves[model][with_frobenius][r].push_back(correlation(frobenius.W, weights));
      all.curves[model][with_nuclear][r].push_back(correlation(nuclear.W, weights));
    }
    const Dataset& data = set.data(i);
    const LocalOptimality local =
        local_optimality(data, run.selected, constraints(data, AttentionSvm{run.selected}), frobenius.support,
                         token_scores(set.model(i), run.last()));
    all.endings[model].push_back(
        {.norm = norm(combined_weights(run.last()), Norm::frobenius()),
         .global = run.selected == optimal_tokens(data),
         .local = local.holds,
         .rank_frobenius = static_cast<double>(relative_rank(frobenius.singular_values, 1e-4)),
         .rank_nuclear = static_cast<double>(relative_rank(nuclear.singular_values, 1e-4)),
         .between = correlation(frobenius.W, nuclear.W)});
  }
  return all;
}

// The published means are over 100 runs; where their spread is not known, it is taken to be that of ours.
Finding mean_finding(std::string quantity, const Known& known, const Mean& ours) {
  Finding finding = to_errors(std::move(quantity), known.mean, ours, ReferenceSource::recomputed,
                              (std::isnan(known.deviation) ? ours.deviation : known.deviation) / 10);
  finding.reading = known.reading;
  return finding;
}

// How far the mean of a probability is from 1 is decided by the one or two runs that are late: a spread says nothing.
Finding near_one(std::string quantity, const Known& known, const Mean& ours) {
  return {.quantity = std::move(quantity),
          .published = known.mean,
          .source = ReferenceSource::recomputed,
          .ours = ours.value,
          .tolerance = Tolerance::absolute(.002),
          .note = "the few runs that are late decide"};
}

class P3Local final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {
        .id = "p3-local",
        .paper = "P3",
        .item = "figure of convergence to locally optimal tokens",
        .title = "Do W and (K, Q) converge to different solutions?",
        .summary =
            "Trains W and (K, Q) on random data and compares each run with the Frobenius and the nuclear max-margin "
            "solution of the tokens it ends on.",
        .seconds = 2,
        .quick_seconds = 0.4};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const std::uint64_t seeds = context.quick() ? 30 : 100, starts = context.quick() ? 1 : 4;
    const Measured all = measure_runs(context, seeds, starts);
    ExperimentResult result;
    result.sample =
        fmt::format("{} with {} each", counted(seeds, "data set"), counted(starts, "random start"));
    result.configuration = {
        {"data", fmt::format("unit sphere, n = 6, T = 8, d = 10, seeds 0 to {}", seeds - 1)},
        {"training", "normalized gradient descent, lr 0.1, eps 2.2e-16, 2,000 steps"},
        {"starts",
         fmt::format("{} for each data set: uniform in +-1/sqrt(d), seed of the data + 1000 k", starts)},
        {"(K, Q)", "rank d, penalty 2.2e-16 (|K|^2 + |Q|^2)"},
        {"rank", "singular values above 1e-4 of the largest"}};
    table_findings(all, result.findings);
    ending_findings(all, result.findings);
    figure_findings(all, result.findings);
    result.findings.push_back({.quantity = "max-margin problems without a certificate",
                               .published = 0,
                               .source = ReferenceSource::theory,
                               .ours = static_cast<double>(all.uncertified),
                               .tolerance = Tolerance::absolute(0)});
    result.findings.push_back({.quantity = "runs whose attention is not saturated in the end",
                               .ours = static_cast<double>(all.unsaturated)});
    result.tables = {{"means", means_table(all)}};
    result.figures = {correlation_figure(all), probability_figure(all)};
    const auto end_of = [&](std::size_t curve) { return result.figures.front().series[curve].y.back(); };
    result.conclusion = fmt::format(
        "Trained as W, attention converges to the Frobenius max-margin solution (correlation {:.3f}); trained as K and "
        "Q, to the nuclear one ({:.3f}).",
        end_of(0), end_of(2));
    result.remarks = {
        "The second published plot shows the run of W twice: the curve labeled \"(K, Q)\" is the correlation of W with "
        "the nuclear solution, which stays near 0.86. The correlation of (K, Q) itself rises to 0.9965.",
        "The published starts were not seeded, so means over runs are compared. Where the standard errors of the "
        "published means are unknown, ours are used."};
    return result;
  }

 private:
  static void table_findings(const Measured& all, std::vector<Finding>& findings) {
    for (const KnownRow& row : known_rows())
      for (const std::size_t model : {of_W, of_KQ})
        for (const std::size_t curve : {probability, with_frobenius, with_nuclear}) {
          const Known& known = row.cells[model][curve];
          const bool late = curve == probability && known.mean > .99;
          findings.push_back((late ? near_one : mean_finding)(
              fmt::format("{}, step {}: {}", model_names[model], row.step, curve_names[curve]), known,
              mean_of(all.at(model, curve, row.step))));
        }
  }

  static Mean mean_ending(const std::vector<LocalEnding>& endings, double LocalEnding::*what) {
    std::vector<double> values;
    for (const LocalEnding& ending : endings) values.push_back(ending.*what);
    return mean_of(values);
  }

  static void ending_findings(const Measured& all, std::vector<Finding>& findings) {
    struct KnownEnding {
      double global, local, norm;
    };
    const std::array<KnownEnding, 2> known{{{.71, .98, 120}, {.75, .96, 127}}};
    for (const std::size_t model : {of_W, of_KQ}) {
      const std::vector<LocalEnding>& endings = all.endings[model];
      const auto share = [&](bool LocalEnding::*what) {
        return share_of(std::ranges::count(endings, true, what), std::ssize(endings));
      };
      const auto known_share = [](double value) {
        return Known{value, std::sqrt(value * (1 - value)), 5e-3};
      };
      const auto name = [&](const char* what) { return fmt::format("{}: {}", model_names[model], what); };
      findings.push_back(mean_finding(name("share of runs on the globally optimal tokens"),
                                      known_share(known[model].global), share(&LocalEnding::global)));
      findings.push_back(mean_finding(name("share of runs on locally optimal tokens"),
                                      known_share(known[model].local), share(&LocalEnding::local)));
      findings.push_back(mean_finding(name("Frobenius norm of the weights, step 2000"),
                                      {known[model].norm, std::nan(""), .5},
                                      mean_ending(endings, &LocalEnding::norm)));
    }
    const std::vector<LocalEnding>& endings = all.endings[of_W];
    findings.push_back(mean_finding("rank of the Frobenius solutions", {6.0, std::nan(""), .05},
                                    mean_ending(endings, &LocalEnding::rank_frobenius)));
    findings.push_back(mean_finding("rank of the nuclear solutions", {3.2, std::nan(""), .05},
                                    mean_ending(endings, &LocalEnding::rank_nuclear)));
    findings.push_back(mean_finding("correlation of the two solutions", {.857},
                                    mean_ending(endings, &LocalEnding::between)));
  }

  // What the authors' stored figure shows.
  static void figure_findings(const Measured& all, std::vector<Finding>& findings) {
    const auto mean = [&](Model model, Curve curve, std::int64_t step) {
      return mean_of(all.curves[model][curve][all.record_at(step)]);
    };
    const auto add = [&](const char* quantity, double published, double reading, const Mean& ours) {
      findings.push_back({.quantity = quantity,
                          .published = published,
                          .source = ReferenceSource::figure,
                          .ours = ours.value,
                          .standard_error = ours.error,
                          .published_error = ours.deviation / 10,
                          .reading = reading,
                          .tolerance = Tolerance::standard_errors(3)});
    };
    add("figure, first plot: largest attention probability of W, step 300", 1, .01,
        mean(of_W, probability, 300));
    add("figure, second plot, curve \"W\", step 1000", .993, 5e-4, mean(of_W, with_frobenius, 1000));
    add("figure, second plot, curve \"(K, Q)\", step 1000", .862, 5e-4, mean(of_KQ, with_nuclear, 1000));
    const Mean drawn = mean(of_W, with_nuclear, 1000);
    findings.back().imitated = drawn.value;
    findings.back().imitated_error = drawn.error;
    findings.back().published_error = drawn.deviation / 10;
    findings.back().note = "the curve shows the run of W with the nuclear solution, not that of (K, Q)";
  }

  static Table means_table(const Measured& all) {
    Table table{.title = "Means over runs, with standard deviations", .columns = {{"step"}}};
    for (const char* model : model_names)
      for (const char* curve : {"probability", "Frobenius", "nuclear"})
        table.columns.push_back({fmt::format("{}: {}", model, curve)});
    for (const KnownRow& row : known_rows()) {
      std::vector<std::string> cells{fmt::format("{}", row.step)};
      for (const std::size_t model : {of_W, of_KQ})
        for (const std::size_t curve : {probability, with_frobenius, with_nuclear}) {
          const Mean mean = mean_of(all.at(model, curve, row.step));
          cells.push_back(fmt::format("{:.4f} ± {:.4f}", mean.value, mean.deviation));
        }
      table.rows.push_back(std::move(cells));
    }
    return table;
  }

  static Series curve_of(const Measured& all, Model model, Curve curve, std::string name) {
    Series series{.name = std::move(name)};
    for (std::size_t r = 0; r < all.steps.size(); ++r) {
      const Mean mean = mean_of(all.curves[model][curve][r]);
      series.x.push_back(static_cast<double>(all.steps[r]));
      series.y.push_back(mean.value);
      series.low.push_back(mean.value - mean.error);
      series.high.push_back(mean.value + mean.error);
    }
    return series;
  }

  static Figure correlation_figure(const Measured& all) {
    Figure figure{
        .id = "correlations",
        .title = "W turns to the Frobenius solution, K Q^T to the nuclear one",
        .caption =
            "Mean over runs with its standard error. The published plot shows the two curves of W, the lower "
            "one labeled (K, Q).",
        .x = {.label = "step k"},
        .y = {.label = "correlation with the max-margin solution"}};
    figure.series = {curve_of(all, of_W, with_frobenius, "W with the Frobenius solution"),
                     curve_of(all, of_W, with_nuclear, "W with the nuclear solution"),
                     curve_of(all, of_KQ, with_nuclear, "K Q^T with the nuclear solution"),
                     curve_of(all, of_KQ, with_frobenius, "K Q^T with the Frobenius solution")};
    for (std::size_t s = 0; s < 4; ++s) {
      figure.series[s].color = s < 2 ? 0 : 1;
      if (s % 2 == 1) figure.series[s].dash = Series::Dash::dashed;
    }
    lead_with(
        figure,
        fmt::format("In the end W has a correlation of {:.3f} with the Frobenius solution and {:.3f} with "
                    "the nuclear one; K Q^T has {:.3f} and {:.3f}.",
                    figure.series[0].y.back(), figure.series[1].y.back(), figure.series[3].y.back(),
                    figure.series[2].y.back()));
    figure.description = fmt::format(
        "Correlations against the step. In the end W has {:.4f} with the Frobenius and {:.3f} with the "
        "nuclear solution, K Q^T has {:.4f} with the nuclear and {:.3f} with the Frobenius one.",
        figure.series[0].y.back(), figure.series[1].y.back(), figure.series[2].y.back(),
        figure.series[3].y.back());
    return figure;
  }

  static Figure probability_figure(const Measured& all) {
    Figure figure{.id = "probabilities",
                  .title = "Attention concentrates on one token",
                  .x = {.label = "step k", .range = {{0, 500}}},
                  .y = {.label = "largest attention probability, mean over sequences"}};
    figure.series = {curve_of(all, of_W, probability, "W"), curve_of(all, of_KQ, probability, "(K, Q)")};
    lead_with(
        figure,
        fmt::format("The largest attention probability reaches {:.3f} at step 300 for W and {:.3f} at step "
                    "100 for (K, Q).",
                    figure.series[0].y[all.record_at(300)], figure.series[1].y[all.record_at(100)]));
    figure.description = fmt::format(
        "The mean largest attention probability rises from {:.3f} to {:.4f} at step 300 for W, and to "
        "{:.4f} at step 100 for (K, Q).",
        figure.series[0].y.front(), figure.series[0].y[all.record_at(300)],
        figure.series[1].y[all.record_at(100)]);
    return figure;
  }
};

}  // namespace

ExperimentPointer make_p3_local() { return std::make_unique<P3Local>(); }

}  // namespace attmirror
