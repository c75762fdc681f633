#include "papers/two_stage_curves.hpp"

#include "papers/rate_fit.hpp"
#include "papers/shorthand.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace attmirror::next_token_study {

namespace {

// What the figures need of a run's records; the norm over t lr.
void keep(StageCurves& stage, std::size_t seed, const DescentRun& run, std::string_view direction,
          double lr) {
  auto record = run.records.begin();
  for (const std::int64_t step : stage.steps) {
    while (record != run.records.end() && record->step < step) ++record;
    if (record == run.records.end()) return;
    stage.loss[seed].push_back(record->loss);
    stage.direction[seed].push_back(metric(*record, direction));
    stage.norm[seed].push_back(record->norm / (lr * static_cast<double>(step)));
    stage.accuracy[seed].push_back(metric(*record, "accuracy"));
  }
}

template <class Gap>
std::vector<double> rates_of(const StageCurves& stage, Gap gap, const std::vector<double>& target_norm,
                             double lr, std::int64_t from) {
  std::vector<double> ratios;
  for (std::size_t s = 0; s < stage.loss.size(); ++s) {
    std::vector<double> t, y;
    for (std::size_t i = 0; i < stage.steps.size(); ++i) {
      if (stage.steps[i] < from) continue;
      t.push_back(static_cast<double>(stage.steps[i]));
      y.push_back(std::log(gap(s, stage.loss[s][i])));
    }
    ratios.push_back(-fit_line(t, y).slope * target_norm[s] / lr);
  }
  return ratios;
}

struct Panel {
  std::string id, title, caption, y;
  int stage;
  const std::vector<std::vector<double>> StageCurves::*values;
  Axis::Scale x_scale, y_scale;
  std::string outcome;  // what the numbers at the end are of
};

std::vector<Panel> panels() {
  using enum Axis::Scale;
  return {
      {"stage-1-loss", "Stage 1: the loss of the collocations falls exponentially",
       "Straight lines on a logarithmic axis mean exponential convergence.", "loss L0 of the collocations", 1,
       &StageCurves::loss, linear, log, "L0"},
      {"stage-1-direction", "Stage 1: W_ov turns to its max-margin direction", "",
       "1 − cos of the angle between W_ov and W_ov*", 1, &StageCurves::direction, log, log, "1 − cos"},
      {"stage-1-norm", "Stage 1: the norm of W_ov grows linearly",
       "The ratio is 1 as long as all steps point the same way.", "Frobenius norm of W_ov, relative to t η₀",
       1, &StageCurves::norm, linear, linear, "‖W_ov‖/(t η₀)"},
      {"stage-2-loss", "Stage 2: the loss of the sentences falls to that of the frozen W_ov", "",
       "loss L of the sentences", 2, &StageCurves::loss, linear, log, "L"},
      {"stage-2-direction", "Stage 2: W_kq turns to its max-margin direction, like 1/t", "",
       "1 − cos of the angle between W_kq and W_kq*", 2, &StageCurves::direction, log, log, "1 − cos"},
      {"stage-2-norm", "Stage 2: the norm of W_kq grows linearly once the direction has turned",
       "The ratio dips while the direction turns and then returns to 1.",
       "Frobenius norm of W_kq, relative to t η", 2, &StageCurves::norm, linear, linear, "‖W_kq‖/(t η)"},
  };
}

}  // namespace

