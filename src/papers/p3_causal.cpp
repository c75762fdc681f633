// P3 extends its theory to layers with an output at every token: each token is a query, with or without a causal mask,
//
//   a_ik = X_i W x_ik on the tokens that query k may attend to,   min |W| : (x_i,alpha_ik - x_it)^T W x_ik >= 1
//
// for every query k of every sequence i, and every t != alpha_ik that it may attend to. All queries share one W, so the
// max-margin problem has one block of constraints for each of them. The paper shows no experiment; here is one of ours.
//
// 3 sequences of T = 5 tokens on the unit sphere, every token a query, d = 16: at least the number of queries, so that
// every selection can be separated (the construction of P3, query by query). Normalized gradient descent with step 0.1
// from W = 0, and on (K, Q) from uniform in +-1/sqrt(d). Each run is held against the solution for the tokens that it
// selects, in the Frobenius norm (W) or the nuclear norm (K, Q), and against two other problems of the same tokens:
//
//   last query    constraints of the last token of each sequence alone, as if the layer had one output
//   no mask       constraints over tokens that the causal mask hides, where they can be satisfied
//
// Regularization paths are held against the problem of the optimal tokens. The nuclear norm may have several
// solutions, and P3 says only that a path tends to the set of them; so a path is measured by what its margin lacks,
//
//   1 - min_k <A_k, W_R> ||W_mm|| / R     which is 0 for solutions alone, and falls like 1/R if W_R - R u stays bounded
//
// and for W, whose solution is unique, by its correlation as well.
#include "papers/causal_study.hpp"
#include "papers/experiments.hpp"
#include "papers/shorthand.hpp"
#include "papers/training_set.hpp"
#include <attmirror/descent/regularization_path.hpp>

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

using namespace causal;

