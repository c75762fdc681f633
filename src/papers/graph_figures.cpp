#include "papers/graph_figures.hpp"

#include "papers/shorthand.hpp"
#include "papers/workers.hpp"

#include <fmt/format.h>

namespace attmirror::graph_study {

namespace {

// The mean over seeds at each record.
Series mean_series(const Case& one, std::vector<double> Curve::*member, int color) {
  Series series{
      .name = one.setting.name(),
      .dash = one.setting.kind == EmbeddingKind::one_hot ? Series::Dash::solid : Series::Dash::dashed,
      .color = color};
  series.x = one.runs.front().curve.step;
  for (std::size_t r = 0; r < series.x.size(); ++r) {
    std::vector<double> values;
    for (const Measured& m : one.runs) values.push_back((m.curve.*member)[r]);
    series.y.push_back(mean_of(values).value);
  }
  return series;
}

// Settings come in pairs: one-hot and Gaussian share a color.
std::vector<Series> all_series(const std::vector<Case>& cases, std::vector<double> Curve::*member) {
  std::vector<Series> all;
  for (std::size_t k = 0; k < cases.size(); ++k)
    all.push_back(mean_series(cases[k], member, static_cast<int>(k / 2)));
  return all;
}

std::string last_values(const std::vector<Series>& all, std::string_view format) {
  std::string text;
  for (const Series& series : all)
    text += fmt::format(fmt::runtime(format), text.empty() ? "" : "; ", series.name, series.y.back());
  return text;
}

}  // namespace

Table limits_table(const std::vector<Case>& cases) {
  Table table{.title = "Limits, and where runs are at the last step",
              .columns = {{"setting", Align::left},
                          {"seed"},
                          {"contested tokens"},
                          {"floor of the loss"},
                          {"|W_fin|"},
                          {"|W_dir|"},
                          {"loss above the floor"},
                          {"error of the finite part"},
                          {"R"},
                          {"1 - cos"}}};
  for (const Case& one : cases)
    for (std::size_t s = 0; s < one.runs.size(); ++s) {
      const Measured& m = one.runs[s];
      table.rows.push_back(
          {one.setting.name(), fmt::format("{}", s + 1), fmt::format("{}", m.limit.contradicting),
           fmt::format("{:.4f}", m.limit.finite.loss), fmt::format("{:.3f}", m.limit.finite.W.norm()),
           fmt::format("{:.3f}", m.limit.direction.norm), fmt::format("{:.2e}", m.curve.excess.back()),
           fmt::format("{:.2e}", m.curve.finite_error.back()), fmt::format("{:.2f}", m.curve.R.back()),
           fmt::format("{:.2e}", m.curve.angle.back())});
    }
  return table;
}

Table stages_table(const std::vector<std::vector<TwoStages>>& all) {
  Table table{.title = "P4's two stages on sentences with cycles, one-hot, mean over seeds",
              .columns = {{"steps of stage 1"},
                          {"|W_ov|"},
                          {"loss above the floor"},
                          {"largest contested difference"},
                          {"1 - cos(W_kq, W_dir)"}}};
  for (const std::vector<TwoStages>& stages : all) {
    const auto mean = [&](double TwoStages::*member) {
      std::vector<double> values;
      for (const TwoStages& one : stages) values.push_back(one.*member);
      return mean_of(values).value;
    };
    table.rows.push_back({fmt::format("{}", stages.front().first_steps),
                          fmt::format("{:.1f}", mean(&TwoStages::norm)),
                          fmt::format("{:.4f}", mean(&TwoStages::excess)),
                          fmt::format("{:.3f}", mean(&TwoStages::largest_contest)),
                          fmt::format("{:.3f}", mean(&TwoStages::angle))});
  }
  return table;
}

Figure finite_figure(const std::vector<Case>& cases) {
  Figure figure{
      .id = "finite-part",
      .title = "Score differences within a component converge",
      .caption =
          "Mean over seeds of the largest error of a score difference that stays finite in theory. With plain steps "
          "it falls like 1/t; with normalized steps it stops at the length of a step.",
      .x = {.label = "step t", .scale = Axis::Scale::log},
      .y = {.label = "largest error of a score difference", .scale = Axis::Scale::log},
      .series = all_series(cases, &Curve::finite_error)};
  lead_with(figure, fmt::format("At the last step: {}.", last_values(figure.series, "{}{} {:.1e}")));
  figure.description =
      fmt::format("Errors of the finite part against the step, both axes logarithmic. At the last step: {}.",
                  last_values(figure.series, "{}{} {:.1e}"));
  return figure;
}

Figure growth_figure(const std::vector<Case>& cases) {
  Figure figure{
      .id = "growth",
      .title = "Score differences between components grow like log t",
      .caption =
          "R of the nearest W_fin + R W_dir, mean over seeds: straight lines of slope 1 over log t, also for normalized "
          "steps once the finite part takes up most of each step.",
      .x = {.label = "step t", .scale = Axis::Scale::log},
      .y = {.label = "growth R along W_dir"},
      .series = all_series(cases, &Curve::R)};
  lead_with(figure, fmt::format("At the last step: {}.", last_values(figure.series, "{}{} {:.2f}")));
  figure.description = fmt::format("R against the logarithm of the step. At the last step: {}.",
                                   last_values(figure.series, "{}{} {:.2f}"));
  return figure;
}

}  // namespace attmirror::graph_study
