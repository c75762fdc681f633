// What a reader wants to know of trainings: did the loss go to zero, did attention saturate, on which tokens, and
// does the direction approach the max-margin solution that theory predicts.
#include "pages/run_sections.hpp"

#include "base/numbers.hpp"
#include "base/words.hpp"
#include "descent/run_text.hpp"
#include "descent/saved_model.hpp"
#include "pages/reported_run.hpp"
#include "pages/shown_names.hpp"
#include "pages/sources.hpp"
#include "report/short_numbers.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/descent/comparison.hpp>
#include <attmirror/margin/max_margin.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

namespace fs = std::filesystem;

bool has_weights(const SavedRun& run) {
  return run.parameters.W.size() + run.parameters.K.size() + run.parameters.p.size() > 0 &&
         !(run.result && run.result->status == RunStatus::diverged);
}

void solve(const SavedRun& run, MeasuredRun& measured) {
  const std::optional<Norm> norm = limit_norm(run.config);
  if (!norm) {
    const std::optional<Norm> geometry = geometry_norm(run.config.optimizer);
    measured.without =
        geometry
            ? fmt::format("No theorem says which max-margin problem K and Q solve in the geometry {}.",
                          norm_name(*geometry))
            : fmt::format(
                  "Theory predicts no norm whose margin {} maximizes, so there is no max-margin solution to "
                  "compare with.",
                  method_name(run.config.optimizer));
    return;
  }
  MarginProblem problem = AttentionSvm{measured.selected};
  if (run.config.params == "prompt") problem = PromptSvm{measured.selected, run.key_weights};
  MarginSolution solution = max_margin(*measured.data, problem, *norm, {.max_seconds = 30});
  if (solution.status != MarginStatus::certified) {
    measured.without = fmt::format(
        "The max-margin problem of the selected tokens has no certified solution: {}.",
        solution.status == MarginStatus::infeasible ? "no weights separate them" : solution.reason);
    return;
  }
  const Measure measure{geometry_p(run.config.optimizer), *norm};
  const auto add = [&](std::int64_t step, const Parameters& parameters) {
    measured.trace.emplace_back(
        static_cast<double>(step),
        compare(*measured.model, solution.W, attention_weights(parameters), measured.selected, measure));
  };
  if (run.config.keep == Keep::parameters)
    for (const std::size_t i : thinned(run.records.size()))
      add(run.records[i].step, run.records[i].parameters);
  if (measured.trace.empty() || measured.trace.back().first < static_cast<double>(run.step))
    add(run.step, run.parameters);
  measured.solution = std::move(solution);
}

void measure(ReportedRun& run) {
  const SavedRun& saved = run.saved;
  if (!is_attention_run(saved.config)) return;  // other models measure themselves, in their records
  if (!has_weights(saved)) {
    run.without_data = saved.result
                           ? "The run diverged, so its weights have no direction."
                           : "The run was stopped before its first checkpoint and has no weights yet.";
    return;
  }
  MeasuredRun measured;
  try {
    measured.data = std::make_unique<const Dataset>(load_run_data(saved.config, saved.config.data_path));
    measured.model.emplace(model_of(saved, *measured.data));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::environment) throw;
    run.without_data = fmt::format(
        "The data of the run cannot be read, so the page has no attention probabilities and no max-margin solution: {}.",
        error.what());
    return;
  }
  measured.probabilities = attention_probabilities(*measured.model, saved.parameters);
  measured.selected = selected_tokens(*measured.model, saved.parameters);
  if (saved.result) measured.optimal = saved.result->optimal;
  try {
    solve(saved, measured);
  } catch (const Error& error) {  // a head of the user's own, tokens beyond a double, ...
    if (error.kind() == ErrorKind::environment) throw;
    measured.without = fmt::format("There is no max-margin solution to compare with: {}.", error.what());
  }
  run.measured = std::move(measured);
}

// ---- figures

struct Quantity {
  const char* id;
  const char* title;
  const char* label;
  double Record::*value;
};

