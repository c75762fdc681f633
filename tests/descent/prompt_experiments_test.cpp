// P2's toy experiments: where training ends, and the numbers on the way. The max-margin solutions are exact
// or printed there; the iterates and probabilities are recomputed ones (the published figures show the same
// curves, without digits), in double precision from the published settings, so each is held to its last
// printed digit.
#include "descent/published.hpp"
#include "support/random_data.hpp"
#include <attmirror/attention/gradient.hpp>
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/descent/descend.hpp>
#include <attmirror/mirror/direction.hpp>

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

// P2's rule: g / (||g|| + eps), with an eps of its own in each experiment.
GradientDescent published_rule(double eps) {
  return {.lr = 0.1, .normalized = true, .eps = EpsPolicy::paper, .eps_value = eps};
}

Vector vector_of(std::initializer_list<double> values) {
  Vector result(static_cast<std::ptrdiff_t>(values.size()));
  std::copy(values.begin(), values.end(), result.data());
  return result;
}

// P2's softmax probability: the mean attention on a token known to be best, the same one in each input.
double probability_of(const Attention& model, const Parameters& parameters, std::ptrdiff_t token) {
  const std::vector<Vector> all = attention_probabilities(model, parameters);
  return std::accumulate(all.begin(), all.end(), 0.0,
                         [&](double sum, const Vector& s) { return sum + s(token); }) /
         static_cast<double>(all.size());
}

// Six starts p = (0, y0, 0). With equal scores of the others all end on the optimal token; else the last two
// end on the locally optimal one.
TEST(SingleInput, EachStartEndsOnItsToken) {
  struct Start {
    double y0;
    std::int64_t token;
    double cosine;  // of p after 200 steps, with the solution of that token
    int decimals;
  };
  const Vector solutions[] = {vector_of({-0.1 / 1.01, 1 / 1.01, 0}), vector_of({1, 0, 0})};
  const auto expect_ends = [&](SingleInputData::Scores scores, const std::vector<Start>& starts) {
    const Dataset data = generate(SingleInputData{scores});
    const Attention model(data, Prompt{score_blind_key_weights()});
    for (const Start& start : starts) {
      SCOPED_TRACE(::testing::Message() << "y0 = " << start.y0);
      DescentOptions options{.steps = 1000, .record = RecordSchedule::at({200})};
      options.init.given.p = vector_of({0, start.y0, 0});
      const DescentRun run = descend(model, published_rule(1e-9), options);
      EXPECT_EQ(run.selected.tokens, std::vector<std::int64_t>{start.token});
      EXPECT_NEAR(correlation(solutions[start.token], run.records.front().parameters.p), start.cosine,
                  test::last_digit(start.decimals));
      EXPECT_EQ(run.last().p(2), 0) << "the score is out of attention's sight";
    }
  };
  expect_ends(SingleInputData::Scores::equal, {{1, 0, .9943, 4},
                                               {.5, 0, .9938, 4},
                                               {0, 0, .9934, 4},
                                               {-.5, 0, .9929, 4},
                                               {-1, 0, .9923, 4},
                                               {-1.5, 0, .9917, 4}});
  expect_ends(SingleInputData::Scores::unequal, {{1, 0, .99987, 5},
                                                 {.5, 0, .99993, 5},
                                                 {0, 0, 1.0, 5},
                                                 {-.5, 0, .99933, 5},
                                                 {-1, 1, .99956, 5},
                                                 {-1.5, 1, .99896, 5}});
}

// The cost 1/2 ||p||^2 of this solution is .371338.
const Vector multi_input_solution = vector_of({0.844626, 0.171122, 0});

