// The fast engine against the plain one and against long double, where training ends up: predictions and attention
// so sure that the textbook's formulas give zero. And what must not be seen in a result: threads, and how products
// are done.
#include "next_token/reference.hpp"
#include "support/files.hpp"
#include "support/same_bits.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::expect_bad_input;
using test::Problem;
using test::Real;
using test::RealMatrix;
using test::RealVector;
using test::same_bits;

struct Result {
  NextTokenEvaluation value;
  Gradient gradient;
};

Result evaluate(const NextTokenModel& model, const Parameters& at, NextTokenPath path, int threads = 1) {
  ThreadPool pool(threads);
  NextTokenEngine engine(model, pool, path);
  ParameterBlocks weights(model.blocks());
  weights.assign(at);
  Result result{{}, engine.make_gradient()};
  result.value = engine.evaluate(weights, result.gradient);
  return result;
}

void expect_same_gradient(const Gradient& a, const Gradient& b) {
  EXPECT_TRUE(same_bits(std::span<const double>(a.log_scale), std::span<const double>(b.log_scale)));
  for (std::ptrdiff_t k = 0; k < a.blocks.count(); ++k)
    EXPECT_TRUE(same_bits(a.blocks.view(k), b.blocks.view(k))) << k;
}

// The largest difference of two gradients of a block, relative to the largest entry.
double difference(const Result& a, const Result& b, std::ptrdiff_t block) {
  const auto k = static_cast<std::size_t>(block);
  const double shift = std::exp(b.gradient.log_scale[k] - a.gradient.log_scale[k]);
  const Matrix x = a.gradient.blocks.view(block).eigen(), y = b.gradient.blocks.view(block).eigen() * shift;
  const double largest = x.cwiseAbs().maxCoeff();
  return largest == 0 ? y.cwiseAbs().maxCoeff() : (x - y).cwiseAbs().maxCoeff() / largest;
}

constexpr Stage stages[] = {Stage::collocation, Stage::attention, Stage::joint};

TEST(NextTokenEngine, FastEqualsPlain) {
  const std::pair<EmbeddingKind, std::ptrdiff_t> embeddings[] = {
      {EmbeddingKind::one_hot, 0}, {EmbeddingKind::orthonormal, 90}, {EmbeddingKind::gaussian, 30}};
  for (const auto& [kind, dim] : embeddings)
    for (const std::ptrdiff_t V : {5, 70})
      for (const bool soft : {false, true})
        for (const double size : {0.0, 1.0, 50.0, 500.0}) {
          const Problem problem = test::random_problem({.vocabulary = V,
                                                        .sentences = 60,
                                                        .max_length = 7,
                                                        .embedding = kind,
                                                        .dim = dim,
                                                        .soft = soft});
          std::vector<NextTokenModel> models;
          for (const Stage stage : stages) models.push_back(problem.model(stage));
          models.push_back(problem.model(Stage::attention, Readout::attention));
          for (const NextTokenModel& model : models) {
            const Parameters at = test::random_parameters(model, size);
            const Result plain = evaluate(model, at, NextTokenPath::plain),
                         fast = evaluate(model, at, NextTokenPath::fast);
            // Logits of size 500 d^(1/2) are known to 1e-13, and so are the probabilities.
            const double tolerance = size > 50 ? 2e-11 : 2e-12;
            EXPECT_NEAR(fast.value.loss, plain.value.loss, tolerance * plain.value.loss);
            EXPECT_NEAR(fast.value.accuracy, plain.value.accuracy, 1e-12);
            EXPECT_NEAR(fast.value.max_softmax, plain.value.max_softmax, 1e-12);
            for (std::ptrdiff_t b = 0; b < fast.gradient.blocks.count(); ++b)
              EXPECT_LT(difference(plain, fast, b), tolerance)
                  << to_string(kind) << ", " << V << " words, " << to_string(model.stage()) << ", "
                  << to_string(model.readout()) << ", soft " << soft << ", weights " << size;
          }
        }
}

// The gradient of W_kq in long double, which reaches down to 1e-4932, for a frozen W_ov.
RealMatrix reference_gradient(const NextTokenModel& model, const Parameters& at) {
  const RealMatrix W_ov = test::real_block(at, "W_ov"), W_kq = test::real_block(at, "W_kq");
  RealMatrix sum = RealMatrix::Zero(W_kq.rows(), W_kq.cols());
  const Sentences& sentences = model.sentences();
  for (std::ptrdiff_t i = 0; i < sentences.count(); ++i) {
    const RealMatrix X = test::rows_of(model.embedding(), sentences.tokens(i));
    const RealVector s = test::reference_attention(X, W_kq), o = W_ov * (X.transpose() * s);
    const Token y = sentences.label(i);
    RealVector r = (o.array() - o[y]).exp();
    r /= r.sum();
    r[y] = 0;
    r[y] = -r.sum();
    const RealVector u = X * (W_ov.transpose() * r);
    RealVector c = RealVector::Zero(s.size());
    for (std::ptrdiff_t t = 0; t < s.size(); ++t)
      for (std::ptrdiff_t tau = 0; tau < s.size(); ++tau) c[t] += s[t] * s[tau] * (u[t] - u[tau]);
    sum += Real(sentences.weight(i)) / sentences.total_weight() * (X.transpose() * c) * X.row(X.rows() - 1);
  }
  return sum;
}

