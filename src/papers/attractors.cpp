// Partial attractors: why training can end on wrong tokens although all but the best have equal scores.
//
// P2 has a statement on global convergence under equal scores of all tokens but the best, whose exact
// assumptions we do not have; in runs of ours with several inputs, some starts end on wrong tokens.
// sweep/attractors.hpp explains them: the max-margin solution of some sequences may leave the best token of
// another one behind by more than the margin, and then the pull of that sequence decays faster than theirs.
// Here the list of attractors, each certified, is held against where training ends. What is found is ours.
//
//   data       n sequences of T tokens on the unit sphere in d dimensions; token 0 has score 1, all others 1/2, in
//              one more coordinate that a prompt's keys do not see; the first 32 seeds for which some prompt selects
//              all best tokens
//   starts     32 for each data set, entries N(0, s^2) with s such that a typical logit is 1
//   training   normalized descent, 4,000 steps of four lengths (train_starts())
#include "papers/attractor_points.hpp"
#include "papers/experiments.hpp"
#include "papers/shorthand.hpp"
#include <attmirror/sweep/attractors.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

namespace attmirror {

namespace {

// The integer example of docs/attractors.md.
Dataset attractor_example() {
  DatasetArrays arrays;
  arrays.tokens.resize(6, 2);
  arrays.tokens << 1, 0, 0, 1, 0, -1, 0, 3, 2, 0, 2, -1;
  arrays.lengths = {3, 3};
  arrays.queries.resize(2, 2);
  arrays.queries << 1, 0, 1, 0;
  arrays.labels = {1, -1};
  arrays.decoder = vector_of({1, 0});
  return Dataset(arrays);
}

std::vector<AttractorPoint> attractor_points(bool quick) {
  std::vector<AttractorPoint> points;
  const auto add = [&](AttractorPoint point, double x) {
    point.x = x;
    points.push_back(std::move(point));
  };
  for (const std::int64_t n :
       quick ? std::vector<std::int64_t>{1, 4} : std::vector<std::int64_t>{1, 2, 3, 4, 6})
    add({.axis = "n", .samples = n}, static_cast<double>(n));
  if (quick) return points;
  for (const std::int64_t T : {2, 3, 4, 5}) add({.axis = "T", .tokens = T}, static_cast<double>(T));
  for (const std::int64_t d : {4, 6, 8, 12}) add({.axis = "d", .dim = d}, static_cast<double>(d));
  for (const double p : {1.25, 1.5, 2.0, 3.0}) add({.axis = "p", .p = p}, p);
  for (const double start : {0.1, 1.0, 10.0}) add({.axis = "start", .start = start}, start);
  for (const std::int64_t n : {2, 4, 8})
    add({.axis = "n, W", .params = "W", .samples = n, .tokens = 3, .dim = 3}, static_cast<double>(n));
  for (const std::int64_t n : {2, 4, 8})
    add({.axis = "n, KQ", .params = "KQ", .samples = n, .tokens = 3, .dim = 3}, static_cast<double>(n));
  return points;
}

class AttractorsExperiment final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {
        .id = "attractors",
        .paper = "ours",
        .item = "global convergence under equal scores, which P2 and P3 discuss",
        .title = "Which wrong tokens can training end on?",
        .summary =
            "Finds the attractors of data whose tokens other than the best have equal scores, certifies each, and "
            "trains from many starts to see which of them training ends on.",
        .seconds = 8,
        .quick_seconds = 0.4};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const std::uint64_t sets = context.quick() ? 4 : 32, starts = context.quick() ? 16 : 32;
    const std::vector<AttractorPoint> points = attractor_points(context.quick());
    std::vector<std::vector<AttractorOutcome>> outcomes(points.size());
    std::vector<AttractorOutcome> all;
    for (std::size_t k = 0; k < points.size(); ++k) {
      const auto known = std::ranges::find_if(
          points.begin(), points.begin() + static_cast<std::ptrdiff_t>(k),
          [&](const AttractorPoint& earlier) { return earlier.same_settings(points[k]); });
      if (const auto index = static_cast<std::size_t>(known - points.begin()); index < k) {
        outcomes[k] = outcomes[index];
        continue;
      }
      const auto from = static_cast<double>(k), count = static_cast<double>(points.size());
      outcomes[k] = run_attractor_point(context.part(from / count, (from + 1) / count), points[k], sets,
                                        starts, is_base(points[k]) ? (context.quick() ? 1 : 8) : 0);
      // The point that several axes share counts once.
      all.insert(all.end(), outcomes[k].begin(), outcomes[k].end());
    }
    ExperimentResult result;
    result.sample = fmt::format("{} at each of {} points, {} each", counted(sets, "data set"), points.size(),
                                counted(starts, "random start"));
    result.configuration = {
        {"data",
         "unit sphere, token 0 with score 1 and all others with score 1/2; prompts do not see the scores, W and K, Q do; the first seeds from 0 on whose best tokens can be selected"},
        {"sizes",
         "n = 4, T = 4, d = 6, p = 2 and a prompt, except for what a row names; W and K, Q: T = 3, d = 3"},
        {"starts",
         fmt::format(
             "{} for each data set, entries N(0, s²), a typical logit is 1; seeds 1000 times that of the data, and on",
             starts)},
        {"training",
         "normalized gradient or mirror descent, 1,000 steps each of four lengths, the first of a twentieth of a logit"},
        {"decided", "the token on top is 30 logits ahead of tokens with other scores"},
        {"certificates",
         "max-margin solution to a gap of 1e-10 (K, Q: 1e-8), deficits above 1 by more than the gap leaves open"}};
    add_findings(points, outcomes, all, result);
    result.tables = {{"points", point_table(points, outcomes)}};
    for (const auto& [axis, label, title] :
         {std::tuple("n", "number of sequences n", "With more sequences, more starts end on wrong tokens"),
          std::tuple("T", "tokens of a sequence T", "Partial attractors against the number of tokens"),
          std::tuple("d", "dimension d", "Partial attractors against the dimension"),
          std::tuple("p", "p of mirror descent", "Partial attractors against the geometry")})
      if (!context.quick() || std::string_view(axis) == "n")
        result.figures.push_back(share_figure(points, outcomes, axis, label, title));
    result.remarks = {
        "Standard errors are those of a mean over data sets, because starts of one data set are not independent.",
        "A start counts as elsewhere if its attention is decided on tokens of no attractor. For prompts, these are starts on data whose best tokens need very large weights: the direction still turns when the steps end.",
        "K and Q are normalized separately, so their sizes drift apart, and their limit is only near the solution of least nuclear norm (correlation 0.998 in one case). Where a deficit is close to 1, that decides differently, and a few starts end elsewhere for good."};
    return result;
  }

