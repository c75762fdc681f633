// When does descent find the best tokens, and does it help to train K and Q instead of W? A grid of ours:
//
//   n and T in {5, 10, 20}, d in {5, 10, 20, 50, 100}; 1,000 data sets on the unit sphere in each of the 45 cells;
//   normalized gradient descent with step 0.1, 1,500 steps, on W and on K and Q, both from uniform in +-1/sqrt(d)
//
// A run is global if its attention is saturated (a mean largest probability above .99) on the best tokens, local if
// it is saturated on other locally optimal ones, and neither otherwise. 90,000 trainings and as many certified
// max-margin problems take half an hour, so the grid is a record: docs/results/p3_global_grid.csv, made by
// examples/sweeps/p3_global_grid.toml.
//
// Computed anew are the two cells in which a first look had found opposite answers, n = 5, T = 20, d = 10 and n = 10,
// T = 5, d = 20. Their runs of the record must end the same way; besides, W starts from 0 as well, and K and Q from
// N(0, 0.01^2), to tell what the factors do from what their start does. In the record "local" is by the Frobenius
// solution for both; here runs of K and Q are also held against the nuclear one, which is theirs.
#include "papers/experiments.hpp"
#include "papers/global_grid_record.hpp"
#include "papers/recorded_studies.hpp"
#include "papers/shorthand.hpp"
#include "papers/training_set.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/margin/support.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror {

namespace {

constexpr const char* grid_command =
    "attmirror sweep examples/sweeps/p3_global_grid.toml -o p3_global_grid.db";

// What is trained, and where it starts.
struct GridStart {
  const char* name;
  bool factored;
  InitKind kind;
  double std = 1;
};
constexpr std::array grid_starts{GridStart{"W, uniform start", false, InitKind::uniform},
                                 GridStart{"(K, Q), uniform start", true, InitKind::uniform},
                                 GridStart{"W from 0", false, InitKind::zero},
                                 GridStart{"(K, Q) from N(0, 0.01^2)", true, InitKind::normal, 0.01}};
constexpr std::size_t recorded_starts = 2;  // the first two are in the record

struct MeasuredCell {
  std::int64_t n, T, d;
  std::array<GridCell::Ends, grid_starts.size()> ends{};
  std::array<std::ptrdiff_t, grid_starts.size()> local_nuclear{};  // of (K, Q)
  std::ptrdiff_t uncertified = 0;
};

MeasuredCell measure_cell(const ExperimentContext& context, std::int64_t n, std::int64_t T, std::int64_t d,
                          std::uint64_t seeds) {
  TrainingSet set;
  for (const GridStart& start : grid_starts)
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      DescentOptions options{.steps = 1500, .record = RecordSchedule::none()};
      options.init = {.kind = start.kind, .std = start.std, .seed = start.kind == InitKind::zero ? 0 : seed};
      set.add(set.keep(generate(SphereData{.samples = n, .tokens = T, .dim = d, .seed = seed})),
              start.factored ? Parameterization(KQ{}) : W{}, {},
              GradientDescent{.lr = 0.1, .normalized = true}, options);
    }
  const std::vector<DescentRun> runs = train_all(context.part(0, 0.7), set.tasks());
  // Of runs that are saturated on other tokens than the best: 1 for locally optimal by the Frobenius solution, 2 by the
  // nuclear one, 4 for a problem that was not solved.
  std::vector<unsigned char> local(runs.size(), 0);
  for_all(context.part(0.7, 1), std::ssize(runs), [&](std::ptrdiff_t i) {
    const auto r = static_cast<std::size_t>(i);
    const Dataset& data = set.data(r);
    const Selection& tokens = runs[r].selected;
    if (!(runs[r].max_softmax > .99) || tokens == optimal_tokens(data)) return;
    const MarginConstraints all = constraints(data, AttentionSvm{tokens});
    const std::vector<Vector> scores = token_scores(set.model(r), runs[r].last());
    const auto look = [&](const Norm& norm, unsigned char bit) {
      const MarginSolution svm = max_margin(data, tokens, norm);
      if (svm.status == MarginStatus::stopped) local[r] |= 4;
      if (svm.status == MarginStatus::certified &&
          local_optimality(data, tokens, all, svm.support, scores).holds)
        local[r] |= bit;
    };
    look(Norm::frobenius(), 1);
    if (grid_starts[r / seeds].factored) look(Norm::nuclear(), 2);
  });
  MeasuredCell cell{n, T, d};
  for (std::size_t r = 0; r < runs.size(); ++r) {
    GridCell::Ends& ends = cell.ends[r / seeds];
    ++ends.runs;
    const bool saturated = runs[r].max_softmax > .99;
    ends.saturated += saturated;
    ends.global += saturated && runs[r].selected == optimal_tokens(set.data(r));
    ends.local += (local[r] & 1) != 0;
    cell.local_nuclear[r / seeds] += (local[r] & 2) != 0;
    cell.uncertified += (local[r] & 4) != 0;
  }
  return cell;
}

