#include "next_token/target_data.hpp"
#include "support/files.hpp"
#include "support/same_bits.hpp"
#include "support/special_numbers.hpp"
#include <attmirror/next_token/targets.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::copy_orders;
using test::embedding_of;
using test::expect_bad_input;
using test::infinity;
using test::realizable;
using test::Tokens;

const TargetOptions coupled{.decoupling = TargetOptions::Decoupling::off};

double distance(const Matrix& a, const Matrix& b) { return (a - b).cwiseAbs().maxCoeff(); }

// Nothing of the solution is believed: W and lambda are verified again.
void expect_certified(const MarginSolution& solution, const MarginConstraints& constraints) {
  EXPECT_EQ(solution.status, MarginStatus::certified) << solution.report();
  const double tolerance = MarginOptions().tolerance(solution.kind);
  const Certificate again = certify(constraints, solution.kind, solution.W, solution.lambda);
  EXPECT_TRUE(again.certifies(tolerance)) << again.gap << " " << again.worst_violation;
  EXPECT_NEAR(solution.gap, again.gap, 1e-13);
  EXPECT_NEAR(solution.norm, again.norm, 1e-14 * again.norm);
}

// The smallest scores under one query, by Hildreth's method on the dual: one multiplier after the other until
// nothing moves.
Vector reference_scores(const PartialOrders& orders, Token query) {
  const auto preferences = orders.preferences(query);
  Vector scores = Vector::Zero(orders.vocabulary_size());
  std::vector<double> lambda(preferences.size(), 0);
  for (int sweep = 0; sweep < 200'000; ++sweep) {
    double moved = 0;
    for (std::size_t k = 0; k < preferences.size(); ++k) {
      const Preference& p = preferences[k];
      const double step = std::max((1 - (scores[p.better] - scores[p.worse])) / 2, -lambda[k]);
      lambda[k] += step;
      scores[p.better] += step;
      scores[p.worse] -= step;
      moved = std::max(moved, std::fabs(step));
    }
    if (moved < 1e-14) break;
  }
  return scores;
}

TEST(CollocationTarget, HasTheClosedFormForOrthonormalEmbeddings) {
  const RealizableData data = realizable(20, 100, OrderKind::three_class);
  for (const auto& [kind, dim] : {std::pair{EmbeddingKind::one_hot, 20},
                                  {EmbeddingKind::orthonormal, 20},
                                  {EmbeddingKind::orthonormal, 27}}) {
    const Embedding embedding = embedding_of(20, kind, dim);
    // The definition, token by token.
    Matrix expected = Matrix::Zero(20, dim);
    for (Token x = 0; x < 20; ++x) {
      Vector column = Vector::Constant(20, -1.0 / 20);
      column[data.collocations.successor(x)] += 1;
      expected += column * embedding.vectors.view().eigen().row(x);
    }
    EXPECT_LT(distance(orthonormal_collocation_target(embedding, data.collocations), expected), 1e-15);
    for (const TargetOptions& options : {TargetOptions{}, coupled}) {
      const MarginSolution solution =
          collocation_target(embedding, data.collocations, Norm::frobenius(), options);
      expect_certified(solution, collocation_constraints(embedding, data.collocations));
      EXPECT_LT(distance(solution.W, expected), 1e-9);
      EXPECT_NEAR(solution.norm, 4.358898943540674, 1e-9);
      EXPECT_EQ(std::ssize(solution.support), 380);
    }
  }
  expect_bad_input({"the closed form holds"}, [&] {
    orthonormal_collocation_target(embedding_of(20, EmbeddingKind::gaussian), data.collocations);
  });
}

TEST(CollocationTarget, TokensWithoutSuccessorHaveNoConstraints) {
  const Collocations some = Collocations::hard(Tokens{1, no_token, 1, no_token});
  const Embedding embedding = embedding_of(4, EmbeddingKind::one_hot);
  const MarginConstraints constraints = collocation_constraints(embedding, some);
  EXPECT_EQ(constraints.count(), 6);
  EXPECT_EQ(constraints.groups(), 2);
  EXPECT_EQ(constraints.origins()[3], (ConstraintOrigin{2, 1, 0}));
  const MarginSolution solution = collocation_target(embedding, some, Norm::frobenius());
  expect_certified(solution, constraints);
  EXPECT_EQ(solution.W.col(1).norm(), 0);
  EXPECT_NEAR(solution.W(1, 0), 0.75, 1e-12);
  EXPECT_LT(distance(solution.W, orthonormal_collocation_target(embedding, some)), 1e-12);
}

