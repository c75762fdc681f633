// Does the theory of P4 carry over to other optimizers? P4 proves for normalized gradient descent that W_ov and W_kq
// go to the solutions of two max-margin problems in the Frobenius norm. P1's mirror descent maximizes the l_p margin
// of attention with one head and a fixed decoder; steepest descent in a norm that of linear classifiers. Nothing is
// proved for next-token prediction. Stage 1 is a linear classifier of many classes, so there the theorems on linear
// models apply; stage 2 is attention under a softmax over words.
//
// Each optimizer does both stages on its own. Measured, for each norm, is
//
//   share = (least constraint of W / ||W||) * ||W*||         W*: certified, in that norm; 1 where no direction is
//                                                            better
//
// and, for l_p mirror descent, the directional Bregman divergence from W* of its own p in time. Gaussian unit
// embeddings: with one-hot ones stage 1 points along W_ov* from the first step, for every optimizer here.
#include "base/numbers.hpp"
#include "papers/experiments.hpp"
#include "papers/next_token_study.hpp"
#include "papers/shorthand.hpp"
#include <attmirror/mirror/direction.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

namespace attmirror {

namespace {

using namespace next_token_study;

constexpr std::uint64_t first_seed = 101;  // step sizes were chosen on others

struct NormColumn {
  std::string name;
  Norm norm;
};

const std::vector<NormColumn>& columns() {
  static const std::vector<NormColumn> all{{"ℓ1.5", Norm::l(1.5)},
                                           {"ℓ2", Norm::l(2)},
                                           {"ℓ3", Norm::l(3)},
                                           {"ℓ∞", Norm::l(infinity)},
                                           {"spectral", Norm::spectral()}};
  return all;
}

struct Row {
  std::string name;
  Optimizer first, second;  // of the stages
  std::size_t predicted;    // column
  double p = 0;             // of l_p mirror descent; 0: another optimizer
};

// Step sizes with which each is near its limit, chosen on the data of seeds 1 to 3, which are not measured.
std::vector<Row> rows() {
  const auto md = [](double p, double lr) { return MirrorDescent{.p = p, .lr = lr, .normalized = true}; };
  const auto adam = [](double lr) { return Adam{.lr = lr, .beta2 = 0.95}; };
  const auto exact_muon = [](double lr) { return muon(lr, 0.95, Orthogonalization::exact); };
  return {{"ℓ1.5 mirror descent", md(1.5, 0.05), md(1.5, 0.05), 0, 1.5},
          {"gradient descent", md(2, 0.1), md(2, 0.1), 1, 2},
          {"ℓ3 mirror descent", md(3, 4), md(3, 2), 2, 3},
          {"sign descent", sign_descent(0.01), sign_descent(0.03), 3},
          {"Adam, β₂ = 0.95", adam(0.01), adam(0.01), 3},
          {"spectral descent", spectral_descent(0.05), spectral_descent(0.05), 4},
          {"Muon, exact", exact_muon(0.02), exact_muon(0.05), 4}};
}

constexpr std::array<std::string_view, 2> stage_names{"stage 1", "stage 2"};

// One problem's targets, by stage and column.
struct Targets {
  std::array<std::vector<MarginSolution>, 2> of;
};

// Of one optimizer: [stage][column][seed], and the divergence from its own target [stage][seed][record].
struct Measured {
  std::array<std::vector<std::vector<double>>, 2> shares;
  std::array<std::vector<std::vector<double>>, 2> divergence;
  std::vector<double> accuracy;
  // 1 where stage 2 ends with a smaller loss than full attention on the right tokens has: a mixture is better.
  std::vector<double> mixture;
};

// The least of (e_n(x) - e_v)^T W x, and of (x - x')^T W q.
double collocation_margin(const Problem& problem, const Matrix& W_ov) {
  const Matrix logits = W_ov * problem.embedding.vectors.view().eigen().transpose();
  double least = infinity;
  for (Token x = 0; x < vocabulary; ++x)
    for (Token v = 0; v < vocabulary; ++v)
      if (const Token y = problem.data.collocations.successor(x); v != y)
        least = std::min(least, logits(y, x) - logits(v, x));
  return least;
}

double attention_margin(const Problem& problem, const Matrix& W_kq) {
  const Matrix scores = attention_scores(problem.embedding, W_kq);
  double least = infinity;
  for (const Token q : problem.orders.queries())
    for (const Preference& one : problem.orders.preferences(q))
      least = std::min(least, scores(one.better, q) - scores(one.worse, q));
  return least;
}

class P4Mirror final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {
        .id = "p4-mirror",
        .paper = "ours",
        .item = "P4's two stages with other optimizers",
        .title = "Does the two-stage theory carry over to mirror descent?",
        .summary =
            "Trains both stages of next-token prediction by ℓp mirror descent, sign descent, Adam, spectral descent and Muon, "
            "and measures which norm's max-margin solution each converges to, and how fast.",
        .seconds = 7,
        .quick_seconds = 0.5};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const std::size_t seeds = context.quick() ? 1 : 5;
    const std::array<std::int64_t, 2> steps{context.quick() ? 1'000 : collocation_steps,
                                            context.quick() ? 1'000 : attention_steps};
    const std::array<std::vector<std::int64_t>, 2> recorded{log_steps(steps[0], 12), log_steps(steps[1], 12)};
    const std::vector<std::unique_ptr<Problem>> problems = make_problems(settings()[1], seeds, first_seed);
    std::vector<Targets> targets(seeds);
    for_all(context.part(0, 0.1), static_cast<std::ptrdiff_t>(seeds), [&](std::ptrdiff_t i) {
      const auto s = static_cast<std::size_t>(i);
      for (const NormColumn& column : columns()) {
        targets[s].of[0].push_back(
            collocation_target(problems[s]->embedding, problems[s]->data.collocations, column.norm));
        targets[s].of[1].push_back(
            attention_target(problems[s]->embedding, problems[s]->orders, column.norm));
      }
    });
    const std::vector<Row> all = rows();
    std::vector<Measured> measured(all.size());
    for (Measured& one : measured) {
      one.accuracy.resize(seeds);
      one.mixture.resize(seeds);
      for (std::size_t stage = 0; stage < 2; ++stage) {
        one.shares[stage].assign(columns().size(), std::vector<double>(seeds));
        one.divergence[stage].resize(seeds);
      }
    }
    for_all(context.part(0.1, 1), static_cast<std::ptrdiff_t>(all.size() * seeds), [&](std::ptrdiff_t i) {
      const std::size_t r = static_cast<std::size_t>(i) / seeds, s = static_cast<std::size_t>(i) % seeds;
      train(all[r], *problems[s], targets[s], s, recorded, measured[r]);
    });

    ExperimentResult result;
    result.sample = counted(seeds, "data set");
    add_findings(result, all, measured, targets, recorded);
    for (std::size_t stage = 0; stage < 2; ++stage) {
      result.figures.push_back(divergence_figure(all, measured, stage, recorded[stage]));
      result.figures.push_back(share_figure(all, measured, stage, seeds));
    }
    result.tables = {{"margins", shares_table(all, measured)}};
    result.configuration = problem_configuration(seeds, first_seed);
    result.configuration.emplace_back("setting", settings()[1].name);
    result.configuration.emplace_back(
        "steps", fmt::format("{} of stage 1, {} of stage 2, from 0", steps[0], steps[1]));
    for (const Row& row : all) {
      result.configuration.emplace_back(row.name + ", stage 1", to_string(row.first));
      result.configuration.emplace_back(row.name + ", stage 2", to_string(row.second));
    }
    result.remarks = remarks(all, measured);
    result.conclusion = result.remarks.front();
    result.remarks.erase(result.remarks.begin());
    return result;
  }

