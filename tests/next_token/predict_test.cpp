#include "next_token/reference.hpp"
#include "support/files.hpp"

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::expect_bad_input;
using test::Problem;

TEST(Predict, NamesTheMostProbableToken) {
  for (const EmbeddingKind kind : {EmbeddingKind::one_hot, EmbeddingKind::gaussian}) {
    const Problem problem =
        test::random_problem({.vocabulary = 40, .sentences = 300, .max_length = 6, .embedding = kind});
    const NextTokenModel model = problem.model(Stage::joint);
    const Parameters at = test::random_parameters(model, 2);
    const std::vector<Token> tokens = predict(problem.sentences, problem.embedding, at);
    double right = 0;
    for (std::ptrdiff_t i = 0; i < problem.sentences.count(); ++i) {
      const test::RealMatrix X = test::rows_of(problem.embedding, problem.sentences.tokens(i));
      const test::RealVector s = test::reference_attention(X, test::real_block(at, "W_kq"));
      const test::RealVector o = test::real_block(at, "W_ov") * (X.transpose() * s);
      std::ptrdiff_t best = 0;
      o.maxCoeff(&best);
      EXPECT_EQ(tokens[static_cast<std::size_t>(i)], best);
      if (best == problem.sentences.label(i)) right += 1.0 / 300;
    }
    EXPECT_NEAR(accuracy(problem.sentences, problem.embedding, at), right, 1e-12);
    EXPECT_EQ(predict(problem.sentences, problem.embedding, at, 3), tokens);
    // The engine says the same.
    ThreadPool pool(1);
    NextTokenEngine engine(model, pool);
    ParameterBlocks weights(model.blocks());
    weights.assign(at);
    EXPECT_NEAR(engine.evaluate(weights).accuracy, right, 1e-12);
  }
}

TEST(Predict, OfEqualsTheFirst) {
  Sentences sentences(3);
  sentences.add(std::vector<Token>{2, 1}, 1);
  sentences.add(std::vector<Token>{1}, 0, 3);
  const Embedding embedding = make_embedding(3, {});
  Parameters at;
  at.matrices["W_ov"] = at.matrices["W_kq"] = Matrix::Zero(3, 3);
  EXPECT_EQ(predict(sentences, embedding, at), (std::vector<Token>{0, 0}));
  EXPECT_EQ(accuracy(sentences, embedding, at), 0.75);
  at.matrices["W_ov"](1, 2) = at.matrices["W_ov"](2, 2) = 1;
  EXPECT_EQ(predict(sentences, embedding, at), (std::vector<Token>{1, 0}));
}

TEST(Predict, RefusesWhatDoesNotFit) {
  const Problem problem = test::random_problem({.vocabulary = 7});
  const Parameters at = problem.model(Stage::joint).zero_parameters();
  Parameters stage_one = at;
  stage_one.matrices.erase("W_kq");
  expect_bad_input({"W_kq", "(0, 0)", "(7, 7)"},
                   [&] { predict(problem.sentences, problem.embedding, stage_one); });
  expect_bad_input({"7", "6"}, [&] { predict(problem.sentences, make_embedding(6, {}), at); });
  expect_bad_input({"no sentences"}, [&] { accuracy(Sentences(7), problem.embedding, at); });
  EXPECT_TRUE(predict(Sentences(7), problem.embedding, at).empty());
}

}  // namespace
}  // namespace attmirror