// "At the last step: a 0.1, b 0.2." of up to six curves, the range of more.
std::string ends_text(const std::vector<Series>& series) {
  constexpr std::size_t most_named = 6;
  std::string text;
  std::vector<double> ends;
  for (const Series& one : series) {
    if (one.y.empty()) continue;
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", series.size() == 1 ? "" : one.name + " ",
                        short_number(one.y.back()));
    if (std::isfinite(one.y.back())) ends.push_back(one.y.back());
  }
  if (text.empty()) return "Nothing was recorded.";
  if (series.size() <= most_named || ends.empty()) return fmt::format("At the last step: {}.", text);
  return fmt::format("At the last step: {} to {} over {} runs.", short_number(std::ranges::min(ends)),
                     short_number(std::ranges::max(ends)), ends.size());
}

Figure finish(Figure figure) {
  figure.x = axis_for("step k", figure.series, &Series::x);
  figure.x.whole = true;
  figure.y = axis_for(figure.y.label, figure.series, &Series::y);
  const std::string ends = ends_text(figure.series);
  figure.description = fmt::format("{} during training. {}", figure.title, ends);
  figure.caption = figure.caption.empty() ? ends : ends + " " + figure.caption;
  return figure;
}

// "direction_W_kq" is for programs: what people read above the figure, and beside its axis.
std::pair<std::string, std::string> metric_title(const std::string& name) {
  constexpr std::string_view direction = "direction_", norm = "norm_";
  if (name == "accuracy")
    return {"Accuracy on the training sentences", "share of sentences predicted correctly"};
  if (name == "unseen_accuracy")
    return {"Accuracy on unseen sentences", "share of sentences predicted correctly"};
  if (name.starts_with(direction)) {
    const std::string block = name.substr(direction.size());
    return {fmt::format("How far {} is from its max-margin direction", block),
            fmt::format("1 − cos of the angle between {0} and {0}*", block)};
  }
  if (name.starts_with(norm)) {
    const std::string block = name.substr(norm.size());
    return {fmt::format("How large {} is", block), fmt::format("Frobenius norm of {}", block)};
  }
  const std::string words = metric_name(name);
  return {words, words};
}

// One for each name that a run has among the metrics of its model.
void add_metric_curves(const std::vector<ReportedRun>& runs, std::vector<Figure>& figures) {
  std::set<std::string> names;
  for (const ReportedRun& run : runs)
    for (const Record& record : run.saved.records)
      for (const Metric& metric : record.metrics) names.insert(metric.name);
  for (const std::string& name : names) {
    Figure figure;
    figure.id = "runs-" + id_of(name);
    std::tie(figure.title, figure.y.label) = metric_title(shortened(name));
    for (std::size_t r = 0; r < runs.size(); ++r) {
      Series series;
      series.name = runs[r].name;
      series.color = static_cast<int>(r);
      const auto& records = runs[r].saved.records;
      for (const std::size_t i : thinned(records.size()))
        for (const Metric& metric : records[i].metrics) {
          if (metric.name != name || !std::isfinite(metric.value)) continue;
          series.x.push_back(static_cast<double>(records[i].step));
          series.y.push_back(metric.value);
        }
      // Rounding (one-hot embeddings are aligned from the first step) is no curve.
      const bool rounding =
          name.starts_with("direction_") && !series.y.empty() && std::ranges::max(series.y) < 1e-20;
      if (!series.x.empty() && !rounding) figure.series.push_back(std::move(series));
    }
    if (!figure.series.empty()) {
      figures.push_back(finish(std::move(figure)));
      if (name.starts_with("direction_")) figures.back().y.scale = Axis::Scale::log;
    }
  }
}

