// The model: which combinations it takes, its invariances, scores and selected tokens.
#include "support/files.hpp"
#include "support/random_data.hpp"
#include <attmirror/attention/attention.hpp>
#include <attmirror/attention/gradient.hpp>
#include <attmirror/attention/tokens.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <Eigen/QR>
#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::arrays_of;
using test::expect_bad_input;

TEST(Attention, KnowsItsBlocks) {
  const Dataset data = generate(SphereData{});
  const Attention model(data, KQ{4});
  EXPECT_EQ(model.trained(), (std::vector<Block>{Block::K, Block::Q}));
  EXPECT_EQ(model.rank(), 4);
  const Parameters zero = model.zero_parameters();
  EXPECT_EQ(zero.K.rows(), 10);
  EXPECT_EQ(zero.K.cols(), 4);
  EXPECT_EQ(zero.Q.rows(), 10);
  EXPECT_EQ(zero.Q.cols(), 4);
  EXPECT_EQ(zero.v, data.decoder().eigen().transpose());
  EXPECT_EQ(zero.W.size(), 0);
}

TEST(Attention, RefusesWhatDoesNotFit) {
  const Dataset data = generate(SphereData{});
  const Dataset joint = generate(JointData{});
  expect_bad_input({"rank is 11", "10"}, [&] { Attention model(data, KQ{11}); });
  expect_bad_input({"rank is -1"}, [&] { Attention model(data, KQ{-1}); });
  expect_bad_input({"cannot train K", "W"},
                   [&] { Attention model(data, W{}, Logistic{}, {.train = {Block::K}}); });
  expect_bad_input({"W", "twice"}, [&] {
    Attention model(data, W{}, Logistic{}, {.train = {Block::W, Block::W}});
  });
  expect_bad_input({"no decoder v"}, [&] { Attention model(joint); });
  expect_bad_input({"key weights", "(3, 3)", "(10, 10)"},
                   [&] { Attention model(data, Prompt{Matrix::Ones(3, 3)}); });
  Matrix bad = Matrix::Identity(10, 10);
  bad(2, 7) = NAN;
  expect_bad_input({"key weights[2,7] is nan"}, [&] { Attention model(data, Prompt{bad}); });

  for (const double size : {1e-200, 1e150}) {
    DatasetArrays scaled = arrays_of(data);
    scaled.tokens *= size;
    const Dataset extreme(scaled);
    expect_bad_input({"tokens", "1e-70 to 1e70"}, [&] { Attention model(extreme); });
  }

  const Attention model(data);
  Parameters at = model.zero_parameters();
  at.W(3, 4) = INFINITY;
  expect_bad_input({"W[3,4] is inf"}, [&] { loss_and_gradient(model, at); });
  at.W = Matrix::Zero(10, 9);
  expect_bad_input({"W has shape (10, 9)", "(10, 10)"}, [&] { selected_tokens(model, at); });
  at = model.zero_parameters();
  at.v.resize(3);
  expect_bad_input({"v has 3 entries", "10"}, [&] { token_scores(model, at); });
}

TEST(Attention, ParsersNameWhatTheyExpect) {
  EXPECT_EQ(to_string(parse_loss("exponential")), "exponential");
  EXPECT_EQ(parse_block("Q"), Block::Q);
  EXPECT_EQ(loss_names(), (std::vector<std::string_view>{"logistic", "exponential", "linear", "sigmoid"}));
  for (const std::string_view name : loss_names()) EXPECT_EQ(to_string(parse_loss(name)), name);
  EXPECT_EQ(head_names(), (std::vector<std::string_view>{"linear", "relu", "quadratic:LAMBDA"}));
  for (const char* word : {"", "hinge", "Logistic", "logistic ", "custom:squared_tail"})
    expect_bad_input({"loss is \"", word, "\": expected logistic, exponential, linear or sigmoid"},
                     [&] { parse_loss(word); });
  expect_bad_input({"block is \"x\"", "W"}, [] { parse_block("x"); });
}

// Relabelling the tokens of a sequence, or the sequences, changes nothing but the labels.
TEST(Attention, IsInvariantUnderPermutations) {
  const Dataset data = generate(SphereData{});
  DatasetArrays shuffled = arrays_of(data);
  std::vector<std::int64_t> order(8);
  std::iota(order.begin(), order.end(), 0);
  for (std::ptrdiff_t i = 0; i < 6; ++i) {
    std::ranges::rotate(order, order.begin() + 3);
    for (std::ptrdiff_t t = 0; t < 8; ++t) {
      const std::ptrdiff_t from = 5 - i, token = order[static_cast<std::size_t>(t)];
      shuffled.tokens.row(i * 8 + t) = data.tokens(from).eigen().row(token);
    }
    shuffled.queries.row(i) = data.queries().eigen().row(5 - i);
    shuffled.labels[static_cast<std::size_t>(i)] = data.labels()[static_cast<std::size_t>(5 - i)];
  }
  const Dataset other(shuffled);
  const Attention model(data), permuted(other);
  const Parameters at = test::random_parameters(model, 1, 8);
  Parameters fixed = at;
  fixed.v = model.zero_parameters().v;
  const LossAndGradient a = loss_and_gradient(model, fixed), b = loss_and_gradient(permuted, fixed);
  EXPECT_NEAR(a.loss, b.loss, 1e-15);
  EXPECT_NEAR(a.max_softmax, b.max_softmax, 1e-15);
  EXPECT_LT((a.gradient.W - b.gradient.W).norm(), 1e-14 * a.gradient.W.norm());
}

