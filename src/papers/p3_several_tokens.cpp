// P3: with a nonlinear head attention may keep several tokens of a sequence. The weights are then conjectured to be
//
//   W  ~  W_fin + R W_dir,   R growing,
//
// where W_dir, the solution of the general SVM, separates the kept tokens O_i from the others and does not distinguish
// within O_i, and W_fin is the smallest matrix with the right ratios of probabilities within O_i.
//
// n = 3 sequences of T = 4 tokens, d in {4, 6, 8, 10}, head 1^T ReLU(V^T u) with V and data drawn from seeds 0, 1, 2,
// ...; normalized gradient descent with step 0.1 and eps = 2.2e-16 from uniform in +-1/sqrt(d), 2,001 steps. For each
// d the first 500 data sets are taken of which the following holds: a label is -1; after training every probability
// is either above 1e-3 (kept) or at most 1e-6 (masked), and some are masked; the SVMs have solutions.
//
// Compared are the correlations of W after steps 1, 101, ..., 2001 with W_fin + R W_dir (R fitted to the last W),
// with W_dir alone, and with the SVM of a single token per sequence, that of the largest probability. Starts were not
// seeded: which data sets are accepted differs in part, and means are compared within their standard errors.
//
// The distances have heavy tails: a few runs that are still far from their limit carry most of the mean. How much of it
// is said beside every mean, by the share of the sum that the largest 5 % of the runs have (5 % if all were equal).
#include "papers/experiments.hpp"
#include "papers/several_tokens_study.hpp"
#include "papers/shorthand.hpp"
#include "papers/training_set.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

#include <fmt/format.h>

namespace attmirror {

namespace {

using namespace several_tokens;

// What is known of one d: recomputed, and read off the figure (NaN: not known).
struct KnownStudy {
  std::int64_t d;
  double tried, kept, after_100, median;
  std::array<double, 3> recomputed, figure, last_digits;  // mean distances in the end, by target
};

// The share of the sum that the largest twentieth of the values has.
double tail_share(std::vector<double> values) {
  std::ranges::sort(values, std::greater<>());
  const auto largest = static_cast<std::ptrdiff_t>((values.size() + 19) / 20);
  return std::accumulate(values.begin(), values.begin() + largest, 0.0) /
         std::accumulate(values.begin(), values.end(), 0.0);
}

std::vector<KnownStudy> known_studies() {
  const double none = std::nan("");
  return {{4, 2712, 1.78, .179, .0048, {.0364, .0716, .158}, {.034, .071, .155}, {5e-4, 5e-4, 5e-4}},
          {6, 5242, 1.85, .141, .0026, {none, none, none}, {.0165, .043, .145}, {5e-5, 5e-4, 5e-4}},
          {8, 11648, 1.79, .114, .0024, {none, none, none}, {.011, .015, .135}, {5e-4, 5e-4, 5e-4}},
          {10, 28079, 1.72, .101, .0022, {.0063, .0077, .119}, {.0056, .0087, .123}, {5e-5, 5e-5, 5e-4}}};
}

class P3SeveralTokens final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {
        .id = "p3-several-tokens",
        .paper = "P3",
        .item = "figures of nonlinear heads that keep several tokens",
        .title = "Where does attention converge when it keeps several tokens?",
        .summary =
            "Trains attention under a ReLU head on random data, takes the runs in which every token is either kept or "
            "masked, and compares W with the general SVM.",
        .seconds = 11,
        .quick_seconds = 0.3};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const std::size_t wanted = context.quick() ? 60 : 500;
    std::vector<KnownStudy> known = known_studies();
    if (context.quick()) known.resize(2);
    double total = 0, done = 0;
    for (const KnownStudy& one : known) total += one.tried;
    std::vector<Study> studies;
    for (const KnownStudy& one : known) {
      const double from = done / total, expected = one.tried * static_cast<double>(wanted) / 500;
      done += one.tried;
      studies.push_back(measure(context.part(0.95 * from, 0.95 * done / total), one.d, wanted, expected));
    }
    const std::vector<double> longer = without_eps(context.part(0.95, 1), studies.back(), wanted / 5);
    ExperimentResult result;
    result.sample =
        fmt::format("{} accepted in each of {} dimensions", counted(wanted, "run"), studies.size());
    result.configuration = {
        {"data", fmt::format("ReLU head, n = 3, T = 4, seeds from 0 on until {} are accepted", wanted)},
        {"training", "normalized gradient descent, lr 0.1, eps 2.2e-16, 2,001 steps"},
        {"start", "uniform in +-1/sqrt(d), seed of the data"},
        {"accepted",
         "a label is -1; every probability at step 2,000 is above 1e-3 or at most 1e-6, some are at most "
         "1e-6; the SVMs have solutions"}};
    for (std::size_t k = 0; k < studies.size(); ++k) study_findings(known[k], studies[k], result.findings);
    overall_findings(studies, result.findings);
    longer_finding(studies.back(), longer, result.findings);
    result.tables = {{"distances", distances_table(studies)}};
    result.figures = {path_figure(studies), scatter_figure(studies)};
    const auto& drawn = result.figures.front().series;
    result.conclusion = fmt::format(
        "A nonlinear head keeps several tokens: at d = {} the weights end {:.0f} times closer to the general SVM than to "
        "the SVM of a single token.",
        studies.front().d, drawn[2].y.back() / drawn[0].y.back());
    result.remarks = {
        "W comes closer to W_fin + R W_dir than to W_dir alone, and both are far closer than the SVM of one token each: a "
        "nonlinear head does keep several tokens.",
        heavy_tails(studies),
        "Where the largest masked probability is still 10^-9 or more, "
        "training is not finished and 1 − correlation is as large as a few tenths. Where it is 10^-15, about 0.002 is "
        "left, because eps stops the weights there; without eps, and ten times as long, the distance keeps falling.",
        "The published starts were not seeded, so a data set accepted here may have been skipped there; counts and "
        "means agree within their standard errors. Where the standard errors of the original are unknown, ours are "
        "used."};
    return result;
  }