TwoStageColumn train_column(const ExperimentContext& context, const Setting& setting, std::size_t seeds,
                            std::uint64_t first_seed, std::int64_t steps2) {
  TwoStageColumn column;
  column.setting = setting;
  column.first.steps = log_steps(collocation_steps, 20, {100, 300, 1000, 3000});
  column.second.steps =
      log_steps(steps2, 20, {100, 300, 1000, 3000, steps2 * 8 / 10, steps2 * 85 / 100, steps2 * 95 / 100});
  const auto size = [seeds](auto&... list) { (list.resize(seeds), ...); };
  for (StageCurves* stage : {&column.first, &column.second})
    size(stage->loss, stage->direction, stage->norm, stage->accuracy);
  size(column.ov_norm, column.kq_norm, column.floor, column.worst_direction, column.target_order,
       column.trained_order, column.touched);
  std::vector<std::ptrdiff_t> uncertified(seeds), unfinished(seeds);
  for_all(context, static_cast<std::ptrdiff_t>(seeds), [&](std::ptrdiff_t i) {
    const auto s = static_cast<std::size_t>(i);
    const Problem problem(setting, first_seed + s);
    const MarginSolution ov =
        collocation_target(problem.embedding, problem.data.collocations, Norm::frobenius());
    const MarginSolution kq = attention_target(problem.embedding, problem.orders, Norm::frobenius());
    uncertified[s] =
        (ov.status != MarginStatus::certified ? 1 : 0) + (kq.status != MarginStatus::certified ? 1 : 0);
    column.ov_norm[s] = ov.norm;
    column.kq_norm[s] = kq.norm;

    StageOptions first = paper_stage(Stage::collocation, vocabulary, collocation_steps);
    StageOptions second = paper_stage(Stage::attention, vocabulary, steps2);
    first.descent.keep = second.descent.keep = Keep::metrics;
    first.descent.record = RecordSchedule::every(1);
    second.descent.record = RecordSchedule::at(column.second.steps);
    const TwoStageRun run = train_two_stage(problem.view(), first, second, {.W_ov = ov.W, .W_kq = kq.W});
    unfinished[s] = (run.collocation.status != RunStatus::completed ? 1 : 0) +
                    (run.attention.status != RunStatus::completed ? 1 : 0);
    keep(column.first, s, run.collocation, "direction_W_ov", collocation_lr());
    keep(column.second, s, run.attention, "direction_W_kq", attention_lr());
    for (const Record& record : run.collocation.records)
      if (record.step > 0)
        column.worst_direction[s] = std::max(column.worst_direction[s], metric(record, "direction_W_ov"));
    column.floor[s] = loss_floor(problem, run.last().matrix("W_ov"));
    const Matrix trained = attention_scores(problem.embedding, run.last().matrix("W_kq"));
    column.target_order[s] = extended_order(attention_scores(problem.embedding, kq.W), problem.orders);
    column.trained_order[s] = extended_order(trained, problem.orders);
    for (const Token q : problem.orders.queries()) {
      const std::vector<TokenClass> classes = problem.orders.token_classes(q);
      for (Token x = 0; x < vocabulary; ++x)
        if (classes[static_cast<std::size_t>(x)] == TokenClass::non_comparable)
          column.touched[s] = std::max(column.touched[s], std::abs(trained(x, q)));
    }
    column.touched[s] /= trained.cwiseAbs().maxCoeff();
  });
  for (std::size_t s = 0; s < seeds; ++s) {
    column.uncertified += uncertified[s];
    column.unfinished += unfinished[s];
  }
  return column;
}

LongStages long_stages(const ExperimentContext& context, const Setting& setting, std::size_t seeds,
                       std::uint64_t first_seed, const std::vector<std::int64_t>& steps) {
  LongStages result{.first = std::vector<std::vector<double>>(seeds),
                    .second = std::vector<std::vector<double>>(seeds)};
  for_all(context, static_cast<std::ptrdiff_t>(2 * seeds), [&](std::ptrdiff_t i) {
    const std::size_t s = static_cast<std::size_t>(i) / 2;
    const Problem problem(setting, first_seed + s);
    const bool collocation = i % 2 == 0;
    StageOptions first =
        paper_stage(Stage::collocation, vocabulary, collocation ? steps.back() : collocation_steps);
    first.descent.keep = Keep::metrics;
    first.descent.record = RecordSchedule::at(steps);
    if (collocation) {
      const NextTokenModel model(problem.view(), Stage::collocation);
      const MarginSolution ov =
          collocation_target(problem.embedding, problem.data.collocations, Norm::frobenius());
      const DescentRun run =
          descend(NextTokenObjective(model, {.W_ov = ov.W}), first.optimizer, first.descent);
      for (const std::int64_t step : steps)
        result.first[s].push_back(metric(record_at(run, step), "direction_W_ov"));
      return;
    }
    const MarginSolution kq = attention_target(problem.embedding, problem.orders, Norm::frobenius());
    StageOptions second = paper_stage(Stage::attention, vocabulary, steps.back());
    second.descent.keep = Keep::metrics;
    second.descent.record = RecordSchedule::at(steps);
    const TwoStageRun run = train_two_stage(problem.view(), first, second, {.W_kq = kq.W});
    for (const std::int64_t step : steps)
      result.second[s].push_back(metric(record_at(run.attention, step), "direction_W_kq"));
  });
  return result;
}

