// P2 and P3 prove where descent ends under assumptions on the data. Here each is checked on thousands of random data
// sets, in the version of margin/theory.hpp, and set beside how descent ends on them. The papers' own wording may
// differ, so these are statements about our versions and not about their theorems.
//
//   scores, separability, support tokens, initial gradient
//       W trained from 0 by normalized gradient descent (step 0.1, 1,500 steps) on n = T = 5 tokens in dimension d,
//       on the unit sphere as drawn and with the scores of all tokens but the best made equal. A run is global if it
//       is saturated on the best tokens, local if it is saturated on other locally optimal ones, and neither otherwise.
//   step size
//       plain gradient descent from W = 0 with step sizes c/L, d = 10, 1,000 steps. Below 1/L the loss never rises: the
//       descent lemma, which needs nothing but the Lipschitz constant L.
//   label margin
//       v and W trained together from N(0, 0.1^2), n = T = 4, d = 8, 4,000 normalized steps: does the condition for the
//       tokens that a run selects go with its convergence to the decoder SVM and the relaxed attention SVM of these
//       tokens?
//
// Shares come with Wilson's 95 % intervals. An assumption and an outcome are compared within one dimension, because
// both depend on it.
#include "papers/experiments.hpp"
#include "papers/share_interval.hpp"
#include "papers/shorthand.hpp"
#include "papers/theory_study.hpp"
#include "papers/training_set.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

using namespace theory;

constexpr std::array checked_assumptions{Assumption::equal_scores, Assumption::separable,
                                         Assumption::all_support, Assumption::initial_gradient};

// The outcomes of one column, where an assumption holds or where it does not.
struct EndCounts {
  std::ptrdiff_t runs = 0, global = 0, local = 0;
  void add(EndOn end) {
    ++runs;
    global += end == EndOn::global;
    local += end == EndOn::local;
  }
  void add(const EndCounts& other) {
    runs += other.runs;
    global += other.global;
    local += other.local;
  }
  ShareInterval share() const { return share_interval(global, runs); }
};

EndCounts count_ends(const OutcomeColumn& column, Assumption what, bool holding) {
  EndCounts counts;
  for (const Outcome& one : column.outcomes)
    if (one.report.holds(what) == holding) counts.add(one.end);
  return counts;
}

// The correlation of two yes-or-no questions: of "holds" with "global", in one column. NaN where one is always the same.
double phi(const EndCounts& with, const EndCounts& without) {
  const auto a = static_cast<double>(with.global), b = static_cast<double>(with.runs - with.global),
             c = static_cast<double>(without.global), d = static_cast<double>(without.runs - without.global);
  return (a * d - b * c) / std::sqrt((a + b) * (c + d) * (a + c) * (b + d));
}

const char* name_of(ScoreKind scores) { return scores == ScoreKind::drawn ? "sphere" : "equal scores"; }

