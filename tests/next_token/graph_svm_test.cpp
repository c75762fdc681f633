#include "next_token/restricted_loss.hpp"
#include "next_token/target_data.hpp"
#include "support/files.hpp"
#include <attmirror/next_token/graph_svm.hpp>

#include <cmath>

#include <Eigen/LU>
#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::copy_orders;
using test::embedding_of;
using test::expect_bad_input;
using test::LabelledSentence;
using test::sentences_of;

struct CyclicData {
  Sentences sentences;
  Collocations collocations;
  PartialOrders orders;
  PriorityGraph graph;

  CyclicData(std::ptrdiff_t size, const std::vector<LabelledSentence>& rows)
      : sentences(sentences_of(size, rows)),
        collocations(Collocations::identity(size)),
        orders(sentences, collocations),
        graph(orders) {}
};

// 7 : 3 between 0 and 1 under query 4, both above 2 and the query.
CyclicData seven_to_three() {
  return CyclicData(5, {{{0, 1, 4}, 0, 7}, {{0, 1, 4}, 1, 3}, {{0, 2, 4}, 0}, {{2, 4}, 2}});
}

// The loss of Li et al.: the attention on the tokens that the label follows, with its gradient.
double attention_loss(const Embedding& embedding, const CyclicData& data, const Matrix& W, Matrix& gradient) {
  const auto E = embedding.vectors.view().eigen();
  gradient = Matrix::Zero(W.rows(), W.cols());
  double loss = 0;
  for (std::ptrdiff_t i = 0; i < data.sentences.count(); ++i) {
    const auto tokens = data.sentences.tokens(i);
    const Vector z = E.row(data.sentences.query(i));
    Vector s(std::ssize(tokens)), good(std::ssize(tokens));
    for (std::ptrdiff_t t = 0; t < s.size(); ++t) {
      s[t] = std::exp(E.row(tokens[static_cast<std::size_t>(t)]) * W * z);
      good[t] = tokens[static_cast<std::size_t>(t)] == data.sentences.label(i) ? s[t] : 0;
    }
    const double pi = data.sentences.weight(i) / data.sentences.total_weight();
    loss -= pi * std::log(good.sum() / s.sum());
    const Vector coefficient = pi * (s / s.sum() - good / good.sum());
    for (std::ptrdiff_t t = 0; t < s.size(); ++t)
      gradient += coefficient[t] * E.row(tokens[static_cast<std::size_t>(t)]).transpose() * z.transpose();
  }
  return loss;
}

TEST(GraphSvm, AComponentKeepsTheRatioOfItsLabels) {
  const CyclicData data = seven_to_three();
  for (const EmbeddingKind kind :
       {EmbeddingKind::one_hot, EmbeddingKind::orthonormal, EmbeddingKind::gaussian}) {
    const Embedding embedding = embedding_of(5, kind, 6 * (kind != EmbeddingKind::one_hot));
    const FinitePart part = graph_finite_part(embedding, data.sentences, data.collocations, data.graph);
    EXPECT_TRUE(part.converged);
    EXPECT_LT(part.gradient_norm, 1e-12);
    EXPECT_EQ(part.dimension, 1);
    const Vector scores = attention_scores(embedding, part.W).col(4);
    EXPECT_NEAR(scores[0] - scores[1], std::log(7.0 / 3), 1e-9);
    const double entropy = -(0.7 * std::log(0.7) + 0.3 * std::log(0.3));
    EXPECT_NEAR(part.loss, 10.0 / 12 * entropy, 1e-12);
    // In the span of (0 - 1) q^T.
    const auto E = embedding.vectors.view().eigen();
    const Matrix direction = (E.row(0) - E.row(1)).transpose() * E.row(4);
    EXPECT_NEAR((part.W.array() * direction.array()).sum(), part.W.norm() * direction.norm(), 1e-12);
  }
}