// Tokens R x, queries S z, weights R W S^T, decoder R v: the same logits, and the gradient turns along.
TEST(Attention, TurnsWithTheData) {
  const Dataset data = generate(SphereData{});
  const Matrix R = Eigen::HouseholderQR<Eigen::MatrixXd>(test::random_matrix(10, 10, 1)).householderQ() *
                   Eigen::MatrixXd::Identity(10, 10);
  const Matrix S = Eigen::HouseholderQR<Eigen::MatrixXd>(test::random_matrix(10, 10, 2)).householderQ() *
                   Eigen::MatrixXd::Identity(10, 10);
  DatasetArrays turned = arrays_of(data);
  turned.tokens = turned.tokens * R.transpose();
  turned.queries = turned.queries * S.transpose();
  turned.decoder = R * turned.decoder;
  const Dataset other(turned);
  const Attention model(data), rotated(other);
  Parameters at = model.zero_parameters(), turned_at = rotated.zero_parameters();
  at.W = test::random_matrix(10, 10, 3);
  turned_at.W = R * at.W * S.transpose();
  const LossAndGradient a = loss_and_gradient(model, at), b = loss_and_gradient(rotated, turned_at);
  EXPECT_NEAR(a.loss, b.loss, 1e-14);
  EXPECT_LT((R * a.gradient.W * S.transpose() - b.gradient.W).norm(), 1e-13 * a.gradient.W.norm());
  EXPECT_EQ(selected_tokens(model, at), selected_tokens(rotated, turned_at));
}

// Adding a constant to all logits of a sequence changes nothing: tokens shifted along u with W^T u = 0.
TEST(Attention, ParameterizationsAgreeWhereTheyMeet) {
  const Dataset data = generate(SphereData{});
  const Attention w(data), kq(data, KQ{3});
  const Parameters factors = test::random_parameters(kq, 1, 5);
  Parameters combined = w.zero_parameters();
  combined.W = combined_weights(factors);
  Parameters factors_fixed = factors;
  factors_fixed.v = combined.v;
  const LossAndGradient a = loss_and_gradient(w, combined), b = loss_and_gradient(kq, factors_fixed);
  EXPECT_NEAR(a.loss, b.loss, 1e-14);
  // grad_K = grad_W Q, grad_Q = grad_W^T K
  EXPECT_LT((a.gradient.W * factors.Q - b.gradient.K).norm(), 1e-13 * b.gradient.K.norm());
  EXPECT_LT((a.gradient.W.transpose() * factors.K - b.gradient.Q).norm(), 1e-13 * b.gradient.Q.norm());
}

TEST(Tokens, ScoresAndOptimalTokensOfSettingB) {
  const Dataset data = generate(SphereData{});  // seed 1, Setting B
  EXPECT_EQ(optimal_tokens(data).tokens, (std::vector<std::int64_t>{3, 2, 6, 2, 6, 2}));
  const Attention model(data);
  const Parameters zero = model.zero_parameters();
  EXPECT_EQ(optimal_tokens(model, zero), optimal_tokens(data));
  EXPECT_EQ(selected_tokens(model, zero).tokens, std::vector<std::int64_t>(6, 0));  // ties: the first
  for (const Vector& s : attention_probabilities(model, zero))
    EXPECT_LT((s.array() - 0.125).abs().maxCoeff(), 1e-16);
  EXPECT_NEAR(loss_and_gradient(model, zero).loss, 0.68016122, 5e-8);  // regenerated data: float32 rounding
  EXPECT_NEAR(loss_and_gradient(model, zero).max_softmax, 0.125, 1e-15);
}

TEST(Tokens, SelectionMarginIsTheSmallestDifference) {
  const Dataset data = test::ragged_data(5, 4, 3, 2);
  const Matrix weights = test::random_matrix(3, 3, 6);
  const Attention model(data);
  Parameters at = model.zero_parameters();
  at.W = weights;
  const Selection selected = selected_tokens(model, at);
  double expected = std::numeric_limits<double>::infinity();
  const std::vector<Vector> all = logits(model, at);
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::ptrdiff_t t = 0; t < all[i].size(); ++t)
      if (t != selected.tokens[i]) expected = std::min(expected, all[i](selected.tokens[i]) - all[i](t));
  EXPECT_NEAR(selection_margin(data, selected, weights), expected, 1e-14);
  EXPECT_GT(expected, 0);
  expect_bad_input({"W has shape (2, 2)"}, [&] { selection_margin(data, selected, Matrix::Ones(2, 2)); });
}