// Three sentences whose labels are sure and whose attention is, the more the larger the weights.
Problem sure_problem(EmbeddingKind kind) {
  Problem problem{make_embedding(6, {.kind = kind, .dim = kind == EmbeddingKind::one_hot ? 0 : 8, .seed = 2}),
                  Collocations::identity(6), Sentences(6)};
  problem.sentences.add(std::vector<Token>{0, 1, 2}, 0);
  problem.sentences.add(std::vector<Token>{3, 0, 3, 2}, 3);
  problem.sentences.add(std::vector<Token>{4, 5, 1}, 5, 2);
  return problem;
}

Parameters sure_parameters(const Problem& problem, double output, double attention) {
  const Matrix E = problem.embedding.vectors.view().eigen();  // of orthonormal rows
  Matrix scores = Matrix::Zero(6, 6);
  scores(0, 2) = scores(5, 1) = attention;
  scores(3, 2) = 2 * attention;
  scores(1, 2) = -0.01 * attention;
  Parameters at;
  at.matrices["W_ov"] = output * E;
  at.matrices["W_kq"] = E.transpose() * scores * E;
  return at;
}

TEST(NextTokenEngine, IsExactWhereTheTextbookGivesZero) {
  for (const EmbeddingKind kind : {EmbeddingKind::one_hot, EmbeddingKind::orthonormal})
    for (const double output : {30.0, 800.0, 4000.0})
      for (const double attention : {3.0, 40.0, 900.0, 5000.0}) {
        const Problem problem = sure_problem(kind);
        const NextTokenModel model = problem.model(Stage::attention);
        const Parameters at = sure_parameters(problem, output, attention);
        const RealMatrix expected = reference_gradient(model, at);
        ASSERT_GT(expected.cwiseAbs().maxCoeff(), 0);
        for (const NextTokenPath path : {NextTokenPath::plain, NextTokenPath::fast}) {
          const Result result = evaluate(model, at, path);
          const RealMatrix actual = test::real_block(result.gradient.blocks.parameters(), "W_kq") *
                                    std::exp(Real(result.gradient.log_scale[0]));
          // What the logits' own rounding leaves.
          const double tolerance = 1e-15 * (output + attention) * 8;
          EXPECT_LT((actual - expected).cwiseAbs().maxCoeff() / expected.cwiseAbs().maxCoeff(), tolerance)
              << to_string(kind) << ", W_ov " << output << ", W_kq " << attention;
          const double stored = result.gradient.blocks.view(0).eigen().cwiseAbs().maxCoeff();
          EXPECT_GT(stored, 1e-12);
          EXPECT_LT(stored, 1e12);
          if (output >= 800 && attention >= 40) {
            EXPECT_EQ(result.value.loss, 0);
          }
          if (attention >= 40) {
            EXPECT_EQ(result.value.accuracy, 1);
          }
        }
      }
}

TEST(NextTokenEngine, KeepsTheDirectionOfSureCollocations) {
  // With W_ov = c E^-1 all collocations are equally sure: 1 - p = (|V| - 1) e^-c / (1 + ...).
  const Problem problem = sure_problem(EmbeddingKind::one_hot);
  const NextTokenModel model = problem.model(Stage::collocation);
  Parameters at = model.zero_parameters();
  at.matrices["W_ov"] = 3000 * Matrix::Identity(6, 6);
  const Result result = evaluate(model, at, NextTokenPath::fast);
  const Matrix gradient = result.gradient.blocks.parameters().matrix("W_ov");
  EXPECT_NEAR(result.gradient.log_scale[0], -3000 + std::log(5.0 / 6), 1e-11);
  EXPECT_LT((gradient - (Matrix::Constant(6, 6, 0.2) - 1.2 * Matrix::Identity(6, 6))).cwiseAbs().maxCoeff(),
            1e-14);
  EXPECT_EQ(result.value.accuracy, 1);
  EXPECT_EQ(result.value.max_softmax, 1);
}