TEST(MultiInput, NormalizedDescentFollowsThePublishedPath) {
  const Dataset data = generate(MultiInputData{});
  const Attention model(data, Prompt{score_blind_key_weights()});
  const DescentRun run = descend(model, published_rule(1e-12),
                                 {.steps = 999, .record = RecordSchedule::at({50, 100, 199, 999})});
  ASSERT_EQ(run.records.size(), 4u);
  EXPECT_NEAR(probability_of(model, run.records[0].parameters, 0), .99308, test::last_digit(5));
  EXPECT_NEAR(run.records[0].norm, 4.97, test::last_digit(2));
  EXPECT_NEAR(run.records[1].norm, 9.93, test::last_digit(2));
  EXPECT_NEAR(run.records[2].norm, 19.75, test::last_digit(2));
  EXPECT_NEAR(correlation(multi_input_solution, run.records[2].parameters.p), .99955, test::last_digit(5));
  EXPECT_NEAR(correlation(multi_input_solution, run.records[3].parameters.p), .99994, test::last_digit(5));
}

TEST(MultiInput, PlainDescentFollowsThePublishedPath) {
  const Dataset data = generate(MultiInputData{});
  const Attention model(data, Prompt{score_blind_key_weights()});
  const DescentRun run =
      descend(model, GradientDescent{.lr = 1}, {.steps = 199, .record = RecordSchedule::at({50, 100, 199})});
  struct Published {
    double probability, norm;
  };
  const Published published[] = {{.8177, 2.287}, {.9338, 3.156}, {.9719, 3.850}};
  for (std::size_t r = 0; r < 3; ++r) {
    EXPECT_NEAR(probability_of(model, run.records[r].parameters, 0), published[r].probability,
                test::last_digit(4));
    EXPECT_NEAR(run.records[r].norm, published[r].norm, test::last_digit(3));
  }
}

// All other tokens have the same score, so every start leads to the one solution.
TEST(MultiInput, EveryStartTurnsToTheSolution) {
  const Dataset data = generate(MultiInputData{});
  const Attention model(data, Prompt{score_blind_key_weights()});
  for (const double x0 : {1.0, .5, 0.0, -.5, -1.0, -1.5}) {
    DescentOptions options{.steps = 1000};
    options.init.given.p = vector_of({x0, 0, 0});
    const DescentRun run = descend(model, GradientDescent{.lr = 0.1, .normalized = true}, options);
    EXPECT_EQ(run.selected.tokens, (std::vector<std::int64_t>{0, 0, 0})) << x0;
    EXPECT_GT(correlation(multi_input_solution, run.last().p), .999) << x0;
  }
}

