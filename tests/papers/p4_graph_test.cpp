#include "papers/graph_study.hpp"
#include "papers/result_of.hpp"
#include <attmirror/next_token/graph_svm.hpp>

#include <cmath>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::named;

TEST(P4Graph, TrainingGoesAsFinitePartPlusDirection) {
  const ExperimentResult result = test::quick_result("p4-graph");
  test::expect_sound(result);
  for (const char* name :
       {"attention, one-hot", "attention, gaussian", "collocations, one-hot", "collocations, gaussian"}) {
    const std::string text = name;
    EXPECT_NEAR(named(result, text + ": slope of R").ours, 1, 0.08);
    EXPECT_NEAR(named(result, text + ": loss above its floor").ours, 1, 0.05);
    EXPECT_NEAR(named(result, text + ": exponent of the finite part's error").ours, -1, 0.08);
    EXPECT_LT(named(result, text + ": the finite part's error, last step").ours, 0.05);
    EXPECT_LT(named(result, text + ": 1 - cos").ours, 0.8);
  }
  // Stage 1 with one-hot tokens is the cleanest: its laws hold to a percent.
  EXPECT_NEAR(named(result, "collocations, one-hot: loss above its floor").ours, 1, 0.01);
  EXPECT_NEAR(named(result, "collocations, one-hot: exponent of that 1 - cos").ours, -2, 0.1);
  // Normalized steps stop at half a step either side.
  EXPECT_NEAR(named(result, "attention, one-hot, normalized: the finite part's error").ours, 1, 0.05);
  EXPECT_EQ(named(result, "limits without").ours, 0);
  EXPECT_LT(named(result, "largest difference of the loss's floor").ours, 1e-12);
  // The larger W_ov, the nearer the two-stage model is to the floor, and the smaller are the differences that it needs.
  EXPECT_LT(named(result, "1000 steps of stage 1: loss above").ours,
            named(result, "300 steps of stage 1: loss above").ours);
  EXPECT_LT(named(result, "1000 steps of stage 1: largest").ours,
            named(result, "300 steps of stage 1: largest").ours);
}

TEST(P4Graph, DataContradictThemselvesInPartOnly) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const graph_study::ContradictoryData data = graph_study::contradictory_data(seed);
    const PartialOrders orders(data.sentences, data.hard);
    EXPECT_TRUE(orders.unexplained().empty());
    EXPECT_TRUE(orders.find_cycle());
    const PriorityGraph graph(orders);
    bool ordered = false;
    for (const Token q : orders.queries()) ordered = ordered || graph.components(q).size() > 1;
    EXPECT_TRUE(ordered) << "else there is nothing to separate";
    EXPECT_FALSE(data.soft.is_hard());
    EXPECT_TRUE(data.hard.is_hard());
  }
}

}  // namespace
}  // namespace attmirror
