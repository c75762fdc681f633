// P1, Setting C: decoder v and attention W trained together.
//
// n = 2 sequences of T = 3 tokens in the plane, z_i the first token of each, Y = (1, -1), v(0) = 0, W(0) = 0;
// normalized mirror descent on both, lr 0.1, p = 1.75, 2, 3 for 1,500, 2,000 and 20,000 steps. v goes to the
// max-margin classifier of the selected tokens in l_p, W to the attention SVM in l_p. With v = 0 the gradient of W is
// 0, so v moves first, alone.
#include "papers/experiments.hpp"
#include "papers/shorthand.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/mirror/direction.hpp>

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

namespace attmirror {

namespace {

struct ToyReference {
  double p;
  std::int64_t steps;
  const char* selected;
  double W[4], v[2];  // of the max-margin solutions, row by row
  double D_W, D_v;
};
constexpr ToyReference toy_references[] = {
    {1.75, 1500, "(1, 0)", {-.081802, -.062741, -.077671, .198514}, {.025510, .459184}, .00827, .00020},
    {2, 2000, "(1, 0)", {-.083919, -.067505, -.079436, .194544}, {.025510, .459184}, .00381, .00032},
    {3, 20000, "(0, 0)", {.109823, -.032279, -.066640, .196870}, {-.183150, .421245}, .00273, .00242},
};

// Mean over the sequences of sigma(Y v^T x) of the token with the largest probability.
double logistic_probability(const Attention& model, const Parameters& attention, const Parameters& decoder) {
  const Selection tokens = selected_tokens(model, attention);
  const std::vector<Vector> scores = token_scores(model, decoder);
  double sum = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) sum += 1 / (1 + std::exp(-scores[i](tokens.tokens[i])));
  return sum / static_cast<double>(scores.size());
}

class SettingC final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {
        .id = "p1-setting-c",
        .paper = "P1",
        .item = "Figures of joint training",
        .title = "Decoder and attention trained together",
        .summary =
            "Trains v and W from zero in ℓ1.75, ℓ2 and ℓ3 and compares both with their max-margin solutions.",
        .seconds = 0.1,
        .quick_seconds = 0.1};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const Dataset data = generate(JointData{});
    const Attention model(data, W{}, Logistic{}, {.train = {Block::W, Block::v}});
    std::vector<DescentTask> tasks;
    for (const ToyReference& reference : toy_references)
      tasks.push_back(
          {&model,
           MirrorDescent{.p = reference.p, .lr = 0.1, .normalized = true, .eps = EpsPolicy::paper},
           {.steps = reference.steps,
            .record = RecordSchedule::at(log_steps(reference.steps, 20, {9, 10, 100})),
            .keep = Keep::parameters}});
    const std::vector<DescentRun> runs = train_all(context.part(0, 0.9), tasks);

