// attractors(): the example that can be verified by hand, agreement with local optimality where scores
// differ, certificates that fail for anything else, and descent that ends nowhere but on the list.
#include "attractor_data.hpp"
#include "support/same_bits.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/margin/support.hpp>
#include <attmirror/sweep/attractors.hpp>

#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using Tokens = std::vector<std::int64_t>;

Matrix prompt_of(const Attention& model, double first, double second) {
  const bool prompt = std::holds_alternative<Prompt>(model.parameterization());
  Matrix W = Matrix::Zero(2, prompt ? 1 : 2);
  W(0, 0) = first;
  W(1, 0) = second;
  return W;
}

TEST(Attractors, TheIntegerExampleHasOneOfEachKind) {
  const Dataset data = test::integer_example();
  for (const Parameterization& params :
       {Parameterization(Prompt{}), Parameterization(W{}), Parameterization(KQ{})}) {
    const Attention model(data, params);
    const Attractors found = attractors(model);
    ASSERT_EQ(found.list.size(), 2u) << to_string(params);
    EXPECT_EQ(attractors(data, {}, params).list.size(), 2u);
    EXPECT_EQ(found.candidates, 4);
    EXPECT_EQ(found.examined, 4);
    EXPECT_TRUE(found.complete);

    const Attractor& whole = found.list[0];
    EXPECT_EQ(whole.kind, AttractorKind::whole);
    EXPECT_EQ(whole.tokens.tokens, (Tokens{0, 0}));
    EXPECT_EQ(whole.held, (Tokens{0, 1}));
    EXPECT_TRUE(whole.deficits.empty());
    EXPECT_TRUE(whole.locally_optimal);
    EXPECT_NEAR(whole.solution.norm, 5, 1e-7);
    EXPECT_LT((whole.solution.W - prompt_of(model, 4, 3)).norm(), 1e-5) << whole.solution.W;

    const Attractor& partial = found.list[1];
    EXPECT_EQ(partial.kind, AttractorKind::partial);
    EXPECT_EQ(partial.tokens.tokens, (Tokens{0, 1}));  // 1 and 2 are level; ties go to the first
    EXPECT_EQ(partial.held, (Tokens{0}));
    ASSERT_EQ(partial.deficits.size(), 1u);
    EXPECT_EQ(partial.deficits[0].query, 1);
    EXPECT_EQ(partial.deficits[0].token, 0);
    EXPECT_NEAR(partial.deficits[0].size, 2, 1e-5);
    EXPECT_FALSE(partial.locally_optimal);
    EXPECT_LT((partial.solution.W - prompt_of(model, 1, 0)).norm(), 1e-5) << partial.solution.W;
    for (const Attractor& one : found.list) EXPECT_TRUE(one.certificate.holds());
  }
}

// The papers' local optimality demands a margin over tokens 1 and 2 of the second sequence, too, whichever is
// selected: a support token then has an equal score.
TEST(Attractors, ThePartialOneIsNoLocallyOptimalSelection) {
  const Dataset data = test::integer_example();
  const Vector v = data.decoder().eigen().transpose();
  for (const std::int64_t second : {1, 2}) {
    const MarginProblem problem = PromptSvm{Selection{{0, second}}};
    const MarginSolution solution = max_margin(data, problem, Norm::frobenius());
    ASSERT_EQ(solution.status, MarginStatus::certified);
    EXPECT_FALSE(local_optimality(data, Selection{{0, second}}, constraints(data, problem), solution.support,
                                  linear_scores(data, v))
                     .holds);
  }
}

// Where no two scores are equal, attractors are the locally optimal selections of P1, P2 and P3, all T^n of
// them tried.
TEST(Attractors, AreTheLocallyOptimalSelectionsWhereScoresDiffer) {
  std::size_t several = 0;
  for (const double p : {1.5, 2.0, 3.0})
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const Dataset data = generate(SphereData{.samples = 3, .tokens = 4, .dim = 3, .seed = seed});
      const Attention model(data);
      const std::vector<Vector> scores = linear_scores(data, data.decoder().eigen().transpose());
      std::set<Tokens> expected;
      for (std::int64_t index = 0; index < 64; ++index) {
        const Selection tokens{{index / 16, index / 4 % 4, index % 4}};
        const MarginSolution solution = max_margin(data, tokens, Norm::l(p));
        if (solution.status != MarginStatus::certified) continue;
        if (local_optimality(data, tokens, constraints(data, AttentionSvm{tokens}), solution.support, scores)
                .holds)
          expected.insert(tokens.tokens);
      }
      const Attractors found = attractors(model, {.p = p});
      EXPECT_TRUE(found.complete);
      EXPECT_EQ(found.candidates, 64);
      std::set<Tokens> ours;
      for (const Attractor& one : found.list) {
        ours.insert(one.tokens.tokens);
        EXPECT_TRUE(one.locally_optimal);
        EXPECT_TRUE(one.certificate.holds());
        // Constraints that are not active add nothing.
        EXPECT_NEAR(one.solution.norm, max_margin(data, one.tokens, Norm::l(p)).norm, 1e-8);
      }
      EXPECT_EQ(ours, expected) << "p " << p << ", seed " << seed;
      several += expected.size() > 1;
    }
  EXPECT_GE(several, 6u);
}