TEST(CollocationTarget, SoftSuccessorsAreEqualAndAboveTheRest) {
  Collocations soft = Collocations::identity(5);
  soft.add(0, 3, 4);
  soft.add(0, 1, 2);
  for (const EmbeddingKind kind : {EmbeddingKind::one_hot, EmbeddingKind::orthonormal}) {
    const Embedding embedding = embedding_of(5, kind);
    for (const TargetOptions& options : {TargetOptions{}, coupled}) {
      const MarginSolution solution = collocation_target(embedding, soft, Norm::frobenius(), options);
      expect_certified(solution, collocation_constraints(embedding, soft));
      EXPECT_LT(distance(solution.W, orthonormal_collocation_target(embedding, soft)), 1e-9);
      const Vector logits = solution.W * embedding.vectors.view().eigen().row(0).transpose();
      EXPECT_LT((logits - Vector{{0.4, 0.4, -0.6, 0.4, -0.6}}).cwiseAbs().maxCoeff(), 1e-9);
    }
  }
}

TEST(AttentionTarget, HasTheClosedFormWhereEveryOptimalTokenMeetsEveryOther) {
  // Query 7: optimal 0, 1, 2; non-optimal 3, 4 and the query; 5 and 6 are never compared.
  const PartialOrders orders = copy_orders(8, {{{0, 3, 4, 7}, 0}, {{1, 3, 4, 7}, 1}, {{4, 3, 2, 7}, 2}});
  for (const EmbeddingKind kind : {EmbeddingKind::one_hot, EmbeddingKind::orthonormal}) {
    const Embedding embedding = embedding_of(8, kind);
    const auto E = embedding.vectors.view().eigen();
    for (const TargetOptions& options : {TargetOptions{}, coupled}) {
      const MarginSolution solution = attention_target(embedding, orders, Norm::frobenius(), options);
      expect_certified(solution, attention_constraints(embedding, orders));
      const Vector scores{{0.5, 0.5, 0.5, -0.5, -0.5, 0, 0, -0.5}};
      EXPECT_LT(distance(solution.W, E.transpose() * scores * E.row(7)), 1e-9);
      EXPECT_LT(distance(attention_scores(embedding, solution.W).col(7), scores), 1e-9);
    }
  }
}

TEST(AttentionTarget, ClosedFormOfUnequalSidesInAnyNorm) {
  // Query 4: token 0 beats 1, 2, 3 and 4. u / (1 - u) = 4^{1/(p-1)}.
  const PartialOrders orders = copy_orders(6, {{{0, 1, 2, 3, 4}, 0}});
  const Embedding embedding = embedding_of(6, EmbeddingKind::one_hot);
  for (const double p : {1.0, 1.1, 1.5, 2.0, 3.0, 10.0, 50.0, infinity}) {
    const double ratio = std::pow(4, 1 / (p - 1)), u = p == 1 ? 1 : ratio / (1 + ratio);
    const Vector expected{{u, u - 1, u - 1, u - 1, u - 1, 0}};
    const MarginSolution solution = attention_target(embedding, orders, Norm::l(p));
    expect_certified(solution, attention_constraints(embedding, orders));
    EXPECT_LT(distance(solution.W.col(4), expected), 1e-12) << p;
    if (p == 1 || p == infinity) continue;
    EXPECT_LT(distance(attention_target(embedding, orders, Norm::l(p), coupled).W.col(4), expected),
              p <= 3 ? 1e-9 : 1e-6)
        << p;
  }
}

TEST(AttentionTarget, AChainHasEquallySpacedScores) {
  // 3 > 1 > 0 > 2 > 4 under query 4, from pairs of neighbours; the query is below all.
  const PartialOrders orders = copy_orders(6, {{{3, 1, 4}, 3}, {{1, 0, 4}, 1}, {{0, 2, 4}, 0}, {{2, 4}, 2}});
  for (const EmbeddingKind kind : {EmbeddingKind::one_hot, EmbeddingKind::orthonormal}) {
    const Embedding embedding = embedding_of(6, kind);
    for (const TargetOptions& options : {TargetOptions{}, coupled}) {
      const MarginSolution solution = attention_target(embedding, orders, Norm::frobenius(), options);
      expect_certified(solution, attention_constraints(embedding, orders));
      EXPECT_LT(distance(attention_scores(embedding, solution.W).col(4), Vector{{0, 1, -1, 2, -2, 0}}), 1e-9);
    }
  }
}

