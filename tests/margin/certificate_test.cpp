// The verifier accepts solutions that are known to be right, and refuses everything else.
#include "margin/known_solution.hpp"
#include "support/golden.hpp"
#include "support/random_data.hpp"
#include "support/special_numbers.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/margin/certificate.hpp>

#include <cmath>
#include <limits>
#include <string>

#include <Eigen/LU>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

using test::all_norms;
using test::infinity;
using test::known_solution;
using test::KnownOptions;
using test::KnownSolution;
using test::random_matrix;

Certificate certify(const KnownSolution& known, const Norm& norm) {
  return attmirror::certify(MarginConstraints(known.arrays), norm, known.W, known.lambda);
}

std::vector<KnownOptions> shapes() {
  return {{},
          {.rows = 1, .cols = 1, .active = 1, .seed = 2},
          {.rows = 7, .cols = 1, .active = 3, .seed = 3},
          {.rows = 3, .cols = 8, .active = 2, .equalities = 1, .seed = 4},
          {.rows = 10, .cols = 10, .active = 4, .inactive = 3, .loose_groups = 4, .seed = 5},
          {.rows = 6, .cols = 4, .active = 3, .zero_bounds = 1, .seed = 6},
          {.rows = 8, .cols = 6, .active = 3, .equalities = 2, .zero_bounds = 2, .seed = 7}};
}

TEST(Certificate, AcceptsKnownSolutions) {
  for (const Norm& norm : all_norms())
    for (const KnownOptions& options : shapes()) {
      SCOPED_TRACE(to_string(norm) + ", seed " + std::to_string(options.seed));
      const KnownSolution known = known_solution(norm, options);
      const Certificate c = certify(known, norm);
      EXPECT_TRUE(c.certifies(5e-13));
      EXPECT_NEAR(c.gap, 0, 5e-13);
      EXPECT_LE(c.worst_violation, 1e-13);
      EXPECT_NEAR(c.worst_margin, 1, 1e-13);
      EXPECT_NEAR(c.norm, known.norm, 1e-14 * known.norm);
      EXPECT_FALSE(c.proves_norm_above(1e10));
    }
}

// The construction keeps its promises: what it calls active is, and the rest is not.
TEST(KnownSolution, HasTheStructureThatWasAskedFor) {
  const KnownOptions options{.rows = 6, .cols = 5, .active = 3, .equalities = 1, .zero_bounds = 1, .ties = 4};
  for (const Norm& norm : all_norms()) {
    const KnownSolution known = known_solution(norm, options);
    ASSERT_EQ(known.arrays.right.rows(), 11);
    ASSERT_EQ(known.arrays.left.rows(), 10 * (3 + 1 + 2) + 2);
    std::ptrdiff_t k = 0;
    for (std::ptrdiff_t g = 0; g < 11; ++g)
      for (const std::ptrdiff_t end = k + known.arrays.group_sizes[std::size_t(g)]; k < end; ++k) {
        const double margin = known.arrays.left.row(k).dot(known.W * known.arrays.right.row(g).transpose());
        const double bound = known.arrays.bounds[std::size_t(k)];
        if (known.lambda[k] != 0)
          EXPECT_NEAR(margin, bound, 1e-12);
        else
          EXPECT_GT(margin, 1.09);
      }
    if (norm == Norm::nuclear()) {
      EXPECT_EQ(Eigen::FullPivLU<Matrix>(known.W).setThreshold(1e-12).rank(), 4);
    }
    if (norm == Norm::l(1)) {
      EXPECT_EQ((known.W.array() != 0).count(), 4);
    }
  }
}

