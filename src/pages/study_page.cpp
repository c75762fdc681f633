#include "pages/study_page.hpp"

#include "base/fields.hpp"
#include "pages/run_sections.hpp"
#include <attmirror/base/build_info.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

std::string group_name(const StudyGroup& group, Lettering lettering) {
  return lettering == Lettering::plain ? group.word : group.title;
}

// "unsaturated 3, diverged 1"; "ok" where all are.
std::string statuses_text(const std::map<std::string, std::int64_t>& statuses) {
  std::string text;
  for (const auto& [status, count] : statuses)
    if (status != "ok") text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, status);
  return text.empty() ? "all ok" : text;
}

std::string mean_text(const StudyMean& mean, const char* format) {
  return mean.count == 0 ? "-" : fmt::format(fmt::runtime(format), mean.value);
}

// "10 starts", "1 start"
std::string counted_starts(std::size_t count) {
  return fmt::format("{} start{}", count, count == 1 ? "" : "s");
}

Figure share_map(const Study& study) {
  Heatmap map;
  map.digits = 2;
  for (const std::int64_t seed : study.seeds) map.columns.push_back(fmt::format("{}", seed));
  std::string outcome;
  for (const StudyGroup& group : study.groups) {
    map.rows.push_back(fmt::format("{} ({})", group.title, group.norm));
    map.values.push_back(group.shares);
    const StudyMean mean = study_mean(group.shares);
    if (mean.count > 0)
      outcome += fmt::format("{}{}: {:.3f} on average", outcome.empty() ? "" : "; ", group.title, mean.value);
  }
  return {
      .id = "shares",
      .title = "Margin of each run in its own norm, as a share of the largest",
      .caption =
          "1 is the largest margin that any weights have for the tokens that the run selects. A row is an "
          "optimizer with its own norm, a column a random start. A run that did not end as it should is empty.",
      .description = "A table of shares as colors. " + outcome + ".",
      .x = {.label = "seed of the start"},
      .y = {.label = "optimizer (norm)"},
      .heatmap = std::move(map)};
}

Figure divergence_curves(const Study& study) {
  Figure figure;
  figure.id = "divergence";
  figure.title = "Divergence from each run's own max-margin solution during training";
  for (const StudyGroup& group : study.groups) {
    Series series;
    series.name = group.title;
    for (const auto& [step, values] : group.curve) {
      std::vector<double> sorted = values;
      std::ranges::sort(sorted);
      double sum = 0;
      for (const double value : sorted) sum += value;
      series.x.push_back(step);
      series.y.push_back(sum / static_cast<double>(sorted.size()));
      series.low.push_back(sorted.front());
      series.high.push_back(sorted.back());
    }
    if (!series.x.empty()) figure.series.push_back(std::move(series));
  }
  figure.x = axis_for("steps", figure.series, &Series::x);
  figure.x.whole = true;
  figure.y = axis_for("divergence of directions", figure.series, &Series::y);
  figure.caption = fmt::format(
      "Mean over {}, with the range of all of them. 0 is the direction of the max-margin solution.",
      counted_starts(study.seeds.size()));
  figure.description = "Divergence against steps.";
  for (const Series& one : figure.series)
    figure.description += fmt::format(" {}: {:.2g} at the end.", one.name, one.y.back());
  return figure;
}

}  // namespace

StudyMean study_mean(const std::vector<double>& values) {
  std::vector<double> finite;
  for (const double value : values)
    if (std::isfinite(value)) finite.push_back(value);
  StudyMean mean{.value = std::nan(""), .error = 0, .count = static_cast<std::int64_t>(finite.size())};
  if (finite.empty()) return mean;
  const auto n = static_cast<double>(finite.size());
  double sum = 0, squares = 0;
  for (const double value : finite) sum += value;
  mean.value = sum / n;
  for (const double value : finite) squares += (value - mean.value) * (value - mean.value);
  if (n > 1) mean.error = std::sqrt(squares / (n - 1) / n);
  return mean;
}