 private:
  static bool is_base(const AttractorPoint& point) { return point.axis == "n" && point.samples == 4; }

  static std::int64_t sum(const std::vector<AttractorOutcome>& outcomes,
                          std::int64_t AttractorOutcome::*member) {
    std::int64_t total = 0;
    for (const AttractorOutcome& one : outcomes) total += one.*member;
    return total;
  }

  static std::int64_t runs_of(const AttractorOutcome& one) {
    return one.whole_ends + one.partial_ends + one.elsewhere + one.undecided_ends;
  }

  // Of the starts of each data set, the share that ends on a partial attractor.
  static Mean partial_share(const std::vector<AttractorOutcome>& outcomes) {
    std::vector<double> shares;
    for (const AttractorOutcome& one : outcomes)
      shares.push_back(static_cast<double>(one.partial_ends) / static_cast<double>(runs_of(one)));
    return mean_of(shares);
  }

  static Mean with_partial(const std::vector<AttractorOutcome>& outcomes) {
    return share_of(
        std::ranges::count_if(outcomes, [](const AttractorOutcome& one) { return one.partial > 0; }),
        std::ssize(outcomes));
  }

  static std::string name_of(const AttractorPoint& point) {
    if (point.axis == "start") return fmt::format("start with logits of {:g}", point.start);
    if (point.axis == "p") return fmt::format("p = {:g}", point.p);
    if (point.axis.starts_with("n, ")) return fmt::format("{}, n = {:g}", point.params, point.x);
    return fmt::format("{} = {:g}", point.axis, point.x);
  }

