// The stream path against the block path and a reference in long double; tokens stored as floats.
//
// The two paths share formulas but neither the order of their sums nor the place of the weights, so that agreement to
// rounding for every kind of model is evidence for both.
#include "attention/reference.hpp"
#include "support/random_data.hpp"
#include "support/same_bits.hpp"
#include "support/size.hpp"
#include <attmirror/attention/gradient.hpp>
#include <attmirror/base/error.hpp>

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

struct Result {
  Evaluation value;
  Gradient gradient;
};

Result evaluate(const Attention& model, const Parameters& at, const EngineOptions& options, int threads = 1) {
  ParameterBlocks weights(model.blocks());
  weights.assign(at);
  ThreadPool pool(threads);
  GradientEngine engine(model, options, pool);
  Result result{{}, engine.make_gradient()};
  result.value = engine.evaluate(weights, result.gradient);
  EXPECT_EQ(engine.evaluate(weights).loss, result.value.loss);
  return result;
}

// Both gradients on the scale of the larger, because either may be far below the smallest double.
void expect_close(const Result& a, const Result& b, double tolerance, const std::string& what) {
  EXPECT_NEAR(a.value.loss, b.value.loss, tolerance * (1 + std::abs(b.value.loss))) << what;
  EXPECT_NEAR(a.value.max_softmax, b.value.max_softmax, tolerance) << what;
  for (std::ptrdiff_t k = 0; k < a.gradient.blocks.count(); ++k) {
    const double log_a = a.gradient.log_scale[static_cast<std::size_t>(k)],
                 log_b = b.gradient.log_scale[static_cast<std::size_t>(k)];
    if (std::isinf(log_a) && std::isinf(log_b)) continue;  // neither has a gradient
    const double common = std::max(log_a, log_b);
    const Matrix ga = a.gradient.blocks.view(k).eigen() * std::exp(log_a - common);
    const Matrix gb = b.gradient.blocks.view(k).eigen() * std::exp(log_b - common);
    EXPECT_GT(gb.norm(), 0) << what;
    EXPECT_LT((ga - gb).norm(), tolerance * gb.norm())
        << what << " " << to_string(a.gradient.blocks.shape(k).name);
  }
}

void expect_same_bits(const Result& a, const Result& b, const std::string& what) {
  EXPECT_TRUE(test::same_bits(a.value.loss, b.value.loss)) << what;
  EXPECT_TRUE(test::same_bits(a.value.max_softmax, b.value.max_softmax)) << what;
  EXPECT_TRUE(test::same_bits(std::span<const double>(a.gradient.log_scale),
                              std::span<const double>(b.gradient.log_scale)))
      << what;
  for (std::ptrdiff_t k = 0; k < a.gradient.blocks.count(); ++k)
    EXPECT_TRUE(test::same_bits(a.gradient.blocks.view(k), b.gradient.blocks.view(k))) << what;
}

// Ragged sequences with `queries` queries each, which are tokens of them; masked at random if wanted.
enum class Masking { none, causal, random };
Dataset several_queries(std::ptrdiff_t samples, std::ptrdiff_t tokens, std::ptrdiff_t dim,
                        std::ptrdiff_t queries, Masking masking) {
  const Dataset base = test::ragged_data(samples, tokens, dim, 31);
  DatasetArrays arrays;
  arrays.tokens = base.all_tokens().eigen();
  arrays.decoder = test::random_matrix(dim, 1, 5);
  std::uint64_t next = 0;
  const CounterRandom random(9, RandomStream::lengths);
  for (std::ptrdiff_t i = 0; i < samples; ++i) {
    arrays.lengths.push_back(base.length(i));
    arrays.query_counts.push_back(queries);
    for (std::ptrdiff_t k = 0; k < queries; ++k) {
      const auto place =
          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(base.length(i)), next++));
      arrays.query_index.push_back(place);
      arrays.labels.push_back(random.below(2, next++) == 0 ? -1 : 1);
      if (masking == Masking::random)
        for (std::ptrdiff_t t = 0; t < base.length(i); ++t)
          arrays.mask.push_back(t == place || random.below(3, next++) > 0 ? 1 : 0);
    }
  }
  const Dataset data(arrays);
  return masking == Masking::causal ? with_causal_mask(data) : data;
}