TEST(Loss, StaysAccurateFarOut) {
  EXPECT_EQ(loss_value(Logistic{}, 800), 0.0);
  EXPECT_EQ(loss_value(Logistic{}, -800), 800.0);
  EXPECT_NEAR(loss_value(Logistic{}, 50), std::exp(-50.0), 1e-30);
  EXPECT_EQ(log_abs_loss_derivative(Logistic{}, 800), -800.0);
  EXPECT_NEAR(log_abs_loss_derivative(Logistic{}, -40), -std::exp(-40.0), 1e-25);
  EXPECT_EQ(log_abs_loss_derivative(Exponential{}, 2000), -2000.0);
  EXPECT_EQ(log_abs_loss_derivative(LinearLoss{}, 7), 0.0);
  EXPECT_EQ(loss_value(Sigmoid{}, 800), 0.0);
  EXPECT_EQ(loss_value(Sigmoid{}, -800), 1.0);
  EXPECT_NEAR(loss_value(Sigmoid{}, 50), std::exp(-50.0), 1e-36);
  EXPECT_EQ(loss_value(Sigmoid{}, 0), 0.5);
  EXPECT_EQ(loss_derivative(Sigmoid{}, 0), -0.25);
  for (const double m : {800.0, 1e10, 1e300})
    for (const double side : {m, -m}) EXPECT_EQ(log_abs_loss_derivative(Sigmoid{}, side), -m);
  EXPECT_NEAR(log_abs_loss_derivative(Sigmoid{}, -20), -20 - 2 * std::exp(-20.0), 1e-14);
  EXPECT_TRUE(std::isnan(loss_value(Sigmoid{}, NAN)));
  for (const double m : {-30.0, -1.0, 0.0, 0.5, 20.0})
    for (const Loss& loss : {Loss{Logistic{}}, Loss{Exponential{}}, Loss{LinearLoss{}}, Loss{Sigmoid{}}}) {
      EXPECT_NEAR(std::log(-loss_derivative(loss, m)), log_abs_loss_derivative(loss, m), 1e-13);
      const double h = 1e-6;
      EXPECT_NEAR((loss_value(loss, m + h) - loss_value(loss, m - h)) / (2 * h), loss_derivative(loss, m),
                  1e-8 * (1 + std::abs(loss_value(loss, m))));
    }
}

// The kernels have the formulas of each loss on vectors. With a single token per sequence the margin is Y v^T x, and
// v's gradient is ell' Y x.
TEST(Loss, KernelsHaveTheSameFormulas) {
  const Dataset data{DatasetArrays{.tokens = Matrix::Ones(1, 1),
                                   .lengths = {1},
                                   .queries = Matrix::Ones(1, 1),
                                   .labels = {1},
                                   .decoder = Vector::Ones(1)}};
  ThreadPool pool(1);
  for (const std::string_view name : loss_names())
    for (const DataPath path : {DataPath::block, DataPath::stream})
      for (const double m : {0.0, 1e-300, 1e-9, 0.3, 1.0, 4.0, 36.0, 40.0, 500.0, 740.0, 1e5, 1e300})
        for (const double margin : {m, -m}) {
          SCOPED_TRACE(::testing::Message() << name << " at " << margin << ", " << to_string(path));
          const Loss loss = parse_loss(name);
          const Attention model(data, W{}, loss, {.train = {Block::v}});
          ParameterBlocks at(model.blocks());
          at.assign({.W = Matrix::Zero(1, 1), .v = Vector::Constant(1, margin)});
          const auto evaluate = [&](Jacobian jacobian, Gradient& gradient) {
            GradientEngine engine(model, {.jacobian = jacobian, .path = path}, pool);
            gradient = engine.make_gradient();
            return engine.evaluate(at, gradient).loss;
          };
          const auto close = [](double a, double b) {
            return a == b || std::abs(a - b) <= 1e-15 * std::abs(b) + 1e-307;
          };
          Gradient gradient;
          const double value = loss_value(loss, margin), derivative = loss_derivative(loss, margin);
          const double log_slope = log_abs_loss_derivative(loss, margin);
          EXPECT_PRED2(close, evaluate(Jacobian::safe, gradient), value);
          EXPECT_PRED2(close, std::log(-gradient.blocks.view(0).data[0]) + gradient.log_scale[0], log_slope);
          EXPECT_PRED2(close, evaluate(Jacobian::textbook, gradient), value);
          EXPECT_PRED2(close, gradient.blocks.view(0).data[0], derivative);
          at.view(at.find(Block::v)).data[0] = NAN;
          EXPECT_TRUE(std::isnan(evaluate(Jacobian::safe, gradient)));
          EXPECT_TRUE(std::isnan(evaluate(Jacobian::textbook, gradient)));
        }
}

}  // namespace
}  // namespace attmirror
