// P2, one input: where a trained prompt goes, and when it depends on the start.
//
// One sequence of three tokens, (-0.1, 1), (1, 0), (0, 0) to attention, with scores 1, 0.9 and 0.9 (or 0); normalized
// gradient descent on the prompt p, lr 0.1, from p = (0, y0) for six y0. With equal scores of the non-optimal tokens
// every start leads to the max-margin prompt of the optimal token. With unequal ones token 1 is locally optimal, and
// the starts below go there.
#include "papers/experiments.hpp"
#include "papers/shorthand.hpp"
#include <attmirror/data/generators.hpp>
#include <attmirror/mirror/direction.hpp>

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

namespace attmirror {

namespace {

constexpr std::array starts{1., .5, 0., -.5, -1., -1.5};

struct Case {
  SingleInputData::Scores scores;
  const char* name;
  std::array<std::int64_t, 6> token;  // that each start ends on
  std::array<double, 6> cosine;       // with that token's solution at step 200
  int decimals;
};
const std::array cases{
    Case{SingleInputData::Scores::equal,
         "equal scores",
         {0, 0, 0, 0, 0, 0},
         {.9943, .9938, .9934, .9929, .9923, .9917},
         4},
    Case{SingleInputData::Scores::unequal,
         "unequal scores",
         {0, 0, 0, 0, 1, 1},
         {.99987, .99993, 1.0, .99933, .99956, .99896},
         5},
};

class SingleInput final : public Experiment {
 public:
  ExperimentInfo info() const override {
    return {.id = "p2-single-input",
            .paper = "P2",
            .item = "Figure of global and local convergence, one input",
            .title = "One input: global and local convergence",
            .summary =
                "Trains a prompt on one sequence from six starts, with equal and with unequal scores of the "
                "non-optimal tokens.",
            .seconds = 0.05,
            .quick_seconds = 0.05};
  }

  ExperimentResult run(const ExperimentContext& context) const override {
    ExperimentResult result;
    for (const Case& which : cases) add(result, context, which);
    result.configuration = {
        {"data", "the three tokens of the paper, nothing random"},
        {"key weights", "diag(1, 1, 0): the third coordinate is the score"},
        {"start", "p = (0, y0, 0), y0 = 1, 0.5, 0, -0.5, -1, -1.5"},
        {"optimizer", "normalized gradient descent, lr 0.1, eps 1e-9 in the norm, 1000 steps"}};
    return result;
  }

 private:
  // 1 − cosine between the prompt and a solution; a prompt of 0 has no direction.
  static Series turning_curve(const std::string& name, const DescentRun& run, const Vector& solution) {
    Series series{.name = name};
    for (const Record& record : run.records) {
      if (record.step == 0) continue;
      series.x.push_back(static_cast<double>(record.step));
      series.y.push_back(1 - correlation(solution, record.parameters.p));
    }
    return series;
  }

