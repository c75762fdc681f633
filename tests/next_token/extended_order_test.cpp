#include "next_token/target_data.hpp"
#include "support/files.hpp"
#include <attmirror/next_token/partial_order.hpp>
#include <attmirror/next_token/targets.hpp>

#include <cmath>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::copy_orders;
using test::embedding_of;
using test::expect_bad_input;
using test::realizable;

TEST(ExtendedOrder, HoldsForTheTargetOfThreeClasses) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const RealizableData data = realizable(20, 200, OrderKind::three_class, seed);
    const PartialOrders orders(data.sentences, data.collocations);
    for (const EmbeddingKind kind : {EmbeddingKind::one_hot, EmbeddingKind::orthonormal}) {
      const Embedding embedding = embedding_of(20, kind);
      const Matrix W = attention_target(embedding, orders, Norm::frobenius()).W;
      const ExtendedOrder order = extended_order(attention_scores(embedding, W), orders);
      EXPECT_TRUE(order.holds);
      EXPECT_GT(order.lowest_optimal, 0);
      EXPECT_EQ(order.highest_non_comparable, 0) << "non-comparable tokens have the score 0";
      EXPECT_EQ(order.lowest_non_comparable, 0);
      EXPECT_LT(order.highest_non_optimal, 0);
      EXPECT_GE(order.least_above_non_comparable, order.lowest_optimal);
      EXPECT_GE(order.least_below_non_comparable, -order.highest_non_optimal);
      EXPECT_FALSE(extended_order(-attention_scores(embedding, W), orders).holds);
    }
  }
}

TEST(ExtendedOrder, CountsPairsOfEachKindWithinAQuery) {
  // Query 2: 0 beats 1 and 2; 3 and 4 are not compared.
  const PartialOrders orders = copy_orders(5, {{{0, 1, 2}, 0}});
  Matrix scores = Matrix::Zero(5, 5);
  scores.col(0).setConstant(99);  // of no query with preferences
  scores.col(2) << 1, -1, 0.25, 0.5, 2;
  const ExtendedOrder order = extended_order(scores, orders);
  EXPECT_EQ(order.optimal_above_non_optimal, 1);
  EXPECT_EQ(order.optimal_above_non_comparable, 0.5);
  EXPECT_EQ(order.non_comparable_above_non_optimal, 1);
  EXPECT_FALSE(order.holds);
  EXPECT_EQ(order.lowest_optimal, 1);
  EXPECT_EQ(order.highest_non_comparable, 2);
  EXPECT_EQ(order.lowest_non_comparable, 0.5);
  EXPECT_EQ(order.highest_non_optimal, 0.25);
  EXPECT_EQ(order.least_above_non_comparable, -1);
  EXPECT_EQ(order.least_below_non_comparable, 0.25);
  // A tie is not above.
  scores.col(2) << 1, -1, -1, 1, 0;
  EXPECT_EQ(extended_order(scores, orders).optimal_above_non_comparable, 0.5);
  // Rounding next to 0 counts as 0: neither 1e-12 above 0 nor 0 above -1e-12.
  scores.col(2) << 1, -1, -1e-12, 0, 1e-12;
  EXPECT_EQ(extended_order(scores, orders).non_comparable_above_non_optimal, 0.5);
  EXPECT_EQ(extended_order(scores, orders, 0).non_comparable_above_non_optimal, 1);
}

TEST(ExtendedOrder, WithoutPairsThereIsNothingToViolate) {
  const ExtendedOrder order = extended_order(Matrix::Zero(3, 3), copy_orders(3, {{{1}, 1}}));
  EXPECT_TRUE(order.holds);
  EXPECT_TRUE(std::isnan(order.lowest_optimal));
  EXPECT_TRUE(std::isnan(order.least_above_non_comparable));
}

TEST(ExtendedOrder, RefusesScoresThatDoNotFit) {
  const PartialOrders orders = copy_orders(3, {{{0, 1}, 0}});
  expect_bad_input({"scores have shape (3, 2)"}, [&] { extended_order(Matrix::Zero(3, 2), orders); });
  expect_bad_input({"tolerance is 1"}, [&] { extended_order(Matrix::Zero(3, 3), orders, 1); });
  Matrix scores = Matrix::Zero(3, 3);
  scores(1, 2) = std::nan("");
  expect_bad_input({"scores[1,2] is nan"}, [&] { extended_order(scores, orders); });
}

}  // namespace
}  // namespace attmirror
