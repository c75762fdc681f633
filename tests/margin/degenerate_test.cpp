// Input at the edge: never a wrong `certified`, never a hang.
#include "margin/random_constraints.hpp"
#include "support/random_data.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/margin/max_margin.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::arrays_of;
using test::random_constraints;

std::vector<Norm> some_norms() {
  std::vector<Norm> norms;
  for (const char* name : {"1", "1.1", "1.5", "2", "3", "50", "inf", "nuclear", "schatten:1.5", "spectral"})
    norms.push_back(parse_norm(name));
  return norms;
}

Dataset small(std::int64_t n = 3, std::int64_t T = 4, std::int64_t d = 5, std::uint64_t seed = 1) {
  return generate(SphereData{.samples = n, .tokens = T, .dim = d, .seed = seed});
}

TEST(Degenerate, DuplicateTokenIsInfeasibleAndNamed) {
  DatasetArrays arrays = arrays_of(small());
  arrays.tokens.row(4 + 2) = arrays.tokens.row(4 + 1);  // tokens 1 and 2 of sequence 1
  const Dataset data(arrays);
  for (const Norm& norm : some_norms()) {
    const MarginSolution svm = max_margin(data, Selection{{0, 1, 0}}, norm);
    EXPECT_EQ(svm.status, MarginStatus::infeasible) << to_string(norm);
    ASSERT_EQ(svm.conflict.size(), 1u);
    const MarginConstraints rows = constraints(data, AttentionSvm{Selection{{0, 1, 0}}});
    EXPECT_EQ(rows.origins()[static_cast<std::size_t>(svm.conflict[0])], (ConstraintOrigin{1, 0, 2}));
    // Where neither of the two is selected, they only repeat a constraint.
    EXPECT_EQ(max_margin(data, Selection{{0, 0, 0}}, norm).status, MarginStatus::certified)
        << to_string(norm);
  }
}

TEST(Degenerate, ZeroQueryIsInfeasible) {
  DatasetArrays arrays = arrays_of(small());
  arrays.queries.row(2).setZero();
  const Dataset data(arrays);
  for (const Norm& norm : some_norms())
    EXPECT_EQ(max_margin(data, Selection{{0, 1, 0}}, norm).status, MarginStatus::infeasible)
        << to_string(norm);
}

TEST(Degenerate, NothingToSeparate) {
  const Dataset data = small(3, 1, 5);
  for (const Norm& norm : some_norms()) {
    const MarginSolution svm = max_margin(data, Selection{{0, 0, 0}}, norm);
    EXPECT_EQ(svm.status, MarginStatus::certified) << to_string(norm);
    EXPECT_EQ(svm.norm, 0);
    EXPECT_EQ(svm.gap, 0);
    EXPECT_TRUE(svm.W.isZero(0));
    EXPECT_EQ(svm.lambda.size(), 0);
  }
}

// One constraint: the answer is its bound over the dual norm of A.
TEST(Degenerate, OneConstraint) {
  for (const Norm& norm : some_norms())
    for (const std::ptrdiff_t d : {1, 4}) {
      const ConstraintArrays arrays = random_constraints(1, 1, d, d, 3);
      const MarginSolution svm = max_margin(MarginConstraints(arrays), norm);
      EXPECT_EQ(svm.status, MarginStatus::certified) << to_string(norm) << " d = " << d << "\n"
                                                     << svm.report();
      EXPECT_NEAR(svm.norm * attmirror::norm(test::constraint_matrix(arrays, 0), norm.dual()), 1, 1e-8);
    }
}

// In one dimension a margin is a product: the hardest constraint decides, or two signs contradict each other.
TEST(Degenerate, OneDimension) {
  ConstraintArrays arrays = random_constraints(5, 2, 1, 1, 4);
  const double sign = arrays.left(0, 0) * arrays.right(0, 0) > 0 ? 1 : -1;
  double hardest = std::numeric_limits<double>::infinity();
  for (std::ptrdiff_t k = 0; k < 10; ++k) {
    const double product = sign * arrays.left(k, 0) * arrays.right(k / 2, 0);
    ASSERT_GT(product, 0);
    hardest = std::min(hardest, product);
  }
  for (const Norm& norm : some_norms()) {
    EXPECT_NEAR(max_margin(MarginConstraints(arrays), norm).norm * hardest, 1, 1e-8) << to_string(norm);
    ConstraintArrays contradictory = arrays;
    contradictory.left(7, 0) *= -1;
    const MarginSolution svm = max_margin(MarginConstraints(contradictory), norm);
    EXPECT_EQ(svm.status, MarginStatus::infeasible) << to_string(norm) << svm.report();
    EXPECT_GE(svm.conflict.size(), 2u);
  }
}