  static void add_findings(const std::vector<AttractorPoint>& points,
                           const std::vector<std::vector<AttractorOutcome>>& outcomes,
                           const std::vector<AttractorOutcome>& all, ExperimentResult& result) {
    const Dataset data = attractor_example();
    const Attractors example = attractors(Attention(data, Prompt{}));
    auto& findings = result.findings;
    const auto exact = [&](const char* quantity, double expected, double ours, std::string note) {
      findings.push_back({.quantity = quantity,
                          .published = expected,
                          .source = ReferenceSource::theory,
                          .ours = ours,
                          .tolerance = Tolerance::absolute(1e-9),
                          .note = std::move(note)});
    };
    exact("integer example: partial attractors", 1,
          static_cast<double>(example.count(AttractorKind::partial)), "by hand: docs/attractors.md");
    exact("integer example: deficit of its partial attractor", 2,
          example.list.back().certificate.least_deficit, "by hand");
    const auto ends = [&](auto applies, std::int64_t AttractorOutcome::*first,
                          std::int64_t AttractorOutcome::*second) {
      std::int64_t hits = 0;
      for (const AttractorOutcome& one : all)
        if (applies(one)) hits += one.*first + one.*second;
      return hits;
    };
    const auto runs = [&](auto applies) {
      std::int64_t total = 0;
      for (const AttractorOutcome& one : all)
        if (applies(one)) total += runs_of(one);
      return total;
    };
    const auto none = [&](const char* quantity, auto applies) {
      exact(quantity, 0,
            static_cast<double>(ends(applies, &AttractorOutcome::partial_ends, &AttractorOutcome::elsewhere)),
            fmt::format("of {} starts; our argument, see docs/attractors.md", runs(applies)));
    };
    const auto excluded = [](const AttractorOutcome& one) { return one.partial == 0 && !one.factored; };
    findings.push_back(new_number(
        "W and prompts without a partial attractor: starts that end on wrong tokens",
        static_cast<double>(ends(excluded, &AttractorOutcome::partial_ends, &AttractorOutcome::elsewhere))));
    findings.back().note = fmt::format("of {} starts", runs(excluded));
    none("data on which no two sequences compete: starts that end on wrong tokens",
         [](const AttractorOutcome& one) { return one.condition; });
    const std::int64_t checks = sum(all, &AttractorOutcome::checks),
                       held = sum(all, &AttractorOutcome::checks_held);
    findings.push_back(new_number("attractors that plain and normalized descent and the flow confirm, share",
                                  share_of(held, checks).value));
    findings.back().note = fmt::format("{} of {}, from starts near them", held, checks);
    const std::int64_t total = runs([](const AttractorOutcome&) { return true; });
    findings.push_back(new_number("choices of tokens without a certificate either way",
                                  static_cast<double>(sum(all, &AttractorOutcome::undecided))));
    findings.push_back(new_number(
        "starts that end on a certified attractor, share",
        share_of(sum(all, &AttractorOutcome::whole_ends) + sum(all, &AttractorOutcome::partial_ends), total)
            .value));
    findings.back().note =
        fmt::format("of {}; {} are elsewhere, {} undecided", total, sum(all, &AttractorOutcome::elsewhere),
                    sum(all, &AttractorOutcome::undecided_ends));
    const std::int64_t flows = sum(all, &AttractorOutcome::flows),
                       same = sum(all, &AttractorOutcome::same_flows);
    findings.push_back(new_number("starts that the flow to time 1e300 takes to the same attractor, share",
                                  share_of(same, flows).value));
    findings.back().note = fmt::format("{} of {}", same, flows);
    for (std::size_t k = 0; k < points.size(); ++k) {
      const Mean share = partial_share(outcomes[k]);
      findings.push_back(
          new_number(fmt::format("{}: starts that end on a partial attractor, share", name_of(points[k])),
                     share.value, share.error));
    }
    const auto last = std::ranges::find_if(
        points, [](const AttractorPoint& point) { return point.axis == "n" && point.samples == 4; });
    const auto base = static_cast<std::size_t>(last - points.begin());
    result.conclusion = fmt::format(
        "Training can end on wrong tokens although all but the best have equal scores: with 4 sequences of 4 tokens, {:.0f} % of "
        "the data sets have a partial attractor and {:.0f} % of the starts end on one, each certified; with one sequence none does.",
        100 * with_partial(outcomes[base]).value, 100 * partial_share(outcomes[base]).value);
  }

