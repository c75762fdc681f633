#include "margin/judge.hpp"
#include "margin/random_constraints.hpp"
#include "margin/solver.hpp"
#include "support/golden.hpp"
#include <attmirror/margin/certificate.hpp>
#include <attmirror/margin/problems.hpp>

#include <chrono>
#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::random_constraints;
using test::random_matrix;

constexpr double all_p[] = {1.001, 1.01, 1.05, 1.1, 1.5, 1.75, 1.99, 2.01, 2.5, 3, std::numbers::pi,
                            5,     10,   50};

SolverLimits newton_limits(double tolerance = 1e-10, int iterations = 2000) {
  SolverLimits result = test::generous_limits(tolerance);
  result.iterations_left = iterations;
  return result;
}

test::Solved solve_by_newton(const MarginConstraints& problem, double p, const SolverStart& start = {}) {
  const ScaledConstraints scaled(problem);
  return test::in_units_of(problem, Norm::l(p), scaled, solve_lp(scaled, Norm::l(p), newton_limits(), start));
}

void expect_certified(const test::Solved& solved, const std::string& what) {
  EXPECT_EQ(solved.answer.outcome, Outcome::solved) << what;
  EXPECT_TRUE(solved.certificate.feasible()) << what << ": violation " << solved.certificate.worst_violation;
  EXPECT_LE(solved.certificate.gap, 1e-10) << what;
  EXPECT_GE(solved.certificate.gap, -1e-13) << what;
}

std::string case_name(const char* what, double p) { return std::string(what) + ", p = " + std::to_string(p); }

TEST(LpNewton, FindsTheReferenceSolutions) {
  const test::GoldenRuns golden(test::fixture("golden_local.npz"));
  for (const auto& [p, tag] : test::golden_geometries) {
    if (p == 2) continue;
    for (std::ptrdiff_t seed = 0; seed < golden.seeds(); ++seed) {
      const test::Solved solved =
          solve_by_newton(test::attention_rows(golden.data(seed), golden.selected(tag, seed)), p);
      expect_certified(solved, case_name(tag, p));
      const double expected = norm(golden.solution(tag, seed), Norm::l(p));
      EXPECT_NEAR(solved.certificate.norm, expected, 1e-9 * expected) << tag << " seed " << seed;
    }
  }
}

TEST(LpNewton, CertifiesEveryPOnThePapersData) {
  const test::GoldenRuns golden(test::fixture("golden_local.npz"));
  for (std::ptrdiff_t seed = 0; seed < golden.seeds(); ++seed) {
    const MarginConstraints problem = test::attention_rows(golden.data(seed), golden.selected("p3", seed));
    double before = INFINITY;
    for (const double p : all_p) {
      const test::Solved solved = solve_by_newton(problem, p);
      expect_certified(solved, case_name("seed ", p));
      // ||W||_p falls with p for every W, hence for the smallest.
      EXPECT_LE(solved.certificate.norm, before * (1 + 1e-9));
      before = solved.certificate.norm;
    }
  }
}

// Vectors, rows, tall and wide, more constraints than unknowns and fewer, one constraint.
TEST(LpNewton, CertifiesShapes) {
  struct Shape {
    std::ptrdiff_t groups, each, rows, cols;
  };
  for (const Shape& s :
       {Shape{1, 12, 8, 1}, Shape{12, 1, 1, 8}, Shape{1, 1, 3, 4}, Shape{5, 4, 20, 3}, Shape{5, 4, 3, 20},
        Shape{20, 6, 5, 4}, Shape{1, 60, 6, 1}, Shape{1, 1, 1, 1}, Shape{3, 2, 1, 1}}) {
    const MarginConstraints problem(random_constraints(s.groups, s.each, s.rows, s.cols,
                                                       static_cast<std::uint64_t>(s.rows * 31 + s.cols)));
    for (const double p : all_p)
      expect_certified(solve_by_newton(problem, p),
                       case_name("", p) + ", " + std::to_string(s.groups * s.each) + " on " +
                           std::to_string(s.rows) + " x " + std::to_string(s.cols));
  }
}

// One constraint a^T w >= 1 has the solution w = sign(a)|a|^{q-1} / ||a||_q^q.
TEST(LpNewton, AgreesWithTheClosedForm) {
  const ConstraintArrays arrays = random_constraints(1, 1, 6, 1, 5);
  for (const double p : all_p) {
    const double q = p / (p - 1);
    const test::Solved solved = solve_by_newton(MarginConstraints(arrays), p);
    const double z = arrays.right(0, 0);
    const double expected = 1 / norm(Matrix(arrays.left.row(0) * z), Norm::l(q));
    EXPECT_NEAR(solved.certificate.norm, expected, 1e-12 * expected) << p;
  }
}

TEST(LpNewton, KeepsEqualities) {
  for (const double bound : {0.0, 0.7, -0.4}) {
    ConstraintArrays arrays = random_constraints(5, 4, 6, 5, 21);
    arrays.relations.assign(20, Relation::at_least);
    for (const std::size_t k : {2u, 9u, 15u}) {
      arrays.relations[k] = Relation::equal;
      arrays.bounds[k] = bound;
    }
    for (const double p : all_p) {
      const test::Solved solved = solve_by_newton(MarginConstraints(arrays), p);
      expect_certified(solved, case_name("equalities", p) + ", bound " + std::to_string(bound));
    }
  }
}