TEST(Attractors, SearchFindsWhatEnumerationFinds) {
  std::int64_t partial = 0;
  for (unsigned seed = 0; seed < 8; ++seed) {
    const Dataset data = test::equal_scores(5, 3, 3, seed);
    const Attention model(data);
    const Attractors all = attractors(model), some = attractors(model, {.max_candidates = 0});
    ASSERT_EQ(all.candidates, 32);
    EXPECT_FALSE(some.complete);
    EXPECT_LE(some.examined, 32);
    ASSERT_EQ(some.list.size(), all.list.size()) << seed;
    for (std::size_t k = 0; k < all.list.size(); ++k) EXPECT_EQ(some.list[k].tokens, all.list[k].tokens);
    partial += all.count(AttractorKind::partial);
  }
  EXPECT_GE(partial, 4);
}

// Whatever is changed, the certificate notices.
TEST(Attractors, CertificatesFailForAnythingElse) {
  const Dataset data = test::integer_example();
  const Attention model(data, Prompt{});
  const Attractor partial = attractors(model).list.at(1);
  EXPECT_TRUE(verify_attractor(model, partial).holds());
  const auto changed = [&](auto change) {
    Attractor other = partial;
    change(other);
    return verify_attractor(model, other);
  };
  EXPECT_FALSE(changed([](Attractor& a) { a.solution.W *= 0.999; }).holds());
  EXPECT_FALSE(changed([](Attractor& a) { a.solution.W *= 1.001; }).holds());
  EXPECT_FALSE(changed([](Attractor& a) { a.solution.lambda *= -1; }).holds());
  EXPECT_FALSE(changed([](Attractor& a) { a.solution.W(1, 0) = 0.3; }).holds());
  EXPECT_FALSE(changed([](Attractor& a) { a.solution.W(0, 0) = std::nan(""); }).holds());
  EXPECT_THROW(changed([](Attractor& a) { a.tokens.tokens = {0, 3}; }), Error);
  EXPECT_THROW(changed([](Attractor& a) { a.solution.W.resize(2, 2); }), Error);
  EXPECT_THROW(changed([](Attractor& a) { a.tokens.tokens = {0, 0}; }), Error);  // lambda is for others

  // A second sequence that comes within the margin: best (0, 3), wrong (1, 0), a deficit of 1.
  for (const double wrong : {1.0, 0.5, 1 + 1e-9}) {
    DatasetArrays arrays;
    arrays.tokens.resize(6, 2);
    arrays.tokens << 1, 0, 0, 1, 0, -1, 0, 3, wrong, 0, wrong, -1;
    arrays.lengths = {3, 3};
    arrays.queries = Matrix::Ones(2, 2);
    arrays.labels = {1, -1};
    arrays.decoder = Vector::Unit(2, 0);
    const Dataset closer(arrays);
    const Attention other(closer, Prompt{});
    const AttractorCertificate certificate = verify_attractor(other, partial);
    EXPECT_DOUBLE_EQ(certificate.least_deficit, wrong);
    EXPECT_FALSE(certificate.holds());
    const Attractors found = attractors(other);
    EXPECT_EQ(found.count(AttractorKind::partial), 0);
    // A deficit of 1 to rounding is not decided, and then the list is not complete.
    EXPECT_EQ(found.undecided, wrong < 1 ? 0 : 1);
    EXPECT_EQ(found.complete, wrong < 1);
  }
}