// Each change of a right answer is refused, for every norm.
TEST(Certificate, RefusesCorruptedAnswers) {
  for (const Norm& norm : all_norms()) {
    SCOPED_TRACE(to_string(norm));
    const KnownSolution right =
        known_solution(norm, {.rows = 6, .cols = 6, .active = 2, .equalities = 1, .seed = 11});
    const double tolerance = 1e-8;
    ASSERT_TRUE(certify(right, norm).certifies(tolerance));
    const auto refused = [&](const char* what, auto change) {
      KnownSolution wrong = right;
      change(wrong);
      const Certificate c = certify(wrong, norm);
      EXPECT_FALSE(c.certifies(tolerance))
          << what << ": gap " << c.gap << ", violation " << c.worst_violation;
      EXPECT_FALSE(c.proves_norm_above(1e10)) << what;
    };
    refused("W too small", [](auto& k) { k.W *= 1 - 1e-9; });
    refused("W too large", [](auto& k) { k.W *= 1 + 1e-6; });
    refused("W negated", [](auto& k) { k.W *= -1; });
    refused("W transposed", [](auto& k) { k.W.transposeInPlace(); });
    refused("W = 0", [](auto& k) { k.W.setZero(); });
    refused("an entry of W changed", [](auto& k) { k.W(2, 3) += 1e-6; });
    refused("an entry of W moved", [](auto& k) { k.W(1, 1) -= 0.5; });
    refused("two rows of W exchanged", [](auto& k) { k.W.row(0).swap(k.W.row(1)); });
    refused("no lambda", [](auto& k) { k.lambda.setZero(); });
    refused("lambda negated", [](auto& k) { k.lambda *= -1; });
    refused("lambda backwards", [](auto& k) { k.lambda.reverseInPlace(); });
    refused("a multiplier lost", [](auto& k) { k.lambda[0] = 0; });
    refused("a multiplier doubled", [](auto& k) { k.lambda[1] *= 2; });
    refused("a multiplier at a loose constraint", [](auto& k) { k.lambda[4] = k.lambda[0]; });
    refused("an equality's multiplier negated", [](auto& k) { k.lambda[2] *= -1; });
    refused("a larger bound", [](auto& k) { k.arrays.bounds[0] += 1e-10; });
    refused("another equality", [](auto& k) { k.arrays.bounds[2] += 1e-9; });
    refused("a turned constraint", [](auto& k) { k.arrays.left.row(3) *= -1; });
    refused("another token", [](auto& k) { k.arrays.left(0, 0) += 1e-4; });
    refused("another query", [](auto& k) { k.arrays.right(0, 0) += 1e-4; });
    for (const double bad : {double(NAN), infinity, -infinity}) {
      refused("W not finite", [&](auto& k) { k.W(5, 5) = bad; });
      refused("lambda not finite", [&](auto& k) { k.lambda[3] = bad; });  // of a loose constraint
      refused("lambda all not finite", [&](auto& k) { k.lambda.setConstant(bad); });
    }
    refused("W at the end of the range", [](auto& k) { k.W *= 1e308 / k.W.cwiseAbs().maxCoeff(); });
  }
}

TEST(Certificate, AnswersThatAreNotNumbersProveNothing) {
  const Norm norm = Norm::l(1.5);
  KnownSolution known = known_solution(norm);
  const Vector lambda = known.lambda;
  known.lambda[0] = NAN;
  Certificate c = certify(known, norm);
  EXPECT_TRUE(std::isnan(c.dual) && std::isnan(c.gap) && std::isnan(c.scaled_dual));
  EXPECT_TRUE(c.feasible());
  known.lambda = lambda;
  known.W(0, 0) = -infinity;
  c = certify(known, norm);
  EXPECT_TRUE(std::isnan(c.norm) && std::isnan(c.gap));
  EXPECT_EQ(c.worst_violation, infinity);
  EXPECT_EQ(c.worst_constraint, 0);
  EXPECT_NEAR(c.dual, known.norm, 1e-12 * known.norm);
  known.W = Matrix();
  c = certify(known, norm);
  EXPECT_TRUE(std::isnan(c.norm) && std::isnan(c.gap) && !c.feasible());
  EXPECT_NEAR(c.dual, known.norm, 1e-12 * known.norm);
}

