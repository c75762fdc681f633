// P2, several inputs: the prompt's direction tends to the max-margin prompt of the optimal tokens from every start.
//
// n = 3 sequences of T = 7 tokens (seed 0), in three clusters; the optimal token has score 1, all others 1/2. Attention
// sees the first two coordinates. Normalized gradient descent (lr 0.1) against plain (lr 1): the norm grows linearly in
// one and logarithmically in the other.
//
// The published max-margin problem was solved on all three coordinates, though attention sees two: its cost is .3132
// where the right one is .3713. The direction is the same, because the scores differ by the same 1/2 everywhere.
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

// The published run was in single precision, where 1 - s of the winning token is soon a rounding error: the step at
// which the norm of the prompt grows by less than nine tenths of a step. The gradient is the textbook one, as
// automatic differentiation rounds it.
std::int64_t kink_in_single_precision(const Dataset& data, std::int64_t steps) {
  using Floats = Eigen::MatrixXf;
  const Eigen::VectorXf v = data.decoder().eigen().transpose().cast<float>();
  Eigen::VectorXf p = Eigen::VectorXf::Zero(data.dim());
  float last = 0;
  for (std::int64_t k = 1; k <= steps; ++k) {
    Eigen::VectorXf gradient = Eigen::VectorXf::Zero(data.dim());
    for (std::ptrdiff_t i = 0; i < data.samples(); ++i) {
      const Floats tokens = data.tokens(i).eigen().cast<float>();
      Floats keys = tokens;
      keys.col(2).setZero();  // the score, which attention does not see
      const Eigen::VectorXf logits = keys * p, gamma = tokens * v;
      Eigen::VectorXf s = (logits.array() - logits.maxCoeff()).exp();
      s /= s.sum();
      const float slope = -1 / (1 + std::exp(gamma.dot(s)));
      const Eigen::ArrayXf of_scores = slope / 3 * gamma;
      const float mean = (s.array() * of_scores).sum();
      gradient += keys.transpose() * (s.array() * (of_scores - mean)).matrix();
    }
    p -= 0.1f * gradient / (gradient.norm() + 1e-12f);
    if (p.norm() < last + 0.09f) return k;
    last = p.norm();
  }
  return steps;
}

