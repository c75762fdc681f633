// The assumptions of the theorems on data whose answers are known by hand, and their refusals.
#include "support/random_data.hpp"
#include <attmirror/attention/smoothness.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/margin/theory.hpp>

#include <cmath>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using enum AssumptionStatus;

// One sequence of tokens in the plane, query (1, 0), v = (1, 0), label +1: scores are first coordinates.
DatasetArrays one_sequence(const Matrix& tokens) {
  DatasetArrays arrays;
  arrays.tokens = tokens;
  arrays.lengths = {tokens.rows()};
  arrays.queries = Matrix{{1.0, 0.0}};
  arrays.labels = {1};
  arrays.decoder = Vector{{1.0, 0.0}};
  return arrays;
}

TEST(Theory, KnowsAProblemSolvedByHand) {
  const Dataset data(one_sequence(Matrix{{1.0, 0.0}, {0.0, 1.0}, {-1.0, 0.0}}));
  const TheoryReport report = check_theory(data, {.lr = 0.1});
  ASSERT_EQ(report.checks.size(), all_assumptions.size());
  for (std::size_t k = 0; k < all_assumptions.size(); ++k)
    EXPECT_EQ(report.checks[k].what, all_assumptions[k]);
  EXPECT_EQ(report.tokens, (Selection{{0}}));
  // Scores 1, 0 and -1.
  EXPECT_TRUE(report.holds(Assumption::unique_best));
  EXPECT_NEAR(report.at(Assumption::unique_best).value, 1, 1e-15);
  EXPECT_EQ(report.at(Assumption::equal_scores).status, fails);
  EXPECT_NEAR(report.at(Assumption::equal_scores).value, 1, 1e-15);
  // (1, -1) w >= 1 and (2, 0) w >= 1 are both active at w = (1/2, -1/2), the first column of W.
  EXPECT_TRUE(report.holds(Assumption::separable));
  EXPECT_NEAR(report.at(Assumption::separable).value, std::sqrt(2.0), 1e-9);
  EXPECT_TRUE(report.holds(Assumption::all_support));
  EXPECT_EQ(report.at(Assumption::all_support).value, 1);
  // -grad L(0) is along (1, 0): margins 1 and 2, and the largest least margin is sqrt(2).
  EXPECT_TRUE(report.holds(Assumption::initial_gradient));
  EXPECT_NEAR(report.at(Assumption::initial_gradient).value, 1 / std::sqrt(2.0), 1e-9);
  // Under another v, the token (0, 1) alone has the same label margin 1 as (1, 0).
  EXPECT_EQ(report.at(Assumption::label_margin).status, fails);
  // |X|^2 = 2, hence L = 4/4 + 3 * 2 sqrt(2).
  EXPECT_NEAR(*report.lipschitz, 1 + 6 * std::sqrt(2.0), 1e-12);
  EXPECT_TRUE(report.holds(Assumption::step_size));
  EXPECT_EQ(check_theory(data, {.lr = 0.11}).at(Assumption::step_size).status, fails);
  EXPECT_EQ(check_theory(data).at(Assumption::step_size).status, not_applicable);
  EXPECT_NEAR(check_theory(data).at(Assumption::step_size).value, 1 / *report.lipschitz, 1e-15);
}

TEST(Theory, SeesTheFirstStepGoWrong) {
  // The worst token pushes the first step away from all that lie in its direction.
  const Dataset data(one_sequence(Matrix{{1.0, 0.0}, {0.9, 5.0}, {0.9, 5.1}, {-1.0, 6.0}}));
  const AssumptionCheck check = check_theory(data).at(Assumption::initial_gradient);
  // s = 1/4 each and m = 0.45: sum s (gamma - m) x = (0.55 (1, 0) + 0.45 (0.9, 5) + 0.45 (0.9, 5.1) - 1.45 (-1, 6)) / 4
  // = (2.81, -4.155) / 4, whose margins over the others are 2.81 * 0.1 + 4.155 * 5 and more: it separates them.
  EXPECT_EQ(check.status, holds);
  const Dataset other(one_sequence(Matrix{{1.0, 0.0}, {0.9, 5.0}, {-1.0, 0.0}}));
  // m = 0.3: (0.7 (1, 0) + 0.6 (0.9, 5) - 1.3 (-1, 0)) / 3 = (2.54, 3) / 3, and (0.1, -5) of token 1 has a negative
  // margin.
  const AssumptionCheck wrong = check_theory(other).at(Assumption::initial_gradient);
  EXPECT_EQ(wrong.status, fails);
  EXPECT_LT(wrong.value, 0);
}