 private:
  static void study_findings(const KnownStudy& known, const Study& study, std::vector<Finding>& findings) {
    const auto add_mean = [&](std::string quantity, double published, ReferenceSource source, double reading,
                              const Mean& ours, std::string note = {}) {
      if (std::isnan(published)) return;
      findings.push_back({.quantity = std::move(quantity),
                          .published = published,
                          .source = source,
                          .ours = ours.value,
                          .standard_error = ours.error,
                          .published_error = ours.deviation / std::sqrt(500.0),
                          .reading = reading,
                          .tolerance = Tolerance::standard_errors(3),
                          .note = std::move(note)});
    };
    for (const Target target : {equivalent, direction, single_token}) {
      const std::vector<double> distances = distances_at(study, target, 2000);
      const Mean mean = mean_of(distances);
      const std::string tail = fmt::format("median {:.4f}; the largest 5 % of the runs carry {:.0f} % of it",
                                           median_of(distances), 100 * tail_share(distances));
      const std::string what =
          fmt::format("d = {}: mean 1 - correlation with {}, step 2000", known.d, target_names[target]);
      add_mean("figure, " + what, known.figure[target], ReferenceSource::figure, known.last_digits[target],
               mean, tail);
      add_mean(what, known.recomputed[target], ReferenceSource::recomputed, 5e-5, mean, tail);
    }
    add_mean(fmt::format("d = {}: mean 1 - correlation with W_fin + R W_dir, step 100", known.d),
             known.after_100, ReferenceSource::recomputed, 5e-4,
             mean_of(distances_at(study, equivalent, 100)));
    median_finding(known, study, findings);
    std::vector<double> kept;
    for (const Accepted& one : study.accepted) kept.push_back(one.kept_per_sequence);
    add_mean(fmt::format("d = {}: kept tokens per sequence", known.d), known.kept,
             ReferenceSource::recomputed, 5e-3, mean_of(kept));
    // Waiting for k successes of probability q takes k/q tries, give or take sqrt(k (1 - q)) / q.
    const auto tried = static_cast<double>(study.tried),
               accepted = static_cast<double>(study.accepted.size());
    const double q = accepted / tried;
    findings.push_back({.quantity = fmt::format("d = {}: data sets tried for 500 accepted", known.d),
                        .published = known.tried,
                        .source = ReferenceSource::recomputed,
                        .ours = 500 / q,
                        .standard_error = 500 / q * std::sqrt((1 - q) / accepted),
                        .published_error = 500 / q * std::sqrt((1 - q) / 500),
                        .tolerance = Tolerance::standard_errors(3),
                        .digits = 6});
  }

