// Regularization paths: W_R = argmin { L(W) : ||W|| <= R }, whose direction W_R / R tends to a max-margin solution.
//
//   P2   prompt p, fixed decoder: p_R / R -> p^mm of the optimal tokens, with no assumption on the scores
//   P2   v and p together: v_R -> v^mm; p_R -> p^mm where all inputs are support vectors of v^mm, else the relaxed
//        problem
//   P3   W -> Frobenius solution; (K,Q) with |K|^2 + |Q|^2 <= 2R -> nuclear-norm solution
//   P1   l_p: W_R -> W^mm_p; v and W together in l_p
//   P2, P3, P1   local paths: within a cone about the solution of locally optimal tokens, the path tends to that
//                solution
//
// The papers prove these limits and show no path. Here are the paths, each point with a stationarity gap of at
// most 1e-8.
//
// How fast? Only tokens whose logits compete matter, and these differ by amounts that stay bounded as R grows. So W_R
// - R u stays bounded too, u being the limit direction: the angle falls like 1/R and its cosine's distance from 1
// like 1/R^2.
//
// Data: unit sphere, n = 6, T = 8, d = 10 (P1's Setting A, P3's local runs); P2's three inputs of seven tokens; P2's
// joint data; P1's Setting C. Global paths take the best of three random starts, the zero start, the previous radius
// and the max-margin solution of the optimal tokens, at each radius; in Setting C the solutions of all nine choices
// of tokens. Joint paths have ||v|| <= r = R.
#include "papers/experiments.hpp"
#include "papers/path_curves.hpp"
#include "papers/shorthand.hpp"
#include "papers/training_set.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/descent/regularization_path.hpp>
#include <attmirror/margin/support.hpp>
#include <attmirror/mirror/direction.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace attmirror {

