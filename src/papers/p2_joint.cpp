// P2, joint training of decoder v and prompt p, and the relaxed max-margin problem.
//
// Three inputs of tokens 0 and x_i in the plane with labels (1, -1, 1). Normalized gradient descent on both, lr 0.1,
// from p = (0, -1), v = (-1, 0), simultaneous steps. v goes to the max-margin classifier of the x_i. Where all inputs
// are its support vectors (x_3 = (.5, 1)), p goes to the max-margin prompt; where the third is none (x_3 = (.5,
// 1.5)), its attention constraint relaxes from >= 1 to >= 0, and p goes to the solution of the relaxed problem.
#include "papers/experiments.hpp"
#include "papers/shorthand.hpp"
#include <attmirror/attention/gradient.hpp>
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/margin/support.hpp>
#include <attmirror/mirror/direction.hpp>

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr int steps = 199;

// The published loop has an eps for each block, 1e-19 for p and 1e-9 for v, which no optimizer of ours does: it is
// written out here, on the library's gradients.
std::vector<Parameters> published_path(const Attention& model) {
  std::vector<Parameters> path{{.W = {}, .K = {}, .Q = {}, .p = vector_of({0, -1}), .v = vector_of({-1, 0})}};
  for (int k = 0; k < steps; ++k) {
    Parameters next = path.back();
    const Parameters g = loss_and_gradient(model, next, Jacobian::textbook).gradient;
    next.p -= 0.1 * g.p / (g.p.norm() + 1e-19);
    next.v -= 0.1 * g.v / (g.v.norm() + 1e-9);
    path.push_back(next);
  }
  return path;
}

double logistic_probability(const Attention& model, const Parameters& at) {
  const std::vector<Vector> s = attention_probabilities(model, at), gamma = token_scores(model, at);
  double sum = 0;
  for (std::size_t i = 0; i < s.size(); ++i) sum += 1 / (1 + std::exp(-s[i].dot(gamma[i])));
  return sum / static_cast<double>(s.size());
}