  static std::string heavy_tails(const std::vector<Study>& studies) {
    std::string text = "The distances from W_fin + R W_dir have heavy tails:";
    for (std::size_t k = 0; k < studies.size(); ++k) {
      const std::vector<double> distances = distances_at(studies[k], equivalent, 2000);
      text += fmt::format(
          "{} at d = {} the mean is {:.1f} times the median, and the largest 5 % of the runs carry "
          "{:.0f} % of it",
          k == 0 ? "" : ";", studies[k].d, mean_of(distances).value / median_of(distances),
          100 * tail_share(distances));
    }
    return text + ". A mean over 500 such runs depends on a few of them, and so does its standard error.";
  }

  static void longer_finding(const Study& study, const std::vector<double>& longer,
                             std::vector<Finding>& findings) {
    std::vector<double> before;
    for (std::size_t i = 0; i < longer.size(); ++i)
      before.push_back(study.accepted[i].distances[equivalent].back());
    findings.push_back(
        {.quantity = fmt::format(
             "d = {}, without eps: median 1 - correlation with W_fin + R W_dir, step 20000", study.d),
         .published = 0,
         .source = ReferenceSource::theory,
         .ours = median_of(longer),
         .tolerance = Tolerance::at_most(5e-4),
         .note = fmt::format("W turns to it as conjectured: {:.1e} for the same {} runs at step 2000",
                             median_of(before), longer.size()),
         .digits = 2});
  }

  // The standard error of a median from the order statistics about it: those of ranks n/2 +- sqrt(n)/2 are one
  // standard error apart from it on either side.
  static void median_finding(const KnownStudy& known, const Study& study, std::vector<Finding>& findings) {
    std::vector<double> values = distances_at(study, equivalent, 2000);
    std::ranges::sort(values);
    const auto n = static_cast<double>(values.size());
    const double low = values[static_cast<std::size_t>(n / 2 - std::sqrt(n) / 2)],
                 high = values[static_cast<std::size_t>(n / 2 + std::sqrt(n) / 2)];
    const double error = (high - low) / 2;
    findings.push_back(
        {.quantity = fmt::format("d = {}: median 1 - correlation with W_fin + R W_dir, step 2000", known.d),
         .published = known.median,
         .source = ReferenceSource::recomputed,
         .ours = median_of(values),
         .standard_error = error,
         .published_error = error * std::sqrt(n / 500),
         .reading = 5e-5,
         .tolerance = Tolerance::standard_errors(3)});
  }