class MultiInput final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {.id = "p2-multi-input",
            .paper = "P2",
            .item = "Figures of several inputs, and of norm and probability",
            .title = "Several inputs: does every start turn to the max-margin prompt?",
            .summary =
                "Trains a prompt on three sequences from six starts, by normalized and by plain gradient "
                "descent.",
            .seconds = 0.05,
            .quick_seconds = 0.05};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    const Dataset data = generate(MultiInputData{});
    const Attention model(data, Prompt{score_blind_key_weights()});
    const Selection best{{0, 0, 0}};
    const MarginSolution svm =
        max_margin(data, PromptSvm{best, score_blind_key_weights()}, Norm::frobenius());
    const MarginSolution in_three = max_margin(data, PromptSvm{best}, Norm::frobenius());
    const Vector solution = svm.W.reshaped(), published_solution = in_three.W.reshaped();

    ExperimentResult result;
    auto& findings = result.findings;
    const double cost = svm.norm * svm.norm / 2, cost_in_three = in_three.norm * in_three.norm / 2;
    Finding printed = to_decimals("cost of the max-margin prompt", .31319, cost, 5, ReferenceSource::printed);
    printed.imitated = cost_in_three;
    printed.note = "the published problem has three coordinates, of which attention sees two";
    findings.push_back(printed);
    findings.push_back(to_decimals("cost in three coordinates, as published", .313189, cost_in_three, 6));
    findings.push_back(to_decimals("cost in the two coordinates that attention sees", .371338, cost, 6));
    findings.push_back(to_decimals("p^mm[0]", .844626, solution(0), 6));
    findings.push_back(to_decimals("p^mm[1]", .171122, solution(1), 6));
    const double three[] = {.712363, .144325, .313189};
    for (int i = 0; i < 3; ++i) {
      Finding one =
          to_decimals(fmt::format("p^mm[{}] in three coordinates", i), three[i], published_solution(i), 6);
      one.reading = 5e-7;  // the data differ in the last bits of single precision
      findings.push_back(one);
    }
    findings.push_back(to_decimals("slope p^mm[1] / p^mm[0]", .20260, solution(1) / solution(0), 5));
    findings.push_back(to_decimals("the same slope in three coordinates", .20260,
                                   published_solution(1) / published_solution(0), 5));
    const double tokens[3][2] = {{.7748, -.2305}, {.6890, -.0683}, {.9421, .0105}};
    for (int i = 0; i < 3; ++i)
      for (int c = 0; c < 2; ++c)
        findings.push_back(to_decimals(fmt::format("optimal token of input {}, coordinate {}", i, c),
                                       tokens[i][c], data.tokens(i).eigen()(0, c), 4));

    const GradientDescent normalized{
        .lr = 0.1, .normalized = true, .eps = EpsPolicy::paper, .eps_value = 1e-12};
    const RecordSchedule schedule = RecordSchedule::at(log_steps(999, 25, {50, 100, 199}));
    std::vector<DescentTask> tasks{{&model, normalized, {.steps = 999, .record = schedule}},
                                   {&model, GradientDescent{.lr = 1}, {.steps = 999, .record = schedule}}};
    const std::vector<double> starts{1, .5, 0, -.5, -1, -1.5};
    for (const double x0 : starts) {
      DescentOptions options{.steps = 1000, .record = schedule};
      options.init.given.p = vector_of({x0, 0, 0});
      tasks.push_back({&model, GradientDescent{.lr = 0.1, .normalized = true}, options});
    }
    const std::vector<DescentRun> runs = train_all(context, tasks);
    add_path_findings(findings, model, runs[0], runs[1], solution);
    for (std::size_t k = 0; k < starts.size(); ++k) {
      const DescentRun& path = runs[k + 2];
      findings.push_back(same_text(fmt::format("tokens on which x0 = {:g} ends", starts[k]), "(0, 0, 0)",
                                   to_string(path.selected), ReferenceSource::figure));
      findings.push_back(
          at_least(fmt::format("cosine to the max-margin prompt at step 1000, x0 = {:g}", starts[k]), .999,
                   correlation(solution, path.last().p)));
    }
    findings.push_back({.quantity = "step of the kink in the norm, in single precision",
                        .published = 147,
                        .source = ReferenceSource::figure,
                        .ours = static_cast<double>(kink_in_single_precision(data, 400)),
                        .tolerance = Tolerance::absolute(3),
                        .note = "rounding of 1 − s; in double precision the norm goes on growing"});
    findings.push_back(
        new_number("larger relative gap of the two solutions", std::max(svm.gap, in_three.gap)));
    result.figures = {paths_figure(runs, starts, solution), norm_figure(runs[0], runs[1])};
    const auto turned = std::ranges::count_if(runs.begin() + 2, runs.end(),
                                              [&](const DescentRun& run) { return run.selected == best; });
    result.conclusion = fmt::format("{} of {} starts turn to the max-margin prompt of the best tokens.",
                                    turned, starts.size());
    result.configuration = {
        {"data", "three clusters, n = 3, T = 7, seed 0"},
        {"key weights", "diag(1, 1, 0)"},
        {"start", "p = 0 for the curves; p = (x0, 0, 0), x0 = 1, 0.5, 0, -0.5, -1, -1.5 for the paths"},
        {"optimizer",
         "normalized gradient descent, lr 0.1, eps 1e-12 in the norm (none for the paths); "
         "plain gradient descent, lr 1; 1000 steps"}};
    return result;
  }

 private:
  static void add_path_findings(std::vector<Finding>& findings, const Attention& model,
                                const DescentRun& normalized, const DescentRun& plain,
                                const Vector& solution) {
    const auto norm = [](const DescentRun& run, std::int64_t step) { return record_at(run, step).norm; };
    const auto best = [&](const DescentRun& run, std::int64_t step) {
      return mean_probability(model, record_at(run, step).parameters, 0);  // the best of each input
    };
    const auto cosine = [&](std::int64_t step) {
      return correlation(solution, record_at(normalized, step).parameters.p);
    };
    findings.push_back(
        to_decimals("normalized: softmax probability at step 50", .99308, best(normalized, 50), 5));
    findings.push_back(to_decimals("normalized: |p| at step 50", 4.97, norm(normalized, 50), 2));
    findings.push_back(to_decimals("normalized: |p| at step 100", 9.93, norm(normalized, 100), 2));
    findings.push_back(to_decimals("normalized: |p| at step 199", 19.75, norm(normalized, 199), 2));
    findings.push_back(to_decimals("normalized: cosine at step 199", .99955, cosine(199), 5));
    findings.push_back(to_decimals("normalized: cosine at step 999", .99994, cosine(999), 5));
    const struct {
      std::int64_t step;
      double probability, norm;
    } reference[] = {{50, .8177, 2.287}, {100, .9338, 3.156}, {199, .9719, 3.850}};
    for (const auto& at : reference) {
      findings.push_back(to_decimals(fmt::format("plain: softmax probability at step {}", at.step),
                                     at.probability, best(plain, at.step), 4));
      findings.push_back(
          to_decimals(fmt::format("plain: |p| at step {}", at.step), at.norm, norm(plain, at.step), 3));
    }
  }

  static Figure paths_figure(const std::vector<DescentRun>& runs, const std::vector<double>& starts,
                             const Vector& solution) {
    Figure figure{
        .id = "paths",
        .title = "Six starts turn to the same max-margin prompt",
        .description = "Six paths in the plane, all of which bend to the dotted ray with slope 0.2026.",
        .equal_axes = true};
    figure.x.label = "first coordinate of the prompt p";
    figure.y.label = "second coordinate of the prompt p";
    double least = 1;
    for (std::size_t k = 0; k < starts.size(); ++k) {
      least = std::min(least, correlation(solution, runs[k + 2].last().p));
      figure.series.push_back(prompt_path(fmt::format("x0 = {:g}", starts[k]), runs[k + 2], 200));
    }
    figure.caption = fmt::format(
        "After 1,000 steps all six prompts have a cosine of at least {:.5f} with the max-margin prompt (dotted). Drawn "
        "are the first 200 steps of normalized gradient descent.",
        least);
    const Vector ray = 20 * solution / solution.norm();
    Series line{.name = "max-margin direction", .x = {0, ray(0)}, .y = {0, ray(1)}};
    line.dash = Series::Dash::dotted;
    figure.series.push_back(std::move(line));
    return figure;
  }

  static Figure norm_figure(const DescentRun& normalized, const DescentRun& plain) {
    Figure figure{.id = "norms",
                  .title = "The prompt grows linearly with normalized steps, logarithmically with plain ones",
                  .caption = fmt::format(
                      "After 999 steps its norm is {:.1f} with normalized and {:.2f} with plain steps. "
                      "Normalized growth stops at about step 250, where gradients are as small as "
                      "the published eps of 10^-12.",
                      normalized.norm, plain.norm),
                  .description = fmt::format("Two rising curves over the steps, both axes logarithmic: "
                                             "normalized gradient descent reaches {:.1f} "
                                             "after 999 steps, plain {:.2f}.",
                                             normalized.norm, plain.norm)};
    figure.x = {.label = "step k", .scale = Axis::Scale::log};
    figure.y = {.label = "Euclidean norm of the prompt, |p|", .scale = Axis::Scale::log};
    for (const auto& [run, name] :
         {std::pair{&normalized, "normalized, lr 0.1"}, std::pair{&plain, "plain, lr 1"}}) {
      Series series{.name = name};
      for (const Record& record : run->records) {
        if (record.step == 0) continue;
        series.x.push_back(static_cast<double>(record.step));
        series.y.push_back(record.norm);
      }
      figure.series.push_back(std::move(series));
    }
    return figure;
  }
};

}  // namespace

ExperimentPointer make_p2_multi_input() { return std::make_unique<MultiInput>(); }

}  // namespace attmirror
