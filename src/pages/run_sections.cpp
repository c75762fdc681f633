// What a reader wants to know of trainings: did the loss go to zero, did attention saturate, on which tokens, and
// does the direction approach the max-margin solution that theory names.
#include "pages/run_sections.hpp"

#include "base/words.hpp"
#include "descent/run_text.hpp"
#include "descent/saved_model.hpp"
#include "pages/sources.hpp"
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

#include <fmt/format.h>

namespace attmirror {

namespace {

namespace fs = std::filesystem;

// What needs the data of a run, which may be gone.
struct Measured {
  std::unique_ptr<const Dataset> data;  // the model views it
  std::optional<Attention> model;
  std::vector<Vector> probabilities;
  Selection selected;
  std::optional<Selection> optimal;
  std::optional<MarginSolution> solution;
  std::vector<std::pair<double, Comparison>> trace;
  std::string without;  // why there is no solution: one sentence
};

struct ReportedRun {
  fs::path folder;
  std::string name;
  SavedRun saved;
  std::optional<Measured> measured;
  std::string without_data;  // why not: one sentence
};

std::string six_digits(double value) { return std::isfinite(value) ? fmt::format("{:.6g}", value) : "–"; }

std::string status_of(const SavedRun& run) {
  return run.result ? std::string(to_string(run.result->status)) : "unfinished";
}

bool has_weights(const SavedRun& run) {
  return run.parameters.W.size() + run.parameters.K.size() + run.parameters.p.size() > 0 &&
         !(run.result && run.result->status == RunStatus::diverged);
}

void solve(const SavedRun& run, Measured& measured) {
  const std::optional<Norm> norm = limit_norm(run.config);
  if (!norm) {
    const std::optional<Norm> geometry = geometry_norm(run.config.optimizer);
    measured.without =
        geometry ? fmt::format("No theorem says which max-margin problem K and Q in the geometry {} end at.",
                               to_string(*geometry))
                 : fmt::format(
                       "Theory names no norm whose margin {} maximizes: there is no max-margin "
                       "solution to compare with.",
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
                           ? "The run diverged: its weights have no direction."
                           : "The run was stopped before its first checkpoint: it has no weights yet.";
    return;
  }
  Measured measured;
  try {
    measured.data = std::make_unique<const Dataset>(load_run_data(saved.config, saved.config.data_path));
    measured.model.emplace(model_of(saved, *measured.data));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::environment) throw;
    run.without_data = fmt::format(
        "Without the run's data there are no attention probabilities and no max-margin solution: {}.",
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

// What has an end in numbers.
std::string ends_text(const std::vector<Series>& series, const char* what) {
  std::string text;
  for (const Series& one : series)
    if (!one.y.empty())
      text += fmt::format("{}{}{} of {} at step {:g}", text.empty() ? "" : "; ", what,
                          one.name.empty() ? "" : " of " + one.name, six_digits(one.y.back()), one.x.back());
  return text.empty() ? fmt::format("No record has a {}.", what) : text + ".";
}

Figure finish(Figure figure, const char* what) {
  figure.x = axis_for("steps", figure.series, &Series::x);
  figure.y = axis_for(figure.y.label, figure.series, &Series::y);
  figure.description = fmt::format("{} along the steps. ", figure.title) + ends_text(figure.series, what);
  return figure;
}

// "direction_W_kq" is for programs.
std::string metric_title(const std::string& name) {
  constexpr std::string_view direction = "direction_", norm = "norm_";
  if (name == "accuracy") return "Accuracy on the training data";
  if (name == "unseen_accuracy") return "Accuracy on unseen sentences";
  if (name.starts_with(direction))
    return fmt::format("1 − cos of the angle between {0} and its max-margin target",
                       name.substr(direction.size()));
  if (name.starts_with(norm)) return fmt::format("Norm of {}", name.substr(norm.size()));
  return name;
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
    figure.title = metric_title(shortened(name));
    figure.y.label = name.starts_with("direction_") ? "1 − cos" : shortened(name);
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
      const std::string label = figure.y.label;
      figures.push_back(finish(std::move(figure), label.c_str()));
      if (name.starts_with("direction_")) figures.back().y.scale = Axis::Scale::log;
    }
  }
}

std::vector<Figure> curves(const std::vector<ReportedRun>& runs) {
  const Quantity quantities[] = {
      {"loss", "Loss", "loss", &Record::loss},
      {"saturation", "How saturated attention is", "mean of the largest softmax probability",
       &Record::max_softmax},
      {"norm", "Norm of the weights in the run's geometry", "norm", &Record::norm}};
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
    if (any) figures.push_back(finish(std::move(figure), quantity.label));
  }
  add_metric_curves(runs, figures);
  Figure figure;
  figure.id = "runs-divergence";
  figure.title = "Distance from the max-margin direction";
  figure.y.label = "directional Bregman divergence";
  figure.caption =
      "Each run against the certified max-margin solution of the tokens that it selects, in its own "
      "geometry.";
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
  if (!figure.series.empty()) figures.push_back(finish(std::move(figure), "divergence"));
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
  const Measured& measured = *run.measured;
  const Dataset& data = *measured.data;
  const std::ptrdiff_t queries = std::min(data.total_queries(), most_queries);
  const std::ptrdiff_t tokens = std::min(data.max_length(), most_tokens);
  Figure figure;
  figure.id = id + "-attention";
  figure.title = "Attention probabilities";
  figure.x.label = "token";
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
  if (measured.optimal) figure.caption = "Frames mark the tokens with the best score.";
  if (queries < data.total_queries() || tokens < data.max_length())
    figure.caption += fmt::format(" The first {} of {} queries, and up to {} of {} tokens.", queries,
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
                   {"largest softmax"},
                   {"norm"},
                   {"divergence"},
                   {"margin ratio"},
                   {"best tokens", Align::left}};
  for (const ReportedRun& run : runs) {
    const auto& result = run.saved.result;
    const double nothing = std::numeric_limits<double>::quiet_NaN();
    const Comparison last =
        run.measured && !run.measured->trace.empty() ? run.measured->trace.back().second : Comparison{};
    table.rows.push_back({run.name, to_string(run.saved.config.optimizer), fmt::format("{}", run.saved.step),
                          status_of(run.saved), six_digits(result ? result->loss : nothing),
                          six_digits(result ? result->max_softmax : nothing),
                          six_digits(result ? result->norm : nothing), six_digits(last.directional_bregman),
                          six_digits(last.margin_ratio),
                          !result || !result->optimal  ? "–"
                          : result->globally_optimal() ? "all"
                                                       : "not all"});
  }
  return table;
}

constexpr std::size_t most_rows = 200;

Table tokens_table(const ReportedRun& run) {
  const Measured& measured = *run.measured;
  const Dataset& data = *measured.data;
  Table table;
  table.title = "Selected tokens";
  table.columns = {{"query", Align::left}, {"selected"}, {"probability"}};
  if (measured.optimal) table.columns.push_back({"best"});
  for (std::size_t j = 0; j < std::min(measured.selected.tokens.size(), most_rows); ++j) {
    const std::int64_t token = measured.selected.tokens[j];
    table.rows.push_back({query_name(data, static_cast<std::ptrdiff_t>(j)), fmt::format("{}", token),
                          six_digits(measured.probabilities[j][token])});
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
  add("optimizer", to_string(config.optimizer));
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
  return Facts{"Against the max-margin solution of the selected tokens",
               {{"norm", fmt::format("{}: {:.9g}", to_string(solution.kind), solution.norm)},
                {"gap", fmt::format("{:.2g}, certified", solution.gap)},
                {"support tokens", fmt::format("{}", solution.support.size())},
                {"directional Bregman divergence", fmt::format("{:.6g}", last.directional_bregman)},
                {"correlation", fmt::format("{:.9f}", last.correlation)},
                {"margin, as a share of the largest", fmt::format("{:.9f}", last.margin_ratio)}}};
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
  }
  Folded folded{"Selected tokens", {tokens}};
  if (run.measured->selected.tokens.size() > most_rows)
    folded.blocks.push_back(Paragraph{
        fmt::format("The first {} of {} queries.", most_rows, run.measured->selected.tokens.size())});
  section.blocks.push_back(folded);
  return section;
}

}  // namespace

std::vector<Section> run_sections(const std::vector<fs::path>& folders) {
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
  overview.blocks.push_back(TableBlock{.id = "runs", .table = overview_table(runs)});
  for (Figure& figure : curves(runs)) overview.blocks.push_back(std::move(figure));
  sections.push_back(std::move(overview));
  for (std::size_t r = 0; r < runs.size(); ++r)
    sections.push_back(section_of(runs[r], fmt::format("run-{}", r + 1)));
  return sections;
}

}  // namespace attmirror
