// Layers with an output at every token: training and paths turn to the SVM of all queries.
#include "papers/causal_study.hpp"
#include "papers/result_of.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/margin/max_margin.hpp>

namespace attmirror {
namespace {

TEST(P3Causal, TrainingAndPathsTurnToTheSvmOfAllQueries) {
  const ExperimentResult result = test::quick_result("p3-causal");
  test::expect_sound(result);
  for (const causal::Layer& layer : causal::layers) {
    const auto number = [&](const std::string& what) {
      return test::named(result, std::string(layer.name) + ": " + what).ours;
    };
    EXPECT_LT(number("median 1 - correlation with the SVM of all queries"), .01) << layer.name;
    EXPECT_GT(number("the same with the SVM of the last query"), .3) << layer.name;
    EXPECT_LT(number("share that the margin lacks"), .005) << layer.name;
    EXPECT_GT(number("share of runs on locally optimal tokens"), .7) << layer.name;
    if (layer.causal) {
      EXPECT_GT(number("the same with the SVM without the mask"), .1) << layer.name;
    }
  }
  EXPECT_EQ(test::named(result, "that are certified").ours, 1);
}

// 3 sequences of 5 tokens: a causal mask leaves query k the tokens up to k, hence 0 + 1 + 2 + 3 + 4 constraints each.
TEST(P3Causal, HasABlockOfConstraintsForEveryQuery) {
  const Dataset masked = causal::causal_data(0, true), all = causal::causal_data(0, false);
  EXPECT_EQ(constraints(masked, AttentionSvm{optimal_tokens(masked)}).count(), 3 * 10);
  EXPECT_EQ(constraints(all, AttentionSvm{optimal_tokens(all)}).count(), 3 * 5 * 4);
}

}  // namespace
}  // namespace attmirror