// Norms of different geometries cannot be compared: each has a figure of its own.
void add_norm_curves(const std::vector<ReportedRun>& runs, std::vector<Figure>& figures) {
  std::vector<std::string> norms;
  for (const ReportedRun& run : runs)
    if (const std::string text = norm_text(run.saved.config); std::ranges::find(norms, text) == norms.end())
      norms.push_back(text);
  for (const std::string& text : norms) {
    Figure figure;
    figure.id = norms.size() == 1 ? "runs-norm" : "runs-norm-" + id_of(text);
    figure.title = fmt::format("How the weights grow, in the norm {}", text);
    figure.y.label = fmt::format("norm of the weights, {}", text);
    for (std::size_t r = 0; r < runs.size(); ++r) {
      if (norm_text(runs[r].saved.config) != text) continue;
      Series series;
      series.name = runs[r].name;
      series.color = static_cast<int>(r);  // as in the other figures
      for (const std::size_t i : thinned(runs[r].saved.records.size())) {
        series.x.push_back(static_cast<double>(runs[r].saved.records[i].step));
        series.y.push_back(runs[r].saved.records[i].norm);
      }
      if (!series.x.empty()) figure.series.push_back(std::move(series));
    }
    if (!figure.series.empty()) figures.push_back(finish(std::move(figure)));
  }
}

std::vector<Figure> curves(const std::vector<ReportedRun>& runs) {
  const Quantity quantities[] = {{"loss", "Loss during training", "loss", &Record::loss},
                                 {"saturation", "How much attention concentrates on one token",
                                  "largest attention probability, mean over queries", &Record::max_softmax}};
  std::vector<Figure> figures;
  for (const Quantity& quantity : quantities) {
    Figure figure;
    figure.id = fmt::format("runs-{}", quantity.id);
    figure.title = quantity.title;
    figure.y.label = quantity.label;
    for (const ReportedRun& run : runs) {
      Series series;
      series.name = run.name;
      for (const std::size_t i : thinned(run.saved.records.size())) {
        series.x.push_back(static_cast<double>(run.saved.records[i].step));
        series.y.push_back(run.saved.records[i].*quantity.value);
      }
      figure.series.push_back(std::move(series));
    }
    const bool any = std::ranges::any_of(figure.series, [](const Series& one) { return !one.x.empty(); });
    if (any) figures.push_back(finish(std::move(figure)));
  }
  add_norm_curves(runs, figures);
  add_metric_curves(runs, figures);
  Figure figure;
  figure.id = "runs-divergence";
  figure.title = "How far each run is from its max-margin direction";
  figure.y.label = "directional Bregman divergence (no unit)";
  figure.caption =
      "Each run is compared with the certified max-margin solution of the tokens it selects, in its own geometry.";
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (!runs[r].measured || runs[r].measured->trace.empty()) continue;
    Series series;
    series.name = runs[r].name;
    series.color = static_cast<int>(r);  // as in the other figures
    for (const auto& [step, comparison] : runs[r].measured->trace) {
      series.x.push_back(step);
      series.y.push_back(comparison.directional_bregman);
    }
    if (series.x.size() == 1) series.mark = Series::Mark::points;
    figure.series.push_back(std::move(series));
  }
  if (!figure.series.empty()) figures.push_back(finish(std::move(figure)));
  return figures;
}

std::string query_name(const Dataset& data, std::ptrdiff_t j) {
  const std::ptrdiff_t i = data.sequence_of(j);
  return data.one_query_each() ? fmt::format("sequence {}", i)
                               : fmt::format("sequence {}, query {}", i, j - data.first_query(i));
}

// As many queries and tokens as can be read.
constexpr std::ptrdiff_t most_queries = 16, most_tokens = 24;

