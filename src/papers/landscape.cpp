// The landscape of small problems: every selection of tokens, and where training ends.
//
// P1, P2 and P3 prove that training which starts near the max-margin direction of locally optimal tokens converges to
// it, and P2 that near other tokens some starts leave. What they leave open is how many selections are locally
// optimal, and how much of the space of initializations each attracts. For n = 3 sequences of T = 4 tokens there are
// 64 selections: all can be solved, with a certificate each, and judged.
//
//   basins      starts W(0) ~ N(0, 1), normalized gradient descent, lr 0.1, 1, 10 and 100 for 1,000 steps
//               each, so that the norm reaches 1e5: which selection does a run end on?
//   near        starts at W^mm / |W^mm| plus noise of 0.1 % of the margin, scaled to logit differences of 1e6; steps
//               of 100, 10, 1 and 0.1, 300 each: do locally optimal selections attract, do the others repel?
//
// P3 also proves that for d >= max(T - 1, n) every selection is feasible, for almost all data.
#include "papers/experiments.hpp"
#include "papers/landscape_map.hpp"
#include "papers/shorthand.hpp"
#include "papers/training_set.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/mirror/direction.hpp>
#include <attmirror/papers/landscape.hpp>

#include <array>
#include <cmath>
#include <deque>
#include <map>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::int64_t samples = 3, tokens_each = 4;
constexpr GradientDescent rule{.lr = 0.1, .normalized = true};

struct Problem {
  std::int64_t dim = 2;
  const Dataset* data = nullptr;
  Landscape landscape;
};

// What came out for one dimension.
struct Column {
  std::int64_t dim = 2;
  std::ptrdiff_t problems = 0;
  std::map<SelectionClass, std::ptrdiff_t> selections, endings;  // endings: of saturated runs
  std::ptrdiff_t runs = 0, saturated = 0;
  std::ptrdiff_t attracting = 0, attract_tried = 0, repelling = 0, repel_tried = 0;
};