namespace {

struct Kind {
  std::string name;
  Norm norm;
  Parameterization parameterization;
};

double distance_between(const Matrix& solution, const Matrix& weights, const Norm& norm) {
  return norm.is_entrywise() ? directional_bregman(solution, weights, norm.p())
                             : 1 - correlation(solution, weights);
}

PathCurve sphere_curve(const Kind& kind, std::uint64_t seed, const std::vector<double>& radii) {
  const Dataset data = generate(SphereData{.seed = seed});
  const Attention model(data, kind.parameterization);
  const Selection optimal = optimal_tokens(data);
  const MarginSolution svm = max_margin(data, optimal, kind.norm);
  PathCurve curve;
  curve.certified = svm.status == MarginStatus::certified;
  if (!curve.certified) return curve;
  Parameters start;
  start.W = svm.W;
  const RegularizationPath path = regularization_path(model, {.norm = kind.norm,
                                                              .radii = radii,
                                                              .starts = 3,
                                                              .seed = 1000 * seed,
                                                              .given = {start},
                                                              .max_evaluations = 4000});
  count_points(path, curve);
  for (const PathPoint& point : path.points) {
    curve.distance.push_back(distance_between(svm.W, attention_weights(point.parameters), kind.norm));
    if (point.start == 1) curve.found_alone = false;
  }
  curve.optimal = path.points.back().selected == optimal;
  return curve;
}

struct LocalPath {
  std::uint64_t seed = 0;
  PathCurve curve;
  double lost_below = 0;  // the smallest radius from which on it keeps its tokens
  double closest = 0;     // the least margin of a better token, in units of the selection's margin
};

class Paths final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {
        .id = "paths",
        .paper = "P1, P2, P3",
        .item = "theorems on regularization paths",
        .title = "Do regularization paths tend to max-margin solutions?",
        .summary =
            "Computes the least loss within balls of growing radius (for W in ℓp, (K, Q), the prompt, with and without the "
            "decoder; globally and locally) and measures how fast the directions reach the max-margin solutions.",
        .seconds = 5,
        .quick_seconds = 0.4};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const std::uint64_t seeds = context.quick() ? 2 : 12;
    const std::vector<double> radii =
        context.quick() ? std::vector<double>{10, 1e3, 1e4} : geometric_radii(1, 1e4, 9);
    ExperimentResult result;
    result.sample = fmt::format("{} for global paths, {} radii", counted(seeds, "data set"), radii.size());
    result.configuration = {
        {"data",
         fmt::format("unit sphere, n = 6, T = 8, d = 10, seeds 1 to {}; P2's multi-input data, seed 0; P2's "
                     "joint data; P1's Setting C",
                     seeds)},
        {"radii", fmt::format("{:g} to {:g}, {} of them; local paths to 1e6", radii.front(), radii.back(),
                              radii.size())},
        {"starts",
         "at each radius: the radius before, steepest descent at 0, the max-margin solution of the optimal "
         "tokens, "
         "3 random directions of seeds 1000 s + 1 to 3 (s: seed of the data)"},
        {"tolerance", "stationarity gap 1e-8, joint paths 1e-11"},
        {"joint paths", "‖v‖ ≤ r = R"}};
    Table table{.title = "Paths at the largest radius",
                .columns = {{"path", Align::left},
                            {"runs"},
                            {"R"},
                            {"distance, median"},
                            {"largest"},
                            {"slope"},
                            {"gap, largest"}}};
    Figure figure{
        .id = "distances",
        .title = "Every path tends to its max-margin direction",
        .caption =
            "Distances are directional Bregman divergences in ℓp, and 1 − cos of the angle for (K, Q). Medians over data "
            "sets; bands are quartiles.",
        .x = {.label = "radius R of the ball, in the norm of the path", .scale = Axis::Scale::log},
        .y = {.label = "distance of W_R from the max-margin direction", .scale = Axis::Scale::log}};
    sphere_paths(context.part(0, 0.7), seeds, radii, result, table, figure);
    prompt_path(radii, result, table, figure);
    joint_prompt_paths(radii, result, table);
    joint_lp_paths(radii, result, table);
    context.progress(0.75);
    local_paths(context.part(0.75, 1), result, table);
    describe(figure);
    double furthest = 0;
    for (const Series& series : figure.series) furthest = std::max(furthest, series.y.back());
    lead_with(
        figure,
        fmt::format("At R = {:g} all {} kinds of paths are within {:.0e} of their max-margin direction; the "
                    "distances fall like 1/R^2.",
                    radii.back(), figure.series.size(), furthest));
    result.conclusion = fmt::format(
        "As the ball grows, every regularization path turns to its max-margin solution: at radius {:g} the distance left "
        "is at most {:.0e}.",
        radii.back(), furthest);
    result.figures.insert(result.figures.begin(), std::move(figure));
    result.tables = {{"paths", std::move(table)}};
    result.remarks = {
        "At R = 1,000 the loss differs from its limit by about e^-300, at R = 10,000 by e^-3000. Comparing losses cannot "
        "find the path there; the direction of the gradient, which is known to all digits, can.",
        "Decoder and attention together (P1, Setting C), p = 2: far out the path selects the tokens (0, 0), whose label "
        "margin is the largest: 2.1770, against 2.1744 for (1, 0). Training from zero ends on (1, 0): joint training need "
        "not follow the joint path.",
        "The papers do not state that distances fall like 1/R^2; it follows if W_R − R u stays bounded, where u is the "
        "limit direction.",
        "A local path exists only from some radius on. A better token that is almost a support token is suppressed only "
        "by a factor whose logarithm is −R (margin − 1) / ‖W_mm‖; training at a finite norm sees the same."};
    return result;
  }

 private:
  static void sphere_paths(const ExperimentContext& context, std::uint64_t seeds,
                           const std::vector<double>& radii, ExperimentResult& result, Table& table,
                           Figure& figure) {
    std::vector<Kind> kinds{{"W, Frobenius (P3)", Norm::frobenius(), W{}},
                            {"W, ℓ1.75 (P1)", Norm::l(1.75), W{}},
                            {"W, ℓ3 (P1)", Norm::l(3), W{}},
                            {"(K,Q), nuclear (P3)", Norm::nuclear(), KQ{}}};
    if (!context.quick()) kinds.insert(kinds.begin() + 1, {"W, ℓ1.5 (P1)", Norm::l(1.5), W{}});
    const auto count = static_cast<std::ptrdiff_t>(seeds);
    std::vector<std::vector<PathCurve>> curves(kinds.size(), std::vector<PathCurve>(seeds));
    // The slowest kind first, so that the threads end at about the same time.
    for_all(context, count * std::ssize(kinds), [&](std::ptrdiff_t i) {
      const auto k = kinds.size() - 1 - static_cast<std::size_t>(i / count);
      const auto s = static_cast<std::size_t>(i % count);
      curves[k][s] = sphere_curve(kinds[k], s + 1, radii);
    });
    std::ptrdiff_t unconverged = 0, uncertified = 0, optimal = 0, total = 0, alone = 0;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      add_findings(kinds[k].name, radii, curves[k], 1e-4, result.findings);
      add_row(table, kinds[k].name, radii, curves[k]);
      figure.series.push_back(band(kinds[k].name, radii, curves[k]));
      for (const PathCurve& curve : curves[k]) {
        unconverged += curve.unconverged;
        uncertified += !curve.certified;
        optimal += curve.optimal;
        alone += curve.found_alone;
        ++total;
      }
    }
    result.findings.push_back(
        {.quantity = "share of global paths that select the optimal tokens at the largest radius",
         .published = 1,
         .source = ReferenceSource::theory,
         .ours = share_of(optimal, total).value,
         .tolerance = Tolerance::absolute(0)});
    result.findings.push_back(new_number(
        "share of them in which continuation and random starts alone found the best at every radius",
        share_of(alone, total).value, share_of(alone, total).error));
    result.findings.push_back(
        {.quantity = "points of global paths that did not reach a gap of 1e-8, or lack a certified solution",
         .published = 0,
         .source = ReferenceSource::theory,
         .ours = static_cast<double>(unconverged + uncertified),
         .tolerance = Tolerance::absolute(0)});
  }

  static void prompt_path(const std::vector<double>& radii, ExperimentResult& result, Table& table,
                          Figure& figure) {
    const Dataset data = generate(MultiInputData{});
    const Attention model(data, Prompt{score_blind_key_weights()});
    const Selection optimal = optimal_tokens(data);
    const MarginSolution svm = max_margin(
        data, PromptSvm{.tokens = optimal, .key_weights = score_blind_key_weights()}, Norm::frobenius());
    const RegularizationPath path = regularization_path(model, {.radii = radii, .seed = 1});
    PathCurve curve;
    count_points(path, curve);
    for (const PathPoint& point : path.points)
      curve.distance.push_back(1 - correlation(svm.W, point.parameters.p));
    const std::vector<PathCurve> curves{curve};
    add_findings("prompt, three inputs (P2)", radii, curves, 1e-4, result.findings);
    add_row(table, "prompt, three inputs (P2)", radii, curves);
    figure.series.push_back(band("prompt, three inputs (P2)", radii, curves));
    result.findings.push_back(same_text("prompt, three inputs: tokens at the largest radius",
                                        to_string(optimal), to_string(path.points.back().selected),
                                        ReferenceSource::theory));
  }

  static void joint_prompt_paths(const std::vector<double>& radii, ExperimentResult& result, Table& table) {
    using Margin = JointPromptData::LabelMargin;
    Figure figure{.id = "relaxed",
                  .title = "With an input off the margin, the prompt tends to the relaxed solution",
                  .x = {.label = "radius R of both balls, Euclidean norm", .scale = Axis::Scale::log},
                  .y = {.label = "1 − cos of the angle to the solution", .scale = Axis::Scale::log}};
    for (const Margin margin : {Margin::tight, Margin::slack}) {
      const Dataset data = generate(JointPromptData{margin});
      const Attention model(data, Prompt{}, Logistic{}, {.train = {Block::p, Block::v}});
      const RegularizationPath path =
          regularization_path(model, {.radii = radii, .starts = 4, .seed = 1, .tol = 1e-11});
      const Selection tokens = path.points.back().selected;
      const MarginSolution decoder = max_margin(data, DecoderSvm{tokens}, Norm::frobenius());
      const MarginSolution full = max_margin(data, PromptSvm{tokens}, Norm::frobenius());
      const MarginSolution relaxed =
          max_margin(data, PromptSvm{.tokens = tokens, .bounds = relaxed_bounds(data, decoder.support)},
                     Norm::frobenius());
      PathCurve to_relaxed, to_full, to_decoder;
      count_points(path, to_relaxed);
      for (const PathPoint& point : path.points) {
        to_relaxed.distance.push_back(1 - correlation(relaxed.W, point.parameters.p));
        to_full.distance.push_back(1 - correlation(full.W, point.parameters.p));
        to_decoder.distance.push_back(1 - correlation(decoder.W, point.parameters.v));
      }
      const bool tight = margin == Margin::tight;
      const std::string name =
          tight ? "joint, all support vectors (P2): p" : "joint, one not a support vector (P2): p";
      add_findings(name, radii, {to_relaxed}, 1e-5, result.findings);
      add_row(table, name, radii, {to_relaxed});
      result.findings.push_back(
          at_most(fmt::format("joint, {}: distance of v from its max-margin solution",
                              tight ? "all support vectors" : "one not a support vector"),
                  1e-5, to_decoder.distance.back()));
      if (tight) continue;
      result.findings.push_back(
          {.quantity = "joint, one not a support vector: distance of p from the full problem's solution",
           .published = 1 - correlation(full.W, relaxed.W),
           .source = ReferenceSource::theory,
           .ours = to_full.distance.back(),
           .tolerance = Tolerance::relative(0.02),
           .note = "that of the two solutions from each other"});
      figure.series.push_back(band("prompt p from the relaxed solution", radii, {to_relaxed}));
      figure.series.push_back(band("prompt p from the full solution", radii, {to_full}));
      describe(figure);
      figure.caption = fmt::format(
          "At R = {:g} the prompt is at {:.1e} from the relaxed solution and at {:.3f} from that of the full problem, which "
          "it only passes on its way. P2's joint data, with the third input off the label margin.",
          radii.back(), to_relaxed.distance.back(), to_full.distance.back());
      // The decoder gets there so soon that there is no curve to draw.
      const auto arrived = std::ranges::find_if(to_decoder.distance, [](double one) { return one < 1e-14; });
      if (arrived != to_decoder.distance.end())
        figure.caption += fmt::format(
            " The decoder v, not drawn, is on its max-margin direction to rounding from R = {:.0f} on.",
            radii[static_cast<std::size_t>(arrived - to_decoder.distance.begin())]);
      result.figures.push_back(figure);
    }
  }

  // Where the decoder is free, the least loss far out belongs to the tokens with the largest label margin; in l_p that
  // depends on p.
  static void joint_lp_paths(const std::vector<double>& radii, ExperimentResult& result, Table& table) {
    const Dataset data = generate(JointData{});
    for (const double p : {1.75, 2.0, 3.0}) {
      const Norm norm = Norm::l(p);
      const Attention model(data, W{}, Logistic{}, {.train = {Block::W, Block::v}});
      Selection best;
      std::vector<Parameters> solutions;
      double least = std::numeric_limits<double>::infinity();
      for (std::int64_t a = 0; a < 9; ++a) {
        const Selection tokens{{a / 3, a % 3}};
        const MarginSolution v = max_margin(data, DecoderSvm{tokens}, norm);
        const MarginSolution weights = max_margin(data, tokens, norm);
        if (v.status != MarginStatus::certified || weights.status != MarginStatus::certified) continue;
        solutions.emplace_back();
        solutions.back().W = weights.W;
        solutions.back().v = v.W;
        if (!(v.norm < least)) continue;
        least = v.norm;
        best = tokens;
      }
      const RegularizationPath path = regularization_path(model, {.norm = norm,
                                                                  .radii = radii,
                                                                  .starts = 0,
                                                                  .given = solutions,
                                                                  .tol = 1e-11,
                                                                  .max_evaluations = 4000});
      const PathPoint& last = path.points.back();
      result.findings.push_back(
          same_text(fmt::format("v and W in ℓ{:g} (P1, Setting C): tokens at R = {:g}", p, radii.back()),
                    to_string(best), to_string(last.selected), ReferenceSource::theory));
      result.findings.back().note =
          "expected: of the nine choices, the one with the largest label margin in this norm";
      const MarginSolution svm = max_margin(data, best, norm);
      const MarginSolution decoder = max_margin(data, DecoderSvm{best}, norm);
      PathCurve curve;
      count_points(path, curve);
      for (const PathPoint& point : path.points)
        curve.distance.push_back(directional_bregman(svm.W, point.parameters.W, p));
      const std::string name = fmt::format("v and W in ℓ{:g} (P1, Setting C): W", p);
      add_findings(name, radii, {curve}, 1e-4, result.findings);
      add_row(table, name, radii, {curve});
      result.findings.push_back(
          at_most(fmt::format("v and W in ℓ{:g}: distance of v from its max-margin solution", p), 1e-4,
                  directional_bregman(decoder.W, last.parameters.v, p)));
    }
  }

  static void local_paths(const ExperimentContext& context, ExperimentResult& result, Table& table) {
    const std::uint64_t seeds = context.quick() ? 8 : 60;
    const std::vector<double> radii = geometric_radii(1, 1e6, context.quick() ? 7 : 25);
    // Where training ends on tokens that are locally optimal and not the best.
    TrainingSet set;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const Dataset& data = set.keep(generate(SphereData{.seed = seed}));
      set.add(data, W{}, {}, GradientDescent{.lr = 0.1, .normalized = true},
              {.steps = 1000,
               .record = RecordSchedule::none(),
               .init = {.kind = InitKind::normal, .seed = seed}});
    }
    const std::vector<DescentRun> runs = train_all(context.part(0, 0.3), set.tasks());
    std::vector<LocalPath> paths(runs.size());
    for_all(context.part(0.3, 1), std::ssize(runs), [&](std::ptrdiff_t i) {
      const auto at = static_cast<std::size_t>(i);
      paths[at] = local_path(set.model(at), runs[at].selected, radii);
      paths[at].seed = at + 1;
    });
    std::vector<PathCurve> curves;
    std::vector<double> lost;
    std::ptrdiff_t unconverged = 0, kept = 0;
    Figure figure{
        .id = "local",
        .title = "Local paths exist only from some radius on",
        .caption =
            "Each curve is a path on locally optimal tokens that are not the best. Followed from R = 10^6 down, it loses its "
            "tokens where a better one is no longer suppressed. The legend gives the distance of the closest better "
            "token, in margins.",
        .x = {.label = "radius R of the ball, Frobenius norm", .scale = Axis::Scale::log},
        .y = {.label = "1 − cos of the angle to the max-margin solution", .scale = Axis::Scale::log}};
    for (const LocalPath& path : paths) {
      if (path.curve.distance.empty()) continue;
      curves.push_back(path.curve);
      unconverged += path.curve.unconverged;
      kept += path.lost_below < radii.back();
      lost.push_back(path.lost_below);
      if (figure.series.size() < 6)
        figure.series.push_back(
            {.name = fmt::format("seed {}, better token at {:.3f}", path.seed, path.closest),
             .x = radii,
             .y = path.curve.distance,
             .mark = Series::Mark::both});
    }
    add_findings("local path (P1, P2, P3)", radii, curves, 1e-8, result.findings);
    add_row(table, "local path (P1, P2, P3)", radii, curves);
    result.findings.push_back({.quantity = "share of local paths with their own tokens at R = 1e6",
                               .published = 1,
                               .source = ReferenceSource::theory,
                               .ours = share_of(kept, std::ssize(curves)).value,
                               .tolerance = Tolerance::absolute(0)});
    result.findings.push_back(new_number("median radius from which a local path exists", median_of(lost)));
    result.findings.back().digits = 3;
    result.findings.push_back(
        new_number("largest radius from which a local path exists", *std::ranges::max_element(lost)));
    result.findings.back().digits = 3;
    result.findings.push_back(new_number("points of local paths that did not reach a gap of 1e-8",
                                         static_cast<double>(unconverged)));
    result.findings.back().note =
        "the problem is degenerate near the radius at which the solution ceases to exist";
    describe(figure);
    lead_with(figure,
              fmt::format("The median local path exists from R = {:.3g} on, the last of {} from R = {:.3g}.",
                          median_of(lost), lost.size(), std::ranges::max(lost)));
    result.figures.push_back(std::move(figure));
  }

  // Empty where the tokens are the best ones or not locally optimal.
  static LocalPath local_path(const Attention& model, const Selection& tokens,
                              const std::vector<double>& radii) {
    const Dataset& data = model.data();
    LocalPath result;
    if (tokens == optimal_tokens(data)) return result;
    const MarginSolution svm = max_margin(data, tokens, Norm::frobenius());
    if (svm.status != MarginStatus::certified) return result;
    const Vector v = data.decoder().eigen().transpose();
    const std::vector<Vector> scores = linear_scores(data, v);
    const MarginConstraints all = constraints(data, AttentionSvm{tokens});
    if (!local_optimality(data, tokens, all, svm.support, scores).holds) return result;
    result.closest = std::numeric_limits<double>::infinity();
    for (std::ptrdiff_t i = 0; i < data.samples(); ++i) {
      const std::ptrdiff_t chosen = tokens.tokens[static_cast<std::size_t>(i)];
      const Vector logits = data.tokens(i).eigen() * svm.W * data.queries().eigen().row(i).transpose();
      const Vector& score = scores[static_cast<std::size_t>(i)];
      for (std::ptrdiff_t t = 0; t < logits.size(); ++t)
        if (score(t) > score(chosen)) result.closest = std::min(result.closest, logits(chosen) - logits(t));
    }
    Parameters start;
    start.W = svm.W;
    const RegularizationPath path = regularization_path(
        model, {.radii = radii, .kind = PathKind::local, .given = {start}, .max_evaluations = 4000});
    count_points(path, result.curve);
    result.lost_below = radii.back();
    bool keeps = true;
    for (auto point = path.points.rbegin(); point != path.points.rend(); ++point) {
      keeps = keeps && point->selected == tokens;
      if (keeps) result.lost_below = point->radius;
    }
    for (const PathPoint& point : path.points)
      result.curve.distance.push_back(1 - correlation(svm.W, point.parameters.W));
    return result;
  }
};

}  // namespace

ExperimentPointer make_paths() { return std::make_unique<Paths>(); }

}  // namespace attmirror