TEST(NextTokenEngine, HasTheSameBitsForAnyNumberOfThreads) {
  for (const EmbeddingKind kind : {EmbeddingKind::one_hot, EmbeddingKind::gaussian}) {
    const Problem problem = test::random_problem(
        {.vocabulary = 150, .sentences = 3000, .max_length = 8, .embedding = kind, .dim = 0, .soft = true});
    std::vector<NextTokenModel> models;
    for (const Stage stage : stages) models.push_back(problem.model(stage));
    models.push_back(problem.model(Stage::attention, Readout::attention));
    for (const NextTokenModel& model : models) {
      const Parameters at = test::random_parameters(model, 1);
      const Result one = evaluate(model, at, NextTokenPath::fast, 1);
      for (const int threads : {2, 8}) {
        const Result many = evaluate(model, at, NextTokenPath::fast, threads);
        EXPECT_TRUE(same_bits(one.value.loss, many.value.loss));
        EXPECT_TRUE(same_bits(one.value.accuracy, many.value.accuracy));
        EXPECT_TRUE(same_bits(one.value.max_softmax, many.value.max_softmax));
        expect_same_gradient(one.gradient, many.gradient);
      }
    }
  }
}

// A second evaluation starts afresh: what an engine has seen before leaves no trace (nor does resuming with a new one).
TEST(NextTokenEngine, ForgetsThePointBefore) {
  const Problem problem = test::random_problem({.vocabulary = 20, .sentences = 50});
  for (const Stage stage : stages) {
    const NextTokenModel model = problem.model(stage);
    ThreadPool pool(1);
    NextTokenEngine engine(model, pool);
    Gradient gradient = engine.make_gradient();
    ParameterBlocks weights(model.blocks());
    for (const double size : {40.0, 0.5}) {
      weights.assign(test::random_parameters(model, size));
      engine.new_frozen_weights();
      engine.evaluate(weights, gradient);
    }
    const Result fresh = evaluate(model, test::random_parameters(model, 0.5), NextTokenPath::fast);
    expect_same_gradient(gradient, fresh.gradient);
  }
}

TEST(NextTokenEngine, OneHotIsTheIdentityWithoutProducts) {
  Problem problem = test::random_problem(
      {.vocabulary = 70, .sentences = 200, .embedding = EmbeddingKind::one_hot, .soft = true});
  Problem given = problem;
  given.embedding = given_embedding(Matrix::Identity(70, 70));
  ASSERT_FALSE(given.embedding.is_one_hot());
  for (const Stage stage : stages)
    for (const double size : {1.0, 100.0}) {
      const Parameters at = test::random_parameters(problem.model(stage), size);
      const Result a = evaluate(problem.model(stage), at, NextTokenPath::fast),
                   b = evaluate(given.model(stage), at, NextTokenPath::fast);
      EXPECT_EQ(a.value.loss, b.value.loss);
      EXPECT_EQ(a.gradient.log_scale, b.gradient.log_scale);
      for (std::ptrdiff_t k = 0; k < a.gradient.blocks.count(); ++k)
        EXPECT_EQ(Matrix(a.gradient.blocks.view(k).eigen()), Matrix(b.gradient.blocks.view(k).eigen()));
    }
}

TEST(NextTokenEngine, ReadsAFrozenMatrixAgainWhenTold) {
  const Problem problem = test::random_problem({.vocabulary = 9, .sentences = 20});
  const NextTokenModel model = problem.model(Stage::attention);
  ThreadPool pool(1);
  NextTokenEngine engine(model, pool);
  ParameterBlocks weights(model.blocks());
  weights.assign(test::random_parameters(model, 1));
  const double loss = engine.evaluate(weights).loss;
  weights.view(weights.find("W_ov")).eigen() *= 2;
  EXPECT_EQ(engine.evaluate(weights).loss, loss);
  engine.new_frozen_weights();
  EXPECT_NE(engine.evaluate(weights).loss, loss);
}

TEST(NextTokenEngine, SaysWhenNumbersAreLost) {
  for (const EmbeddingKind kind : {EmbeddingKind::one_hot, EmbeddingKind::gaussian})
    for (const double lost : {std::nan(""), std::numeric_limits<double>::infinity(), 1e308})
      for (const NextTokenPath path : {NextTokenPath::plain, NextTokenPath::fast}) {
        const Problem problem = test::random_problem({.vocabulary = 80, .sentences = 90, .embedding = kind});
        std::vector<NextTokenModel> models;
        for (const Stage stage : stages) models.push_back(problem.model(stage));
        models.push_back(problem.model(Stage::attention, Readout::attention));
        for (const NextTokenModel& model : models)
          for (const Block& block : model.trained()) {
            ThreadPool pool(1);
            NextTokenEngine engine(model, pool, path);
            Gradient gradient = engine.make_gradient();
            ParameterBlocks weights(model.blocks());
            weights.assign(test::random_parameters(model, 1));
            weights.view(weights.find(block)).eigen().setConstant(lost);
            const double loss = engine.evaluate(weights, gradient).loss;
            // Huge equal weights may still say something; what is no number must not.
            if (!std::isfinite(lost)) {
              EXPECT_FALSE(std::isfinite(loss)) << to_string(block) << " " << lost;
            }
          }
      }
}