TEST(LpNewton, AcceptsBoundsOfZero) {
  ConstraintArrays arrays = random_constraints(5, 4, 6, 5, 22);
  for (const std::size_t k : {0u, 1u, 2u, 3u, 10u, 19u}) arrays.bounds[k] = 0;
  for (const double p : all_p)
    expect_certified(solve_by_newton(MarginConstraints(arrays), p), case_name("zero bounds", p));
  std::fill(arrays.bounds.begin(), arrays.bounds.end(), 0.0);
  for (const double p : {1.1, 3.0}) {
    const test::Solved solved = solve_by_newton(MarginConstraints(arrays), p);
    EXPECT_EQ(solved.answer.outcome, Outcome::solved);
    EXPECT_EQ(solved.W.cwiseAbs().maxCoeff(), 0.0);
  }
}

// Each constraint twice, or up to a factor: the matrices of the quadratic problems are singular.
TEST(LpNewton, AcceptsDuplicates) {
  ConstraintArrays arrays = random_constraints(4, 6, 5, 4, 23);
  for (std::ptrdiff_t g = 0; g < 4; ++g) {
    arrays.left.row(6 * g + 3) = arrays.left.row(6 * g);
    arrays.left.row(6 * g + 4) = 2 * arrays.left.row(6 * g + 1);
    arrays.bounds[static_cast<std::size_t>(6 * g + 4)] = 2;
  }
  for (const double p : all_p)
    expect_certified(solve_by_newton(MarginConstraints(arrays), p), case_name("duplicates", p));
}

TEST(LpNewton, IsIndifferentToScale) {
  const ConstraintArrays plain = random_constraints(4, 5, 6, 6, 25);
  for (const double size : {1e120, 1e-120}) {
    ConstraintArrays arrays = plain;
    arrays.left *= size;
    arrays.left.row(3) *= 1e6;
    arrays.bounds[3] *= 1e6;
    for (const double p : {1.1, 3.0, 10.0}) {
      const test::Solved a = solve_by_newton(MarginConstraints(plain), p),
                         b = solve_by_newton(MarginConstraints(arrays), p);
      expect_certified(b, case_name("scaled", p));
      EXPECT_NEAR(b.certificate.norm * size, a.certificate.norm, 1e-9 * a.certificate.norm);
    }
  }
}

// A start from a near p saves steps, a wrong one costs some; the answer is the same.
TEST(LpNewton, StartsFromAnything) {
  const MarginConstraints problem(random_constraints(6, 7, 10, 10, 27));
  const ScaledConstraints scaled(problem);
  for (const double p : {1.05, 1.2, 3.0, 12.0}) {
    const test::Solved cold = solve_by_newton(problem, p);
    const SolverAnswer near = solve_lp(scaled, Norm::l(p * 1.02), newton_limits(), {});
    const test::Solved warm = solve_by_newton(problem, p, {.W = near.W, .lambda = near.lambda});
    expect_certified(warm, case_name("warm", p));
    EXPECT_LT(warm.answer.iterations, cold.answer.iterations) << p;
    const test::Solved again =
        solve_by_newton(problem, p, {.W = cold.answer.W, .lambda = cold.answer.lambda});
    EXPECT_EQ(again.answer.iterations, 0) << p;
    SolverStart wrong{.W = PaddedMatrix(random_matrix(10, 10, 3)), .lambda = AlignedVector(42, 1.0)};
    expect_certified(solve_by_newton(problem, p, wrong), case_name("wrong start", p));
    wrong.lambda.assign(42, NAN);
    wrong.W.view().data[0] = INFINITY;
    expect_certified(solve_by_newton(problem, p, wrong), case_name("start that is not finite", p));
  }
}

TEST(LpNewton, ReportsInfeasibleProblems) {
  ConstraintArrays arrays = random_constraints(3, 4, 5, 5, 29);
  arrays.left.row(5) = -arrays.left.row(4);
  for (const double p : {1.1, 3.0}) {
    const MarginConstraints problem(arrays);
    const test::Solved solved = solve_by_newton(problem, p);
    EXPECT_EQ(solved.answer.outcome, Outcome::infeasible);
    EXPECT_TRUE(certify(problem, Norm::l(p), Matrix(), solved.lambda).proves_norm_above(1e10)) << p;
  }
}

TEST(LpNewton, StopsWhenTold) {
  const ScaledConstraints scaled{MarginConstraints(random_constraints(6, 7, 10, 10, 31))};
  for (const double p : {1.01, 50.0}) {
    for (const int most : {0, 1, 3, 6}) {
      const SolverAnswer answer = solve_lp(scaled, Norm::l(p), newton_limits(1e-10, most), {});
      EXPECT_EQ(answer.outcome, Outcome::out_of_iterations) << most;
      EXPECT_LE(answer.iterations, most + 2);
      EXPECT_TRUE(answer.W.view().eigen().allFinite());
    }
    SolverLimits late = newton_limits();
    late.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
    EXPECT_EQ(solve_lp(scaled, Norm::l(p), late, {}).outcome, Outcome::out_of_time);
  }
}

}  // namespace
}  // namespace attmirror