  static void overall_findings(const std::vector<Study>& studies, std::vector<Finding>& findings) {
    double lowest = 2, highest = 0, error = 0, unsolved = 0;
    std::ptrdiff_t nearer = 0, all = 0;
    std::vector<double> saturated, unfinished;
    for (const Study& study : studies) {
      for (const Target target : {equivalent, direction, single_token}) {
        const Mean mean = mean_of(distances_at(study, target, 0));
        lowest = std::min(lowest, mean.value);
        highest = std::max(highest, mean.value);
        error = std::max(error, mean.error);
      }
      unsolved += static_cast<double>(study.infeasible + study.stopped);
      for (const Accepted& one : study.accepted) {
        const double end = one.distances[equivalent].back();
        if (one.largest_masked <= 1e-15) saturated.push_back(end);
        if (one.largest_masked > 1e-9) unfinished.push_back(end);
        nearer += end <= one.distances[direction].back() ? 1 : 0;
        ++all;
      }
    }
    findings.push_back({.quantity = "step 0: smallest mean 1 - correlation of all d and targets",
                        .published = .90,
                        .source = ReferenceSource::recomputed,
                        .ours = lowest,
                        .reading = .005,
                        .tolerance = Tolerance::at_least(3 * error),
                        .note = "a random start has hardly any correlation with where it will go"});
    findings.push_back({.quantity = "step 0: largest mean 1 - correlation of all d and targets",
                        .published = .96,
                        .source = ReferenceSource::recomputed,
                        .ours = highest,
                        .reading = .005,
                        .tolerance = Tolerance::at_most(3 * error)});
    findings.push_back(
        {.quantity = "scatter: median 1 - correlation where masked probabilities are at most 1e-15",
         .published = 2e-3,
         .source = ReferenceSource::figure,
         .ours = median_of(saturated),
         .reading = 5e-4,
         .tolerance = Tolerance::absolute(0),
         .note = fmt::format("of {} points", saturated.size())});
    std::ranges::sort(unfinished);
    findings.push_back(
        {.quantity = "scatter: 99 % of the points with a masked probability above 1e-9 are below",
         .published = .3,
         .source = ReferenceSource::figure,
         .ours = unfinished.empty() ? std::nan("") : unfinished[(unfinished.size() - 1) * 99 / 100],
         .reading = .05,
         .tolerance = Tolerance::at_most(),
         .note = unfinished.empty() ? ""
                                    : fmt::format("of {} points; the largest is {:.2f}", unfinished.size(),
                                                  unfinished.back())});
    findings.push_back({.quantity = "share of runs nearer to W_fin + R W_dir than to W_dir",
                        .ours = static_cast<double>(nearer) / static_cast<double>(all)});
    findings.push_back({.quantity = "max-margin problems of accepted runs without a certified solution",
                        .published = 0,
                        .source = ReferenceSource::theory,
                        .ours = unsolved,
                        .tolerance = Tolerance::absolute(0),
                        .note = "d is at least T - 1 and n, so every selection can be separated"});
  }

  static Table distances_table(const std::vector<Study>& studies) {
    Table table{
        .title = "Mean 1 - correlation, with standard errors",
        .columns = {
            {"d"}, {"step"}, {"W_fin + R W_dir"}, {"its median"}, {"largest 5 %"}, {"W_dir"}, {"one token"}}};
    for (const Study& study : studies)
      for (const std::int64_t it : {0, 100, 500, 1000, 2000}) {
        const auto cell = [&](Target target) {
          const Mean mean = mean_of(distances_at(study, target, it));
          return fmt::format("{:.4f} ± {:.4f}", mean.value, mean.error);
        };
        table.rows.push_back(
            {fmt::format("{}", study.d), fmt::format("{}", it), cell(equivalent),
             fmt::format("{:.4f}", median_of(distances_at(study, equivalent, it))),
             fmt::format("{:.0f} % of the mean", 100 * tail_share(distances_at(study, equivalent, it))),
             cell(direction), cell(single_token)});
      }
    return table;
  }