// Two constraints that nearly contradict each other: a and -a turned by a small angle. The norm grows like 1 / angle.
TEST(Degenerate, InfeasibleByAHair) {
  for (const Norm& norm : some_norms())
    for (const double angle : {1e-3, 1e-6, 1e-9, 1e-11, 1e-13, 0.0}) {
      ConstraintArrays arrays;
      arrays.left = Matrix{{1, angle}, {-1, angle}};
      arrays.right = Matrix{{1, 0.5}};
      arrays.group_sizes = {2};
      arrays.bounds = {1, 1};
      const MarginConstraints constraints(arrays);
      // Entries of 1 / angle are rounded by 1e-16 / angle: no gap of 1e-10 at 1e-6.
      const MarginSolution svm = max_margin(constraints, norm, {.tol = 1e-8});
      SCOPED_TRACE(to_string(norm) + ", angle " + std::to_string(angle) + "\n" + svm.report());
      if (angle >= 1e-6) {
        EXPECT_EQ(svm.status, MarginStatus::certified);
      }
      if (angle <= 1e-13) {
        EXPECT_EQ(svm.status, MarginStatus::infeasible);
      }
      if (svm.status == MarginStatus::certified) {
        EXPECT_TRUE(certify(constraints, norm, svm.W, svm.lambda).certifies(1e-8));
      }
      if (svm.status == MarginStatus::infeasible) {
        const double bound = certify(constraints, norm, Matrix(), svm.lambda).dual;
        EXPECT_GT(bound, 1e9);
        if (angle > 0) {  // a W of about this norm exists
          EXPECT_LE(bound, 4 / angle);
        }
      }
    }
}

TEST(Degenerate, MarginOf1e_12) {
  DatasetArrays arrays = arrays_of(small());
  arrays.tokens.row(1) = arrays.tokens.row(0);
  arrays.tokens(1, 2) += 1e-12;
  const Dataset data(arrays);
  for (const Norm& norm : some_norms()) {
    const MarginSolution svm = max_margin(data, Selection{{0, 1, 0}}, norm);
    EXPECT_NE(svm.status, MarginStatus::infeasible) << to_string(norm) << "\n" << svm.report();
    if (svm.status == MarginStatus::certified) {
      EXPECT_GT(svm.norm, 1e11);
    }
  }
}

TEST(Degenerate, HugeAndTinyValues) {
  for (const double size : {1e150, 1e-140}) {
    DatasetArrays arrays = arrays_of(small());
    const Dataset plain(arrays);
    arrays.tokens *= size;
    const Dataset data(arrays);
    for (const Norm& norm : some_norms()) {
      const MarginSolution expected = max_margin(plain, Selection{{0, 1, 2}}, norm);
      const MarginSolution svm = max_margin(data, Selection{{0, 1, 2}}, norm);
      EXPECT_EQ(svm.status, MarginStatus::certified) << to_string(norm) << svm.report();
      EXPECT_NEAR(svm.norm * size / expected.norm, 1, 2e-8) << to_string(norm);
    }
  }
}

TEST(Degenerate, EqualitiesThatContradictEachOther) {
  ConstraintArrays arrays = random_constraints(1, 3, 3, 4, 6);
  arrays.relations.assign(3, Relation::equal);
  arrays.left.row(2) = arrays.left.row(0) + arrays.left.row(1);
  arrays.bounds = {1, -2, -1};
  for (const Norm& norm : some_norms()) {
    EXPECT_EQ(max_margin(MarginConstraints(arrays), norm).status, MarginStatus::certified) << to_string(norm);
    ConstraintArrays wrong = arrays;
    wrong.bounds[2] = 5;
    EXPECT_EQ(max_margin(MarginConstraints(wrong), norm).status, MarginStatus::infeasible) << to_string(norm);
  }
}

TEST(Degenerate, LimitsStopWithAReason) {
  const Dataset data = small(6, 8, 10);
  const Selection opt = optimal_tokens(data);
  const MarginSolution few = max_margin(data, opt, Norm::l(1.1), {.max_iterations = 1});
  EXPECT_EQ(few.status, MarginStatus::stopped);
  EXPECT_EQ(few.reason, "the limit of 1 iterations is reached");
  const MarginSolution late = max_margin(data, opt, Norm::nuclear(), {.max_seconds = 1e-9});
  EXPECT_EQ(late.status, MarginStatus::stopped);
  EXPECT_EQ(late.reason, "the time limit of 1e-09 s is reached");
}

TEST(Degenerate, BadOptionsAreNamed) {
  const Dataset data = small();
  const auto message = [&](const MarginOptions& options, const Norm& norm) -> std::string {
    try {
      max_margin(data, Selection{{0, 0, 0}}, norm, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message({.tol = 0.0}, Norm::l(3)), "tol is 0: expected a number from 1e-14 to below 1");
  EXPECT_EQ(message({.max_norm = -1}, Norm::l(3)), "max_norm is -1: expected a number greater than 0");
  EXPECT_EQ(message({.max_rank = 2}, Norm::l(3)),
            "max_rank is 2: only the nuclear norm takes one, and the norm is 3");
  EXPECT_EQ(message({.method = MarginMethod::active_set}, Norm::nuclear()),
            "method is active-set: it solves l_p with 1 < p < inf, and the norm is nuclear");
  try {
    max_margin(data, Selection{{0, 9, 0}}, Norm::l(2));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "selected[1] is 9: expected 0 to 3, a token of sequence 1");
  }
}

}  // namespace
}  // namespace attmirror
