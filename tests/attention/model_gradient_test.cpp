// Gradients of the whole family against finite differences: every head, loss, mask, kind of query and
// parameterization, scaled or not, with a penalty or not.
#include "attention/reference.hpp"
#include "support/files.hpp"
#include "support/random_data.hpp"
#include "support/same_bits.hpp"
#include <attmirror/attention/gradient.hpp>
#include <attmirror/attention/tokens.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

constexpr std::int64_t model_dim = 5;

// Ragged sequences of 1 to 9 tokens, with more than one vector of eight among them.
DatasetArrays ragged_arrays() {
  DatasetArrays arrays = test::arrays_of(test::ragged_data(7, 9, model_dim, 3));
  arrays.head = test::random_matrix(model_dim, 4, 77);
  return arrays;
}

Dataset ragged_with_head_only() {
  DatasetArrays arrays = ragged_arrays();
  arrays.decoder.resize(0);
  return Dataset(arrays);
}

// 1, 2 or 3 queries, by the number of the sequence.
void ask_more(DatasetArrays& arrays) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < arrays.lengths.size(); ++i) {
    arrays.query_counts.push_back(static_cast<std::int64_t>(i % 3) + 1);
    total += arrays.query_counts.back();
  }
  arrays.queries = test::random_matrix(total, model_dim, 5);
}

void mask_some(DatasetArrays& arrays) {
  const CounterRandom random(31, RandomStream::lengths);
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < arrays.lengths.size(); ++i) {
    const std::int64_t queries = arrays.query_counts.empty() ? 1 : arrays.query_counts[i];
    for (std::int64_t k = 0; k < queries; ++k)
      for (std::int64_t t = 0; t < arrays.lengths[i]; ++t)
        arrays.mask.push_back(t == arrays.lengths[i] / 2 || random.below(3, next++) > 0 ? 1 : 0);
  }
}

Dataset make_data(const std::string& kind) {
  DatasetArrays arrays = ragged_arrays();
  if (kind == "plain") return Dataset(arrays);
  if (kind == "queries" || kind == "queries_masked") ask_more(arrays);
  if (kind == "masked" || kind == "queries_masked") mask_some(arrays);
  if (kind == "labelled") {
    ask_more(arrays);
    arrays.labels.clear();
    for (std::ptrdiff_t j = 0; j < arrays.queries.rows(); ++j) arrays.labels.push_back(j % 2 == 0 ? 1 : -1);
  }
  if (kind == "self" || kind == "causal") {  // every token asks
    arrays.queries.resize(0, 0);
    for (const std::int64_t length : arrays.lengths) {
      arrays.query_counts.push_back(length);
      for (std::int64_t t = 0; t < length; ++t) arrays.query_index.push_back(t);
    }
    if (kind == "causal") return with_causal_mask(Dataset(arrays));
  }
  return Dataset(arrays);
}

std::vector<test::TrainedForm> forms() {
  return {{W{}, {Block::W}},
          {W{}, {Block::W, Block::v}},
          {KQ{2}, {Block::K, Block::Q}},
          {KQ{3}, {Block::K, Block::Q, Block::v}},
          {Prompt{test::random_matrix(model_dim, model_dim, 98)}, {Block::p}},
          {Prompt{}, {Block::p, Block::v}},
          {W{}, {Block::v}}};
}

std::vector<Head> heads() {
  return {LinearHead{}, ReluHead{}, QuadraticHead{0.3}, std::make_shared<test::SineHead>()};
}

std::vector<Loss> losses() {
  return {Logistic{}, Exponential{}, LinearLoss{}, Sigmoid{}, std::make_shared<test::SquaredTail>()};
}

void check_gradient(const Attention& model, const Parameters& at, Jacobian jacobian) {
  const LossAndGradient result = loss_and_gradient(model, at, jacobian);
  const auto expected_loss = static_cast<double>(test::reference_loss(model, at));
  EXPECT_NEAR(result.loss, expected_loss, 1e-14 * (1 + std::abs(expected_loss)));
  const auto check = [&](const auto& gradient, auto member, Block block) {
    ASSERT_EQ(gradient.size() > 0, model.is_trained(block)) << to_string(block);
    double largest = 0, worst = 0;
    for (std::ptrdiff_t j = 0; j < gradient.size(); ++j) {
      const double expected =
          test::difference(model, at, [&](Parameters& p) -> double& { return (p.*member).data()[j]; });
      largest = std::max(largest, std::abs(expected));
      worst = std::max(worst, std::abs(gradient.data()[j] - expected));
    }
    EXPECT_TRUE(largest > 1e-4 || gradient.size() == 0) << to_string(block) << " " << largest;
    EXPECT_LE(worst, 2e-9 * largest) << to_string(block);
  };
  check(result.gradient.W, &Parameters::W, Block::W);
  check(result.gradient.K, &Parameters::K, Block::K);
  check(result.gradient.Q, &Parameters::Q, Block::Q);
  check(result.gradient.p, &Parameters::p, Block::p);
  check(result.gradient.v, &Parameters::v, Block::v);
}