  static Figure path_figure(const std::vector<Study>& studies) {
    Figure figure{
        .id = "paths",
        .title = "W converges to W_fin + R W_dir, not to the SVM of one token",
        .caption = "Mean over runs with its standard error, for the smallest and the largest dimension d.",
        .x = {.label = "step k"},
        .y = {.label = "1 − correlation with the solution", .scale = Axis::Scale::log}};
    const std::array dashes{Series::Dash::solid, Series::Dash::dashed, Series::Dash::dotted};
    for (const std::size_t k : {std::size_t{0}, studies.size() - 1})
      for (const Target target : {equivalent, direction, single_token}) {
        Series series{.name = fmt::format("d = {}, {}", studies[k].d, target_names[target]),
                      .dash = dashes[target],
                      .color = k == 0 ? 0 : 1};
        for (std::int64_t it = 0; it <= steps; it += 100) {
          const Mean mean = mean_of(distances_at(studies[k], target, it));
          series.x.push_back(static_cast<double>(it));
          series.y.push_back(mean.value);
          series.low.push_back(mean.value - mean.error);
          series.high.push_back(mean.value + mean.error);
        }
        figure.series.push_back(std::move(series));
      }
    lead_with(
        figure,
        fmt::format("At step 2,000 and d = {}, 1 − correlation is {:.3f} with W_fin + R W_dir, {:.3f} with "
                    "W_dir alone and {:.3f} with the SVM of one token each.",
                    studies.front().d, figure.series[0].y.back(), figure.series[1].y.back(),
                    figure.series[2].y.back()));
    figure.description = fmt::format(
        "One minus the correlation against the step. At step 2,000: d = {}: {:.4f}, {:.4f} and {:.3f}; d = "
        "{}: {:.4f}, {:.4f} and {:.3f} for W_fin + R W_dir, W_dir and one token each.",
        studies.front().d, figure.series[0].y.back(), figure.series[1].y.back(), figure.series[2].y.back(),
        studies.back().d, figure.series[3].y.back(), figure.series[4].y.back(), figure.series[5].y.back());
    return figure;
  }

  static Figure scatter_figure(const std::vector<Study>& studies) {
    Figure figure{
        .id = "masked-probabilities",
        .title = "Runs that have not masked a token yet are the ones far from their limit",
        .caption = "Each point is a run after its last step.",
        .x = {.label = "largest attention probability of a masked token", .scale = Axis::Scale::log},
        .y = {.label = "1 − correlation with W_fin + R W_dir", .scale = Axis::Scale::log}};
    std::string outcome;
    std::vector<double> masked, unfinished;
    for (const Study& study : studies) {
      Series series{.name = fmt::format("d = {}", study.d), .mark = Series::Mark::points};
      for (std::size_t i = 0; i < study.accepted.size() && i < 250; ++i) {
        const Accepted& one = study.accepted[i];
        series.x.push_back(one.largest_masked);
        series.y.push_back(one.distances[equivalent].back());
        series.labels.push_back(fmt::format("seed {}, R = {:.3g}", one.seed, one.R));
      }
      for (const Accepted& one : study.accepted) {
        if (one.largest_masked <= 1e-15) masked.push_back(one.distances[equivalent].back());
        if (one.largest_masked > 1e-9) unfinished.push_back(one.distances[equivalent].back());
      }
      const auto arrived = std::ranges::count_if(
          study.accepted, [](const Accepted& one) { return one.largest_masked <= 1e-13; });
      outcome +=
          fmt::format(" d = {}: {:.0f} % of the runs have masked probabilities of at most 1e-13.", study.d,
                      100 * static_cast<double>(arrived) / static_cast<double>(study.accepted.size()));
      figure.series.push_back(std::move(series));
    }
    lead_with(
        figure,
        fmt::format("The median of 1 − correlation is {:.1e} where all masked probabilities are at most "
                    "10^-15, and {:.1e} where one is above 10^-9.",
                    median_of(masked), median_of(unfinished)));
    figure.description = fmt::format(
        "A scatter plot of the first 250 runs of each d, both axes logarithmic. The median of 1 - "
        "correlation is {:.1e} where masked probabilities are at most 1e-15 and {:.1e} where one is above "
        "1e-9.{}",
        median_of(masked), median_of(unfinished), outcome);
    return figure;
  }
};

}  // namespace

ExperimentPointer make_p3_several_tokens() { return std::make_unique<P3SeveralTokens>(); }

}  // namespace attmirror