Figure attention_map(const ReportedRun& run, const std::string& id) {
  const MeasuredRun& measured = *run.measured;
  const Dataset& data = *measured.data;
  const std::ptrdiff_t queries = std::min(data.total_queries(), most_queries);
  const std::ptrdiff_t tokens = std::min(data.max_length(), most_tokens);
  Figure figure;
  figure.id = id + "-attention";
  figure.title = "Which token each query attends to";
  figure.x.label = "token, by its index";
  figure.y.label = "query";
  Heatmap map{.digits = 2};
  for (std::ptrdiff_t t = 0; t < tokens; ++t) map.columns.push_back(fmt::format("{}", t));
  std::size_t agreeing = 0;
  for (std::ptrdiff_t j = 0; j < queries; ++j) {
    const auto row = static_cast<std::size_t>(j);
    map.rows.push_back(query_name(data, j));
    auto& line = map.values.emplace_back();
    for (std::ptrdiff_t t = 0; t < tokens; ++t)
      line.push_back(t < measured.probabilities[row].size() ? measured.probabilities[row][t]
                                                            : std::numeric_limits<double>::quiet_NaN());
    if (!measured.optimal) continue;
    const std::int64_t best = measured.optimal->tokens[row];
    if (best < tokens) map.marked.emplace_back(row, static_cast<std::size_t>(best));
    agreeing += best == measured.selected.tokens[row] ? 1 : 0;
  }
  figure.heatmap = std::move(map);
  double least = 1;
  for (std::ptrdiff_t j = 0; j < queries; ++j)
    least = std::min(least, measured.probabilities[static_cast<std::size_t>(j)].maxCoeff());
  figure.caption =
      fmt::format("Attention probabilities after step {}: every query puts at least {} on one token.",
                  run.saved.step, percent(least));
  if (measured.optimal)
    figure.caption += fmt::format(
        " {} of {} queries attend most to the token with the best score (outlined).", agreeing, queries);
  if (queries < data.total_queries() || tokens < data.max_length())
    figure.caption += fmt::format(" Shown are the first {} of {} queries and up to {} of {} tokens.", queries,
                                  data.total_queries(), tokens, data.max_length());
  figure.description =
      fmt::format("Probability of each token after {} steps, a row for each query.", run.saved.step);
  if (measured.optimal)
    figure.description +=
        fmt::format(" The largest is on the best token in {} of {} rows.", agreeing, queries);
  return figure;
}

// ---- tables and facts

Table overview_table(const std::vector<ReportedRun>& runs) {
  Table table;
  table.title = "Runs";
  table.columns = {{"run", Align::left},
                   {"optimizer", Align::left},
                   {"steps"},
                   {"status", Align::left},
                   {"loss"},
                   {"attention on one token"},
                   {"norm"},
                   {"divergence from max-margin"},
                   {"share of the largest margin"},
                   {"best tokens", Align::left}};
  for (const ReportedRun& run : runs) {
    const auto& result = run.saved.result;
    const double nothing = std::numeric_limits<double>::quiet_NaN();
    const Comparison last =
        run.measured && !run.measured->trace.empty() ? run.measured->trace.back().second : Comparison{};
    table.rows.push_back({run.name, with_short_numbers(to_string(run.saved.config.optimizer)),
                          fmt::format("{}", run.saved.step), status_of(run.saved),
                          short_number(result ? result->loss : nothing),
                          short_number(result ? result->max_softmax : nothing),
                          short_number(result ? result->norm : nothing),
                          short_number(last.directional_bregman), short_number(last.margin_ratio),
                          !result || !result->optimal  ? "–"
                          : result->globally_optimal() ? "all"
                                                       : "not all"});
  }
  return table;
}

constexpr std::size_t most_rows = 200;

Table tokens_table(const ReportedRun& run) {
  const MeasuredRun& measured = *run.measured;
  const Dataset& data = *measured.data;
  Table table;
  table.title = "Selected tokens";
  table.columns = {{"query", Align::left}, {"selected"}, {"probability"}};
  if (measured.optimal) table.columns.push_back({"best"});
  for (std::size_t j = 0; j < std::min(measured.selected.tokens.size(), most_rows); ++j) {
    const std::int64_t token = measured.selected.tokens[j];
    table.rows.push_back({query_name(data, static_cast<std::ptrdiff_t>(j)), fmt::format("{}", token),
                          short_number(measured.probabilities[j][token])});
    if (measured.optimal) table.rows.back().push_back(fmt::format("{}", measured.optimal->tokens[j]));
  }
  return table;
}

Facts configuration(const SavedRun& run) {
  const RunConfig& config = run.config;
  Facts facts{"Configuration", {}};
  const auto add = [&](const char* name, std::string value) {
    facts.entries.emplace_back(name, std::move(value));
  };
  if (!config.data_path.empty() || !is_own_run(config)) add("data", config.data_path.string());
  add(is_own_run(config) ? "numbers" : "size", data_text(config));
  add("model", model_text(config));
  add("optimizer", with_short_numbers(to_string(config.optimizer)));
  add("start", start_text(config));
  add("steps", fmt::format("{} of {}", run.step, config.steps));
  add("records", config.record);
  add("made by", fmt::format("attmirror {} ({}), {}", config.version, config.commit, config.isa));
  return facts;
}