  static Table point_table(const std::vector<AttractorPoint>& points,
                           const std::vector<std::vector<AttractorOutcome>>& outcomes) {
    Table table{.title = "Partial attractors, and the starts that end on them",
                .columns = {{"point", Align::left},
                            {"model", Align::left},
                            {"data sets"},
                            {"with partial ones"},
                            {"partial ones each, mean"},
                            {"no two compete"},
                            {"starts"},
                            {"on the whole one"},
                            {"on partial ones"},
                            {"elsewhere"},
                            {"undecided"}}};
    for (std::size_t k = 0; k < points.size(); ++k) {
      const auto& here = outcomes[k];
      std::int64_t runs = 0;
      for (const AttractorOutcome& one : here) runs += runs_of(one);
      const auto share = [runs](std::int64_t count) {
        return fmt::format("{:.4f}", static_cast<double>(count) / static_cast<double>(runs));
      };
      table.rows.push_back(
          {name_of(points[k]), points[k].params, fmt::format("{}", here.size()),
           fmt::format("{}", std::ranges::count_if(
                                 here, [](const AttractorOutcome& one) { return one.partial > 0; })),
           fmt::format("{:.2f}", static_cast<double>(sum(here, &AttractorOutcome::partial)) /
                                     static_cast<double>(here.size())),
           fmt::format("{}", std::ranges::count_if(here, &AttractorOutcome::condition)),
           fmt::format("{}", runs), share(sum(here, &AttractorOutcome::whole_ends)),
           share(sum(here, &AttractorOutcome::partial_ends)), share(sum(here, &AttractorOutcome::elsewhere)),
           share(sum(here, &AttractorOutcome::undecided_ends))});
    }
    return table;
  }

  static Figure share_figure(const std::vector<AttractorPoint>& points,
                             const std::vector<std::vector<AttractorOutcome>>& outcomes,
                             std::string_view axis, const char* label, const char* title) {
    Figure figure{
        .id = fmt::format("against-{}", axis == "n"   ? "sequences"
                                        : axis == "T" ? "tokens"
                                        : axis == "d" ? "dimension"
                                                      : "p"),
        .title = title,
        .caption =
            "Prompts, n = 4, T = 4, d = 6 and p = 2 except on the axis. Bands are standard errors over data sets.",
        .x = {.label = label, .whole = axis != "p"},
        .y = {.label = "share of data sets or starts", .range = {{0, 1.02}}}};
    const auto curve = [&](const char* name, auto mean, Series::Dash dash) {
      Series series{.name = name, .mark = Series::Mark::both, .dash = dash};
      for (std::size_t k = 0; k < points.size(); ++k) {
        if (points[k].axis != axis) continue;
        const Mean share = mean(outcomes[k]);
        series.x.push_back(points[k].x);
        series.y.push_back(share.value);
        series.low.push_back(std::max(0.0, share.value - share.error));
        series.high.push_back(std::min(1.0, share.value + share.error));
      }
      figure.series.push_back(std::move(series));
    };
    curve("data sets with a partial attractor", with_partial, Series::Dash::dashed);
    curve("starts that end on one", partial_share, Series::Dash::solid);
    const Series& ends = figure.series.back();
    const std::string outcome = fmt::format(
        "{:.0f} % of the starts end on a partial attractor at {} = {:g}, and {:.0f} % at {} = {:g}.",
        100 * ends.y.front(), axis, ends.x.front(), 100 * ends.y.back(), axis, ends.x.back());
    lead_with(figure, outcome);
    figure.description = fmt::format("Two curves against the {}. {}", label, outcome);
    return figure;
  }
};

}  // namespace

ExperimentPointer make_attractors() { return std::make_unique<AttractorsExperiment>(); }

}  // namespace attmirror