 private:
  static std::vector<std::string> remarks(const std::vector<Row>& all,
                                          const std::vector<Measured>& measured) {
    std::array<std::ptrdiff_t, 2> own{};
    std::array<double, 2> least{1, 1};
    for (std::size_t r = 0; r < all.size(); ++r)
      for (std::size_t stage = 0; stage < 2; ++stage) {
        std::vector<double> means;
        for (const std::vector<double>& shares : measured[r].shares[stage])
          means.push_back(mean_of(shares).value);
        own[stage] += std::ranges::max(means) == means[all[r].predicted] ? 1 : 0;
        least[stage] = std::min(least[stage], means[all[r].predicted]);
      }
    double mixed = 0;
    for (const Measured& one : measured) mixed += mixtures(one);
    return {
        fmt::format(
            "{} of {} optimizers come nearest to the largest margin in their own norm in stage 1 and {} in stage 2, with at "
            "least {:.2f} and {:.2f} of that margin; no theorem covers stage 2.",
            own[0], all.size(), own[1], least[0], least[1]),
        fmt::format(
            "Embeddings that are not orthogonal set a limit, which {} of {} runs meet. Let v be the strongest competitor of "
            "the label y in the logits W_ov x of the right token x. If another token x' of the sentence has a larger "
            "difference between y and v than x has, a little attention on x' makes the loss smaller than full attention "
            "on x does: W_kq stays finite in that direction and converges to no max-margin solution. On the data set of "
            "seed 103, for example, sign descent with steps of 0.01 to 0.3 stays below 0.15 of the largest margin, and "
            "40,000 steps bring it no further than 10,000. With one-hot embeddings this cannot happen: there, attention on "
            "another token can only reduce the difference between y and v.",
            mixed, all.size() * measured.front().mixture.size())};
  }