std::string study_conclusion(const Study& study, Lettering lettering) {
  const std::size_t count = study.groups.size();
  std::vector<const StudyGroup*> reached, others;
  double low = 2, high = -1;
  for (const StudyGroup& group : study.groups) {
    const StudyMean mean = study_mean(group.shares);
    const bool near = mean.count > 0 && mean.value >= maximizing_share;
    (near ? reached : others).push_back(&group);
    if (!near) continue;
    low = std::min(low, mean.value);
    high = std::max(high, mean.value);
  }
  const std::string starts = counted_starts(study.seeds.size());
  std::string text;
  if (reached.empty()) {
    text = fmt::format("No optimizer reaches {:g} of the largest margin in its own norm, on average over {}",
                       maximizing_share, starts);
  } else {
    const bool one = reached.size() == 1;
    const std::string who = count == 1        ? group_name(*reached.front(), lettering)
                            : !others.empty() ? fmt::format("{} of {} optimizers", reached.size(), count)
                            : count == 2      ? std::string("Both optimizers")
                                              : fmt::format("All {} optimizers", count);
    text = fmt::format(
        "{} {}: on average over {}, {} {:.3f}{} of the largest", who,
        one ? "maximizes the margin in its own norm" : "maximize the margin in their own norms", starts,
        one ? "it reaches" : "they reach", low, high - low < 5e-4 ? "" : fmt::format(" to {:.3f}", high));
  }
  std::string rest;
  for (const StudyGroup* group : others) {
    const StudyMean mean = study_mean(group->shares);
    rest += fmt::format("{}{} ({})", rest.empty() ? "" : ", ", group_name(*group, lettering),
                        mean.count == 0 ? statuses_text(group->statuses) : fmt::format("{:.3f}", mean.value));
  }
  if (!rest.empty()) text += fmt::format("{} {}", reached.empty() ? ":" : "; not so", rest);
  std::int64_t left_out = 0;
  for (const auto& [status, number] : study.statuses) left_out += status == "ok" ? 0 : number;
  if (left_out > 0)
    text += fmt::format(". {} of {} runs did not end as they should and {} left out ({})", left_out,
                        study.runs, left_out == 1 ? "is" : "are", statuses_text(study.statuses));
  return text + ".";
}

Table study_table(const Study& study, Lettering lettering) {
  const bool plain = lettering == Lettering::plain;
  Table table;
  if (!plain) table.title = "What each optimizer reached: means over its starts";
  table.columns = {{"optimizer", Align::left},
                   {plain ? "lr" : "learning rate"},
                   {"margin"},
                   {"divergence"},
                   {"correlation"},
                   {plain ? "best" : "best tokens"},
                   {"runs", Align::left}};
  for (const StudyGroup& group : study.groups) {
    const StudyMean share = study_mean(group.shares);
    std::string margin = mean_text(share, "{:.4f}");
    if (share.count > 1) margin += fmt::format(" {} {:.4f}", plain ? "+-" : "±", share.error);
    table.rows.push_back({group_name(group, lettering), fmt::format("{:g}", group.lr), margin,
                          mean_text(study_mean(group.divergences), "{:.2g}"),
                          mean_text(study_mean(group.correlations), "{:.4f}"),
                          fmt::format("{}{}{}", group.optimal, plain ? "/" : " of ", group.runs),
                          plain ? fmt::format("{} ok", group.saturated) : statuses_text(group.statuses)});
  }
  return table;
}

Page study_page(const Study& study, const std::string& data, const std::filesystem::path& folder,
                const std::string& file) {
  Page page;
  page.title = "Study of " + data;
  page.subtitle = fmt::format("{} optimizers, {}, {} steps each", study.groups.size(),
                              counted_starts(study.seeds.size()), study.steps);
  page.conclusion = study_conclusion(study, Lettering::typeset);
  page.footer = version_line();
  Section result{.id = "result", .title = "Margins", .blocks = {}};
  // Beyond some dozens of starts the cells say nothing any more, and the table has the means.
  if (study.seeds.size() <= 40) result.blocks.push_back(share_map(study));
  TableBlock block{.id = "optimizers", .table = study_table(study, Lettering::typeset)};
  result.blocks.push_back(std::move(block));
  result.blocks.push_back(Paragraph{
      "The margin of a run, given as a share of the largest, is the smallest difference of logits between a selected token and another one of its sequence, "
      "divided by the norm of the weights, in the norm that theory predicts for the optimizer; the largest one is that of "
      "the certified max-margin solution for the same tokens. Divergence is the directional Bregman divergence from that "
      "solution, and correlation the cosine: 0 and 1 where the directions are the same. The last numbers count the starts "
      "that select the best token of every sequence."});
  if (Figure curves = divergence_curves(study); !curves.series.empty())
    result.blocks.push_back(std::move(curves));
  page.sections.push_back(std::move(result));

  Section again{.id = "again", .title = "The runs", .blocks = {}};
  again.blocks.push_back(
      Paragraph{"This file describes all runs; `attmirror sweep` repeats them to the bit. The database "
                "has every number, and the weights of every run."});
  again.blocks.push_back(CodeBlock{file});
  again.blocks.push_back(CodeBlock{fmt::format(
      "attmirror sweep {} -o again.db\nattmirror sweep {} --summary\nattmirror report {} -o runs.html",
      shell_path(folder / "sweep.toml"), shell_path(folder / "results.db"),
      shell_path(folder / "results.db"))});
  page.sections.push_back(std::move(again));
  return page;
}

}  // namespace attmirror