// Weak duality: no lambda gives a bound above the norm of a feasible W.
TEST(Certificate, NoMultipliersProveMoreThanIsTrue) {
  EXPECT_TRUE(rc::check([] {
    const auto norm = *rc::gen::elementOf(all_norms());
    const KnownSolution known = known_solution(
        norm, {.rows = 5, .cols = 4, .equalities = 1, .seed = *rc::gen::inRange<std::uint64_t>(1, 1000)});
    const MarginConstraints constraints(known.arrays);
    const double size = std::pow(10.0, *rc::gen::inRange(-12, 3));
    const Vector lambda = known.lambda + size * random_matrix(constraints.count(), 1,
                                                              *rc::gen::inRange<std::uint64_t>(1, 1000));
    const Certificate c = attmirror::certify(constraints, norm, known.W, lambda);
    RC_ASSERT(c.dual <= known.norm * (1 + 1e-13));
    RC_ASSERT(c.gap >= -1e-13);
  }));
}

TEST(Certificate, WithoutDemandsZeroIsBest) {
  ConstraintArrays arrays;
  arrays.left = random_matrix(4, 3, 1);
  arrays.right = random_matrix(2, 3, 2);
  arrays.group_sizes = {4, 0};
  arrays.bounds.assign(4, 0.0);
  Certificate c = certify(MarginConstraints(arrays), Norm::l(3), Matrix::Zero(3, 3), Vector::Ones(4));
  EXPECT_TRUE(c.certifies(0));
  EXPECT_EQ(c.worst_margin, infinity);
  arrays.left.resize(0, 3);
  arrays.group_sizes = {0, 0};
  arrays.bounds.clear();
  c = certify(MarginConstraints(arrays), Norm::nuclear(), Matrix::Zero(3, 3), Vector());
  EXPECT_TRUE(c.certifies(0));
  EXPECT_EQ(c.dual, 0);
}

ConstraintArrays column(const Matrix& left, double bound) {
  ConstraintArrays arrays;
  arrays.left = left;
  arrays.right = Matrix::Ones(1, 1);
  arrays.group_sizes = {left.rows()};
  arrays.bounds.assign(static_cast<std::size_t>(left.rows()), bound);
  return arrays;
}

// (1, 1) w >= 1 and (-1, -1 + delta) w >= 1: then delta w_2 >= 2. At delta = 2^-60 the two rows are opposite.
TEST(Certificate, ProvesInfeasibilityByAHairOnlyWhereItIsTrue) {
  const Vector lambda = Vector::Ones(2);
  for (int bits = 1; bits <= 52; ++bits) {
    const double delta = std::ldexp(1.0, -bits), w2 = 2 / delta, w1 = 1 - w2;
    const MarginConstraints constraints(column(Matrix{{1, 1}, {-1, -1 + delta}}, 1));
    const Matrix W{{w1}, {w2}};
    const Certificate c = certify(constraints, Norm::l(infinity), W, lambda);
    ASSERT_LE(c.dual, w2) << bits;
    EXPECT_GE(c.dual, std::min(0.9 * w2, 1e15)) << bits;
    ASSERT_TRUE(c.feasible()) << bits << " " << c.worst_violation;
    const Matrix below = W * (1 - 1e-11);
    ASSERT_FALSE(certify(constraints, Norm::l(infinity), below, lambda).feasible()) << bits;
  }
  const MarginConstraints opposite(column(Matrix{{1, 1}, {-1, -1}}, 1));
  for (const Norm& norm : all_norms()) {
    const Certificate c = certify(opposite, norm, Matrix(), lambda);
    EXPECT_TRUE(c.proves_norm_above(1e10));
    EXPECT_FALSE(certify(opposite, norm, Matrix(), Vector{{1, 1 - 1e-9}}).proves_norm_above(1e10));
  }
}

// lambda_1 a_1 = (2^50 - 1)(2^50 + 1) has 100 digits: in 64 the sum cancels to 0, and would seem to prove anything.
TEST(Certificate, RoundingOfTheSumIsNoProof) {
  const double big = std::ldexp(1.0, 50);
  const MarginConstraints constraints(column(Matrix{{big + 1}, {-big}}, 1));
  const Vector lambda{{big - 1, big}};
  for (const Norm& norm : all_norms()) {
    const Certificate c = certify(constraints, norm, Matrix(), lambda);
    EXPECT_GT(c.dual, 0);
    EXPECT_LE(c.dual, 2 * big);  // c^T lambda / |-1|
  }
}