  static double mixtures(const Measured& one) {
    return std::accumulate(one.mixture.begin(), one.mixture.end(), 0.0);
  }

  static void train(const Row& row, const Problem& problem, const Targets& targets, std::size_t seed,
                    const std::array<std::vector<std::int64_t>, 2>& recorded, Measured& into) {
    StageOptions first{.optimizer = row.first}, second{.optimizer = row.second};
    first.descent.steps = recorded[0].back();
    second.descent.steps = recorded[1].back();
    first.descent.record = RecordSchedule::at(recorded[0]);
    second.descent.record = RecordSchedule::at(recorded[1]);
    const TwoStageRun run = train_two_stage(problem.view(), first, second);
    const Parameters last = run.last();
    const std::array<const Matrix*, 2> trained{&last.matrix("W_ov"), &last.matrix("W_kq")};
    const std::array<double, 2> margins{collocation_margin(problem, *trained[0]),
                                        attention_margin(problem, *trained[1])};
    for (std::size_t stage = 0; stage < 2; ++stage) {
      for (std::size_t c = 0; c < columns().size(); ++c)
        into.shares[stage][c][seed] =
            margins[stage] / norm(*trained[stage], columns()[c].norm) * targets.of[stage][c].norm;
      if (row.p == 0) continue;
      const DescentRun& of_stage = stage == 0 ? run.collocation : run.attention;
      for (const std::int64_t step : recorded[stage]) {
        const Parameters& then = record_at(of_stage, step).parameters;
        const Matrix& W = then.matrix(stage == 0 ? "W_ov" : "W_kq");
        into.divergence[stage][seed].push_back(
            step == 0 ? std::nan("") : directional_bregman(targets.of[stage][row.predicted].W, W, row.p));
      }
    }
    into.accuracy[seed] = accuracy(problem.data.sentences, problem.embedding, last);
    into.mixture[seed] = run.attention.loss < (1 - 1e-9) * loss_floor(problem, *trained[0]) ? 1 : 0;
  }

  static void add_findings(ExperimentResult& result, const std::vector<Row>& all,
                           const std::vector<Measured>& measured, const std::vector<Targets>& targets,
                           const std::array<std::vector<std::int64_t>, 2>& recorded) {
    for (std::size_t r = 0; r < all.size(); ++r)
      for (std::size_t stage = 0; stage < 2; ++stage) {
        const Row& row = all[r];
        std::vector<double> means;
        for (const std::vector<double>& shares : measured[r].shares[stage])
          means.push_back(mean_of(shares).value);
        const auto best = static_cast<std::size_t>(std::ranges::max_element(means) - means.begin());
        const Mean mean = mean_of(measured[r].shares[stage][row.predicted]);
        // Stage 1 is a linear classifier of several classes, for which it is a theorem. Stage 2 is not.
        Finding nearest{.quantity = fmt::format("{}, {}: norm whose largest margin it comes nearest to",
                                                row.name, stage_names[stage]),
                        .source = ReferenceSource::theory,
                        .ours_text = columns()[best].name};
        if (stage == 0) nearest.published_text = columns()[row.predicted].name;
        if (best != row.predicted)
          nearest.note = fmt::format("its own is {}: {:.3f} there, {:.3f} here",
                                     columns()[row.predicted].name, mean.value, means[best]);
        result.findings.push_back(std::move(nearest));
        Finding share = new_number(fmt::format("{}, {}: share of the largest {} margin", row.name,
                                               stage_names[stage], columns()[row.predicted].name),
                                   mean.value, mean.error);
        share.digits = 3;
        const auto [low, high] = std::ranges::minmax(measured[r].shares[stage][row.predicted]);
        share.note = fmt::format("{:.3f} to {:.3f} over seeds", low, high);
        if (const double count = mixtures(measured[r]); stage == 1 && count > 0)
          share.note += fmt::format("; in {} of {} W_ov makes a mixture of tokens better than the right one",
                                    count, measured[r].mixture.size());
        result.findings.push_back(std::move(share));
        if (row.p == 0) continue;
        const std::vector<std::int64_t>& steps = recorded[stage];
        const std::vector<double> a =
            exponents(steps, measured[r].divergence[stage], steps.back() / 10, steps.back());
        Finding exponent = new_number(
            fmt::format("{}, {}: exponent a of D ~ t^-a in the last decade", row.name, stage_names[stage]),
            mean_of(a).value, mean_of(a).error);
        const double end = mean_of(at_step(steps, measured[r].divergence[stage], steps.back())).value;
        exponent.note =
            fmt::format("D is {:.2e} at t = {}; 95 % over seeds: {}", end, steps.back(), interval_text(a));
        exponent.digits = 3;
        result.findings.push_back(std::move(exponent));
      }
    std::ptrdiff_t uncertified = 0, count = 0;
    for (const Targets& one : targets)
      for (const auto& of_stage : one.of)
        for (const MarginSolution& solution : of_stage) {
          uncertified += solution.status != MarginStatus::certified ? 1 : 0;
          ++count;
        }
    result.findings.push_back({.quantity = "targets without a certificate",
                               .published = 0,
                               .source = ReferenceSource::theory,
                               .ours = static_cast<double>(uncertified),
                               .tolerance = Tolerance::absolute(0),
                               .note = fmt::format("of {}", count)});
  }

