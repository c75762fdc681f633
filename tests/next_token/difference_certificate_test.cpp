#include "next_token/difference_certificate.hpp"

#include "next_token/difference_parts.hpp"
#include "next_token/target_data.hpp"
#include "support/special_numbers.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

using test::infinity;

// The same problem as dense constraints of one column.
MarginConstraints dense(const std::vector<Difference>& differences, std::ptrdiff_t unknowns) {
  ConstraintArrays arrays;
  arrays.left = Matrix::Zero(std::ssize(differences), unknowns);
  arrays.right = Matrix::Ones(1, 1);
  arrays.group_sizes = {std::ssize(differences)};
  for (std::size_t k = 0; k < differences.size(); ++k) {
    arrays.left(static_cast<std::ptrdiff_t>(k), differences[k].better) = 1;
    arrays.left(static_cast<std::ptrdiff_t>(k), differences[k].worse) = -1;
    arrays.bounds.push_back(differences[k].bound());
    arrays.relations.push_back(differences[k].relation);
  }
  return MarginConstraints(arrays);
}

struct Claim {
  std::vector<Difference> differences;
  std::vector<double> scores, lambda;
};

Claim random_claim() {
  Claim claim;
  const int unknowns = *rc::gen::inRange(2, 9);
  const auto number = rc::gen::map(rc::gen::inRange(-1'000'000, 1'000'000), [](int i) { return i * 3.7e-6; });
  for (int i = 0; i < unknowns; ++i) claim.scores.push_back(*number);
  const int count = *rc::gen::inRange(1, 12);
  for (int k = 0; k < count; ++k) {
    const int a = *rc::gen::inRange(0, unknowns), step = *rc::gen::inRange(1, unknowns);
    claim.differences.push_back(
        {a, (a + step) % unknowns, *rc::gen::inRange(0, 4) == 0 ? Relation::equal : Relation::at_least});
    claim.lambda.push_back(*number);
  }
  return claim;
}

TEST(DifferenceCertificate, SaysWhatTheDenseVerifierSays) {
  EXPECT_TRUE(rc::check([] {
    const Claim claim = random_claim();
    const Norm norm = Norm::l(*rc::gen::element(1.0, 1.3, 2.0, 3.0, 40.0, infinity));
    const Certificate a = certify_differences(claim.differences, norm, claim.scores, claim.lambda);
    const auto unknowns = std::ssize(claim.scores);
    const Certificate b = certify(dense(claim.differences, unknowns), norm,
                                  Eigen::Map<const Vector>(claim.scores.data(), unknowns),
                                  Eigen::Map<const Vector>(claim.lambda.data(), std::ssize(claim.lambda)));
    const auto same = [](double x, double y) { return x == y || std::fabs(x - y) <= 1e-14 * std::fabs(y); };
    RC_ASSERT(same(a.norm, b.norm));
    // A sum that cancels to 0 leaves each bound with its own charge for rounding: both are then beyond belief.
    RC_ASSERT(same(a.dual, b.dual) || (a.dual > 1e15 && b.dual > 1e15));
    RC_ASSERT(same(a.scaled_dual, b.scaled_dual) || (a.dual > 1e15 && b.dual > 1e15) ||
              std::isnan(b.scaled_dual));
    RC_ASSERT(same(a.worst_margin, b.worst_margin));
    RC_ASSERT(std::fabs(a.worst_violation - b.worst_violation) <= 1e-15 * (1 + b.worst_violation));
    RC_ASSERT(a.worst_violation < 1e-15 || a.worst_constraint == b.worst_constraint);
  }));
}