TEST(GraphSvm, ASymmetricCycleIsLevel) {
  const CyclicData data(4, {{{0, 1, 3}, 0}, {{1, 2, 3}, 1}, {{2, 0, 3}, 2}});
  for (const EmbeddingKind kind : {EmbeddingKind::one_hot, EmbeddingKind::gaussian}) {
    const Embedding embedding = embedding_of(4, kind);
    const FinitePart part = graph_finite_part(embedding, data.sentences, data.collocations, data.graph);
    EXPECT_TRUE(part.converged);
    EXPECT_LT(part.W.norm(), 1e-12);
    EXPECT_NEAR(part.loss, std::log(2.0), 1e-14);
    EXPECT_EQ(part.dimension, 2);
  }
}

TEST(GraphSvm, TheDirectionHoldsComponentsTogetherAndApart) {
  const CyclicData data = seven_to_three();
  for (const EmbeddingKind kind :
       {EmbeddingKind::one_hot, EmbeddingKind::orthonormal, EmbeddingKind::gaussian})
    for (const double p : {1.5, 2.0, 3.0}) {
      const Embedding embedding = embedding_of(5, kind);
      const MarginSolution solution = graph_direction(embedding, data.orders, data.graph, Norm::l(p));
      EXPECT_EQ(solution.status, MarginStatus::certified) << solution.report();
      const Certificate again = certify(graph_constraints(embedding, data.orders, data.graph), Norm::l(p),
                                        solution.W, solution.lambda);
      EXPECT_TRUE(again.certifies(1e-10)) << again.gap << " " << again.worst_violation;
      const Vector scores = attention_scores(embedding, solution.W).col(4);
      EXPECT_NEAR(scores[0], scores[1], 1e-10);
      if (kind == EmbeddingKind::gaussian || p != 2) continue;
      // {0, 1} > 2 > 4: a, a, b, c with a - b = b - c = 1 and the smallest squares.
      EXPECT_LT((scores - Vector{{0.75, 0.75, -0.25, 0, -1.25}}).cwiseAbs().maxCoeff(), 1e-9);
    }
}

TEST(GraphSvm, WithoutCyclesItIsTheTarget) {
  const RealizableData data = test::realizable(12, 60, OrderKind::linear);
  const PartialOrders orders(data.sentences, data.collocations);
  const PriorityGraph graph(orders);
  const Embedding embedding = embedding_of(12, EmbeddingKind::gaussian);
  EXPECT_EQ(graph_direction(embedding, orders, graph, Norm::frobenius()).W,
            attention_target(embedding, orders, Norm::frobenius()).W);
  const FinitePart part = graph_finite_part(embedding, data.sentences, data.collocations, graph);
  EXPECT_TRUE(part.converged);
  EXPECT_EQ(part.loss, 0);
  EXPECT_EQ(part.W.norm(), 0);
}

// Plain gradient descent on the loss of Li et al.: within components it converges to the finite part, and the rest
// grows in the direction of the Graph-SVM.
TEST(GraphSvm, GradientDescentGoesAsFinitePartPlusDirection) {
  const CyclicData data(6, {{{0, 1, 5}, 0, 2},
                            {{0, 1, 5}, 1, 1},
                            {{1, 2, 5}, 1, 1},
                            {{1, 2, 0, 5}, 2, 1},
                            {{0, 3, 5}, 0, 1},
                            {{3, 4, 4}, 3, 1},
                            {{3, 1, 4}, 1, 1}});
  for (const EmbeddingKind kind : {EmbeddingKind::one_hot, EmbeddingKind::gaussian}) {
    const Embedding embedding = embedding_of(6, kind);
    const FinitePart finite = graph_finite_part(embedding, data.sentences, data.collocations, data.graph);
    ASSERT_TRUE(finite.converged);
    const Matrix direction = graph_direction(embedding, data.orders, data.graph, Norm::frobenius()).W;
    Matrix W = Matrix::Zero(6, 6), gradient;
    double loss = 0;
    for (int step = 0; step < 20'000; ++step) {
      loss = attention_loss(embedding, data, W, gradient);
      W -= 0.5 * gradient;
    }
    // The component {0, 1, 2} of query 5.
    const auto E = embedding.vectors.view().eigen();
    const Matrix D = (Matrix(2, 6) << E.row(1) - E.row(0), E.row(2) - E.row(0)).finished();
    const Matrix projector = D.transpose() * (D * D.transpose()).inverse() * D;
    const Vector z = E.row(5).transpose();
    const Matrix within = projector * W * z * z.transpose() / z.squaredNorm();
    const double floor_gap = loss - finite.loss;
    EXPECT_GT(floor_gap, 0);
    EXPECT_LT(floor_gap, 1e-3);
    EXPECT_LT((within - finite.W).norm(), 0.01 * finite.W.norm());
    const Matrix rest = W - within;
    const double cosine = (rest.array() * direction.array()).sum() / (rest.norm() * direction.norm());
    EXPECT_GT(cosine, 0.97) << to_string(kind);
    // The finite part is where the restricted loss is least: any step within the component makes the limit worse.
    const Matrix far = finite.W + 60 * direction;
    const double best = attention_loss(embedding, data, far, gradient);
    EXPECT_NEAR(best, finite.loss, 1e-12);
    for (const double step : {-0.01, 0.01})
      EXPECT_GT(attention_loss(embedding, data, far + step * D.row(0).transpose() * z.transpose(), gradient),
                best);
  }
}