class ModelGradient : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Data, ModelGradient,
                         ::testing::Values("plain", "queries", "labelled", "masked", "queries_masked", "self",
                                           "causal"),
                         [](const auto& given) { return given.param; });

TEST_P(ModelGradient, EqualsFiniteDifferences) {
  const Dataset data = make_data(GetParam());
  int count = 0;
  for (const test::TrainedForm& form : forms())
    for (const Head& head : heads())
      for (const Loss& loss : losses())
        for (const Jacobian jacobian : {Jacobian::safe, Jacobian::textbook}) {
          const bool trains_v = std::ranges::count(form.train, Block::v) > 0;
          if (trains_v && !uses_decoder(head)) continue;
          AttentionOptions options{.train = form.train, .head = head};
          options.scaled = count % 2 == 1;  // in turn, so that each meets everything
          options.penalty = count % 3 == 1 && form.train.front() != Block::v ? 0.01 : 0.0;
          ++count;
          const Attention model(data, form.parameterization, loss, options);
          SCOPED_TRACE(::testing::Message()
                       << to_string(form.parameterization) << ", head " << to_string(head) << ", "
                       << to_string(loss) << ", " << to_string(jacobian) << (trains_v ? ", trains v" : "")
                       << (options.scaled ? ", scaled" : "") << (options.penalty > 0 ? ", penalty" : ""));
          check_gradient(model, test::random_parameters(model, 0.8, 11), jacobian);
        }
  EXPECT_EQ(count, 200);
}

// What a mask forbids does not matter: tokens that no query may see can be anything.
TEST(Mask, ForbiddenTokensDoNotMatter) {
  DatasetArrays arrays = ragged_arrays();
  mask_some(arrays);
  const Dataset data(arrays);
  for (std::size_t j = 0; j < arrays.mask.size();
       ++j)  // one query each: masks and tokens lie in the same order
    if (arrays.mask[j] == 0) arrays.tokens.row(static_cast<std::ptrdiff_t>(j)).setConstant(1e3);
  const Dataset changed(arrays);
  for (const Jacobian jacobian : {Jacobian::safe, Jacobian::textbook})
    for (const Head& head : heads()) {
      const Attention one(data, W{}, Logistic{}, {.head = head}),
          other(changed, W{}, Logistic{}, {.head = head});
      const Parameters at = test::random_parameters(one, 0.8, 11);
      EXPECT_EQ(loss_and_gradient(one, at, jacobian).gradient.W,
                loss_and_gradient(other, at, jacobian).gradient.W);
    }
  const Attention model(data);
  const Parameters at = test::random_parameters(model, 0.8, 11);
  const auto probabilities = attention_probabilities(model, at);
  for (std::ptrdiff_t j = 0; j < data.total_queries(); ++j)
    for (std::ptrdiff_t t = 0; t < data.length(j); ++t)
      EXPECT_EQ(probabilities[static_cast<std::size_t>(j)][t] > 0, data.allows(j, t));
  EXPECT_NO_THROW(selected_tokens(model, at).validate(data));
  EXPECT_NO_THROW(optimal_tokens(model, at).validate(data));
}

// A causal mask and the array that says the same have the same bits.
TEST(Mask, CausalIsTheLowerTriangle) {
  const Dataset causal = make_data("causal");
  DatasetArrays arrays = ragged_arrays();
  arrays.queries.resize(0, 0);
  for (const std::int64_t length : arrays.lengths) {
    arrays.query_counts.push_back(length);
    for (std::int64_t k = 0; k < length; ++k) {
      arrays.query_index.push_back(k);
      for (std::int64_t t = 0; t < length; ++t) arrays.mask.push_back(t <= k ? 1 : 0);
    }
  }
  const Dataset custom(arrays);
  EXPECT_EQ(causal.fingerprint(), custom.fingerprint());
  const Attention one(causal), other(custom);
  const Parameters at = test::random_parameters(one, 0.8, 11);
  const LossAndGradient a = loss_and_gradient(one, at), b = loss_and_gradient(other, at);
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_TRUE(test::same_bits(a.gradient.W, b.gradient.W));
}