TEST(AttentionTarget, EqualsAnIndependentReferenceOnRandomOrders) {
  for (const OrderKind order : {OrderKind::three_class, OrderKind::linear})
    for (const std::uint64_t seed : {1, 2}) {
      const RealizableData data = realizable(20, 100, order, seed);
      const PartialOrders orders(data.sentences, data.collocations);
      Matrix expected = Matrix::Zero(20, 20);
      for (const Token q : orders.queries()) expected.col(q) = reference_scores(orders, q);
      for (const EmbeddingKind kind : {EmbeddingKind::one_hot, EmbeddingKind::orthonormal}) {
        const Embedding embedding = embedding_of(20, kind);
        for (const TargetOptions& options : {TargetOptions{}, coupled}) {
          const MarginSolution solution = attention_target(embedding, orders, Norm::frobenius(), options);
          expect_certified(solution, attention_constraints(embedding, orders));
          EXPECT_LT(distance(attention_scores(embedding, solution.W), expected), 1e-9);
        }
      }
      // What the closed forms have in common.
      for (const Token q : orders.queries()) {
        EXPECT_NEAR(expected.col(q).sum(), 0, 1e-12);
        std::set<Token> beats;
        for (const Preference& p : orders.preferences(q)) beats.insert(p.better);
        const MarginSolution solution =
            attention_target(embedding_of(20, EmbeddingKind::one_hot), orders, Norm::frobenius());
        for (Token x = 0; x < 20; ++x) {
          const TokenClass c = orders.token_class(q, x);
          if (c == TokenClass::non_comparable) {
            EXPECT_EQ(solution.W(x, q), 0);
          }
          if (c == TokenClass::optimal) {
            EXPECT_GE(solution.W(x, q), -1e-12);
          }
          if (c == TokenClass::non_optimal && !beats.contains(x)) {
            EXPECT_LE(solution.W(x, q), 1e-12);
          }
        }
      }
    }
}

TEST(AttentionTarget, IsCertifiedInAnyNormForAnyEmbedding) {
  for (const OrderKind order : {OrderKind::three_class, OrderKind::linear}) {
    const RealizableData data = realizable(20, 100, order);
    const PartialOrders orders(data.sentences, data.collocations);
    for (const EmbeddingKind kind :
         {EmbeddingKind::one_hot, EmbeddingKind::orthonormal, EmbeddingKind::gaussian})
      for (const double p : {1.5, 2.0, 3.0}) {
        const Embedding embedding = embedding_of(20, kind);
        const MarginSolution solution = attention_target(embedding, orders, Norm::l(p));
        expect_certified(solution, attention_constraints(embedding, orders));
        expect_certified(collocation_target(embedding, data.collocations, Norm::l(p)),
                         collocation_constraints(embedding, data.collocations));
        if (kind == EmbeddingKind::one_hot) {
          EXPECT_NEAR(solution.norm, attention_target(embedding, orders, Norm::l(p), coupled).norm, 1e-9);
        }
      }
  }
}

TEST(AttentionTarget, AtTheEndsOfTheRangeOfP) {
  const RealizableData data = realizable(12, 40, OrderKind::linear, 3);
  const PartialOrders orders(data.sentences, data.collocations);
  const Embedding embedding = embedding_of(12, EmbeddingKind::one_hot);
  for (const double p : {1.0, infinity}) {
    const MarginSolution parts = attention_target(embedding, orders, Norm::l(p));
    expect_certified(parts, attention_constraints(embedding, orders));
    EXPECT_NEAR(parts.norm, attention_target(embedding, orders, Norm::l(p), coupled).norm, 1e-6);
  }
  expect_certified(attention_target(embedding, orders, Norm::nuclear()),
                   attention_constraints(embedding, orders));
}

TEST(AttentionTarget, ACycleIsInfeasibleAndNamed) {
  // Under query 4: 0 > 1 > 2 > 0, all above 4; query 5 is in order.
  const PartialOrders orders = copy_orders(6, {{{0, 1, 4}, 0}, {{1, 2, 4}, 1}, {{2, 0, 4}, 2}, {{3, 5}, 3}});
  ASSERT_TRUE(orders.find_cycle());
  for (const EmbeddingKind kind :
       {EmbeddingKind::one_hot, EmbeddingKind::orthonormal, EmbeddingKind::gaussian}) {
    const Embedding embedding = embedding_of(6, kind);
    for (const TargetOptions& options : {TargetOptions{}, coupled}) {
      const MarginSolution solution = attention_target(embedding, orders, Norm::frobenius(), options);
      ASSERT_EQ(solution.status, MarginStatus::infeasible) << solution.report();
      const MarginConstraints constraints = attention_constraints(embedding, orders);
      EXPECT_TRUE(certify(constraints, Norm::frobenius(), Matrix(), solution.lambda).proves_norm_above(1e10));
      std::set<std::pair<std::int64_t, std::int64_t>> pairs;
      for (const std::ptrdiff_t k : solution.conflict) {
        const ConstraintOrigin& origin = constraints.origins()[static_cast<std::size_t>(k)];
        EXPECT_EQ(origin.sequence, 4);
        pairs.emplace(origin.query, origin.token);
      }
      EXPECT_EQ(pairs, (std::set<std::pair<std::int64_t, std::int64_t>>{{0, 1}, {1, 2}, {2, 0}}));
      EXPECT_TRUE(std::isnan(solution.W(0, 0)));
    }
  }
}