    ExperimentResult result;
    Figure figure{.id = "divergence",
                  .title = "Trained together, W and v both approach their max-margin solutions"};
    figure.x = {.label = "step k", .scale = Axis::Scale::log};
    figure.y = {.label = "directional Bregman divergence (no unit)", .scale = Axis::Scale::log};
    figure.description =
        "Six falling curves, two for each p, over the number of steps, both axes logarithmic.";
    for (std::size_t k = 0; k < runs.size(); ++k)
      add(result, figure, data, toy_references[k], runs[k], static_cast<int>(k));
    double of_W = 0, of_v = 0;
    for (std::size_t k = 0; k < figure.series.size(); k += 2) {
      of_W = std::max(of_W, figure.series[k].y.back());
      of_v = std::max(of_v, figure.series[k + 1].y.back());
    }
    figure.caption = fmt::format(
        "In all three geometries W ends within {:.4f} of its max-margin solution (solid) and v within {:.4f} of its own "
        "(dashed). W stops moving once the loss is so small that the eps in the norm of its gradient takes over.",
        of_W, of_v);
    result.conclusion = fmt::format(
        "Trained together, attention and decoder both converge to max-margin solutions: the largest divergences left "
        "are {:.4f} for W and {:.4f} for v.",
        of_W, of_v);
    result.figures.push_back(std::move(figure));
    add_path_of_gd(result, model, runs[1]);
    result.configuration = {{"data", "the two sequences of the paper, nothing random"},
                            {"start", "W(0) = 0, v(0) = 0"},
                            {"optimizer",
                             "normalized mirror descent on W and v, each by its own norm, lr 0.1, eps "
                             "2.2e-16 in the norm, textbook Jacobian"},
                            {"p and steps", "1.75: 1500, 2: 2000, 3: 20000"}};
    context.progress(1);
    return result;
  }

 private:
  static void add(ExperimentResult& result, Figure& figure, const Dataset& data,
                  const ToyReference& reference, const DescentRun& run, int color) {
    const std::string p = fmt::format("p = {:g}", reference.p);
    const Norm norm = Norm::l(reference.p);
    const MarginSolution attention = max_margin(data, AttentionSvm{run.selected}, norm);
    const MarginSolution decoder = max_margin(data, DecoderSvm{run.selected}, norm);
    auto& findings = result.findings;
    findings.push_back(same_text("selected tokens, " + p, reference.selected, to_string(run.selected),
                                 ReferenceSource::figure));
    for (int i = 0; i < 4; ++i)
      findings.push_back(to_decimals(fmt::format("W^mm[{},{}], {}", i / 2, i % 2, p), reference.W[i],
                                     attention.W(i / 2, i % 2), 6));
    for (int i = 0; i < 2; ++i)
      findings.push_back(
          to_decimals(fmt::format("v^mm[{}], {}", i, p), reference.v[i], decoder.W.reshaped()(i), 6));
    const auto distance_W = [&](const Parameters& at) {
      return directional_bregman(attention.W, at.W, reference.p);
    };
    const auto distance_v = [&](const Parameters& at) {
      return directional_bregman(decoder.W.reshaped(), Matrix(at.v), reference.p);
    };
    const std::string at = fmt::format(", {}, step {}", p, reference.steps);
    findings.push_back(to_decimals("divergence of W" + at, reference.D_W, distance_W(run.last()), 5));
    findings.push_back(to_decimals("divergence of v" + at, reference.D_v, distance_v(run.last()), 5));
    Finding gap =
        new_number("larger relative gap of the two solutions, " + p, std::max(attention.gap, decoder.gap));
    gap.digits = 2;
    findings.push_back(gap);

    Series weights{.name = "W, " + p, .color = color}, head{.name = "v, " + p, .color = color};
    head.dash = Series::Dash::dashed;
    for (const Record& record : run.records) {
      if (record.step < 2) continue;  // W is still 0 and has no direction
      weights.x.push_back(static_cast<double>(record.step));
      weights.y.push_back(distance_W(record.parameters));
      head.x.push_back(static_cast<double>(record.step));
      head.y.push_back(distance_v(record.parameters));
    }
    figure.description +=
        fmt::format(" {}: W ends at {:.5f}, v at {:.5f}.", p, weights.y.back(), head.y.back());
    figure.series.push_back(std::move(weights));
    figure.series.push_back(std::move(head));
  }

  // The published curves read the attention before a step and v after it.
  static void add_path_of_gd(ExperimentResult& result, const Attention& model, const DescentRun& run) {
    const auto at = [&](std::int64_t step) -> const Parameters& { return record_at(run, step).parameters; };
    auto& findings = result.findings;
    findings.push_back(
        to_decimals("softmax probability before the first step", .33333, record_at(run, 0).max_softmax, 5));
    findings.push_back(to_decimals("logistic probability in iteration 1, p = 2", .54370,
                                   logistic_probability(model, at(0), at(1)), 5));
    findings.push_back(
        to_decimals("softmax probability in iteration 10, p = 2", .93282, record_at(run, 9).max_softmax, 5));
    findings.push_back(to_decimals("logistic probability in iteration 10, p = 2", .89421,
                                   logistic_probability(model, at(9), at(10)), 5));
    const double v[] = {1.0223, 9.9236}, W[] = {-2.0374, -1.3991, -2.3221, 5.4904};
    for (int i = 0; i < 2; ++i)
      findings.push_back(to_decimals(fmt::format("v[{}] at step 100, p = 2", i), v[i], at(100).v(i), 4));
    for (int i = 0; i < 4; ++i)
      findings.push_back(to_decimals(fmt::format("W[{},{}] where it stops moving, p = 2", i / 2, i % 2), W[i],
                                     run.last().W(i / 2, i % 2), 4));
  }
};

}  // namespace

ExperimentPointer make_p1_setting_c() { return std::make_unique<SettingC>(); }

}  // namespace attmirror