// Normalised training relies on it: a nonlinear head and a penalty keep the direction far below underflow.
TEST(ModelGradientFarOut, PenaltyAndLossAreAddedAtTheirOwnScales) {
  const Dataset data = make_data("plain");
  ThreadPool pool(1);
  for (const double penalty : {1e-3, 0x1p-52, 1e-300}) {
    const Attention model(data, KQ{2}, Exponential{}, {.penalty = penalty});
    const Attention plain(data, KQ{2}, Exponential{});
    const Parameters at = test::random_parameters(model, 1e3, 11);
    ParameterBlocks weights(model.blocks());
    weights.assign(at);
    GradientEngine engine(model, Jacobian::safe, pool), plain_engine(plain, Jacobian::safe, pool);
    Gradient gradient = engine.make_gradient(), loss_gradient = plain_engine.make_gradient();
    engine.evaluate(weights, gradient);
    plain_engine.evaluate(weights, loss_gradient);
    const Matrix K = gradient.blocks.parameters().K, of_loss = loss_gradient.blocks.parameters().K;
    ASSERT_LT(loss_gradient.log_scale[0],
              -1e4);  // far below the smallest double: the penalty is all there is
    ASSERT_GT(of_loss.norm(), 0);
    EXPECT_LT((K / K.norm() - at.K / at.K.norm()).norm(), 1e-14) << penalty;
    EXPECT_NEAR(gradient.log_scale[0] + std::log(K.norm()), std::log(2 * penalty) + std::log(at.K.norm()),
                1e-11);
  }
}

TEST(Model, RefusesWhatDoesNotFit) {
  const Dataset data = generate(SphereData{});
  test::expect_bad_input({"the data have no weights V for the head relu: give the array V"},
                         [&] { Attention(data, W{}, Logistic{}, {.head = ReluHead{}}); });
  test::expect_bad_input({"V of the ReLU head has shape (3, 2): expected 10 rows"},
                         [&] { Attention(data, W{}, Logistic{}, {.head = ReluHead{Matrix::Ones(3, 2)}}); });
  test::expect_bad_input({"cannot train v: the head relu has none"}, [&] {
    Attention(data, W{}, Logistic{}, {.train = {Block::W, Block::v}, .head = ReluHead{Matrix::Ones(10, 2)}});
  });
  test::expect_bad_input({"lambda of the quadratic head is inf"},
                         [&] { Attention(data, W{}, Logistic{}, {.head = QuadraticHead{INFINITY}}); });
  test::expect_bad_input({"penalty is -1"}, [&] { Attention(data, W{}, Logistic{}, {.penalty = -1}); });
  test::expect_bad_input({"penalty is 1, but only v is trained"},
                         [&] { Attention(data, W{}, Logistic{}, {.train = {Block::v}, .penalty = 1}); });
  const Dataset relu = ragged_with_head_only();
  test::expect_bad_input({"the data have no decoder v, but weights V: choose the head relu"},
                         [&] { Attention{relu}; });
  test::expect_bad_input({"penalty is nan"}, [&] { Attention(data, W{}, Logistic{}, {.penalty = NAN}); });
  test::expect_bad_input({"the custom head is null"}, [&] {
    Attention(data, W{}, Logistic{}, {.head = std::shared_ptr<const CustomHead>{}});
  });
  test::expect_bad_input({"the custom loss is null"},
                         [&] { Attention(data, W{}, std::shared_ptr<const CustomLoss>{}); });
  for (const char* word : {"", "relu:2", "quadratic:", "quadratic:x", "quadratic:inf", "custom:sine"})
    test::expect_bad_input({"head is", "expected linear, relu or quadratic:LAMBDA"},
                           [&] { parse_head(word); });
  EXPECT_EQ(to_string(parse_head("quadratic:0.25")), "quadratic:0.25");
  EXPECT_EQ(to_string(parse_head("quadratic")), "quadratic:1");
}

}  // namespace
}  // namespace attmirror