TEST(GraphSvm, AMinimumAtInfinityIsNotCalledConverged) {
  // Two optimal tokens (0 and 1 are both followed by 0) in one component with 2: it pays to give up one of them.
  const Collocations map = Collocations::hard(test::Tokens{0, 0, 2, 3});
  const auto make = [](double weight) {
    return sentences_of(4, {{{0, 1, 2, 3}, 0}, {{2, 0, 3}, 2}, {{2, 1, 3}, 2, weight}});
  };
  for (const double weight : {1.0, 1.25}) {  // by symmetry a saddle; without, it goes to infinity
    const Sentences sentences = make(weight);
    const PriorityGraph graph{PartialOrders(sentences, map)};
    ASSERT_TRUE(graph.same_component(3, 0, 2));
    ASSERT_TRUE(graph.same_component(3, 1, 2));
    const FinitePart part = graph_finite_part(embedding_of(4, EmbeddingKind::one_hot), sentences, map, graph);
    EXPECT_FALSE(part.converged) << weight;
    if (weight != 1) {
      EXPECT_LT(part.W(1, 3) - part.W(0, 3), -5) << "1 loses more often and is given up";
    }
  }
}

TEST(GraphSvm, TwoOptimalComponentsLeaveNothingToDecide) {
  // 0 and 1 are followed by 0; 0 is in a cycle with 2, and 1 is above it.
  const Collocations map = Collocations::hard(test::Tokens{0, 0, 2, 3});
  const Sentences sentences = sentences_of(4, {{{0, 1, 2, 3}, 0}, {{2, 0, 3}, 2, 2}, {{2, 0, 3}, 0}});
  const PriorityGraph graph{PartialOrders(sentences, map)};
  ASSERT_TRUE(graph.same_component(3, 0, 2));
  ASSERT_FALSE(graph.same_component(3, 1, 2));
  const Embedding embedding = embedding_of(4, EmbeddingKind::one_hot);
  const FinitePart part = graph_finite_part(embedding, sentences, map, graph);
  EXPECT_TRUE(part.converged);
  const Vector scores = attention_scores(embedding, part.W).col(3);
  EXPECT_NEAR(scores[2] - scores[0], std::log(2.0), 1e-9) << "the other two sentences alone decide";
}