// What the certificate says about the exact solution is true of one that is a little too large.
TEST(Attractors, DeficitErrorsBoundTheTruth) {
  int tried = 0;
  for (const double p : {1.2, 1.5, 2.0, 3.0, 6.0})
    for (unsigned seed = 0; seed < 12; ++seed) {
      const Dataset data = test::equal_scores(4, 3, 3, seed);
      const Attention model(data);
      for (const Attractor& one : attractors(model, {.p = p}).list) {
        if (one.kind == AttractorKind::whole) continue;
        Attractor other = one;
        const Matrix added = Matrix::Random(3, 3);
        other.solution.W += 1e-3 * added;
        const double worst = certify(attractor_constraints(model, one.tokens), Norm::l(p), other.solution.W,
                                     other.solution.lambda)
                                 .worst_margin;
        other.solution.W /= worst;
        const AttractorCertificate certificate = verify_attractor(model, other);
        EXPECT_GE(certificate.deficit_error,
                  std::abs(certificate.least_deficit - one.certificate.least_deficit) - 1e-6)
            << p << " " << seed;
        ++tried;
      }
    }
  EXPECT_GE(tried, 10);
}

// Equal tokens count once, tokens behind a mask not at all, and sequences may differ in length.
TEST(Attractors, DuplicatesMasksAndLengths) {
  DatasetArrays arrays;
  arrays.tokens.resize(9, 2);
  arrays.tokens << 1, 0, 1, 0, 0, 1, 0, -1, 0, 3, 2, 0, 2, -1, 2, 0, 50, 50;
  arrays.lengths = {4, 5};
  arrays.queries.resize(2, 2);
  arrays.queries << 1, 0, 1, 0;
  arrays.labels = {1, -1};
  arrays.decoder = Vector::Unit(2, 0);
  arrays.mask = {1, 1, 1, 1, 1, 1, 1, 1, 0};
  const Dataset data(arrays);
  const Attention model(data);
  const Attractors found = attractors(model);
  EXPECT_EQ(found.candidates, 4);
  ASSERT_EQ(found.list.size(), 2u);
  EXPECT_NEAR(found.list[0].solution.norm, 5, 1e-9);
  EXPECT_NEAR(found.list[1].solution.norm, 1, 1e-9);
  EXPECT_EQ(found.find(model, Selection{{1, 3}}), 1u);  // the second of two equal tokens, and a wrong one
  EXPECT_EQ(found.find(model, Selection{{1, 0}}), 0u);
  EXPECT_EQ(found.find(model, Selection{{2, 0}}), std::nullopt);
  Attractors again = found;
  const StartShares shares = train_starts(model, again, {.starts = 20});
  EXPECT_EQ(shares.elsewhere + shares.undecided, 0);
}

TEST(Attractors, DescentEndsNowhereElse) {
  std::int64_t partial = 0;
  for (const double p : {1.5, 2.0, 3.0})
    for (unsigned seed = 0; seed < 4; ++seed) {
      const Dataset data = test::equal_scores(6, 3, 3, seed);
      const Attention model(data);
      Attractors found = attractors(model, {.p = p});
      const std::size_t known = found.list.size();
      const StartShares shares = train_starts(model, found, {.starts = 40});
      EXPECT_EQ(found.list.size(), known);
      EXPECT_EQ(shares.elsewhere, 0) << p << " " << seed;
      EXPECT_EQ(shares.undecided, 0) << p << " " << seed;
      EXPECT_EQ(shares.total(found, AttractorKind::whole) + shares.total(found, AttractorKind::partial), 40);
      partial += shares.total(found, AttractorKind::partial);
    }
  EXPECT_GE(partial, 20);
}

// A list that lacks what runs end on is completed.
TEST(Attractors, EndsThatTheListLacksAreJudged) {
  const Dataset data = test::integer_example();
  const Attention model(data, Prompt{});
  Attractors found = attractors(model, {.max_candidates = 0, .search_starts = 0});
  ASSERT_EQ(found.list.size(), 1u);
  EXPECT_EQ(found.list[0].kind, AttractorKind::whole);
  const StartShares shares = train_starts(model, found, {.starts = 50, .std = 5});
  ASSERT_EQ(found.list.size(), 2u);
  EXPECT_GT(shares.counts[0], 0);
  EXPECT_GT(shares.counts[1], 0);
  EXPECT_EQ(shares.counts[0] + shares.counts[1], 50);
  EXPECT_TRUE(attractor_of(model, Selection{{0, 2}}));
  EXPECT_FALSE(attractor_of(model, Selection{{1, 0}}));
}