class LandscapeExperiment final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {
        .id = "landscape",
        .paper = "P1, P2, P3",
        .item = "local convergence and its tightness",
        .title = "Which selections of tokens attract training?",
        .summary =
            "Solves and classifies all 64 selections of problems with 3 sequences of 4 tokens, and trains from many "
            "starts to see which selections attract.",
        .seconds = 2,
        .quick_seconds = 0.15};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const std::vector<std::int64_t> dims{2, 3, 4, 6};
    const std::uint64_t seeds = context.quick() ? 2 : 20, starts = context.quick() ? 16 : 48;
    std::deque<Dataset> kept;
    std::deque<Problem> problems;
    for (const std::int64_t dim : dims)
      for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        kept.push_back(
            generate(SphereData{.samples = samples, .tokens = tokens_each, .dim = dim, .seed = seed}));
        problems.push_back({dim, &kept.back(), {}});
      }
    for_all(context.part(0, 0.2), std::ssize(problems), [&](std::ptrdiff_t i) {
      Problem& problem = problems[static_cast<std::size_t>(i)];
      problem.landscape = enumerate_landscape(*problem.data);
    });
    std::vector<Column> columns;
    for (const std::int64_t dim : dims) columns.emplace_back().dim = dim;
    for (const Problem& problem : problems) {
      Column& column = column_of(columns, problem.dim);
      ++column.problems;
      for (const SelectionClass kind : all_selection_classes)
        column.selections[kind] += problem.landscape.count(kind);
    }
    std::vector<double> by_norm;  // per problem: rank correlation of basin share and margin
    train_from_random(context.part(0.2, 0.6), problems, starts, columns, by_norm);
    train_from_solutions(context.part(0.6, 0.95), problems, columns);
    ExperimentResult result;
    result.sample = fmt::format("{} in each of {} dimensions, {} each", counted(seeds, "data set"),
                                dims.size(), counted(starts, "random start"));
    result.configuration = {
        {"data", fmt::format("unit sphere, n = 3, T = 4, d = 2, 3, 4, 6, seeds 0 to {}", seeds - 1)},
        {"training",
         "normalized gradient descent without a floor, lr 0.1, 1, 10 and 100 in turn, 1,000 steps each"},
        {"random starts", fmt::format("{} each, entries N(0, 1), seeds 0 to {}", starts, starts - 1)},
        {"starts near solutions",
         "W^mm / |W^mm| plus noise of norm 0.001 / |W^mm|, times 1e6 |W^mm|; lr 100, 10, 1 and 0.1, 300 steps each"},
        {"saturated", "mean largest attention probability above .99, norm of W above 1e4"}};
    add_findings(columns, by_norm, result.findings);
    result.tables = {{"classes", class_table(columns)}};
    result.figures = {share_figure(columns)};
    const auto& drawn = result.figures.front().series;
    result.conclusion = fmt::format(
        "Training ends on very few of the possible selections: at d = {}, {:.0f} % of them are locally optimal, and {:.0f} % "
        "of the judged runs end there.",
        columns.back().dim, 100 * drawn[1].y.back(), 100 * drawn[2].y.back());
    result.figures.push_back(basin_map(context.part(0.95, 1)));
    result.remarks = {
        "A run is judged only if its attention is saturated and W has grown; the others are counted separately. Where "
        "the optimal tokens cannot be selected, the loss may be smallest at a finite W.",
        "Local optimality is a statement about the limit. If a better token is almost a support token, a start must be "
        "far out to be attracted, which is why the starts near solutions have logit differences of 10^6."};
    return result;
  }

 private:
  static Column& column_of(std::vector<Column>& columns, std::int64_t dim) {
    return *std::ranges::find(columns, dim, &Column::dim);
  }

  // In four parts, each from where the one before ended and with steps `factor` times as long.
  static std::vector<DescentRun> train_in_parts(const ExperimentContext& context, const TrainingSet& set,
                                                double factor) {
    std::vector<DescentTask> tasks(set.tasks().begin(), set.tasks().end());
    std::vector<DescentRun> runs;
    for (int part = 0; part < 4; ++part) {
      runs = train_all(context.part(0.25 * part, 0.25 * (part + 1)), tasks);
      for (std::size_t i = 0; i < runs.size(); ++i) {
        tasks[i].options.init.given = runs[i].last();
        std::get<GradientDescent>(tasks[i].optimizer).lr *= factor;
      }
    }
    return runs;
  }

  static void train_from_random(const ExperimentContext& context, const std::deque<Problem>& problems,
                                std::uint64_t starts, std::vector<Column>& columns,
                                std::vector<double>& by_norm) {
    TrainingSet set;
    for (const Problem& problem : problems)
      for (std::uint64_t seed = 0; seed < starts; ++seed)
        set.add(*problem.data, W{}, {}, rule,
                {.steps = 1000,
                 .record = RecordSchedule::none(),
                 .init = {.kind = InitKind::normal, .seed = seed}});
    // Longer and longer steps, each short against the norm it has by then: the norm reaches 1e5.
    const std::vector<DescentRun> runs = train_in_parts(context, set, 10);
    for (std::size_t i = 0; i < problems.size(); ++i) {
      const Landscape& landscape = problems[i].landscape;
      Column& column = column_of(columns, problems[i].dim);
      std::map<std::ptrdiff_t, double> basin;
      for (std::size_t s = 0; s < starts; ++s) {
        const DescentRun& run = runs[i * starts + s];
        ++column.runs;
        // Where the best tokens cannot be selected, the loss may be least at a finite W, about which long steps swing.
        if (!(run.max_softmax > .99) || !(run.norm > 1e4)) continue;
        ++column.saturated;
        const std::ptrdiff_t index = landscape.index_of(run.selected);
        ++column.endings[landscape.entries[static_cast<std::size_t>(index)].kind];
        ++basin[index];
      }
      // Do larger margins attract more? Among the locally optimal selections of this problem.
      std::vector<double> margin, share;
      for (std::size_t e = 0; e < landscape.entries.size(); ++e) {
        const LandscapeEntry& entry = landscape.entries[e];
        if (entry.kind != SelectionClass::local && entry.kind != SelectionClass::global) continue;
        margin.push_back(1 / entry.solution.norm);
        share.push_back(basin[static_cast<std::ptrdiff_t>(e)]);
      }
      if (margin.size() >= 3) by_norm.push_back(concordance(margin, share));
    }
  }

  // Kendall's tau of two lists: pairs in the same order minus pairs in opposite order, over pairs that are not tied.
  static double concordance(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0, pairs = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) {
        const double product = (a[i] - a[j]) * (b[i] - b[j]);
        sum += product > 0 ? 1 : product < 0 ? -1 : 0;
        pairs += product != 0;
      }
    return pairs > 0 ? sum / pairs : std::nan("");
  }

  static void train_from_solutions(const ExperimentContext& context, const std::deque<Problem>& problems,
                                   std::vector<Column>& columns) {
    TrainingSet set;
    struct Trial {
      std::size_t problem, entry;
      double distance;  // 1 - cos of the start
    };
    std::vector<Trial> trials;
    for (std::size_t i = 0; i < problems.size(); ++i)
      for (std::size_t e = 0; e < problems[i].landscape.entries.size(); ++e) {
        const MarginSolution& solution = problems[i].landscape.entries[e].solution;
        // A solution of norm 1e4 has margins of 1e-4 of the tokens' size; the noise alone would change its tokens.
        if (solution.status != MarginStatus::certified || solution.norm > 100) continue;
        const double size = 1e6 * solution.norm;
        const Matrix away = 0.001 / solution.norm * unit_noise(problems[i].dim, 64 * i + e);
        // Repelling means that some starts leave: two are tried.
        const bool twice = problems[i].landscape.entries[e].kind == SelectionClass::feasible;
        for (const double sign : twice ? std::vector<double>{1, -1} : std::vector<double>{1}) {
          DescentOptions options{.steps = 300, .record = RecordSchedule::none()};
          options.init.given.W = size * (solution.W / solution.W.norm() + sign * away);
          trials.push_back({i, e, 1 - correlation(solution.W, options.init.given.W)});
          set.add(*problems[i].data, W{}, {}, GradientDescent{.lr = 100, .normalized = true}, options);
        }
      }
    // Shorter and shorter steps, from 100 to 0.1: a long one swings from token to token.
    const std::vector<DescentRun> runs = train_in_parts(context, set, 0.1);
    const auto stays = [&](std::size_t k) {
      const LandscapeEntry& entry = problems[trials[k].problem].landscape.entries[trials[k].entry];
      return runs[k].selected == entry.tokens &&
             1 - correlation(entry.solution.W, runs[k].last().W) < trials[k].distance;
    };
    for (std::size_t k = 0; k < runs.size(); ++k) {
      const Problem& problem = problems[trials[k].problem];
      Column& column = column_of(columns, problem.dim);
      if (problem.landscape.entries[trials[k].entry].kind == SelectionClass::feasible) {
        ++column.repel_tried;
        column.repelling += !stays(k) || !stays(k + 1);
        ++k;
      } else {
        ++column.attract_tried;
        column.attracting += stays(k);
      }
    }
  }

  static std::ptrdiff_t sum(const std::vector<Column>& columns, const auto& value) {
    std::ptrdiff_t total = 0;
    for (const Column& column : columns) total += value(column);
    return total;
  }

  static std::ptrdiff_t endings(const Column& column, SelectionClass kind) {
    const auto found = column.endings.find(kind);
    return found == column.endings.end() ? 0 : found->second;
  }

  static void add_findings(const std::vector<Column>& columns, const std::vector<double>& by_norm,
                           std::vector<Finding>& findings) {
    const auto undecided =
        sum(columns, [](const Column& c) { return c.selections.at(SelectionClass::undecided); });
    findings.push_back({.quantity = "selections neither solved nor proved infeasible",
                        .published = 0,
                        .source = ReferenceSource::theory,
                        .ours = static_cast<double>(undecided),
                        .tolerance = Tolerance::absolute(0)});
    for (const Column& column : columns)
      if (column.dim >= std::max(tokens_each - 1, samples))
        findings.push_back({.quantity = fmt::format("d = {}: infeasible selections", column.dim),
                            .published = 0,
                            .source = ReferenceSource::theory,
                            .ours = static_cast<double>(column.selections.at(SelectionClass::infeasible)),
                            .tolerance = Tolerance::absolute(0),
                            .note = "d >= max(T - 1, n)"});
    const auto saturated = sum(columns, [](const Column& c) { return c.saturated; });
    const auto ended_local = sum(columns, [](const Column& c) {
      return endings(c, SelectionClass::local) + endings(c, SelectionClass::global);
    });
    findings.push_back({.quantity = "saturated runs that end on locally optimal tokens, share",
                        .published = 1,
                        .source = ReferenceSource::theory,
                        .ours = share_of(ended_local, saturated).value,
                        .tolerance = Tolerance::at_least(0),
                        .note = fmt::format("{} of {} are still on other tokens at a norm above 1e4",
                                            saturated - ended_local, saturated)});
    const auto share = [&](const char* quantity, auto hits, auto tried, const char* note) {
      findings.push_back({.quantity = quantity,
                          .published = 1,
                          .source = ReferenceSource::theory,
                          .ours = share_of(sum(columns, hits), sum(columns, tried)).value,
                          .tolerance = Tolerance::at_least(0),
                          .note = fmt::format("{} of {} {}", sum(columns, hits), sum(columns, tried), note)});
    };
    share(
        "locally optimal selections that attract starts near their solution, share",
        [](const Column& c) { return c.attracting; }, [](const Column& c) { return c.attract_tried; },
        "keep their tokens and come closer to the solution");
    share(
        "other feasible selections that repel starts near their solution, share",
        [](const Column& c) { return c.repelling; }, [](const Column& c) { return c.repel_tried; },
        "lose their tokens or move away from the solution");
    for (const Column& column : columns) {
      const auto problems = static_cast<double>(column.problems);
      findings.push_back(new_number(
          fmt::format("d = {}: locally optimal selections of 64, the best included, mean", column.dim),
          static_cast<double>(column.selections.at(SelectionClass::local) +
                              column.selections.at(SelectionClass::global)) /
              problems));
      const Mean global = share_of(endings(column, SelectionClass::global), column.saturated);
      findings.push_back(new_number(
          fmt::format("d = {}: saturated runs that end on the globally optimal tokens, share", column.dim),
          global.value, global.error));
    }
    const Mean tau = mean_of(by_norm);
    findings.push_back(new_number(
        "rank correlation of margin and basin among locally optimal selections, mean", tau.value, tau.error));
    findings.back().note = "1: the larger the margin, the larger the basin";
  }

  static Table class_table(const std::vector<Column>& columns) {
    Table table{.title = "Selections by class, and the saturated runs that end on each class",
                .columns = {{"d"},
                            {"class", Align::left},
                            {"selections, mean of 64"},
                            {"share of endings"},
                            {"near starts that stay"}}};
    for (const Column& column : columns) {
      for (const SelectionClass kind : {SelectionClass::infeasible, SelectionClass::feasible,
                                        SelectionClass::local, SelectionClass::global}) {
        std::string stay = "–";
        if (kind == SelectionClass::feasible)
          stay = fmt::format("{} of {}", column.repel_tried - column.repelling, column.repel_tried);
        if (kind == SelectionClass::global)
          stay = fmt::format("{} of {} (local and global)", column.attracting, column.attract_tried);
        table.rows.push_back({fmt::format("{}", column.dim), std::string(to_string(kind)),
                              fmt::format("{:.2f}", static_cast<double>(column.selections.at(kind)) /
                                                        static_cast<double>(column.problems)),
                              fmt::format("{:.4f}", static_cast<double>(endings(column, kind)) /
                                                        static_cast<double>(column.saturated)),
                              stay});
      }
      table.rows.push_back({fmt::format("{}", column.dim), "not judged", "–",
                            fmt::format("{} of {} runs", column.runs - column.saturated, column.runs), "–"});
    }
    return table;
  }

  static Figure share_figure(const std::vector<Column>& columns) {
    Figure figure{
        .id = "shares",
        .title = "Few selections attract training, and they attract nearly all of it",
        .caption =
            "Dashed: shares of the 64 selections; solid: shares of the runs. Bands are standard errors.",
        .x = {.label = "dimension d", .whole = true},
        .y = {.label = "share of selections or runs", .range = {{0, 1.02}}}};
    const auto curve = [&](const char* name, auto hits, auto total, Series::Dash dash) {
      Series series{.name = name, .mark = Series::Mark::both, .dash = dash};
      for (const Column& column : columns) {
        const Mean mean = share_of(hits(column), total(column));
        series.x.push_back(static_cast<double>(column.dim));
        series.y.push_back(mean.value);
        series.low.push_back(std::max(0.0, mean.value - mean.error));
        series.high.push_back(std::min(1.0, mean.value + mean.error));
      }
      figure.series.push_back(std::move(series));
    };
    const auto all = [](const Column& c) { return 64 * c.problems; };
    const auto runs = [](const Column& c) { return c.saturated; };
    curve(
        "selections: feasible",
        [&](const Column& c) { return all(c) - c.selections.at(SelectionClass::infeasible); }, all,
        Series::Dash::dashed);
    curve(
        "selections: locally optimal",
        [](const Column& c) {
          return c.selections.at(SelectionClass::local) + c.selections.at(SelectionClass::global);
        },
        all, Series::Dash::dashed);
    curve(
        "runs: on locally optimal tokens",
        [](const Column& c) {
          return endings(c, SelectionClass::local) + endings(c, SelectionClass::global);
        },
        runs, Series::Dash::solid);
    curve(
        "runs: on globally optimal tokens",
        [](const Column& c) { return endings(c, SelectionClass::global); }, runs, Series::Dash::solid);
    lead_with(
        figure,
        fmt::format("At d = {}, {:.0f} % of the selections are locally optimal, and {:.0f} % of the judged "
                    "runs end on them.",
                    columns.back().dim, 100 * figure.series[1].y.back(), 100 * figure.series[2].y.back()));
    figure.description = "Shares against the dimension.";
    for (const Series& series : figure.series)
      figure.description +=
          fmt::format(" {}: {:.3f} at d = {}, {:.3f} at d = {}.", series.name, series.y.front(),
                      columns.front().dim, series.y.back(), columns.back().dim);
    return figure;
  }
};

}  // namespace

ExperimentPointer make_landscape() { return std::make_unique<LandscapeExperiment>(); }

}  // namespace attmirror
