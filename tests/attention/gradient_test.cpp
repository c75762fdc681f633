// Value and gradient against a plain reference in long double, for every parameterization, loss,
// Jacobian form and choice of trained blocks, on ragged data.
#include "attention/reference.hpp"
#include "support/random_data.hpp"
#include <attmirror/attention/gradient.hpp>
#include <attmirror/attention/tokens.hpp>

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::difference;
using test::Real;
using test::RealMatrix;
using test::RealVector;
using test::reference_loss;

struct Case {
  const char* name;
  Parameterization parameterization;
  std::vector<Block> train;
};

std::vector<Case> cases() {
  return {{"W", W{}, {Block::W}},
          {"W_and_v", W{}, {Block::W, Block::v}},
          {"v_alone", W{}, {Block::v}},
          {"KQ", KQ{}, {Block::K, Block::Q}},
          {"KQ_of_rank_2", KQ{2}, {Block::K, Block::Q}},
          {"KQ_of_rank_3_and_v", KQ{3}, {Block::K, Block::Q, Block::v}},
          {"K_alone", KQ{2}, {Block::K}},
          {"Q_alone", KQ{2}, {Block::Q}},
          {"prompt", Prompt{}, {Block::p}},
          {"prompt_with_keys", Prompt{test::random_matrix(5, 5, 99)}, {Block::p}},
          {"prompt_and_v", Prompt{test::random_matrix(5, 5, 98)}, {Block::p, Block::v}}};
}

class GradientOf : public ::testing::TestWithParam<std::tuple<Case, Loss, Jacobian>> {};

INSTANTIATE_TEST_SUITE_P(Models, GradientOf,
                         ::testing::Combine(::testing::ValuesIn(cases()),
                                            ::testing::Values(Loss{Logistic{}}, Loss{Exponential{}},
                                                              Loss{LinearLoss{}}, Loss{Sigmoid{}}),
                                            ::testing::Values(Jacobian::safe, Jacobian::textbook)),
                         [](const auto& given) {
                           return std::string(std::get<0>(given.param).name) + "_" +
                                  std::string(to_string(std::get<1>(given.param))) +
                                  (std::get<2>(given.param) == Jacobian::safe ? "_safe" : "_textbook");
                         });

TEST_P(GradientOf, EqualsFiniteDifferences) {
  const auto& [given, loss, jacobian] = GetParam();
  const Dataset data = test::ragged_data(7, 9, 5, 3);
  const Attention model(data, given.parameterization, loss, {.train = given.train});
  const Parameters at = test::random_parameters(model, 0.8, 11);  // its v is not the dataset's

  const LossAndGradient result = loss_and_gradient(model, at, jacobian);
  const auto expected_loss = static_cast<double>(reference_loss(model, at));
  EXPECT_NEAR(result.loss, expected_loss, 1e-14 * (1 + std::abs(expected_loss)));

  const auto check = [&](const auto& gradient, auto member, Block block) {
    ASSERT_EQ(gradient.size() > 0, model.is_trained(block)) << to_string(block);
    if (gradient.size() == 0) return;
    double largest = 0, worst = 0;
    for (std::ptrdiff_t j = 0; j < gradient.size(); ++j) {
      const double expected =
          difference(model, at, [&](Parameters& p) -> double& { return (p.*member).data()[j]; });
      largest = std::max(largest, std::abs(expected));
      worst = std::max(worst, std::abs(gradient.data()[j] - expected));
    }
    EXPECT_GT(largest, 1e-4);
    EXPECT_LT(worst, 1e-9 * largest) << to_string(block);
  };
  check(result.gradient.W, &Parameters::W, Block::W);
  check(result.gradient.K, &Parameters::K, Block::K);
  check(result.gradient.Q, &Parameters::Q, Block::Q);
  check(result.gradient.p, &Parameters::p, Block::p);
  check(result.gradient.v, &Parameters::v, Block::v);
}