std::optional<Facts> margin_facts(const ReportedRun& run) {
  if (!run.measured || !run.measured->solution) return std::nullopt;
  const MarginSolution& solution = *run.measured->solution;
  const Comparison& last = run.measured->trace.back().second;
  return Facts{"Compared with the max-margin solution of the selected tokens",
               {{"smallest norm", fmt::format("{:.6g} in {}", solution.norm, norm_name(solution.kind))},
                {"certified relative gap", fmt::format("{:.2g}", solution.gap)},
                {"support tokens", fmt::format("{}", solution.support.size())},
                {"directional Bregman divergence", short_number(last.directional_bregman)},
                {"correlation", fmt::format("{:.6f}", last.correlation)},
                {"margin, as a share of the largest", fmt::format("{:.6f}", last.margin_ratio)}}};
}

Section section_of(const ReportedRun& run, const std::string& id) {
  Section section{.id = id, .title = "Run " + run.name, .badge = status_of(run.saved), .blocks = {}};
  const auto& result = run.saved.result;
  section.badge_tone = !result                                 ? Tone::caution
                       : result->status == RunStatus::diverged ? Tone::bad
                                                               : Tone::neutral;
  section.blocks.push_back(configuration(run.saved));
  if (is_attention_run(run.saved.config))
    section.blocks.push_back(CodeBlock{train_command(run.saved.config)});
  if (!run.without_data.empty()) section.blocks.push_back(Paragraph{run.without_data});
  if (!run.measured) return section;
  if (const auto facts = margin_facts(run)) section.blocks.push_back(*facts);
  if (!run.measured->without.empty()) section.blocks.push_back(Paragraph{run.measured->without});
  section.blocks.push_back(attention_map(run, id));
  TableBlock tokens{.id = id + "-tokens", .table = tokens_table(run)};
  if (run.measured->optimal) {
    for (std::size_t j = 0; j < tokens.table.rows.size(); ++j)
      tokens.tones.push_back(
          run.measured->selected.tokens[j] == run.measured->optimal->tokens[j] ? Tone::good : Tone::caution);
    tokens.tone_column = 1;
    tokens.legend = {{Tone::good, "the token with the best score"}, {Tone::caution, "another token"}};
  }
  Folded folded{"Selected tokens", {tokens}};
  if (run.measured->selected.tokens.size() > most_rows)
    folded.blocks.push_back(Paragraph{
        fmt::format("The first {} of {} queries.", most_rows, run.measured->selected.tokens.size())});
  section.blocks.push_back(folded);
  return section;
}

}  // namespace

PagePart run_sections(const std::vector<fs::path>& folders) {
  std::vector<ReportedRun> runs;
  for (const fs::path& folder : folders) {
    ReportedRun& run = runs.emplace_back();
    run.folder = folder;
    run.saved = load_run(folder);
    measure(run);
  }
  const std::vector<std::string> names = short_names(folders);
  for (std::size_t r = 0; r < runs.size(); ++r) runs[r].name = names[r];
  std::vector<Section> sections;
  Section overview{.id = "runs", .title = runs.size() == 1 ? "How it went" : "How they went", .blocks = {}};
  // The odd run out comes first.
  std::ranges::stable_partition(runs, went_wrong);
  TableBlock table{.id = "runs", .table = overview_table(runs)};
  if (std::ranges::any_of(runs, went_wrong)) {
    for (const ReportedRun& run : runs) table.tones.push_back(went_wrong(run) ? Tone::caution : Tone::none);
    table.tone_column = 3;
    table.legend = {{Tone::caution, "did not run to its end"}};
  }
  overview.blocks.push_back(std::move(table));
  for (Figure& figure : curves(runs)) overview.blocks.push_back(std::move(figure));
  sections.push_back(std::move(overview));
  for (std::size_t r = 0; r < runs.size(); ++r)
    sections.push_back(section_of(runs[r], fmt::format("run-{}", r + 1)));
  return {runs.size() == 1 ? run_conclusion(runs.front()) : runs_conclusion(runs), std::move(sections)};
}

}  // namespace attmirror