// P2 gives p and v an eps each, 1e-19 and 1e-9, which GradientDescent does not: its loop, with the library's
// gradients. Returns the parameters after each step.
std::vector<Parameters> published_joint_path(const Attention& model, int steps) {
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

double logistic_probability(const Attention& model, const Parameters& parameters) {
  const std::vector<Vector> s = attention_probabilities(model, parameters),
                            gamma = token_scores(model, parameters);
  double sum = 0;
  for (std::size_t i = 0; i < s.size(); ++i) sum += 1 / (1 + std::exp(-s[i].dot(gamma[i])));
  return sum / static_cast<double>(s.size());
}

TEST(JointPrompt, TightLabelsGiveTheFullMaxMarginPrompt) {
  const Dataset data = generate(JointPromptData{JointPromptData::LabelMargin::tight});
  const Attention model(data, Prompt{}, Logistic{}, {.train = {Block::p, Block::v}});
  const std::vector<Parameters> path = published_joint_path(model, 199);
  EXPECT_NEAR(correlation(vector_of({4.0 / 3, 1.0 / 3}), path[199].p), .99984, test::last_digit(5));
  EXPECT_NEAR(correlation(vector_of({0, 1}), path[199].v), .99993, test::last_digit(5));

  struct Published {
    std::size_t step;
    double softmax, logistic;
    int softmax_decimals;
  };
  for (const Published& published :
       {Published{0, .4230, .5249, 4}, Published{30, .7186, .8686, 4}, Published{60, .967, .9963, 3}}) {
    EXPECT_NEAR(probability_of(model, path[published.step], 1), published.softmax,
                test::last_digit(published.softmax_decimals));
    EXPECT_NEAR(logistic_probability(model, path[published.step]), published.logistic, test::last_digit(4));
  }
  // v must turn first: the probability falls to about .38 near step 8 before it rises.
  std::size_t lowest = 0;
  for (std::size_t k = 0; k < path.size(); ++k)
    if (probability_of(model, path[k], 1) < probability_of(model, path[lowest], 1)) lowest = k;
  EXPECT_NEAR(static_cast<double>(lowest), 8, 1);
  EXPECT_NEAR(probability_of(model, path[lowest], 1), .38, test::last_digit(2));
}

TEST(JointPrompt, SlackLabelsRelaxThePrompt) {
  const Dataset data = generate(JointPromptData{JointPromptData::LabelMargin::slack});
  const Attention model(data, Prompt{}, Logistic{}, {.train = {Block::p, Block::v}});
  const Vector relaxed = vector_of({1, 0}), unrelaxed = vector_of({1.25, .25});
  const Parameters published = published_joint_path(model, 199).back();
  EXPECT_NEAR(correlation(relaxed, published.p), .99984, test::last_digit(5));
  EXPECT_NEAR(correlation(unrelaxed, published.p), .98396, test::last_digit(5));

  // Without an eps the gap goes on to widen. (With P2's, v stands still from about step 100, and after 1,000
  // steps p has turned back to .9992.)
  DescentOptions options{.steps = 1000, .record = RecordSchedule::at({199})};
  options.init.given = {.W = {}, .K = {}, .Q = {}, .p = vector_of({0, -1}), .v = vector_of({-1, 0})};
  const DescentRun run = descend(model, GradientDescent{.lr = 0.1, .normalized = true}, options);
  EXPECT_GT(correlation(relaxed, run.records[0].parameters.p), .9998);
  EXPECT_GT(correlation(relaxed, run.last().p), .99999);
  EXPECT_LT(correlation(unrelaxed, run.last().p), .982);
  EXPECT_GT(correlation(vector_of({0, 1}), run.last().v), .99999);
}

// p turns to (1, 0) with an offset p_2 -> 1/2 log(C |ell'(C)| / |ell'(1)|), derived from the ratio of the two
// inputs' gradients.
TEST(LossComparison, TheLossDecidesTheOffset) {
  const auto offset_after = [](double C, const Loss& loss) {
    const Dataset data = generate(LossComparisonData{.score = C});
    const Attention model(data, Prompt{score_blind_key_weights()}, loss);
    return Vector(descend(model, published_rule(1e-9), {.steps = 1000}).last().p);
  };
  for (const double C : {1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 100.}) {
    const Vector linear = offset_after(C, LinearLoss{});
    EXPECT_NEAR(linear(1), 0.5 * std::log(C), 1e-4) << C;
    EXPECT_GT(linear(0), 20) << C;
    const Vector logistic = offset_after(C, Logistic{});
    if (C == 100) {
      // The first input alone moves p for longer than 1,000 steps: down the diagonal (a, -a).
      EXPECT_NEAR(logistic(0), -logistic(1), 1e-9);
      EXPECT_GT(logistic(0), 10);
    } else {
      EXPECT_NEAR(logistic(1), 0.5 * std::log(C * (1 + std::exp(1)) / (1 + std::exp(C))), 1e-4) << C;
      EXPECT_GT(logistic(0), 20) << C;
    }
  }
  // As printed.
  EXPECT_NEAR(offset_after(2, LinearLoss{})(1), .3466, test::last_digit(4));
  EXPECT_NEAR(offset_after(5, LinearLoss{})(1), .8047, test::last_digit(4));
  EXPECT_NEAR(offset_after(10, LinearLoss{})(1), 1.1513, test::last_digit(4));
  EXPECT_NEAR(offset_after(100, LinearLoss{})(1), 2.3026, test::last_digit(4));
  EXPECT_NEAR(offset_after(2, Logistic{})(1), -.0603, test::last_digit(4));
  EXPECT_NEAR(offset_after(5, Logistic{})(1), -1.0420, test::last_digit(4));
  EXPECT_NEAR(offset_after(10, Logistic{})(1), -3.1921, test::last_digit(4));
}

// P2's lemma. Where all queries are u, the logits X W u depend on W through p = W u alone, and a step on W of
// size eta / |u|^2 moves W u by the step of size eta on p: from W(0) = p(0) u^T / |u|^2 on,
// W(k) = p(k) u^T / |u|^2. (P2 writes W for our W^T.)
void expect_equivalence(const Dataset& data, const Vector& u, const Vector& p0, const Loss& loss, double lr,
                        bool normalized) {
  const Attention prompt(data, Prompt{}, loss), weights(data, attmirror::W{}, loss);
  const double square = u.squaredNorm();
  DescentOptions options{.steps = 300, .record = RecordSchedule::every(1)};
  options.init.given.p = p0;
  const DescentRun run_p = descend(prompt, GradientDescent{.lr = lr, .normalized = normalized}, options);
  options.init.given = {};
  options.init.given.W = p0 * u.transpose() / square;
  const double lr_W = normalized ? lr / std::sqrt(square) : lr / square;
  const DescentRun run_W = descend(weights, GradientDescent{.lr = lr_W, .normalized = normalized}, options);
  ASSERT_EQ(run_p.records.size(), 301u);
  ASSERT_EQ(run_W.records.size(), 301u);
  double furthest = 0;
  for (std::size_t k = 0; k <= 300; ++k) {
    const Matrix W = run_W.records[k].parameters.W;
    const Matrix expected = run_p.records[k].parameters.p * u.transpose() / square;
    ASSERT_LE((W - expected).norm(), 1e-12 * std::max(1.0, expected.norm())) << "step " << k;
    furthest = std::max(furthest, (run_p.records[k].parameters.p - p0).norm());
  }
  EXPECT_GT(furthest, 0.1) << "nothing moved";
}

TEST(PromptAndWeights, WalkTogetherOnRandomData) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const Dataset sphere = test::ragged_data(7, 6, 5, seed);
    const Vector u = 1.7 * test::random_matrix(5, 1, seed), p0 = test::random_matrix(5, 1, seed + 10);
    DatasetArrays arrays;
    arrays.tokens = sphere.all_tokens().eigen();
    for (std::ptrdiff_t i = 0; i < 7; ++i) arrays.lengths.push_back(sphere.length(i));
    arrays.queries = Vector::Ones(7) * u.transpose();
    arrays.labels.assign(sphere.labels().begin(), sphere.labels().end());
    arrays.decoder = sphere.decoder().eigen().transpose();
    const Dataset data(arrays);
    for (const Loss& loss : {Loss{Logistic{}}, Loss{LinearLoss{}}, Loss{Exponential{}}})
      expect_equivalence(data, u, p0, loss, 0.5, false);
  }
}

// The data of this file have u = (1, 0, ...): same step sizes, plain or normalised, and p in W's first column.
TEST(PromptAndWeights, WalkTogetherOnTheToyData) {
  const Vector u = vector_of({1, 0, 0}), p0 = vector_of({.3, -.5, .2});
  for (const Loss& loss : {Loss{Logistic{}}, Loss{LinearLoss{}}}) {
    for (const bool normalized : {false, true}) {
      expect_equivalence(generate(SingleInputData{}), u, p0, loss, 0.1, normalized);
      expect_equivalence(generate(MultiInputData{}), u, p0, loss, 0.1, normalized);
      expect_equivalence(generate(LossComparisonData{.score = 2}), u, p0, loss, 0.1, normalized);
    }
  }
}

}  // namespace
}  // namespace attmirror