// The same for a margin: (2^35 + 1)(2^35 - 1) - 2^70 = -1, of which 64 digits know nothing. Of 2^100 - 1 not even 128
// do enough: what is in doubt is not feasible.
TEST(Certificate, MarginsThatCancelAreFormedWithMoreDigits) {
  const auto check = [](int bits, double sign) {
    const double big = std::ldexp(1.0, bits);
    const Matrix W{{big - 1}, {big}};
    return certify(MarginConstraints(column(sign * Matrix{{-big - 1, big}}, 1)), Norm::l(2), W,
                   Vector::Ones(1));
  };
  EXPECT_EQ(check(35, 1).worst_margin, 1);
  EXPECT_EQ(check(35, 1).worst_violation, 0);
  EXPECT_EQ(check(35, -1).worst_margin, -1);
  EXPECT_EQ(check(35, -1).worst_violation, 2);
  EXPECT_FALSE(check(50, 1).feasible());
}

// Within the tolerance of a bound of 0 this W is feasible, but no W is: the two rows are opposite.
TEST(Certificate, ANegativeGapIsNoCertificate) {
  ConstraintArrays arrays = column(Matrix{{1, 1}, {-1, -1}}, 1);
  arrays.bounds[1] = 0;
  const Matrix W{{1e13}, {1 - 1e13}};
  const Certificate c = certify(MarginConstraints(arrays), Norm::l(2), W, Vector::Ones(2));
  EXPECT_TRUE(c.feasible());
  EXPECT_LT(c.gap, -1);
  EXPECT_FALSE(c.certifies(1e-8));
  EXPECT_TRUE(c.proves_norm_above(1e10));
}

TEST(Certificate, ARowOfZerosThatDemandsIsAProof) {
  const MarginConstraints constraints(column(Matrix{{0, 0}, {1, 2}}, 1));
  EXPECT_EQ(certify(constraints, Norm::l(3), Matrix(), Vector{{1, 0}}).dual, infinity);
  EXPECT_TRUE(certify(constraints, Norm::l(3), Matrix(), Vector{{1, 0}}).proves_norm_above(1e300));
  EXPECT_FALSE(certify(constraints, Norm::l(3), Matrix(), Vector{{0, 1}}).proves_norm_above(1e10));
}

TEST(Certificate, SizesOfDataDoNotMatter) {
  for (const Norm& norm : all_norms())
    for (const double size : {1e150, 1e-150}) {
      SCOPED_TRACE(to_string(norm) + " at " + std::to_string(std::log10(size)));
      KnownSolution known = known_solution(norm, {.equalities = 1, .zero_bounds = 1});
      const double scaled_dual = certify(known, norm).scaled_dual;
      known.arrays.left *= size;
      known.arrays.right *= size;
      known.W = known.W / size / size;
      known.lambda *= size;
      const Certificate c = certify(known, norm);
      EXPECT_TRUE(c.certifies(5e-13)) << c.gap << " " << c.worst_violation;
      EXPECT_NEAR(c.scaled_dual, scaled_dual, 1e-12 * scaled_dual);
    }
}