TEST(CollocationFinitePart, HasTheLogOddsOfTheWeights) {
  Collocations soft(5);
  soft.add(0, 1, 6);
  soft.add(0, 2, 3);
  soft.add(0, 4, 1);
  soft.add(1, 3);
  soft.add(2, 0, 1e-4);
  soft.add(2, 2, 1);
  for (const EmbeddingKind kind :
       {EmbeddingKind::one_hot, EmbeddingKind::orthonormal, EmbeddingKind::gaussian}) {
    const Embedding embedding = embedding_of(5, kind);
    const FinitePart part = collocation_finite_part(embedding, soft);
    EXPECT_TRUE(part.converged);
    EXPECT_EQ(part.dimension, 3);
    const Matrix logits = part.W * embedding.vectors.view().eigen().transpose();
    EXPECT_NEAR(logits(1, 0) - logits(2, 0), std::log(2.0), 1e-9);
    EXPECT_NEAR(logits(1, 0) - logits(4, 0), std::log(6.0), 1e-9);
    EXPECT_NEAR(logits(2, 2) - logits(0, 2), std::log(1e4), 1e-6);
    if (kind == EmbeddingKind::gaussian) continue;
    EXPECT_NEAR(logits.col(0).sum(), 0, 1e-12);
    EXPECT_NEAR(logits(3, 0), 0, 1e-12);
    EXPECT_LT(logits.col(1).norm(), 1e-12) << "a single successor has no finite part";
  }
}

TEST(CollocationFinitePart, MinimisesCrossEntropyWhereOddsCannotAllBeMet) {
  // Three tokens on a line: their odds are multiples of one number.
  const Embedding embedding = given_embedding((Matrix(3, 1) << 1, 1, 2).finished());
  Collocations soft(3);
  soft.add(0, 0, 3);
  soft.add(0, 1, 1);
  soft.add(1, 0, 1);
  soft.add(1, 1, 1);
  const FinitePart part = collocation_finite_part(embedding, soft);
  EXPECT_TRUE(part.converged);
  EXPECT_EQ(part.dimension, 1);
  // Tokens 0 and 1 look the same: 5/8 of their successors are 0.
  EXPECT_NEAR(part.W(0, 0) - part.W(1, 0), std::log(5.0 / 3), 1e-9);
}

TEST(RestrictedLoss, DerivativesAgreeWithDifferences) {
  RestrictedComponent component;
  component.looking = 0;
  component.tokens = {0, 1, 2, 3};
  component.terms = {{0.5, {{0, true}, {1, false}, {2, false}}},
                     {0.25, {{3, true}, {1, true}, {2, false}, {2, false}, {0, false}}},
                     {0.25, {{2, true}, {0, false}, {2, true}}}};
  const Vector at{{0.3, -1.2, 0.8}};
  const RestrictedDerivatives d = derivatives(component, at);
  EXPECT_DOUBLE_EQ(d.loss, restricted_loss(component, at));
  const double h = 1e-5;
  for (std::ptrdiff_t i = 0; i < 3; ++i) {
    const Vector up = at + h * Vector::Unit(3, i), down = at - h * Vector::Unit(3, i);
    EXPECT_NEAR(d.gradient[i], (restricted_loss(component, up) - restricted_loss(component, down)) / (2 * h),
                1e-9);
    const Vector slope =
        (derivatives(component, up).gradient - derivatives(component, down).gradient) / (2 * h);
    EXPECT_LT((d.hessian.col(i) - slope).cwiseAbs().maxCoeff(), 1e-9);
  }
  // Far out nothing overflows, and a loss near 0 keeps its digits.
  component.terms = {{1, {{1, true}, {0, false}}}};
  EXPECT_NEAR(restricted_loss(component, Vector{{40, 0, 0}}) / std::exp(-40), 1, 1e-12);
  EXPECT_DOUBLE_EQ(restricted_loss(component, Vector{{-2000, 0, 0}}), 2000);
}

TEST(GraphSvm, RefusesWhatDoesNotFit) {
  const CyclicData data = seven_to_three();
  const Embedding embedding = embedding_of(5, EmbeddingKind::one_hot);
  expect_bad_input({"sentences[0] has the label 3"}, [&] {
    graph_finite_part(embedding, sentences_of(5, {{{0, 1, 4}, 3}}), data.collocations, data.graph);
  });
  expect_bad_input({"sentences[0] is not among those of the graph"}, [&] {
    graph_finite_part(embedding, sentences_of(5, {{{0, 1, 3}, 0}}), data.collocations, data.graph);
  });
  expect_bad_input({"sentences have a vocabulary of 6"}, [&] {
    graph_finite_part(embedding, sentences_of(6, {{{0, 1, 4}, 0}}), data.collocations, data.graph);
  });
}

}  // namespace
}  // namespace attmirror