class TheoryChecks final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {
        .id = "theory-checks",
        .paper = "P2, P3",
        .item = "assumptions of the theorems on global convergence, joint training and step sizes",
        .title = "Do the assumptions of the theorems tell how descent ends?",
        .summary =
            "Checks each assumption on random data in a version that can be decided, trains on the same data, and counts "
            "how often descent ends on the best tokens with and without it.",
        .seconds = 8,
        .quick_seconds = 0.5};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const std::uint64_t seeds = context.quick() ? 60 : 1000, step_seeds = context.quick() ? 10 : 200,
                        joint_seeds = context.quick() ? 40 : 1000;
    const std::vector<std::int64_t> dims =
        context.quick() ? std::vector<std::int64_t>{3, 10} : std::vector<std::int64_t>{3, 5, 10, 20, 50};
    const std::vector<double> factors{1, 100, 1e4, 1e6};
    std::vector<OutcomeColumn> columns;
    double done = 0, total = 0;
    const auto work = [](std::int64_t d) { return static_cast<double>(d * d + 30 * d); };
    for (const std::int64_t d : dims) total += 2 * work(d);
    for (const ScoreKind scores : {ScoreKind::drawn, ScoreKind::equal})
      for (const std::int64_t d : dims) {
        columns.push_back(measure_outcomes(context.part(0.7 * done / total, 0.7 * (done + work(d)) / total),
                                           scores, d, seeds));
        done += work(d);
      }
    const std::vector<StepColumn> steps = measure_steps(context.part(0.7, 0.8), factors, step_seeds);
    const std::vector<JointOutcome> joint = measure_joint(context.part(0.8, 1), joint_seeds);

    ExperimentResult result;
    result.sample = fmt::format(
        "{} in each of {} dimensions and 2 kinds; {} for each of {} step sizes; {} of joint training",
        counted(seeds, "data set"), dims.size(), counted(step_seeds, "data set"), factors.size(),
        counted(joint_seeds, "data set"));
    result.configuration = {
        {"data",
         fmt::format(
             "unit sphere, n = T = 5, seeds 0 to {}; with equal scores: the tokens but the best one are moved "
             "along v to their mean score",
             seeds - 1)},
        {"training", "normalized gradient descent from W = 0, lr 0.1, 1,500 steps"},
        {"counted", "runs with a mean largest attention probability above .99"},
        {"step sizes", fmt::format("plain gradient descent from W = 0, d = 10, 1,000 steps, seeds 0 to {}",
                                   step_seeds - 1)},
        {"joint training",
         fmt::format(
             "unit sphere, n = T = 4, d = 8, seeds 0 to {}; v and W from N(0, 0.01), lr 0.1, 4,000 steps",
             joint_seeds - 1)}};
    outcome_findings(columns, result.findings);
    step_findings(steps, result.findings);
    joint_findings(joint, result.findings);
    std::ptrdiff_t uncertified = 0;
    for (const OutcomeColumn& column : columns) uncertified += column.uncertified;
    result.findings.push_back({.quantity = "max-margin problems neither solved nor proved infeasible",
                               .published = 0,
                               .source = ReferenceSource::theory,
                               .ours = static_cast<double>(uncertified),
                               .tolerance = Tolerance::absolute(0)});
    result.tables = {{"outcomes", outcome_table(columns)}};
    result.figures = {outcome_figure(columns), step_figure(steps)};
    result.conclusion = conclusion(columns);
    result.remarks = {
        "The versions checked are those of margin/theory.hpp; attmirror info data.npz --theory shows them for your data. They "
        "are ours: the papers' exact wording may differ.",
        "Shares have Wilson's 95 % intervals. Assumptions are compared within one dimension, because a large dimension makes "
        "both the assumption and the outcome more likely."};
    return result;
  }

 private:
  static void outcome_findings(const std::vector<OutcomeColumn>& columns, std::vector<Finding>& findings) {
    for (const OutcomeColumn& column : columns)
      for (const Assumption what : checked_assumptions) {
        const EndCounts with = count_ends(column, what, true), without = count_ends(column, what, false);
        if (with.runs == 0 || without.runs == 0) continue;
        const auto add = [&](const char* where, const EndCounts& counts) {
          const ShareInterval share = counts.share();
          findings.push_back(
              {.quantity = fmt::format("{}, d = {}: global share where \"{}\" {}", name_of(column.scores),
                                       column.d, to_string(what), where),
               .ours = share.value,
               .note = fmt::format("{} runs, 95 % interval {:.3f} to {:.3f}; local {}", share.count,
                                   share.low, share.high, counts.local)});
        };
        add("holds", with);
        add("fails", without);
      }
    // Equal scores hold by construction, for all or none of the data: compared across the two kinds.
    for (std::size_t k = 0; 2 * k < columns.size(); ++k) {
      const EndCounts drawn = all_ends(columns[k]), equal = all_ends(columns[k + columns.size() / 2]);
      findings.push_back(
          {.quantity =
               fmt::format("d = {}: global share with equal scores, minus that without", columns[k].d),
           .ours = equal.share().value - drawn.share().value,
           .note = fmt::format("{} against {}{}", to_string(equal.share()), to_string(drawn.share()),
                               apart(equal.share(), drawn.share()) ? "" : ": intervals overlap")});
    }
  }

  static EndCounts all_ends(const OutcomeColumn& column) {
    EndCounts counts;
    for (const Outcome& one : column.outcomes) counts.add(one.end);
    return counts;
  }

  static void step_findings(const std::vector<StepColumn>& steps, std::vector<Finding>& findings) {
    for (const StepColumn& step : steps) {
      const ShareInterval never = share_interval(step.never_rising, step.runs);
      Finding finding{
          .quantity = fmt::format("step size {:g}/L: share of runs whose loss never rises", step.factor),
          .ours = never.value,
          .note = fmt::format(
              "95 % interval {:.3f} to {:.3f}; {:.2f} of the runs prefer the best tokens at the end",
              never.low, never.high, static_cast<double>(step.global) / static_cast<double>(step.runs))};
      if (step.factor <= 1) {
        finding.published = 1;
        finding.source = ReferenceSource::theory;
        finding.tolerance = Tolerance::absolute(0);
      }
      findings.push_back(std::move(finding));
    }
  }

  static void joint_findings(const std::vector<JointOutcome>& joint, std::vector<Finding>& findings) {
    for (const AssumptionStatus status :
         {AssumptionStatus::holds, AssumptionStatus::open, AssumptionStatus::fails}) {
      std::vector<double> v, weights;
      std::ptrdiff_t runs = 0, near = 0;
      for (const JointOutcome& one : joint) {
        if (one.label_margin != status) continue;
        ++runs;
        if (!one.decided) continue;
        v.push_back(one.v_distance);
        weights.push_back(one.W_distance);
        near += one.v_distance < .01 && one.W_distance < .01;
      }
      const ShareInterval share = share_interval(near, std::ssize(v));
      findings.push_back(
          {.quantity =
               fmt::format("joint training, label margin condition {}: share within .01 of both solutions",
                           status == AssumptionStatus::open ? "open" : to_string(status)),
           .ours = share.value,
           .note = fmt::format(
               "{} of {} runs; 95 % interval {:.3f} to {:.3f}; medians of 1 - correlation {:.1e} (v), {:.1e} (W)",
               v.size(), runs, share.low, share.high, median_of(v), median_of(weights))});
    }
  }

  static Table outcome_table(const std::vector<OutcomeColumn>& columns) {
    Table table{.title = "Global share where an assumption holds and where it fails, with 95 % intervals",
                .columns = {{"data", Align::left},
                            {"d"},
                            {"assumption", Align::left},
                            {"holds"},
                            {"global if it holds"},
                            {"global if it fails"},
                            {"local if it holds"},
                            {"local if it fails"},
                            {"correlation"}}};
    for (const OutcomeColumn& column : columns)
      for (const Assumption what : checked_assumptions) {
        const EndCounts with = count_ends(column, what, true), without = count_ends(column, what, false);
        const double correlation = phi(with, without);
        const auto local = [](const EndCounts& counts) {
          return to_string(share_interval(counts.local, counts.runs));
        };
        table.rows.push_back(
            {name_of(column.scores), fmt::format("{}", column.d), std::string(to_string(what)),
             fmt::format("{} of {}", with.runs, with.runs + without.runs), to_string(with.share()),
             to_string(without.share()), local(with), local(without),
             std::isfinite(correlation) ? fmt::format("{:.2f}", correlation) : "–"});
      }
    return table;
  }

  static Figure outcome_figure(const std::vector<OutcomeColumn>& columns) {
    Figure figure{.id = "outcomes",
                  .title = "Where the first step separates the best tokens, descent ends on them",
                  .caption = "W from 0 on the unit sphere, n = T = 5; bands are 95 % intervals.",
                  .x = {.label = "dimension d", .scale = Axis::Scale::log},
                  .y = {.label = "share of runs on the best tokens", .range = {{0, 1.02}}}};
    const auto curve = [&](std::string name, int color, Series::Dash dash, ScoreKind scores, auto counts_of) {
      Series series{.name = std::move(name), .mark = Series::Mark::both, .dash = dash, .color = color};
      for (const OutcomeColumn& column : columns) {
        if (column.scores != scores) continue;
        const ShareInterval share = counts_of(column).share();
        if (share.count < 10) continue;  // too few to show
        series.x.push_back(static_cast<double>(column.d));
        series.y.push_back(share.value);
        series.low.push_back(share.low);
        series.high.push_back(share.high);
      }
      if (!series.x.empty()) figure.series.push_back(std::move(series));
    };
    const auto of = [](Assumption what, bool holding) {
      return [=](const OutcomeColumn& column) { return count_ends(column, what, holding); };
    };
    curve("initial gradient holds", 0, Series::Dash::solid, ScoreKind::drawn,
          of(Assumption::initial_gradient, true));
    curve("initial gradient fails", 0, Series::Dash::dashed, ScoreKind::drawn,
          of(Assumption::initial_gradient, false));
    curve("all tokens support", 1, Series::Dash::solid, ScoreKind::drawn, of(Assumption::all_support, true));
    curve("not separable", 2, Series::Dash::dashed, ScoreKind::drawn, of(Assumption::separable, false));
    curve("equal scores", 3, Series::Dash::solid, ScoreKind::equal,
          [](const OutcomeColumn& column) { return all_ends(column); });
    figure.description = "Shares of runs on the best tokens against the dimension on a logarithmic axis.";
    for (const Series& series : figure.series)
      figure.description += fmt::format(" {}: {:.2f} at d = {:g}, {:.2f} at d = {:g}.", series.name,
                                        series.y.front(), series.x.front(), series.y.back(), series.x.back());
    lead_with(figure, conclusion(columns));
    return figure;
  }

  static Figure step_figure(const std::vector<StepColumn>& steps) {
    Figure figure{.id = "step-sizes",
                  .title = "Below 1/L the loss never rises; the bound is cautious",
                  .caption = "Plain gradient descent from W = 0, d = 10; bands are 95 % intervals.",
                  .x = {.label = "step size times L", .scale = Axis::Scale::log},
                  .y = {.label = "share of runs", .range = {{0, 1.02}}}};
    Series never{.name = "loss never rises", .mark = Series::Mark::both},
        global{.name = "best tokens preferred at the end", .mark = Series::Mark::both};
    for (const StepColumn& step : steps) {
      const auto add = [&](Series& series, std::ptrdiff_t hits) {
        const ShareInterval share = share_interval(hits, step.runs);
        series.x.push_back(step.factor);
        series.y.push_back(share.value);
        series.low.push_back(share.low);
        series.high.push_back(share.high);
      };
      add(never, step.never_rising);
      add(global, step.global);
    }
    figure.series = {std::move(never), std::move(global)};
    figure.description =
        fmt::format("The share of runs whose loss never rises is {:.2f} at 1/L and {:.2f} at {:g}/L.",
                    figure.series[0].y.front(), figure.series[0].y.back(), steps.back().factor);
    lead_with(figure, figure.description);
    return figure;
  }

  static std::string conclusion(const std::vector<OutcomeColumn>& columns) {
    EndCounts with, without;
    for (const OutcomeColumn& column : columns)
      if (column.scores == ScoreKind::drawn) {
        with.add(count_ends(column, Assumption::initial_gradient, true));
        without.add(count_ends(column, Assumption::initial_gradient, false));
      }
    // Equal scores where they make the largest difference.
    const std::size_t half = columns.size() / 2;
    std::size_t most = 0;
    const auto raise = [&](std::size_t k) {
      return all_ends(columns[k + half]).share().value - all_ends(columns[k]).share().value;
    };
    for (std::size_t k = 1; k < half; ++k)
      if (raise(k) > raise(most)) most = k;
    return fmt::format(
        "Where the first step already separates the best tokens, descent ends on them in {} of {} runs, and in {} of {} where "
        "it does not; equal scores of all other tokens raise the share from {:.0f} % to {:.0f} % at d = {}.",
        with.global, with.runs, without.global, without.runs, 100 * all_ends(columns[most]).share().value,
        100 * all_ends(columns[most + half]).share().value, columns[most].d);
  }
};

}  // namespace

ExperimentPointer make_theory_checks() { return std::make_unique<TheoryChecks>(); }

}  // namespace attmirror