class P3GlobalGrid final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {
        .id = "p3-global-grid",
        .paper = "P3",
        .item = "global convergence, over a grid of ours",
        .title = "Does training K and Q instead of W lead to the best tokens?",
        .summary =
            "Shows how 90,000 recorded trainings of W and of (K, Q) ended, over n, T and d, and recomputes two cells of the "
            "grid from several starts.",
        .seconds = 8,
        .quick_seconds = 0.4};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const std::uint64_t seeds = context.quick() ? 30 : 1000;
    const std::vector<GridCell> grid = parse_global_grid(global_grid_csv());
    const std::vector<MeasuredCell> measured{measure_cell(context.part(0, 0.4), 5, 20, 10, seeds),
                                             measure_cell(context.part(0.4, 1), 10, 5, 20, seeds)};
    ExperimentResult result;
    result.sample = fmt::format("{} in each of {} recorded cells; {} in each of {} cells computed anew",
                                counted(static_cast<std::uint64_t>(grid.front().W.runs), "data set"),
                                grid.size(), counted(seeds, "data set"), measured.size());
    result.configuration = {
        {"data", "unit sphere, n and T in {5, 10, 20}, d in {5, 10, 20, 50, 100}, seeds 0 to 999"},
        {"training", "normalized gradient descent, lr 0.1, 1,500 steps"},
        {"start", "uniform in +-1/sqrt(d), seed of the data; anew also W = 0, and K and Q from N(0, 0.0001)"},
        {"counted", "runs with a mean largest attention probability above .99"},
        {"record",
         fmt::format("docs/results/p3_global_grid.csv, made by {} and p3_global_grid.sql beside the file",
                     grid_command)},
        {"computed anew",
         fmt::format("n = 5, T = 20, d = 10 and n = 10, T = 5, d = 20, seeds 0 to {}", seeds - 1)}};
    for (const MeasuredCell& cell : measured) cell_findings(cell, grid, result.findings);
    if (!context.quick()) result.findings.push_back(record_finding(measured, grid));
    grid_findings(grid, result.findings);
    std::ptrdiff_t uncertified = 0, unsolved = 0;
    for (const MeasuredCell& cell : measured) uncertified += cell.uncertified;
    for (const GridCell& cell : grid)
      unsolved += cell.W.runs - cell.W.certified + cell.KQ.runs - cell.KQ.certified;
    result.findings.push_back(
        {.quantity = "max-margin problems computed anew, neither solved nor proved infeasible",
         .published = 0,
         .source = ReferenceSource::theory,
         .ours = static_cast<double>(uncertified),
         .tolerance = Tolerance::absolute(0)});
    result.findings.push_back(new_number("recorded max-margin problems without a certified solution",
                                         static_cast<double>(unsolved)));
    result.tables = {{"grid", grid_table(grid)}, {"starts", starts_table(measured)}};
    result.figures = {difference_figure(grid), share_figure(grid)};
    result.conclusion = conclusion(grid);
    result.remarks = {
        fmt::format(
            "The grid is a record of 90,000 trainings, not computed now: {} makes it again, in half an hour.",
            grid_command),
        "Shares have Wilson's 95 % intervals; (K, Q) counts as better or worse where its interval and that of W do not "
        "overlap."};
    return result;
  }

 private:
  static const GridCell& cell_of(const std::vector<GridCell>& grid, const MeasuredCell& measured) {
    return *std::ranges::find_if(grid, [&](const GridCell& cell) {
      return cell.n == measured.n && cell.T == measured.T && cell.d == measured.d;
    });
  }

  static const GridCell::Ends& recorded_ends(const GridCell& cell, std::size_t start) {
    return grid_starts[start].factored ? cell.KQ : cell.W;
  }

  // The recorded runs once more: on one instruction set they end as they did, on another a few may end elsewhere.
  static Finding record_finding(const std::vector<MeasuredCell>& measured,
                                const std::vector<GridCell>& grid) {
    double largest = 0;
    for (const MeasuredCell& cell : measured)
      for (std::size_t k = 0; k < recorded_starts; ++k)
        largest = std::max(largest, std::abs(cell.ends[k].global_share().value -
                                             recorded_ends(cell_of(grid, cell), k).global_share().value));
    return {.quantity = "largest difference of a global share computed anew from that of the record",
            .published = 0,
            .source = ReferenceSource::theory,
            .ours = largest,
            .tolerance = Tolerance::at_most(.005),
            .note = "the same runs; training is deterministic on one instruction set"};
  }

  static void cell_findings(const MeasuredCell& measured, const std::vector<GridCell>& grid,
                            std::vector<Finding>& findings) {
    const GridCell& recorded = cell_of(grid, measured);
    for (std::size_t k = 0; k < grid_starts.size(); ++k) {
      const GridCell::Ends& ends = measured.ends[k];
      const ShareInterval share = ends.global_share();
      Finding finding{.quantity = fmt::format("n = {}, T = {}, d = {}: global share of {}", measured.n,
                                              measured.T, measured.d, grid_starts[k].name),
                      .ours = share.value,
                      .note = fmt::format("95 % interval {:.3f} to {:.3f}; local {:.3f}", share.low,
                                          share.high, ends.local_share().value)};
      if (k < recorded_starts)
        finding.note +=
            fmt::format(", in the record {:.3f}", recorded_ends(recorded, k).global_share().value);
      if (grid_starts[k].factored)
        finding.note += fmt::format(", {:.3f} by the nuclear solution",
                                    share_interval(measured.local_nuclear[k], ends.runs).value);
      findings.push_back(std::move(finding));
    }
  }

  static void grid_findings(const std::vector<GridCell>& grid, std::vector<Finding>& findings) {
    const Comparison counts = compare_cells(grid);
    findings.push_back(new_number("cells in which (K, Q) finds the best tokens more often than W",
                                  static_cast<double>(counts.better)));
    findings.push_back(
        new_number("cells in which (K, Q) finds them less often", static_cast<double>(counts.worse)));
    findings.push_back(new_number("cells in which the intervals overlap",
                                  static_cast<double>(std::ssize(grid) - counts.better - counts.worse)));
    for (const bool factored : {false, true}) {
      GridCell::Ends all;
      for (const GridCell& cell : grid) {
        const GridCell::Ends& ends = factored ? cell.KQ : cell.W;
        all.runs += ends.runs;
        all.saturated += ends.saturated;
        all.global += ends.global;
        all.local += ends.local;
      }
      const char* name = factored ? "(K, Q)" : "W";
      const auto add = [&](const char* what, const ShareInterval& share) {
        findings.push_back({.quantity = fmt::format("{}: {} share over the whole grid", name, what),
                            .ours = share.value,
                            .note = fmt::format("95 % interval {:.4f} to {:.4f}", share.low, share.high)});
      };
      add("global", all.global_share());
      add("local", all.local_share());
      add("neither", all.neither_share());
    }
  }

  struct Comparison {
    std::ptrdiff_t better = 0, worse = 0;
    std::map<std::int64_t, std::pair<std::ptrdiff_t, std::ptrdiff_t>>
        by_length{};                                   // of each T: better, and all cells
    const GridCell *most = nullptr, *least = nullptr;  // by the difference of shares, (K, Q) minus W
  };
  static double difference(const GridCell& cell) {
    return cell.KQ.global_share().value - cell.W.global_share().value;
  }
  static Comparison compare_cells(const std::vector<GridCell>& grid) {
    Comparison counts;
    for (const GridCell& cell : grid) {
      auto& [better, all] = counts.by_length[cell.T];
      ++all;
      if (apart(cell.KQ.global_share(), cell.W.global_share())) {
        ++(difference(cell) > 0 ? counts.better : counts.worse);
        better += difference(cell) > 0;
      }
      if (!counts.most || difference(cell) > difference(*counts.most)) counts.most = &cell;
      if (!counts.least || difference(cell) < difference(*counts.least)) counts.least = &cell;
    }
    return counts;
  }

  static std::string conclusion(const std::vector<GridCell>& grid) {
    const Comparison counts = compare_cells(grid);
    const auto text = [](const GridCell& cell) {
      return fmt::format("{:.2f} against {:.2f} at n = {}, T = {}, d = {}", cell.KQ.global_share().value,
                         cell.W.global_share().value, cell.n, cell.T, cell.d);
    };
    std::vector<std::string> lengths;
    for (const auto& [T, cells] : counts.by_length)
      lengths.push_back(fmt::format("{} of {} with T = {}", cells.first, cells.second, T));
    return fmt::format(
        "Training K and Q instead of W finds the best tokens more often in {} of {} cells ({}), less often in {}, and no "
        "difference is seen in {}; it helps most with {} and hurts most with {}.",
        counts.better, grid.size(), fmt::join(lengths, ", "), counts.worse,
        std::ssize(grid) - counts.better - counts.worse, text(*counts.most), text(*counts.least));
  }

  static Table grid_table(const std::vector<GridCell>& grid) {
    Table table{.title = "Shares of runs with 95 % intervals, from the record",
                .columns = {{"n"},
                            {"T"},
                            {"d"},
                            {"runs"},
                            {"global, W"},
                            {"global, (K, Q)"},
                            {"local, W"},
                            {"local, (K, Q)"},
                            {"neither, W"},
                            {"neither, (K, Q)"}}};
    for (const GridCell& cell : grid)
      table.rows.push_back({fmt::format("{}", cell.n), fmt::format("{}", cell.T), fmt::format("{}", cell.d),
                            fmt::format("{}", cell.W.runs), to_string(cell.W.global_share()),
                            to_string(cell.KQ.global_share()), to_string(cell.W.local_share()),
                            to_string(cell.KQ.local_share()), to_string(cell.W.neither_share()),
                            to_string(cell.KQ.neither_share())});
    return table;
  }

  static Table starts_table(const std::vector<MeasuredCell>& measured) {
    Table table{.title = "Global share by start, computed anew, with 95 % intervals",
                .columns = {{"n"}, {"T"}, {"d"}}};
    for (const GridStart& start : grid_starts) table.columns.push_back({start.name});
    for (const MeasuredCell& cell : measured) {
      table.rows.push_back({fmt::format("{}", cell.n), fmt::format("{}", cell.T), fmt::format("{}", cell.d)});
      for (const GridCell::Ends& ends : cell.ends)
        table.rows.back().push_back(to_string(ends.global_share()));
    }
    return table;
  }

  static Figure difference_figure(const std::vector<GridCell>& grid) {
    Figure figure{
        .id = "difference",
        .title = "Where K and Q find the best tokens more often than W",
        .caption = "Global share of (K, Q) minus that of W; outlined: the 95 % intervals do not overlap.",
        .x = {.label = "dimension d"},
        .y = {.label = "n sequences of T tokens"}};
    Heatmap map{.digits = 2};
    for (const GridCell& cell : grid) {
      const std::string row = fmt::format("n = {}, T = {}", cell.n, cell.T),
                        column = fmt::format("{}", cell.d);
      if (std::ranges::find(map.columns, column) == map.columns.end()) map.columns.push_back(column);
      if (map.rows.empty() || map.rows.back() != row) {
        map.rows.push_back(row);
        map.values.emplace_back();
      }
      if (apart(cell.KQ.global_share(), cell.W.global_share()))
        map.marked.emplace_back(map.rows.size() - 1, map.values.back().size());
      map.values.back().push_back(difference(cell));
    }
    figure.heatmap = std::move(map);
    figure.description = conclusion(grid);
    lead_with(figure, conclusion(grid));
    return figure;
  }

  static Figure share_figure(const std::vector<GridCell>& grid) {
    Figure figure{.id = "shares",
                  .title = "The best tokens are found in high dimensions and short sequences",
                  .caption = "n = 10; bands are 95 % intervals. From the record.",
                  .x = {.label = "dimension d", .scale = Axis::Scale::log},
                  .y = {.label = "share of runs on the best tokens", .range = {{0, 1.02}}}};
    int color = 0;
    for (const std::int64_t T : {5, 10, 20}) {
      for (const bool factored : {false, true}) {
        Series series{.name = fmt::format("{}, T = {}", factored ? "(K, Q)" : "W", T),
                      .mark = Series::Mark::both,
                      .dash = factored ? Series::Dash::dashed : Series::Dash::solid,
                      .color = color};
        for (const GridCell& cell : grid) {
          if (cell.n != 10 || cell.T != T) continue;
          const ShareInterval share = (factored ? cell.KQ : cell.W).global_share();
          series.x.push_back(static_cast<double>(cell.d));
          series.y.push_back(share.value);
          series.low.push_back(share.low);
          series.high.push_back(share.high);
        }
        figure.series.push_back(std::move(series));
      }
      ++color;
    }
    figure.description = "Shares of runs on the best tokens against the dimension on a logarithmic axis.";
    for (const Series& series : figure.series)
      figure.description += fmt::format(" {}: {:.2f} at d = {:g}, {:.2f} at d = {:g}.", series.name,
                                        series.y.front(), series.x.front(), series.y.back(), series.x.back());
    const Series &W_5 = figure.series.front(), &W_20 = figure.series[4];
    lead_with(
        figure,
        fmt::format("At d = {:g} W finds the best tokens in {:.0f} % of the runs with T = 5 and in {:.0f} % "
                    "with T = 20.",
                    W_5.x[2], 100 * W_5.y[2], 100 * W_20.y[2]));
    return figure;
  }
};

}  // namespace

ExperimentPointer make_p3_global_grid() { return std::make_unique<P3GlobalGrid>(); }

}  // namespace attmirror