TEST(NextTokenEngine, AGradientOfZeroHasAScale) {
  Problem problem{make_embedding(3, {}), Collocations::identity(3), Sentences(3)};
  problem.sentences.add(std::vector<Token>{1}, 2);        // one token: attention has no choice
  problem.sentences.add(std::vector<Token>{2, 2, 2}, 0);  // equal ones: nor here
  const NextTokenModel model = problem.model(Stage::attention);
  for (const NextTokenPath path : {NextTokenPath::plain, NextTokenPath::fast}) {
    const Result result = evaluate(model, test::random_parameters(model, 1), path);
    EXPECT_GT(result.value.loss, 0);
    EXPECT_EQ(result.gradient.log_scale[0], 0);
    EXPECT_EQ(result.gradient.blocks.view(0).eigen().cwiseAbs().maxCoeff(), 0);
  }
  Problem one{make_embedding(1, {}), Collocations::identity(1), Sentences(1)};
  one.sentences.add(std::vector<Token>{0, 0}, 0);
  for (const NextTokenPath path : {NextTokenPath::plain, NextTokenPath::fast}) {
    const Result result = evaluate(one.model(Stage::joint), one.model(Stage::joint).zero_parameters(), path);
    EXPECT_EQ(result.value.loss, 0);
    EXPECT_EQ(result.gradient.log_scale, (std::vector<double>{0, 0}));
  }
}

TEST(NextTokenEngine, CountsTiesAsWrong) {
  const Problem problem = test::random_problem({.vocabulary = 11, .sentences = 30, .max_length = 4});
  for (const Stage stage : stages) {
    const NextTokenModel model = problem.model(stage);
    const Result result = evaluate(model, model.zero_parameters(), NextTokenPath::fast);
    EXPECT_NEAR(result.value.loss, std::log(11.0) * (stage == Stage::joint ? 2 : 1), 1e-14);
    EXPECT_EQ(result.value.accuracy, 0);
    double mean = 0;
    for (std::ptrdiff_t i = 0; i < 30; ++i)
      mean += 1.0 / static_cast<double>(problem.sentences.tokens(i).size()) / 30;
    EXPECT_NEAR(result.value.max_softmax, stage == Stage::collocation ? 1.0 : mean, 1e-14);
  }
}

TEST(NextTokenModel, RefusesWhatHasNoMeaning) {
  const Problem problem = test::random_problem({.vocabulary = 7});
  const Embedding small = make_embedding(6, {});
  const Sentences none(7);
  const Collocations silent(7);
  expect_bad_input({"embedding"}, [&] { NextTokenModel({}, Stage::joint); });
  expect_bad_input({"collocations", "7", "6"}, [&] {
    NextTokenModel({&small, &problem.collocations, &problem.sentences}, Stage::collocation);
  });
  expect_bad_input({"sentences", "7", "6"}, [&] {
    NextTokenModel({&small, &problem.collocations, &problem.sentences}, Stage::attention);
  });
  expect_bad_input({"no sentences"}, [&] {
    NextTokenModel({&problem.embedding, &problem.collocations, &none}, Stage::attention);
  });
  expect_bad_input({"no token has a successor"}, [&] {
    NextTokenModel({&problem.embedding, &silent, &problem.sentences}, Stage::joint);
  });
  expect_bad_input({"readout", "W_ov"}, [&] {
    NextTokenModel({&problem.embedding, &problem.collocations, &problem.sentences}, Stage::joint,
                   Readout::attention);
  });
  Sentences lost(7);
  lost.add(std::vector<Token>{0, 1}, 0);
  lost.add(std::vector<Token>{0, 1}, 5);
  const Collocations identity = Collocations::identity(7);
  expect_bad_input({"label 5", "sentence 1"}, [&] {
    NextTokenModel({&problem.embedding, &identity, &lost}, Stage::attention, Readout::attention);
  });
  // Stage 1 needs no sentences, stage 2 no collocations.
  NextTokenModel({&problem.embedding, &problem.collocations, nullptr}, Stage::collocation);
  NextTokenModel({&problem.embedding, nullptr, &problem.sentences}, Stage::attention);
}

}  // namespace
}  // namespace attmirror