TEST(AttentionTarget, NothingComparedNothingDemanded) {
  const PartialOrders orders = copy_orders(3, {{{1}, 1}});
  for (const TargetOptions& options : {TargetOptions{}, coupled}) {
    const MarginSolution solution =
        attention_target(embedding_of(3, EmbeddingKind::one_hot), orders, Norm::frobenius(), options);
    EXPECT_EQ(solution.status, MarginStatus::certified) << solution.report();
    EXPECT_EQ(solution.norm, 0);
    EXPECT_EQ(solution.W.norm(), 0);
  }
}

TEST(AttentionTarget, SameBitsForAnyNumberOfThreads) {
  const RealizableData data = realizable(60, 600, OrderKind::linear);
  const PartialOrders orders(data.sentences, data.collocations);
  const Embedding embedding = embedding_of(60, EmbeddingKind::one_hot);
  TargetOptions one, three;
  three.margin.threads = 3;
  const MarginSolution a = attention_target(embedding, orders, Norm::l(1.5), one),
                       b = attention_target(embedding, orders, Norm::l(1.5), three);
  EXPECT_TRUE(test::same_bits(a.W, b.W));
  EXPECT_EQ(a.lambda, b.lambda);
  EXPECT_EQ(a.gap, b.gap);
}

TEST(Targets, OfLargeVocabulariesAreVerifiedPartByPart) {
  const std::ptrdiff_t size = 700;
  const RealizableData data = realizable(size, 7000, OrderKind::three_class);
  const Embedding embedding = embedding_of(size, EmbeddingKind::one_hot);
  const MarginSolution ov = collocation_target(embedding, data.collocations, Norm::frobenius());
  EXPECT_EQ(ov.status, MarginStatus::certified) << ov.report();
  EXPECT_NE(ov.method.find("verified part by part"), std::string::npos) << ov.method;
  EXPECT_NEAR(ov.norm, std::sqrt(699.0), 1e-11);
  EXPECT_EQ(ov.lambda.size(), size * (size - 1));
  EXPECT_LT(distance(ov.W, orthonormal_collocation_target(embedding, data.collocations)), 1e-12);
  const PartialOrders orders(data.sentences, data.collocations);
  const MarginSolution kq = attention_target(embedding, orders, Norm::l(1.5));
  EXPECT_EQ(kq.status, MarginStatus::certified) << kq.report();
  EXPECT_NE(kq.method.find("verified part by part"), std::string::npos) << kq.method;
  EXPECT_NEAR(kq.norm, norm(kq.W, Norm::l(1.5)), 1e-13 * kq.norm);
}

TEST(Targets, ARotationIsChargedForWhereTheWholeIsTooLarge) {
  const std::ptrdiff_t size = 260;
  const RealizableData data = realizable(size, 260, OrderKind::three_class);
  const Embedding embedding = embedding_of(size, EmbeddingKind::orthonormal);
  const MarginSolution solution = collocation_target(embedding, data.collocations, Norm::frobenius());
  EXPECT_EQ(solution.status, MarginStatus::certified) << solution.report();
  EXPECT_NE(solution.method.find("the rotation as a whole"), std::string::npos) << solution.method;
  const Certificate whole = certify(collocation_constraints(embedding, data.collocations), Norm::frobenius(),
                                    solution.W, solution.lambda);
  EXPECT_TRUE(whole.certifies(1e-10)) << whole.gap << " " << whole.worst_violation;
  EXPECT_LE(solution.dual, whole.dual * (1 + 1e-15));
  EXPECT_GE(whole.worst_margin, 1);
}

TEST(Targets, RefuseWhatDoesNotFit) {
  const Embedding embedding = embedding_of(5, EmbeddingKind::one_hot);
  expect_bad_input({"collocations have a vocabulary of 4: the embedding has 5 rows"},
                   [&] { collocation_target(embedding, Collocations::identity(4), Norm::frobenius()); });
  expect_bad_input({"orders have a vocabulary of 6"}, [&] {
    attention_target(embedding, copy_orders(6, {{{0, 1}, 0}}), Norm::frobenius());
  });
  expect_bad_input({"W_kq has shape (5, 4)"}, [&] { attention_scores(embedding, Matrix::Zero(5, 4)); });
  expect_bad_input({"3998000 constraints of 2000 numbers each, 64.0 GB"}, [&] {
    collocation_constraints(embedding_of(2000, EmbeddingKind::one_hot), Collocations::identity(2000));
  });
  TargetOptions options;
  options.margin.tol = 0;
  expect_bad_input({"tol is 0"}, [&] {
    collocation_target(embedding, Collocations::identity(5), Norm::frobenius(), options);
  });
}

}  // namespace
}  // namespace attmirror