  static Table shares_table(const std::vector<Row>& all, const std::vector<Measured>& measured) {
    Table table{
        .title = "Share of the largest margin in each norm: mean over seeds; * the optimizer's own norm",
        .columns = {{"optimizer", Align::left}, {"stage", Align::left}}};
    for (const NormColumn& column : columns()) table.columns.push_back({column.name});
    table.columns.push_back({"training accuracy"});
    table.columns.push_back({"mixtures"});
    for (std::size_t r = 0; r < all.size(); ++r)
      for (std::size_t stage = 0; stage < 2; ++stage) {
        std::vector<std::string> row{all[r].name, std::string(stage_names[stage])};
        for (std::size_t c = 0; c < columns().size(); ++c) {
          const Mean mean = mean_of(measured[r].shares[stage][c]);
          row.push_back(
              fmt::format("{:.3f} ± {:.3f}{}", mean.value, mean.error, c == all[r].predicted ? " *" : ""));
        }
        row.push_back(stage == 0 ? "" : fmt::format("{:.3f}", mean_of(measured[r].accuracy).value));
        row.push_back(
            stage == 0 ? "" : fmt::format("{} of {}", mixtures(measured[r]), measured[r].mixture.size()));
        table.rows.push_back(std::move(row));
      }
    return table;
  }

  static Figure divergence_figure(const std::vector<Row>& all, const std::vector<Measured>& measured,
                                  std::size_t stage, const std::vector<std::int64_t>& steps) {
    Figure figure{
        .id = stage == 0 ? "divergence-stage-1" : "divergence-stage-2",
        .title = fmt::format("{}: mirror descent approaches the max-margin solution in its own norm",
                             stage == 0 ? "Stage 1" : "Stage 2"),
        .caption = "Mean over data sets; bands are one standard deviation.",
        .x = {.label = "step t", .scale = Axis::Scale::log},
        .y = {.label = "directional Bregman divergence from the ℓp solution", .scale = Axis::Scale::log}};
    std::string ends;
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (all[r].p == 0) continue;
      figure.series.push_back(
          band(all[r].name, steps, measured[r].divergence[stage], Averages::of_logarithms));
      ends +=
          fmt::format("{}{} {:.2e}", ends.empty() ? "" : ", ", all[r].name, figure.series.back().y.back());
    }
    lead_with(figure, fmt::format("After the last step: {}.", ends));
    figure.description = fmt::format("Divergence against the step. After the last step: {}.", ends);
    return figure;
  }

  static Figure share_figure(const std::vector<Row>& all, const std::vector<Measured>& measured,
                             std::size_t stage, std::size_t seeds) {
    Heatmap map;
    for (const NormColumn& column : columns()) map.columns.push_back(column.name);
    std::string outcome;
    int own = 0;
    for (std::size_t r = 0; r < all.size(); ++r) {
      map.rows.push_back(all[r].name);
      std::vector<double> means;
      for (const std::vector<double>& shares : measured[r].shares[stage])
        means.push_back(mean_of(shares).value);
      map.marked.emplace_back(r, all[r].predicted);
      own += std::ranges::max(means) == means[all[r].predicted] ? 1 : 0;
      outcome += fmt::format("{}{}: {:.3f} in {}", outcome.empty() ? "" : "; ", all[r].name,
                             means[all[r].predicted], columns()[all[r].predicted].name);
      map.values.push_back(std::move(means));
    }
    return {
        .id = stage == 0 ? "margins-stage-1" : "margins-stage-2",
        .title = fmt::format("Which margin each optimizer maximizes in {}", stage_names[stage]),
        .caption = fmt::format(
            "{} of {} optimizers are largest in their own norm (outlined). Margin of the trained {} in each norm, "
            "as a share of the largest possible; mean over {}.",
            own, all.size(), stage == 0 ? "W_ov" : "W_kq", counted(seeds, "data set")),
        .description = "A table of shares as colors, one row an optimizer, one column a norm. Outlined: " +
                       outcome + ".",
        .x = {.label = "norm in which the margin is measured"},
        .y = {.label = "optimizer"},
        .heatmap = std::move(map)};
  }
};

}  // namespace

ExperimentPointer make_p4_mirror() { return std::make_unique<P4Mirror>(); }

}  // namespace attmirror