std::vector<double> loss_rates(const StageCurves& stage, const std::vector<double>& target_norm, double lr,
                               std::int64_t from) {
  return rates_of(
      stage, [](std::size_t, double loss) { return loss; }, target_norm, lr, from);
}

std::vector<double> excess_rates(const StageCurves& stage, const std::vector<double>& floor,
                                 const std::vector<double>& target_norm, double lr, std::int64_t from) {
  return rates_of(
      stage, [&](std::size_t s, double loss) { return std::log(loss / floor[s]); }, target_norm, lr, from);
}

std::vector<double> straightness(const StageCurves& stage, const std::vector<double>& floor) {
  std::vector<double> shares;
  for (std::size_t s = 0; s < stage.loss.size(); ++s) {
    std::vector<double> t, y;
    for (std::size_t i = 0; i < stage.steps.size(); ++i) {
      const double loss = stage.loss[s][i];
      if (loss > 0.5 || loss < 10 * floor[s]) continue;
      t.push_back(static_cast<double>(stage.steps[i]));
      y.push_back(std::log(loss));
    }
    if (t.size() < 3) continue;
    const double deviation = mean_of(y).deviation * std::sqrt(1 - 1 / static_cast<double>(y.size()));
    shares.push_back(1 - std::pow(fit_line(t, y).residual / deviation, 2));
  }
  return shares;
}

std::vector<double> late_growth(const StageCurves& stage) {
  std::vector<double> growth;
  for (const std::vector<double>& direction : stage.direction) {
    double early = 0, late = 0;
    for (std::size_t i = 0; i < stage.steps.size(); ++i) {
      if (stage.steps[i] < stage.steps.back() / 30) continue;
      double& into = stage.steps[i] <= stage.steps.back() / 3 ? early : late;
      into = std::max(into, direction[i] * static_cast<double>(stage.steps[i]));
    }
    growth.push_back(late / early);
  }
  return growth;
}

double least_of(const std::vector<std::vector<double>>& values) {
  double least = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& of_seed : values)
    for (const double value : of_seed)
      if (!std::isnan(value)) least = std::min(least, value);
  return least;
}

double largest_of(const std::vector<std::vector<double>>& values) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const std::vector<double>& of_seed : values)
    for (const double value : of_seed)
      if (!std::isnan(value)) largest = std::max(largest, value);
  return largest;
}

std::vector<Figure> two_stage_panels(const std::vector<TwoStageColumn>& columns) {
  std::vector<Figure> figures;
  for (const Panel& panel : panels()) {
    Figure figure{.id = panel.id,
                  .title = panel.title,
                  .caption = panel.caption + (panel.caption.empty() ? "" : " ") +
                             "Mean over data sets; bands are one standard deviation of single ones.",
                  .x = {.label = "step t", .scale = panel.x_scale},
                  .y = {.label = panel.y, .scale = panel.y_scale}};
    std::string ends;
    for (const TwoStageColumn& column : columns) {
      const StageCurves& stage = panel.stage == 1 ? column.first : column.second;
      Series series = band(column.setting.name, stage.steps, stage.*panel.values,
                           panel.y_scale == Axis::Scale::log ? Averages::of_logarithms : Averages::plain);
      series.color = static_cast<int>(&column - columns.data());
      ends += fmt::format("{}{} {:.3g}", ends.empty() ? "" : ", ", column.setting.name, series.y.back());
      // Rounding would stretch a logarithmic axis until nothing else could be read.
      if (std::ranges::max(series.y) < 1e-20)
        figure.caption += fmt::format(
            " Not drawn: {}, which is on its target from the first step (below 10^-20, rounding).",
            column.setting.name);
      else
        figure.series.push_back(std::move(series));
    }
    lead_with(figure, fmt::format("After the last step: {}.", ends));
    figure.description =
        fmt::format("{} against the step for three settings. After the last step: {}.", panel.outcome, ends);
    figures.push_back(std::move(figure));
  }
  return figures;
}

}  // namespace attmirror::next_token_study