// There is nothing to prefer to: the gradient is 0, and no step could go wrong.
TEST(Theory, OneTokenIsSelectedFromTheFirstStep) {
  const Dataset data(one_sequence(Matrix{{1.0, 0.0}}));
  EXPECT_TRUE(check_theory(data).holds(Assumption::initial_gradient));
}

TEST(Theory, KnowsEqualScores) {
  const auto check = [](SingleInputData::Scores scores) {
    return check_theory(generate(SingleInputData{.scores = scores}),
                        {.parameterization = Prompt{score_blind_key_weights()}})
        .at(Assumption::equal_scores);
  };
  EXPECT_EQ(check(SingleInputData::Scores::equal).status, holds);
  EXPECT_EQ(check(SingleInputData::Scores::unequal).status, fails);
  EXPECT_NEAR(check(SingleInputData::Scores::unequal).value, 0.9, 1e-6);
  // A tie at the top: no token is best.
  const TheoryReport tie = check_theory(Dataset(one_sequence(Matrix{{1.0, 0.0}, {1.0, 1.0}, {0.0, 0.0}})));
  EXPECT_EQ(tie.at(Assumption::unique_best).status, fails);
}

TEST(Theory, ProvesThatTokensCannotBeSeparated) {
  // Token 1 is the mean of the two others.
  DatasetArrays arrays = one_sequence(Matrix{{0.0, 0.0}, {1.0, 1.0}, {2.0, 2.0}});
  arrays.decoder = Vector{};
  const TheoryReport report = check_theory(Dataset(arrays), {.tokens = Selection{{1}}});
  EXPECT_EQ(report.at(Assumption::separable).status, fails);
  EXPECT_EQ(report.at(Assumption::separable).value, 0);
  for (const Assumption what : {Assumption::unique_best, Assumption::equal_scores, Assumption::all_support,
                                Assumption::initial_gradient, Assumption::step_size})
    EXPECT_EQ(report.at(what).status, not_applicable) << to_string(what);
}

// P2's joint data: the other token of every sequence is 0. v = (0, 1), the support vectors (1, 1) and -(1, -1) have
// lambda = 1/2 each, so dropping one leaves |(1/2, 1/2)| of the margin 1.
TEST(Theory, ProvesTheLabelMarginOfJointTraining) {
  const Dataset data = generate(JointPromptData{.label_margin = JointPromptData::LabelMargin::slack});
  const TheoryReport report = check_theory(data, {.tokens = Selection{{1, 1, 1}}});
  const AssumptionCheck& check = report.at(Assumption::label_margin);
  EXPECT_EQ(check.status, holds) << check.detail;
  EXPECT_NEAR(check.value, 1, 1e-9);
  EXPECT_NE(check.detail.find("nu = 0.293 for the label margin 1"), std::string::npos) << check.detail;
  // To first order: a token farther on the side of the label.
  const Dataset beyond(one_sequence(Matrix{{1.0, 0.0}, {2.0, 0.0}}));
  const AssumptionCheck wrong = check_theory(beyond, {.tokens = Selection{{0}}}).at(Assumption::label_margin);
  EXPECT_EQ(wrong.status, fails);
  EXPECT_NEAR(wrong.value, -1, 1e-9);
  EXPECT_NE(wrong.detail.find("mixing token 1 into query 0"), std::string::npos) << wrong.detail;
  // Selected tokens that no v classifies: the same token with both labels.
  DatasetArrays both = one_sequence(Matrix{{1.0, 0.0}, {0.0, 1.0}, {1.0, 0.0}, {0.0, 1.0}});
  both.lengths = {2, 2};
  both.queries = Matrix{{1.0, 0.0}, {0.0, 1.0}};
  both.labels = {1, -1};
  EXPECT_EQ(check_theory(Dataset(both), {.tokens = Selection{{0, 0}}}).at(Assumption::label_margin).status,
            fails);
}