TEST(Attractors, PlainNormalizedAndFlowStay) {
  const Dataset data = test::integer_example();
  for (const Parameterization& params :
       {Parameterization(Prompt{}), Parameterization(W{}), Parameterization(KQ{})}) {
    const Attention model(data, params);
    const std::vector<AttractorCheck> checks = confirm_attractors(model, attractors(model));
    ASSERT_EQ(checks.size(), 2u);
    for (const AttractorCheck& check : checks) {
      EXPECT_TRUE(check.holds()) << to_string(params);
      EXPECT_TRUE(check.plain.stayed && check.normalized.stayed && check.flow.stayed);
      EXPECT_LT(check.start_correlation, 1 - 1e-5);
      EXPECT_GT(check.flow.correlation, 0.9999);
      EXPECT_GT(check.flow.lead, 600);  // log(1e300) = 690
    }
  }
  AttractorCheck nothing;
  EXPECT_FALSE(nothing.holds());
}

// A choice that is none of the attractors repels descent, so a check cannot hold for everything.
TEST(Attractors, WhatIsNoAttractorIsLeft) {
  const Dataset data = test::integer_example();
  const Attention model(data, Prompt{});
  Attractors forged = attractors(model);
  Attractor& second = forged.list[1];
  second.tokens.tokens = {1, 0};  // the second sequence alone: the first is only 5/13 behind
  second.solution = max_margin(attractor_constraints(model, second.tokens), Norm::frobenius());
  EXPECT_FALSE(verify_attractor(model, second).holds());
  EXPECT_NEAR(verify_attractor(model, second).least_deficit, 5.0 / 13, 1e-9);
  second.certificate.least_deficit = 2;  // what near starts are made by
  EXPECT_FALSE(confirm_attractors(model, forged).at(1).holds());
}

TEST(Attractors, ResultsDoNotDependOnThreads) {
  const Dataset data = test::equal_scores(5, 3, 3, 1);
  const Attention model(data);
  Attractors one = attractors(model, {.work = {.threads = 1}}),
             three = attractors(model, {.work = {.threads = 3}});
  ASSERT_EQ(one.list.size(), three.list.size());
  for (std::size_t k = 0; k < one.list.size(); ++k)
    EXPECT_TRUE(test::same_bits(one.list[k].solution.W, three.list[k].solution.W));
  const StartShares a = train_starts(model, one, {.starts = 30, .steps = 200, .work = {.threads = 1}});
  const StartShares b = train_starts(model, three, {.starts = 30, .steps = 200, .work = {.threads = 3}});
  EXPECT_EQ(a.counts, b.counts);
}

TEST(Attractors, InvalidCombinationsAreRefused) {
  const Dataset data = test::integer_example();
  const Attention model(data), kq(data, KQ{});
  EXPECT_THROW(attractors(model, {.p = 1}), Error);
  EXPECT_THROW(attractors(model, {.p = std::nan("")}), Error);
  EXPECT_THROW(attractors(kq, {.p = 3}), Error);
  EXPECT_THROW(attractors(model, {.max_candidates = -1}), Error);
  EXPECT_THROW(attractors(model, {.search_starts = -1}), Error);
  EXPECT_THROW(attractors(Attention(data, W{}, Logistic{}, {.head = QuadraticHead{}})), Error);
  EXPECT_THROW(attractors(Attention(data, W{}, Logistic{}, {.train = {Block::W, Block::v}})), Error);
  EXPECT_THROW(attractors(Attention(data, W{}, Logistic{}, {.penalty = 0.1})), Error);
  Attractors found = attractors(model);
  EXPECT_THROW(train_starts(model, found, {.starts = -1}), Error);
  EXPECT_THROW(train_starts(model, found, {.std = -1}), Error);
  EXPECT_THROW(train_starts(model, found, {.steps = 0}), Error);

  DatasetArrays arrays;
  arrays.tokens = Matrix::Ones(4, 2);
  arrays.lengths = {2, 2};
  arrays.queries = Matrix::Ones(2, 2);
  arrays.labels = {1, -1};
  arrays.decoder = Vector::Ones(2);
  const Dataset level(arrays);
  try {
    attractors(Attention(level));
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "all tokens of each sequence have equal scores: expected a better one to select");
  }
}

TEST(Attractors, StopEndsThem) {
  const Dataset data = test::equal_scores(5, 3, 3, 1);
  const Attention model(data);
  const StopRequest stop = StopRequest::make();
  stop.request();
  EXPECT_TRUE(attractors(model, {.work = {.stop = stop}}).interrupted);
  Attractors found = attractors(model);
  EXPECT_TRUE(train_starts(model, found, {.starts = 10, .work = {.stop = stop}}).interrupted);
  EXPECT_TRUE(confirm_attractors(model, found, {.stop = stop}).empty());
}

}  // namespace
}  // namespace attmirror