TEST(DifferenceCertificate, NotFiniteProvesNothing) {
  const std::vector<Difference> one{{0, 1, Relation::at_least}};
  const Certificate scores =
      certify_differences(one, Norm::frobenius(), std::vector{std::nan(""), 0.0}, std::vector{1.0});
  EXPECT_FALSE(scores.certifies(1));
  EXPECT_NEAR(scores.dual, std::sqrt(0.5), 1e-14);
  EXPECT_FALSE(certify_differences(one, Norm::frobenius(), std::vector{0.5, -0.5}, std::vector{infinity})
                   .certifies(1));
  EXPECT_TRUE(
      certify_differences(one, Norm::frobenius(), std::vector{0.5, -0.5}, std::vector{3.0}).certifies(1e-14));
}

TEST(CombinedCertificate, IsTheOneOfTheWhole) {
  // Two parts: one better against three worse, and a pair.
  const std::vector<Difference> first{{0, 1}, {0, 2}, {0, 3}}, second{{0, 1}};
  const std::vector<Difference> both{{0, 1}, {0, 2}, {0, 3}, {4, 5}};
  for (const double p : {1.0, 1.2, 2.0, 5.0, infinity}) {
    const Norm norm = Norm::l(p);
    const std::vector<double> s1{0.8, -0.2, -0.25, -0.3}, s2{0.6, -0.45};
    const std::vector<double> l1{0.3, 0.4, 0.3}, l2{1};
    const Certificate a = certify_differences(first, norm, s1, l1),
                      b = certify_differences(second, norm, s2, l2);
    CombinedCertificate combined(norm);
    combined.add(a, 0);
    combined.add(b, 3);
    const Certificate result = combined.result();
    // Multipliers of each part scaled so that they add up to dual^p.
    const double f1 = std::isinf(p) ? (a.dual >= b.dual) : std::pow(a.dual, p),
                 f2 = std::isinf(p) ? (b.dual >= a.dual) : std::pow(b.dual, p);
    const std::vector<double> scores{0.8, -0.2, -0.25, -0.3, 0.6, -0.45};
    const std::vector<double> lambda{0.3 * f1, 0.4 * f1, 0.3 * f1, f2};
    const Certificate whole = certify_differences(both, norm, scores, lambda);
    EXPECT_NEAR(result.norm, whole.norm, 1e-14);
    EXPECT_NEAR(result.dual, whole.dual, 1e-14);
    EXPECT_NEAR(result.gap, whole.gap, 1e-14);
    EXPECT_NEAR(result.scaled_dual, whole.scaled_dual, 1e-14);
    EXPECT_EQ(result.worst_margin, whole.worst_margin);
    EXPECT_EQ(result.worst_constraint, whole.worst_constraint);
  }
}

TEST(DifferenceParts, AreWhatComparisonsConnect) {
  const DifferenceProblem::Group group{9, {{4, 1}, {0, 7}, {4, 2}, {7, 3, Relation::equal}, {5, 1}}};
  const std::vector<DifferencePart> parts = connected_parts(group, 10);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].tokens, (std::vector<Token>{4, 1, 2, 5}));
  EXPECT_EQ(parts[0].constraints, (std::vector<std::ptrdiff_t>{0, 2, 4}));
  EXPECT_EQ(parts[1].tokens, (std::vector<Token>{0, 7, 3}));
  EXPECT_EQ(parts[1].differences[1].relation, Relation::equal);
}

TEST(DifferenceParts, AnIncompleteComparisonIsNotGivenTheClosedForm) {
  // 0 and 1 beat 2; only 0 beats 3.
  const DifferencePart part{{0, 1, 2, 3}, {{0, 2}, {0, 3}, {1, 2}}, {0, 1, 2}};
  const PartAnswer answer = solve_part(part, Norm::frobenius(), {});
  EXPECT_FALSE(answer.closed_form);
  EXPECT_EQ(answer.status, MarginStatus::certified);
  // All three are tight: the smallest scores of a path 1 - 2 - 0 - 3.
  EXPECT_NEAR(answer.scores[0], 0.5, 1e-10);
  EXPECT_NEAR(answer.scores[3], -0.5, 1e-10);
}

}  // namespace
}  // namespace attmirror