// Every remainder of the vector loops: dimensions and lengths around multiples of 2, 4, 8 and 16.
TEST(Gradient, IsRightForEveryDimensionAndLength) {
  for (const std::int64_t d : {1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17, 20, 31, 33})
    for (const std::int64_t T : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33}) {
      const Dataset data = test::ragged_data(5, T, d, static_cast<std::uint64_t>(d * 100 + T));
      const Attention model(data, W{}, Logistic{}, {.train = {Block::W, Block::v}});
      const Parameters at = test::random_parameters(model, 0.5, 5);
      const Parameters safe = loss_and_gradient(model, at, Jacobian::safe).gradient;
      const Parameters textbook = loss_and_gradient(model, at, Jacobian::textbook).gradient;

      const auto [grad_W, grad_v] = test::reference_gradient(model, at);
      const double size_W = static_cast<double>(grad_W.norm()) + 1e-2,
                   size_v = static_cast<double>(grad_v.norm());
      EXPECT_LT((safe.W - grad_W.cast<double>()).norm(), 1e-14 * size_W) << d << " " << T;
      EXPECT_LT((textbook.W - grad_W.cast<double>()).norm(), 1e-14 * size_W) << d << " " << T;
      EXPECT_LT((safe.v - grad_v.cast<double>()).norm(), 1e-14 * size_v) << d << " " << T;
      EXPECT_LT((textbook.v - grad_v.cast<double>()).norm(), 1e-14 * size_v) << d << " " << T;
    }
}

// Far out, where the textbook form has no correct digit left and the gradient itself underflows, the safe
// form still has the right direction. The reference divides all exponentials by the largest before it sums.
TEST(Gradient, SafeFormKeepsTheDirectionWhenTheGradientUnderflows) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  ThreadPool pool(1);
  GradientEngine engine(model, Jacobian::safe, pool);
  for (const double size : {10.0, 100.0, 1e3, 1e4, 1e8}) {
    Parameters at = model.zero_parameters();
    at.W = size * test::random_matrix(10, 10, 21);
    ParameterBlocks weights(model.blocks());
    weights.assign(at);
    Gradient gradient = engine.make_gradient();
    engine.evaluate(weights, gradient);

    struct Term {
      Real log_weight;
      RealMatrix direction;  // s_t s_tau (gamma_t - gamma_tau) (x_t - x_tau) z^T, without the exponentials
    };
    std::vector<Term> terms;
    Real largest = -INFINITY;
    for (std::ptrdiff_t i = 0; i < data.samples(); ++i) {
      const RealMatrix X = data.tokens(i).eigen().cast<Real>();
      const RealVector z = data.queries().eigen().row(i).transpose().cast<Real>();
      const RealVector a = X * (at.W.cast<Real>() * z);
      const RealVector gamma = data.labels()[static_cast<std::size_t>(i)] * (X * at.v.cast<Real>());
      RealVector s = (a.array() - a.maxCoeff()).exp();
      const Real log_sum = a.maxCoeff() + std::log(s.sum());
      const Real m = gamma.dot(s) / s.sum();
      const Real log_slope = -std::log1p(std::exp(m));
      for (std::ptrdiff_t t = 0; t < X.rows(); ++t)
        for (std::ptrdiff_t u = 0; u < t; ++u) {
          const Real log_weight = log_slope + a(t) + a(u) - 2 * log_sum;
          largest = std::max(largest, log_weight);
          terms.push_back(
              {log_weight, -(gamma(t) - gamma(u)) * (X.row(t) - X.row(u)).transpose() * z.transpose()});
        }
    }
    RealMatrix expected = RealMatrix::Zero(10, 10);
    for (const Term& term : terms) expected += std::exp(term.log_weight - largest) * term.direction;
    const Matrix direction = (expected / expected.norm()).cast<double>();
    const Matrix ours = gradient.blocks.parameters().W / gradient.blocks.parameters().W.norm();
    // Logits of size |W| carry rounding errors of |W| 2^-53, and the weights are exponentials of them.
    EXPECT_LT((ours - direction).norm(), 1e-14 + 2e-15 * size) << size;
    if (size < 1e6) {
      const double log_norm = std::log(gradient.blocks.parameters().W.norm()) + gradient.log_scale[0];
      const auto expected_log_norm =
          static_cast<double>(largest + std::log(expected.norm()) - std::log(Real(6)));
      EXPECT_NEAR(log_norm, expected_log_norm, 1e-13 * size + 1e-12) << size;
    }
  }
}