std::vector<test::TrainedForm> forms(std::ptrdiff_t d) {
  return {{W{}, {Block::W}},
          {W{}, {Block::W, Block::v}},
          {W{}, {Block::v}},
          {KQ{3}, {Block::K, Block::Q}},
          {KQ{}, {Block::K, Block::Q, Block::v}},
          {KQ{2}, {Block::Q}},
          {Prompt{}, {Block::p}},
          {Prompt{test::random_matrix(d, d, 98)}, {Block::p, Block::v}}};
}

const EngineOptions stream{.path = DataPath::stream}, block{.path = DataPath::block};

EngineOptions with(EngineOptions options, Jacobian jacobian) {
  options.jacobian = jacobian;
  return options;
}

TEST(Stream, AgreesWithBlocksForEveryModel) {
  const std::ptrdiff_t d = 13;
  const Dataset data = test::ragged_data(45, 21, d, 3);
  const std::vector<Loss> losses{Logistic{}, Exponential{}, LinearLoss{}, Sigmoid{},
                                 std::make_shared<test::SquaredTail>()};
  for (const test::TrainedForm& form : forms(d))
    for (const Loss& loss : losses)
      for (const Jacobian jacobian : {Jacobian::safe, Jacobian::textbook}) {
        const Attention model(data, form.parameterization, loss,
                              {.train = form.train,
                               .scaled = true,
                               .penalty = form.train == std::vector{Block::v} ? 0.0 : 0.01});
        const Parameters at = test::random_parameters(model, 0.8, 11);
        expect_close(evaluate(model, at, with(stream, jacobian)), evaluate(model, at, with(block, jacobian)),
                     1e-13,
                     std::string(to_string(loss)) + " " + std::string(to_string(jacobian)) + " " +
                         std::string(to_string(form.train.front())));
      }
}

TEST(Stream, AgreesWithBlocksForEveryHeadAndMask) {
  const std::ptrdiff_t d = 9;
  for (const Masking masking : {Masking::none, Masking::causal, Masking::random})
    for (const std::ptrdiff_t queries : {1, 5}) {
      const Dataset data = several_queries(19, 23, d, queries, masking);
      const std::vector<Head> heads{LinearHead{}, ReluHead{test::random_matrix(d, 6, 7)}, QuadraticHead{0.3},
                                    std::make_shared<test::SineHead>()};
      for (const Head& head : heads)
        for (const Jacobian jacobian : {Jacobian::safe, Jacobian::textbook})
          for (const bool decoder : {false, true}) {
            const bool has_decoder = head.index() == 0 || head.index() == 2;
            if (decoder && !has_decoder) continue;
            AttentionOptions options;
            options.train = {Block::W};
            options.head = head;
            if (decoder) options.train.push_back(Block::v);
            const Attention model(data, W{}, Logistic{}, options);
            const Parameters at = test::random_parameters(model, 0.7, 13);
            expect_close(evaluate(model, at, with(stream, jacobian)),
                         evaluate(model, at, with(block, jacobian)), 1e-13,
                         "head " + std::to_string(head.index()) + " queries " + std::to_string(queries));
          }
    }
}