class P3Causal final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {
        .id = "p3-causal",
        .paper = "P3",
        .item = "extension to sequential and causal outputs",
        .title = "Does a layer with an output at every token obey the SVM of all queries?",
        .summary =
            "Trains self-attention with an output at every token, with and without a causal mask, follows its "
            "regularization paths, and compares both with the max-margin problem of all queries.",
        .seconds = 6,
        .quick_seconds = 0.4};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const std::uint64_t seeds = context.quick() ? 4 : 60, path_seeds = context.quick() ? 1 : 8;
    const std::vector<double> radii =
        context.quick() ? std::vector<double>{100, 1e4} : geometric_radii(1, 1e4, 9);
    const std::vector<std::int64_t> steps = log_steps(causal_steps, 8);
    std::array<LayerResult, layers.size()> results;
    descents(context.part(0, 0.5), seeds, steps, results);
    paths(context.part(0.5, 1), path_seeds, radii, results);

    ExperimentResult result;
    result.sample = fmt::format("{} for descent, {} for paths, in each of {} layers",
                                counted(seeds, "data set"), counted(path_seeds, "data set"), layers.size());
    result.configuration = {
        {"data",
         fmt::format("unit sphere, n = 3, T = 5, d = 16, every token a query, seeds 0 to {}", seeds - 1)},
        {"training", fmt::format("normalized gradient descent, lr 0.1, no eps, {} steps", causal_steps)},
        {"start", "W = 0; K and Q uniform in +-1/sqrt(d), seed of the data"},
        {"radii", fmt::format("{:g} to {:g}, {} of them, seeds 0 to {}", radii.front(), radii.back(),
                              radii.size(), path_seeds - 1)},
        {"starts of paths",
         "at each radius: the radius before, steepest descent at 0, the max-margin solution of the optimal tokens"},
        {"tolerance of paths", fmt::format("stationarity gap {:g}", path_tolerance)}};
    Table table{.title = "Paths at the largest radius",
                .columns = {{"path", Align::left},
                            {"runs"},
                            {"R"},
                            {"margin lacks, median"},
                            {"largest"},
                            {"slope"},
                            {"gap, largest"}}};
    std::ptrdiff_t solved = 0, problems = 0, unconverged = 0, optimal = 0, paths_done = 0;
    double furthest = 0, nearest = 2;
    for (std::size_t k = 0; k < layers.size(); ++k) {
      descent_findings(context, layers[k], results[k], result.findings);
      path_findings(layers[k], radii, results[k], result.findings);
      add_row(table, layers[k].name, radii, results[k].curves());
      for (const LayerRun& run : results[k].runs) solved += run.certified;
      for (const LayerPath& path : results[k].paths) {
        solved += path.curve.certified;
        unconverged += path.curve.unconverged;
        optimal += path.curve.optimal;
        ++paths_done;
      }
      problems += std::ssize(results[k].runs) + std::ssize(results[k].paths);
      furthest = std::max(furthest, median_of(ends(results[k])));
      nearest = std::min(nearest, median_of(values(results[k], &LayerRun::to_last_query)));
    }
    result.findings.push_back(
        {.quantity = "share of the max-margin problems of all queries that are certified",
         .published = 1,
         .source = ReferenceSource::theory,
         .ours = static_cast<double>(solved) / static_cast<double>(problems),
         .tolerance = Tolerance::absolute(0),
         .note = "d is at least T - 1 and the number of queries"});
    result.findings.push_back(
        {.quantity = fmt::format("points of paths that did not reach a gap of {:g}", path_tolerance),
         .published = 0,
         .source = ReferenceSource::theory,
         .ours = static_cast<double>(unconverged),
         .tolerance = Tolerance::absolute(0)});
    result.findings.push_back(
        {.quantity = "share of paths that select the optimal tokens of all queries in the end",
         .published = 1,
         .source = ReferenceSource::theory,
         .ours = share_of(optimal, paths_done).value,
         .tolerance = Tolerance::absolute(0)});
    result.tables = {{"layers", layers_table(results)}, {"paths", std::move(table)}};
    result.figures = {descent_figure(steps, results), path_figure(radii, results)};
    result.conclusion = fmt::format(
        "With an output at every token, masked or not, training turns to the max-margin solution of all queries "
        "together: the median of 1 − correlation is at most {:.1g}, against {:.2g} or more for the problem of the last "
        "query.",
        furthest, nearest);
    result.remarks = {
        "P3 states the extension and shows no experiment, so nothing published is compared: \"theory\" is the limit that it "
        "names.",
        "A run counts as global only if all its fifteen queries select their best token. A causal mask makes that easier: "
        "the first queries have few tokens to choose from."};
    return result;
  }

 private:
  static void descents(const ExperimentContext& context, std::uint64_t seeds,
                       const std::vector<std::int64_t>& steps,
                       std::array<LayerResult, layers.size()>& results) {
    TrainingSet set;
    for (const Layer& layer : layers)
      for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        DescentOptions options{.steps = causal_steps, .record = RecordSchedule::at(steps)};
        if (layer.factored) options.init = {.kind = InitKind::uniform, .seed = seed};
        set.add(set.keep(causal_data(seed, layer.causal)), layer.parameterization(), {}, causal_rule,
                options);
      }
    const std::vector<DescentRun> runs = train_all(context.part(0, 0.6), set.tasks());
    for (LayerResult& one : results) one.runs.resize(seeds);
    for_all(context.part(0.6, 1), std::ssize(runs), [&](std::ptrdiff_t i) {
      const auto at = static_cast<std::size_t>(i);
      results[at / seeds].runs[at % seeds] =
          measure_run(runs[at], set.model(at), layers[at / seeds], at % seeds);
    });
  }

  static void paths(const ExperimentContext& context, std::uint64_t seeds, const std::vector<double>& radii,
                    std::array<LayerResult, layers.size()>& results) {
    for (LayerResult& one : results) one.paths.resize(seeds);
    const auto count = static_cast<std::ptrdiff_t>(seeds * layers.size());
    for_all(context, count, [&](std::ptrdiff_t i) {
      const auto at = static_cast<std::size_t>(i);
      results[at / seeds].paths[at % seeds] = measure_path(layers[at / seeds], at % seeds, radii);
    });
  }

  static std::vector<double> values(const LayerResult& layer, double LayerRun::*what) {
    std::vector<double> finite;
    for (const LayerRun& run : layer.runs)
      if (std::isfinite(run.*what)) finite.push_back(run.*what);
    return finite;
  }
  static std::vector<double> ends(const LayerResult& layer) {
    std::vector<double> last;
    for (const LayerRun& run : layer.runs)
      if (!run.distance.empty()) last.push_back(run.distance.back());
    return last;
  }
  static Mean share(const LayerResult& layer, bool LayerRun::*what) {
    return share_of(std::ranges::count(layer.runs, true, what), std::ssize(layer.runs));
  }

  static void descent_findings(const ExperimentContext& context, const Layer& layer,
                               const LayerResult& measured, std::vector<Finding>& findings) {
    const auto name = [&](const char* what) { return fmt::format("{}: {}", layer.name, what); };
    findings.push_back({.quantity = name("median 1 - correlation with the SVM of all queries, last step"),
                        .published = 0,
                        .source = ReferenceSource::theory,
                        .ours = median_of(ends(measured)),
                        .tolerance = Tolerance::at_most(.01),
                        .note = fmt::format("after {} steps", causal_steps),
                        .digits = 2});
    // Training must come nearer to it than to the problems that leave queries or the mask out.
    const double last_query = median_of(values(measured, &LayerRun::to_last_query));
    findings.push_back({.quantity = name("the same with the SVM of the last query"),
                        .ours = last_query,
                        .note = "the layer does not behave as if it had one output",
                        .digits = 2});
    if (layer.causal) {
      const std::vector<double> no_mask = values(measured, &LayerRun::to_no_mask);
      findings.push_back({.quantity = name("the same with the SVM without the mask"),
                          .ours = median_of(no_mask),
                          .note = fmt::format("{} of {} selections can be separated without the mask",
                                              no_mask.size(), measured.runs.size()),
                          .digits = 2});
    }
    for (const auto& [what, member] :
         {std::pair{"share of runs on the globally optimal tokens", &LayerRun::global},
          std::pair{"share of runs on locally optimal tokens", &LayerRun::local},
          std::pair{"share of runs whose attention is saturated", &LayerRun::saturated}}) {
      const Mean mean = share(measured, member);
      findings.push_back(new_number(name(what), mean.value, mean.error));
    }
    if (context.quick()) findings.back().note = "few runs";
  }

  static void path_findings(const Layer& layer, const std::vector<double>& radii, const LayerResult& measured,
                            std::vector<Finding>& findings) {
    double lacks = 0, angle = 0;
    std::vector<double> slopes;
    for (const LayerPath& path : measured.paths) {
      const std::vector<double>& distance = path.curve.distance;
      if (distance.empty()) continue;
      lacks = std::max(lacks, distance.back());
      angle = std::max(angle, path.angle);
      const std::size_t before = distance.size() > 2 ? distance.size() - 3 : 0;  // a decade before
      slopes.push_back(std::log(distance.back() / distance[before]) / std::log(radii.back() / radii[before]));
    }
    const auto add = [&](const char* what, double bound, double ours) {
      findings.push_back({.quantity = fmt::format("path, {}: {} at R = {:g}", layer.name, what, radii.back()),
                          .published = 0,
                          .source = ReferenceSource::theory,
                          .ours = ours,
                          .tolerance = Tolerance::at_most(bound),
                          .digits = 2});
    };
    add("share that the margin lacks, largest over data sets", .01, lacks);
    if (!layer.factored)
      add("1 - correlation with the SVM of all queries, largest over data sets", 1e-4, angle);
    findings.push_back({.quantity = fmt::format("path, {}: median slope of log lack over log R", layer.name),
                        .ours = median_of(slopes),
                        .note = "no theorem; -1 if W_R - R u stays bounded"});
  }

  static Table layers_table(const std::array<LayerResult, layers.size()>& results) {
    Table table{.title = "Descent: medians of 1 - correlation at the last step, and shares of runs",
                .columns = {{"layer", Align::left},
                            {"all queries"},
                            {"last query"},
                            {"no mask"},
                            {"certified"},
                            {"saturated"},
                            {"global"},
                            {"local"}}};
    for (std::size_t k = 0; k < layers.size(); ++k) {
      const auto median = [&](double LayerRun::*what) {
        const std::vector<double> list = values(results[k], what);
        return list.empty() ? std::string("–") : fmt::format("{:.3f}", median_of(list));
      };
      const auto cell = [&](bool LayerRun::*what) {
        return fmt::format("{:.3f}", share(results[k], what).value);
      };
      table.rows.push_back({layers[k].name, fmt::format("{:.5f}", median_of(ends(results[k]))),
                            median(&LayerRun::to_last_query), median(&LayerRun::to_no_mask),
                            cell(&LayerRun::certified), cell(&LayerRun::saturated), cell(&LayerRun::global),
                            cell(&LayerRun::local)});
    }
    return table;
  }

  static Figure descent_figure(const std::vector<std::int64_t>& steps,
                               const std::array<LayerResult, layers.size()>& results) {
    Figure figure{
        .id = "descent",
        .title = "Training turns to the solution of all queries, with and without a mask",
        .caption =
            "Medians over data sets, with quartiles. W is held against the Frobenius solution for its tokens, (K, "
            "Q) against the nuclear one.",
        .x = {.label = "step k", .scale = Axis::Scale::log},
        .y = {.label = "1 − correlation with the SVM of all queries", .scale = Axis::Scale::log}};
    const std::vector<double> x(steps.begin(), steps.end());
    for (std::size_t k = 0; k < layers.size(); ++k) {
      std::vector<PathCurve> curves;
      for (const LayerRun& run : results[k].runs) curves.push_back({.distance = run.distance});
      figure.series.push_back(band(layers[k].name, x, curves));
    }
    double furthest = 0;
    figure.description = "Distances from the solution against the step, both axes logarithmic.";
    for (const Series& series : figure.series) {
      furthest = std::max(furthest, series.y.back());
      figure.description += fmt::format(" {}: {:.1e} at the last step.", series.name, series.y.back());
    }
    lead_with(figure, fmt::format("After {} steps the median distance is at most {:.1g} in every layer.",
                                  causal_steps, furthest));
    return figure;
  }

  static Figure path_figure(const std::vector<double>& radii,
                            const std::array<LayerResult, layers.size()>& results) {
    Figure figure{
        .id = "paths",
        .title = "So do the regularization paths",
        .caption =
            "What the margin of the least loss within a ball lacks of the largest margin that all queries allow. Medians over data sets, with quartiles.",
        .x = {.label = "radius R of the ball, in the norm of the path", .scale = Axis::Scale::log},
        .y = {.label = "share that the margin lacks", .scale = Axis::Scale::log}};
    double furthest = 0;
    for (std::size_t k = 0; k < layers.size(); ++k) {
      figure.series.push_back(band(layers[k].name, radii, results[k].curves()));
      furthest = std::max(furthest, figure.series.back().y.back());
    }
    figure.description = "What the margin lacks against the radius, both axes logarithmic.";
    for (const Series& series : figure.series)
      figure.description +=
          fmt::format(" {}: {:.1e} at R = {:g}.", series.name, series.y.back(), series.x.back());
    lead_with(figure,
              fmt::format("At R = {:g} the margin lacks {:.1g} or less of the largest in every layer.",
                          radii.back(), furthest));
    return figure;
  }
};

}  // namespace

ExperimentPointer make_p3_causal() { return std::make_unique<P3Causal>(); }

}  // namespace attmirror