// Equal scores, single tokens and v = 0 have no gradient at all, and say so with an exact zero.
TEST(Gradient, IsExactlyZeroWhereNothingCanBeGained) {
  const Dataset one_token = generate(SphereData{.samples = 4, .tokens = 1, .dim = 3, .seed = 5});
  const Attention single(one_token);
  EXPECT_TRUE(loss_and_gradient(single, test::random_parameters(single, 1, 1)).gradient.W.isZero(0));

  const Dataset data = generate(SphereData{});
  const Attention joint(data, W{}, Logistic{}, {.train = {Block::W, Block::v}});
  Parameters at = test::random_parameters(joint, 1, 2);
  at.v.setZero();
  for (const Jacobian jacobian : {Jacobian::safe, Jacobian::textbook}) {
    const LossAndGradient result = loss_and_gradient(joint, at, jacobian);
    EXPECT_TRUE(result.gradient.W.isZero(0));
    EXPECT_GT(result.gradient.v.norm(), 0.01);
    EXPECT_NEAR(result.loss, std::log(2.0), 1e-15);
  }
}

// A large problem is divided into chunks by its size alone; any number of threads gives the same bits.
TEST(Gradient, HasTheSameBitsForAnyNumberOfThreads) {
  const Dataset data = test::ragged_data(300, 64, 48, 9);
  for (const Parameterization& form :
       {Parameterization{W{}}, Parameterization{KQ{8}}, Parameterization{Prompt{}}}) {
    const Attention attention_only(data, form);
    AttentionOptions options{.train = attention_only.trained()};
    options.train.push_back(Block::v);
    const Attention model(data, form, Logistic{}, options);
    for (const Jacobian jacobian : {Jacobian::safe, Jacobian::textbook})
      for (const double size : {0.3, 300.0}) {
        const Parameters at = test::random_parameters(model, size, 3);
        ParameterBlocks weights(model.blocks());
        weights.assign(at);
        ThreadPool one(1);
        const EngineOptions options_of_blocks{.jacobian = jacobian, .path = DataPath::block};
        GradientEngine reference(model, options_of_blocks, one);
        Gradient expected = reference.make_gradient();
        const Evaluation value = reference.evaluate(weights, expected);
        for (const int threads : {2, 8}) {
          ThreadPool pool(threads);
          GradientEngine engine(model, options_of_blocks, pool);
          Gradient gradient = engine.make_gradient();
          const Evaluation again = engine.evaluate(weights, gradient);
          EXPECT_EQ(value.loss, again.loss);
          EXPECT_EQ(value.max_softmax, again.max_softmax);
          EXPECT_EQ(expected.log_scale, gradient.log_scale);
          for (std::ptrdiff_t b = 0; b < gradient.blocks.count(); ++b)
            EXPECT_EQ(expected.blocks.view(b).eigen(), gradient.blocks.view(b).eigen());
          EXPECT_EQ(engine.evaluate(weights).loss, value.loss);
        }
      }
  }
}

// Chunks and blocks are a matter of speed only: sequence by sequence the sum is the same up to rounding.
TEST(Gradient, OfManySequencesIsTheMeanOfTheirs) {
  const Dataset data = test::ragged_data(200, 64, 40, 17);
  const Attention model(data, W{}, Logistic{}, {.train = {Block::W, Block::v}});
  const Parameters at = test::random_parameters(model, 2, 4);
  const LossAndGradient whole = loss_and_gradient(model, at);
  Matrix W_sum = Matrix::Zero(40, 40);
  Vector v_sum = Vector::Zero(40);
  double loss = 0;
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i) {
    DatasetArrays one;
    one.tokens = data.tokens(i).eigen();
    one.lengths = {data.length(i)};
    one.queries = data.queries().eigen().row(i);
    one.labels = {data.labels()[static_cast<std::size_t>(i)]};
    const Dataset single(one);
    const Attention part(single, W{}, Logistic{}, {.train = {Block::W, Block::v}});
    const LossAndGradient result = loss_and_gradient(part, at);
    W_sum += result.gradient.W;
    v_sum += result.gradient.v;
    loss += result.loss;
  }
  EXPECT_NEAR(whole.loss, loss / 200, 1e-14);
  EXPECT_LT((whole.gradient.W - W_sum / 200).norm(), 1e-14 * whole.gradient.W.norm());
  EXPECT_LT((whole.gradient.v - v_sum / 200).norm(), 1e-14 * whole.gradient.v.norm());
}

}  // namespace
}  // namespace attmirror