// Every remainder of the vector loops, against the definition in long double.
TEST(Stream, IsRightForEveryDimensionAndLength) {
  for (const std::int64_t d : {1, 3, 4, 8, 9, 12, 17, 31, 33, 40, 65, 130})
    for (const std::int64_t T : {1, 2, 4, 5, 9, 33}) {
      const Dataset data = test::ragged_data(19, T, d, static_cast<std::uint64_t>(d * 100 + T));
      const Attention model(data, W{}, Logistic{}, {.train = {Block::W, Block::v}});
      const Parameters at = test::random_parameters(model, 0.5, 5);
      const auto [grad_W, grad_v] = test::reference_gradient(model, at);
      for (const Jacobian jacobian : {Jacobian::safe, Jacobian::textbook}) {
        const Result result = evaluate(model, at, with(stream, jacobian));
        const Parameters gradient = result.gradient.blocks.parameters();
        const double size_W = static_cast<double>(grad_W.norm()) + 1e-2,
                     size_v = static_cast<double>(grad_v.norm());
        EXPECT_LT((std::exp(result.gradient.log_scale[0]) * gradient.W - grad_W.cast<double>()).norm(),
                  2e-14 * size_W)
            << d << " " << T;
        EXPECT_LT((std::exp(result.gradient.log_scale[1]) * gradient.v - grad_v.cast<double>()).norm(),
                  2e-14 * size_v)
            << d << " " << T;
      }
    }
}

// Far below the smallest double, where only the logarithmic scale keeps the gradient; the scale also has to rise
// within a chunk.
TEST(Stream, AgreesWithBlocksWhenTheGradientUnderflows) {
  const Dataset data = test::ragged_data(70, 17, 10, 23);
  for (const test::TrainedForm& form : forms(10)) {
    const Attention model(data, form.parameterization, Logistic{}, {.train = form.train});
    const bool product = std::holds_alternative<KQ>(form.parameterization);
    const Parameters at = test::random_parameters(model, product ? std::sqrt(1e3) : 1e3, 3);
    // Logits of size 1e3 are rounded to 1e-13, and the weights are exponentials of them.
    expect_close(evaluate(model, at, stream), evaluate(model, at, block), 1e-11,
                 std::string(to_string(form.train[0])));
  }
}

TEST(Stream, IsExactlyZeroWhereNothingCanBeGained) {
  const Dataset one_token = generate(SphereData{.samples = 20, .tokens = 1, .dim = 3, .seed = 5});
  const Attention single(one_token);
  const Result result = evaluate(single, test::random_parameters(single, 1, 1), stream);
  EXPECT_TRUE(result.gradient.blocks.view(0).eigen().isZero(0));
  EXPECT_EQ(result.value.max_softmax, 1);
}

// Weights that are not finite must show in the loss, which is how a run notices that it diverged.
TEST(Stream, PassesNotANumberOn) {
  const Dataset data = test::ragged_data(20, 9, 5, 3);
  const Attention model(data);
  ParameterBlocks weights(model.blocks());
  weights.assign(test::random_parameters(model, 1, 1));
  weights.view(0).data[7] = std::nan("");
  ThreadPool pool(1);
  for (const Jacobian jacobian : {Jacobian::safe, Jacobian::textbook}) {
    GradientEngine engine(model, with(stream, jacobian), pool);
    Gradient gradient = engine.make_gradient();
    EXPECT_TRUE(std::isnan(engine.evaluate(weights, gradient).loss));
  }
}

TEST(Stream, HasTheSameBitsForAnyNumberOfThreads) {
  const Dataset data = test::ragged_data(test::reduced_size ? 400 : 1500, 48, 36, 9);
  for (const test::TrainedForm& form : forms(36)) {
    const Attention model(data, form.parameterization, Logistic{}, {.train = form.train});
    for (const Jacobian jacobian : {Jacobian::safe, Jacobian::textbook})
      for (const TokenStorage storage : {TokenStorage::float64, TokenStorage::float32}) {
        const EngineOptions options{.jacobian = jacobian, .path = DataPath::stream, .storage = storage};
        const Parameters at = test::random_parameters(model, 3, 3);
        const Result one = evaluate(model, at, options);
        for (const int threads : {2, 8})
          expect_same_bits(evaluate(model, at, options, threads), one, "threads");
      }
  }
}