// All problems, once through their constraints and once from the data.
TEST(Certificate, ReadsProblemsFromTheDataByItself) {
  const Dataset plain = generate(SphereData{.samples = 5, .tokens = 6, .dim = 4, .seed = 3});
  const Dataset causal = with_causal_mask(generate(SphereData{
      .samples = 3, .tokens = 5, .dim = 4, .seed = 4, .query_from = SphereData::QueryFrom::all_tokens}));
  for (const Dataset* data : {&plain, &causal}) {
    Selection alpha;
    KeptTokens kept;
    std::vector<Vector> logits;
    for (std::ptrdiff_t j = 0; j < data->total_queries(); ++j) {
      const std::int64_t last = data->attended_length(j) - 1;
      alpha.tokens.push_back(j % (last + 1));
      kept.tokens.push_back({0});
      if (last > 0) kept.tokens.back().push_back(last);
      logits.push_back(random_matrix(data->length(data->sequence_of(j)), 1, 50 + std::uint64_t(j)));
    }
    std::vector<double> bounds(alpha.tokens.size(), 0.0);
    bounds[1] = 1;
    const std::vector<MarginProblem> problems = {AttentionSvm{alpha},
                                                 AttentionSvm{alpha, bounds},
                                                 PromptSvm{alpha},
                                                 PromptSvm{alpha, random_matrix(4, 4, 8), bounds},
                                                 DecoderSvm{alpha},
                                                 GeneralDirectionSvm{kept},
                                                 GeneralFiniteSvm{kept, logits}};
    for (const MarginProblem& problem : problems) {
      SCOPED_TRACE(problem_name(problem));
      const MarginConstraints rows = constraints(*data, problem);
      const Matrix W = random_matrix(rows.rows(), rows.cols(), 5);
      const Vector lambda = random_matrix(rows.count(), 1, 6).cwiseAbs();
      const Norm norm = Norm::l(1.75);
      const Certificate expected = certify(rows, norm, W, lambda);
      const Certificate c = attmirror::certify(*data, problem, norm, W, lambda);
      EXPECT_NEAR(c.dual, expected.dual, 1e-14 * expected.dual);
      EXPECT_NEAR(c.scaled_dual, expected.scaled_dual, 1e-13 * expected.scaled_dual);
      EXPECT_EQ(c.norm, expected.norm);
      EXPECT_EQ(c.worst_constraint, expected.worst_constraint);
      EXPECT_NEAR(c.worst_violation, expected.worst_violation, 1e-12 * expected.worst_violation);
      if (std::isfinite(expected.worst_margin)) {
        EXPECT_NEAR(c.worst_margin, expected.worst_margin, 1e-12 * std::fabs(expected.worst_margin));
      }
      EXPECT_THROW(attmirror::certify(*data, problem, norm, W, Vector::Ones(rows.count() + 1)), Error);
    }
  }
}

TEST(Certificate, GoldenSolutionsSatisfyTheirConstraints) {
  const test::GoldenRuns runs(test::fixture("golden_local.npz"));
  for (const auto& [p, tag] : test::golden_geometries)
    for (std::ptrdiff_t seed = 0; seed < runs.seeds(); ++seed) {
      AttentionSvm svm{{runs.selected(tag, seed)}};
      const Dataset data = runs.data(seed);
      const Vector none = Vector::Zero(42);
      const Certificate c = certify(data, svm, Norm::l(p), runs.solution(tag, seed), none);
      EXPECT_NEAR(c.worst_margin, 1, 1e-9);
      EXPECT_EQ(c.gap, 1);
      svm.tokens.tokens[2] = (svm.tokens.tokens[2] + 1) % 8;
      EXPECT_FALSE(certify(data, svm, Norm::l(p), runs.solution(tag, seed), none).feasible());
    }
}

TEST(Certificate, ShapesThatDoNotFitAreNamed) {
  const MarginConstraints constraints(known_solution(Norm::l(2), {.rows = 3, .cols = 2}).arrays);
  const auto message = [&](const Matrix& W, const Vector& lambda) {
    try {
      certify(constraints, Norm::l(2), W, lambda);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const Vector lambda = Vector::Zero(constraints.count());
  EXPECT_EQ(message(Matrix::Zero(3, 2), lambda), "accepted");
  EXPECT_EQ(message(Matrix::Zero(2, 3), lambda), "W has shape (2, 3): expected (3, 2)");
  EXPECT_EQ(message(Matrix::Zero(3, 2), Vector::Zero(7)),
            "lambda has 7 entries: expected 18, one per constraint");
  EXPECT_EQ(message(Matrix::Zero(3, 2), Vector::Zero(19)),
            "lambda has 19 entries: expected 18, one per constraint");
}

}  // namespace
}  // namespace attmirror