// The proof of the label margin against what it is about: no mixture that was drawn has a larger margin.
TEST(Theory, LabelMarginHoldsForMixtures) {
  int held = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    // Short tokens beside the selected ones, as noise beside a signal.
    DatasetArrays arrays =
        test::arrays_of(generate(SphereData{.samples = 3, .tokens = 3, .dim = 6, .seed = seed}));
    for (const std::ptrdiff_t row : {1, 2, 4, 5, 7, 8}) arrays.tokens.row(row) *= 0.3;
    const Dataset data(arrays);
    const TheoryReport report = check_theory(data, {.tokens = Selection{{0, 0, 0}}});
    if (!report.holds(Assumption::label_margin)) continue;
    ++held;
    DatasetArrays mixed;
    mixed.lengths = {1, 1, 1};
    mixed.queries = data.queries().eigen();
    mixed.labels.assign(data.labels().begin(), data.labels().end());
    for (std::uint64_t draw = 0; draw < 5; ++draw) {
      mixed.tokens = Matrix(3, 6);
      for (std::ptrdiff_t i = 0; i < 3; ++i) {
        const Vector s = test::random_matrix(3, 1, 100 * seed + 10 * draw + static_cast<std::uint64_t>(i))
                             .col(0)
                             .cwiseAbs();
        mixed.tokens.row(i) = (s / s.sum()).transpose() * data.tokens(i).eigen();
      }
      const MarginSolution svm =
          max_margin(Dataset(mixed), DecoderSvm{Selection{{0, 0, 0}}}, Norm::frobenius());
      if (svm.status == MarginStatus::certified) {
        EXPECT_GT(svm.norm, report.decoder.norm) << seed;
      }
    }
  }
  EXPECT_GE(held, 3);
}

TEST(Theory, LooksOnlyAtTokensThatTheMaskAllows) {
  DatasetArrays arrays = one_sequence(Matrix{{1.0, 0.0}, {0.0, 1.0}, {0.0, 2.0}, {5.0, 5.0}});
  arrays.mask = {1, 1, 1, 0};
  const TheoryReport report = check_theory(Dataset(arrays));
  EXPECT_EQ(report.tokens, (Selection{{0}}));
  EXPECT_TRUE(report.holds(Assumption::unique_best));
  EXPECT_TRUE(report.holds(Assumption::equal_scores));
}

TEST(Theory, TakesTheNuclearNormAndTheStartOfFactors) {
  const Dataset data = generate(SphereData{.samples = 3, .tokens = 3, .dim = 6, .seed = 2});
  const TheoryReport zero = check_theory(data, {.parameterization = KQ{}});
  EXPECT_EQ(zero.norm, Norm::nuclear());
  EXPECT_EQ(zero.at(Assumption::initial_gradient).status, not_applicable);
  EXPECT_EQ(zero.at(Assumption::step_size).status, not_applicable);
  Parameters start;
  // K = Q = I move K Q^T along -(G + G^T^T) = -2 G, the direction of W at the identity.
  start.K = start.Q = Matrix::Identity(6, 6);
  const AssumptionCheck factors =
      check_theory(data, {.parameterization = KQ{}, .start = start}).at(Assumption::initial_gradient);
  Parameters identity;
  identity.W = Matrix::Identity(6, 6);
  const TheoryReport whole = check_theory(data, {.start = identity});
  EXPECT_EQ(factors.status, whole.at(Assumption::initial_gradient).status);
  EXPECT_NEAR(factors.value, whole.at(Assumption::initial_gradient).value / whole.svm.norm, 1e-9);
}

TEST(Theory, RefusesWhatDoesNotFit) {
  const Dataset joint = generate(JointData{}), data = generate(SphereData{});
  EXPECT_THROW(check_theory(joint), Error);  // no decoder, no tokens
  EXPECT_THROW(check_theory(data, {.tokens = Selection{{0}}}), Error);
  EXPECT_THROW(check_theory(data, {.lr = 0.0}), Error);
  EXPECT_THROW(check_theory(data, {.lr = std::nan("")}), Error);
  EXPECT_THROW(check_theory(data, {.score_tolerance = -1}), Error);
  EXPECT_EQ(theory_table(check_theory(data)).rows.size(), all_assumptions.size());
}

}  // namespace
}  // namespace attmirror