// Large sequences go the stream way by themselves, small data stay with blocks.
TEST(Stream, IsChosenByShape) {
  ThreadPool pool(1);
  const Dataset small = generate(SphereData{});
  const Attention small_model(small);
  EXPECT_EQ(GradientEngine(small_model, Jacobian::safe, pool).path(), DataPath::block);
  EXPECT_EQ(GradientEngine(small_model, stream, pool).path(), DataPath::stream);
  const Dataset large = generate(SphereData{.samples = 64, .tokens = 128, .dim = 64});
  const Attention large_model(large);
  EXPECT_EQ(GradientEngine(large_model, Jacobian::safe, pool).path(), DataPath::stream);
  EXPECT_EQ(GradientEngine(large_model, block, pool).path(), DataPath::block);
}

// The same shapes with other tokens (those of the papers' generator are floats).
Dataset with_tokens(const Dataset& data, const Matrix& tokens) {
  DatasetArrays arrays;
  arrays.tokens = tokens;
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i) arrays.lengths.push_back(data.length(i));
  arrays.queries = data.queries().eigen();
  arrays.labels.assign(data.labels().begin(), data.labels().end());
  arrays.decoder = data.decoder().eigen().row(0).transpose();
  return Dataset(arrays);
}

// Arithmetic is in doubles either way: where the tokens are floats already nothing changes at all, and elsewhere the
// result is that of the rounded tokens.
TEST(TokenStorage, InFloatsIsExactForTokensThatAreFloats) {
  for (const std::int64_t d : {3, 10, 16, 45}) {
    const Dataset shapes = test::ragged_data(50, 33, d, 8);
    const Matrix tokens = test::random_matrix(shapes.total_tokens(), d, 4);
    const Dataset data = with_tokens(shapes, tokens);
    const Dataset floats = with_tokens(shapes, tokens.cast<float>().cast<double>());
    for (const test::TrainedForm& form : forms(d))
      for (const DataPath path : {DataPath::block, DataPath::stream})
        for (const Jacobian jacobian : {Jacobian::safe, Jacobian::textbook}) {
          AttentionOptions options;
          options.train = form.train;
          const Attention model(data, form.parameterization, Logistic{}, options);
          const Attention rounded(floats, form.parameterization, Logistic{}, options);
          const Parameters at = test::random_parameters(rounded, 0.6, 2);
          const EngineOptions doubles{.jacobian = jacobian, .path = path};
          const EngineOptions singles{.jacobian = jacobian, .path = path, .storage = TokenStorage::float32};
          const Result expected = evaluate(rounded, at, doubles);
          expect_same_bits(evaluate(rounded, at, singles), expected, "floats");
          expect_same_bits(evaluate(model, at, singles), expected, "rounded");
          EXPECT_NE(evaluate(model, at, doubles).value.loss, expected.value.loss);
        }
  }
}

TEST(TokenStorage, RefusesWhatFloatsCannotHold) {
  DatasetArrays arrays;
  arrays.tokens = Matrix::Constant(2, 3, 1.0);
  arrays.tokens(1, 2) = 1e39;
  arrays.lengths = {2};
  arrays.queries = Matrix::Constant(1, 3, 1.0);
  arrays.labels = {1};
  arrays.decoder = Vector::Ones(3);
  const Dataset data(arrays);
  const Attention model(data);
  ThreadPool pool(1);
  try {
    GradientEngine(model, {.storage = TokenStorage::float32}, pool);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "tokens[1][2] is 1e+39: too large for tokens stored as float32");
  }
}

TEST(EngineOptions, AreReadAndWritten) {
  for (const DataPath path : {DataPath::automatic, DataPath::block, DataPath::stream})
    EXPECT_EQ(parse_data_path(to_string(path)), path);
  for (const TokenStorage storage : {TokenStorage::float64, TokenStorage::float32})
    EXPECT_EQ(parse_token_storage(to_string(storage)), storage);
  EXPECT_THROW(parse_data_path("streams"), Error);
  EXPECT_THROW(parse_token_storage("float16"), Error);
  EXPECT_THROW(EngineOptions{.path = static_cast<DataPath>(7)}.validate(), Error);
}

}  // namespace
}  // namespace attmirror