class JointPrompt final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {
        .id = "p2-joint",
        .paper = "P2",
        .item = "Figures of joint training, all and not all inputs support vectors",
        .title = "What happens when decoder and prompt are trained together?",
        .summary =
            "Trains v and p together on three inputs, once with all of them support vectors of the labels' "
            "max-margin problem and once with two; in the second case the prompt's problem is relaxed.",
        .seconds = 0.05,
        .quick_seconds = 0.05};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    ExperimentResult result;
    add_tight(result);
    context.progress(0.5);
    add_slack(result);
    result.configuration = {
        {"data", "the inputs of the paper, nothing random"},
        {"start", "p = (0, -1), v = (-1, 0)"},
        {"optimizer",
         "normalized gradient descent on p and v together, lr 0.1, eps 1e-19 for p and 1e-9 "
         "for v, textbook Jacobian, 199 steps"}};
    return result;
  }

 private:
  static Series cosines(const std::string& name, const std::vector<Parameters>& path, const Vector& solution,
                        Block block) {
    Series series{.name = name};
    for (std::size_t k = 1; k < path.size(); ++k) {
      series.x.push_back(static_cast<double>(k));
      series.y.push_back(1 - correlation(solution, block == Block::p ? path[k].p : path[k].v));
    }
    return series;
  }

  static Figure cosine_figure(const char* id, const char* title) {
    Figure figure{.id = id, .title = title};
    figure.x = {.label = "step k", .whole = true};
    figure.y = {.label = "1 − cosine of the angle to the solution", .scale = Axis::Scale::log};
    return figure;
  }

  static void add_tight(ExperimentResult& result) {
    const Dataset data = generate(JointPromptData{JointPromptData::LabelMargin::tight});
    const Attention model(data, Prompt{}, Logistic{}, {.train = {Block::p, Block::v}});
    const Selection tokens{{1, 1, 1}};
    const MarginSolution prompt = max_margin(data, PromptSvm{tokens}, Norm::frobenius());
    const MarginSolution decoder = max_margin(data, DecoderSvm{tokens}, Norm::frobenius());
    const Vector p = prompt.W.reshaped(), v = decoder.W.reshaped();
    const std::vector<Parameters> path = published_path(model);
    auto& findings = result.findings;
    findings.push_back(to_decimals("all support vectors: cost of the max-margin prompt", .94444,
                                   prompt.norm * prompt.norm / 2, 5, ReferenceSource::printed));
    findings.push_back(
        to_decimals("all support vectors: p^mm[0]", 4.0 / 3, p(0), 9, ReferenceSource::theory));
    findings.push_back(
        to_decimals("all support vectors: p^mm[1]", 1.0 / 3, p(1), 9, ReferenceSource::theory));
    findings.push_back(to_decimals("all support vectors: v^mm[0]", 0, v(0), 9, ReferenceSource::theory));
    findings.push_back(to_decimals("all support vectors: v^mm[1]", 1, v(1), 9, ReferenceSource::theory));
    findings.push_back(to_decimals("all support vectors: cosine of p at step 199", .99984,
                                   correlation(p, path.back().p), 5));
    findings.push_back(to_decimals("all support vectors: cosine of v at step 199", .99993,
                                   correlation(v, path.back().v), 5));
    const struct {
      std::size_t step;
      double softmax, logistic;
      int decimals;
    } reference[] = {{0, .4230, .5249, 4}, {30, .7186, .8686, 4}, {60, .967, .9963, 3}};
    for (const auto& at : reference) {
      findings.push_back(to_decimals(fmt::format("softmax probability at step {}", at.step), at.softmax,
                                     mean_probability(model, path[at.step], 1), at.decimals));
      findings.push_back(to_decimals(fmt::format("logistic probability at step {}", at.step), at.logistic,
                                     logistic_probability(model, path[at.step]), 4));
    }
    std::vector<double> probabilities;
    for (const Parameters& at : path) probabilities.push_back(mean_probability(model, at, 1));
    const auto lowest = std::ranges::min_element(probabilities);
    findings.push_back(to_decimals("lowest softmax probability on the way", .38, *lowest, 2));
    Finding where{.quantity = "step of the lowest softmax probability",
                  .published = 8,
                  .ours = static_cast<double>(lowest - probabilities.begin())};
    where.tolerance = Tolerance::absolute(1);
    where.note = "v must turn first";
    findings.push_back(where);

    Figure figure = cosine_figure(
        "tight", "With all inputs support vectors, p and v approach their max-margin directions");
    figure.series = {cosines("p to the max-margin prompt", path, p, Block::p),
                     cosines("v to the max-margin classifier", path, v, Block::v)};
    figure.caption = fmt::format(
        "After 199 steps 1 − cosine is {:.2g} for the prompt p and {:.2g} for the decoder v, as theory predicts when "
        "every input is a support vector.",
        figure.series[0].y.back(), figure.series[1].y.back());
    figure.description = fmt::format(
        "Two falling curves over 199 steps on a logarithmic scale; p ends at {:.2g}, v at {:.2g}.",
        figure.series[0].y.back(), figure.series[1].y.back());
    result.figures.push_back(std::move(figure));
  }

  static void add_slack(ExperimentResult& result) {
    const Dataset data = generate(JointPromptData{JointPromptData::LabelMargin::slack});
    const Attention model(data, Prompt{}, Logistic{}, {.train = {Block::p, Block::v}});
    const Selection tokens{{1, 1, 1}};
    const MarginSolution decoder = max_margin(data, DecoderSvm{tokens}, Norm::frobenius());
    PromptSvm problem{tokens};
    const Vector unrelaxed = max_margin(data, problem, Norm::frobenius()).W.reshaped();
    problem.bounds = relaxed_bounds(data, decoder.support);
    const MarginSolution relaxed_svm = max_margin(data, problem, Norm::frobenius());
    const Vector relaxed = relaxed_svm.W.reshaped();
    const std::vector<Parameters> path = published_path(model);
    auto& findings = result.findings;
    findings.push_back(to_decimals("not all: cost of the relaxed prompt", .5,
                                   relaxed_svm.norm * relaxed_svm.norm / 2, 5, ReferenceSource::printed));
    const Vector margins = label_margins(data, tokens, decoder.W.reshaped()).values;
    const double expected[] = {1, 1, 1.5};
    for (int i = 0; i < 3; ++i)
      findings.push_back(
          to_decimals(fmt::format("not all: label margin of input {}", i), expected[i], margins(i), 6));
    const double relaxed_values[] = {1, 0}, unrelaxed_values[] = {1.25, .25};
    for (int i = 0; i < 2; ++i) {
      findings.push_back(to_decimals(fmt::format("not all: relaxed p^mm[{}]", i), relaxed_values[i],
                                     relaxed(i), 9, ReferenceSource::theory));
      findings.push_back(to_decimals(fmt::format("not all: unrelaxed p^mm[{}]", i), unrelaxed_values[i],
                                     unrelaxed(i), 9, ReferenceSource::theory));
    }
    const double near = correlation(relaxed, path.back().p), far = correlation(unrelaxed, path.back().p);
    findings.push_back(
        to_decimals("not all: cosine of p to the relaxed solution at step 199", .99984, near, 5));
    findings.push_back(
        to_decimals("not all: cosine of p to the unrelaxed solution at step 199", .98396, far, 5));

    // Without an eps the run goes on to separate the two; with the published one v stands still from about step 100.
    DescentOptions options{.steps = 1000};
    options.init.given = {.W = {}, .K = {}, .Q = {}, .p = vector_of({0, -1}), .v = vector_of({-1, 0})};
    const DescentRun exact = descend(model, GradientDescent{.lr = 0.1, .normalized = true}, options);
    findings.push_back(at_least("not all, no eps: cosine of p to the relaxed solution at step 1000", .9999,
                                correlation(relaxed, exact.last().p)));
    findings.push_back(at_least("not all, no eps: cosine of v to its solution at step 1000", .9999,
                                correlation(decoder.W.reshaped(), exact.last().v)));

    Figure figure = cosine_figure("slack", "With an input off the margin, p approaches the relaxed solution");
    figure.series = {cosines("p to the relaxed solution", path, relaxed, Block::p),
                     cosines("p to the unrelaxed solution", path, unrelaxed, Block::p)};
    figure.caption = fmt::format(
        "After 199 steps 1 − cosine is {:.2g} to the solution whose third constraint is relaxed to ≥ 0, and {:.2g} to "
        "the solution of all constraints.",
        1 - near, 1 - far);
    result.conclusion = fmt::format(
        "An input that is not a support vector drops out of the prompt's problem: the prompt ends {:.0f} times closer "
        "to the relaxed solution than to the full one.",
        (1 - far) / (1 - near));
    figure.description = fmt::format(
        "The distance to the relaxed solution falls to {:.2g}, that to the unrelaxed one stays at {:.2g}.",
        1 - near, 1 - far);
    result.figures.push_back(std::move(figure));
  }
};

}  // namespace

ExperimentPointer make_p2_joint() { return std::make_unique<JointPrompt>(); }

}  // namespace attmirror