  static void add(ExperimentResult& result, const ExperimentContext& context, const Case& which) {
    const Dataset data = generate(SingleInputData{which.scores});
    const Attention model(data, Prompt{score_blind_key_weights()});
    std::vector<DescentTask> tasks;
    for (const double y0 : starts) {
      DescentOptions options{.steps = 1000, .record = RecordSchedule::at(log_steps(1000, 30, {200}))};
      options.init.given.p = vector_of({0, y0, 0});
      tasks.push_back(
          {&model, GradientDescent{.lr = 0.1, .normalized = true, .eps = EpsPolicy::paper, .eps_value = 1e-9},
           options});
    }
    const std::vector<DescentRun> runs = train_all(context, tasks);
    std::array<Vector, 2> solutions;
    for (std::int64_t token : {0, 1}) {
      const MarginSolution svm =
          max_margin(data, PromptSvm{{{token}}, score_blind_key_weights()}, Norm::frobenius());
      solutions[static_cast<std::size_t>(token)] = svm.W.reshaped();
      if (which.scores == SingleInputData::Scores::equal) {
        result.findings.push_back(to_decimals(fmt::format("cost 1/2 |p^mm|^2 of token {}", token),
                                              token == 0 ? .49505 : .5, svm.norm * svm.norm / 2, 5,
                                              ReferenceSource::printed));
        const std::array expected{token == 0 ? -.0990 : 1., token == 0 ? .9901 : 0.};
        for (int i = 0; i < 2; ++i)
          result.findings.push_back(to_decimals(fmt::format("p^mm[{}] of token {}", i, token),
                                                expected[static_cast<std::size_t>(i)], svm.W.reshaped()(i),
                                                4));
      }
    }

    const bool equal = which.scores == SingleInputData::Scores::equal;
    Figure figure{.id = equal ? "equal" : "unequal",
                  .title = equal ? "With equal scores every start turns to the optimal token"
                                 : "With unequal scores the lowest starts turn to another token",
                  .equal_axes = !equal};
    if (equal) {
      // In the plane all paths would lie close together, in a corner, and beside the ray that they become parallel to.
      figure.x = {.label = "step k", .scale = Axis::Scale::log};
      figure.y = {.label = "1 − cosine to the max-margin direction of the optimal token",
                  .scale = Axis::Scale::log};
    } else {
      figure.x.label = "first coordinate of the prompt p";
      figure.y.label = "second coordinate of the prompt p";
    }
    std::string ends;
    std::array<int, 2> ending{};
    double least_cosine = 1;
    for (std::size_t k = 0; k < runs.size(); ++k) {
      const std::int64_t token = runs[k].selected.tokens.front();
      result.findings.push_back(
          same_text(fmt::format("token on which the start (0, {:g}) ends, {}", starts[k], which.name),
                    std::to_string(which.token[k]), std::to_string(token), ReferenceSource::figure));
      result.findings.push_back(
          to_decimals(fmt::format("cosine to its max-margin prompt at step 200, start (0, {:g}), {}",
                                  starts[k], which.name),
                      which.cosine[k],
                      correlation(solutions[static_cast<std::size_t>(which.token[k])],
                                  record_at(runs[k], 200).parameters.p),
                      which.decimals));
      const std::string name = fmt::format("start (0, {:g})", starts[k]);
      figure.series.push_back(equal ? turning_curve(name, runs[k], solutions[0])
                                    : prompt_path(name, runs[k], 200));
      ends += fmt::format("{}{:g}: token {}", k ? ", " : "", starts[k], token);
      if (token < 2) {
        ++ending[static_cast<std::size_t>(token)];
        least_cosine = std::min(least_cosine, correlation(solutions[static_cast<std::size_t>(token)],
                                                          record_at(runs[k], 200).parameters.p));
      }
    }
    for (std::size_t token = 0; token < 2; ++token) {
      if (equal) break;
      const Vector ray = 20 * solutions[token] / solutions[token].norm();
      Series line{.name = token == 0 ? "max-margin direction of the optimal token"
                                     : "max-margin direction of token 1",
                  .x = {0, ray(0)},
                  .y = {0, ray(1)}};
      line.dash = Series::Dash::dotted;
      figure.series.push_back(std::move(line));
    }
    figure.caption = fmt::format(
        "{} of 6 starts turn to the optimal token and {} to the locally optimal one; after 200 steps every prompt has a "
        "cosine of at least {:.4f} with the max-margin direction of its token.",
        ending[0], ending[1], least_cosine);
    if (!equal)
      figure.caption +=
          " Each path becomes parallel to that direction (dotted); what its start leaves over keeps it beside the line.";
    result.conclusion +=
        equal ? fmt::format("With equal scores, {} of 6 starts end on the optimal token; ", ending[0])
              : fmt::format("with unequal scores, {} of 6 do.", ending[0]);
    figure.description =
        fmt::format("Six runs with {}; the tokens they end on, by the second coordinate of the start: {}.",
                    which.name, ends);
    result.figures.push_back(std::move(figure));
  }
};

}  // namespace

ExperimentPointer make_p2_single_input() { return std::make_unique<SingleInput>(); }

}  // namespace attmirror
