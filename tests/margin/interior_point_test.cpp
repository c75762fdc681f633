#include "margin/judge.hpp"
#include "margin/known_solution.hpp"
#include "margin/norm_barrier.hpp"
#include "margin/normal_matrix.hpp"
#include "margin/random_constraints.hpp"
#include "margin/solver.hpp"
#include "support/golden.hpp"
#include "support/same_bits.hpp"
#include <attmirror/data/generators.hpp>
#include <attmirror/margin/certificate.hpp>
#include <attmirror/margin/problems.hpp>

#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/QR>
#include <Eigen/SVD>
#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::random_constraints;
using test::random_matrix;

bool is_smooth(const Norm& norm) { return norm.p() > 1 && std::isfinite(norm.p()); }
double tolerance_of(const Norm& norm) { return is_smooth(norm) ? 1e-10 : 1e-8; }

SolverLimits interior_limits(const Norm& norm) { return test::generous_limits(tolerance_of(norm)); }

// From the Frobenius answer.
test::Solved solve_inside(const MarginConstraints& problem, const Norm& norm) {
  const ScaledConstraints scaled(problem);
  const SolverAnswer first = solve_frobenius(scaled, interior_limits(Norm::frobenius()), {});
  EXPECT_EQ(first.outcome, Outcome::solved);
  return test::in_units_of(
      problem, norm, scaled,
      solve_interior_point(scaled, norm, interior_limits(norm), {.W = first.W, .lambda = first.lambda}));
}

void expect_certified(const test::Solved& solved, const Norm& norm, const std::string& what) {
  EXPECT_EQ(solved.answer.outcome, Outcome::solved) << to_string(norm) << ", " << what;
  EXPECT_LT(solved.answer.iterations, 100) << to_string(norm) << ", " << what;
  EXPECT_TRUE(solved.certificate.feasible())
      << to_string(norm) << ", " << what << ": violation " << solved.certificate.worst_violation;
  EXPECT_LE(solved.certificate.gap, tolerance_of(norm)) << to_string(norm) << ", " << what;
  EXPECT_GE(solved.certificate.gap, -1e-12) << to_string(norm) << ", " << what;
}

Norm spectral() { return Norm::spectral(); }
const std::vector<Norm>& interior_norms() {
  static const std::vector<Norm> all = {
      Norm::l(1),         Norm::l(INFINITY),    Norm::nuclear(),     spectral(),          Norm::l(1.01),
      Norm::l(1.1),       Norm::l(1.75),        Norm::frobenius(),   Norm::l(3),          Norm::l(10),
      Norm::l(50),        Norm::schatten(1.01), Norm::schatten(1.1), Norm::schatten(1.5), Norm::schatten(3),
      Norm::schatten(10), Norm::schatten(100)};
  return all;
}

// The tokens with the largest scores Y v^T x.
std::vector<std::int64_t> best_tokens(const Dataset& data) {
  std::vector<std::int64_t> result;
  const Vector v = data.decoder().eigen().transpose();
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i) {
    const Vector scores = data.labels()[static_cast<std::size_t>(i)] * (data.tokens(i).eigen() * v);
    std::ptrdiff_t best = 0;
    scores.maxCoeff(&best);
    result.push_back(best);
  }
  return result;
}

MarginConstraints sphere_rows(std::int64_t samples, std::int64_t tokens, std::int64_t dim,
                              std::uint64_t seed) {
  const Dataset data = generate(SphereData{.samples = samples, .tokens = tokens, .dim = dim, .seed = seed});
  return test::attention_rows(data, best_tokens(data));
}

std::ptrdiff_t rank(const Matrix& W) {
  const Vector values = Eigen::JacobiSVD<Eigen::MatrixXd>(W).singularValues();
  return (values.array() > 1e-6 * values[0]).count();
}

// Optimal values of HiGHS through scipy.optimize.linprog, with tolerances of 1e-10.
TEST(InteriorPoint, AgreesWithLinearProgramming) {
  const struct {
    MarginConstraints problem;
    double l1, linf;
  } cases[] = {{sphere_rows(6, 8, 10, 1), 13.0712463055, 0.3902842833},
               {sphere_rows(6, 8, 10, 2), 20.3530851600, 0.5006237469},
               {sphere_rows(6, 8, 10, 3), 19.0470169334, 0.5371278886},
               {MarginConstraints(random_constraints(20, 10, 3, 4, 4)), 169.7724705747, 29.8282905682},
               {MarginConstraints(random_constraints(4, 2, 6, 20, 1)), 1.5227246965, 0.0351903782}};
  for (const auto& [problem, l1, linf] : cases) {
    EXPECT_NEAR(solve_inside(problem, Norm::l(1)).certificate.norm, l1, 3e-9 * l1);
    EXPECT_NEAR(solve_inside(problem, Norm::l(INFINITY)).certificate.norm, linf, 3e-9 * linf);
  }
}

// Values found by alternating projections and singular value thresholding, to their digits.
TEST(InteriorPoint, FindsTheNuclearSolutionsOfThePapers) {
  const test::Solved one =
      solve_inside(test::attention_rows(generate(Visualization1Data{}), {0, 2}), Norm::nuclear());
  EXPECT_NEAR(one.certificate.norm, 9.75481, 1e-5);
  EXPECT_EQ(rank(one.W), 1);
  const test::Solved two =
      solve_inside(test::attention_rows(generate(Visualization2Data{}), {0, 0}), Norm::nuclear());
  EXPECT_NEAR(two.certificate.norm, 1.87260, 1e-5);
  EXPECT_EQ(rank(two.W), 2);
  const test::Solved sphere_1 = solve_inside(sphere_rows(6, 8, 10, 1), Norm::nuclear());
  EXPECT_NEAR(sphere_1.certificate.norm, 4.635479, 1e-6);
  EXPECT_EQ(rank(sphere_1.W), 3);
}

TEST(InteriorPoint, AgreesWithTheGoldenSolutions) {
  const test::GoldenRuns golden(test::fixture("golden_local.npz"));
  for (const auto& [p, tag] : test::golden_geometries)
    for (std::ptrdiff_t seed = 0; seed < golden.seeds(); ++seed) {
      const test::Solved solved =
          solve_inside(test::attention_rows(golden.data(seed), golden.selected(tag, seed)), Norm::l(p));
      expect_certified(solved, Norm::l(p), "golden");
      const double expected = norm(golden.solution(tag, seed), Norm::l(p));
      EXPECT_NEAR(solved.certificate.norm, expected, 1e-9 * expected) << tag << ", seed " << seed;
    }
}

TEST(InteriorPoint, CertifiesEveryNormAndShape) {
  const struct {
    std::ptrdiff_t groups, each, rows, cols;
  } shapes[] = {{6, 7, 10, 10}, {1, 20, 12, 1}, {30, 1, 1, 9}, {20, 10, 3, 4},
                {4, 2, 20, 6},  {4, 2, 6, 20},  {1, 1, 1, 1},  {1, 1, 5, 4}};
  for (const auto& s : shapes) {
    const MarginConstraints problem(random_constraints(s.groups, s.each, s.rows, s.cols, 3));
    for (const Norm& norm : interior_norms())
      expect_certified(solve_inside(problem, norm), norm,
                       std::to_string(s.groups * s.each) + " on " + std::to_string(s.rows) + " x " +
                           std::to_string(s.cols));
  }
}

TEST(InteriorPoint, FindsKnownSolutions) {
  for (const Norm& norm : test::all_norms())
    for (const std::uint64_t seed : {1u, 2u}) {
      const test::KnownSolution known =
          test::known_solution(norm, {.equalities = 1, .zero_bounds = 1, .seed = seed});
      const test::Solved solved = solve_inside(MarginConstraints(known.arrays), norm);
      expect_certified(solved, norm, "known");
      EXPECT_NEAR(solved.certificate.norm, known.norm, tolerance_of(norm) * known.norm) << to_string(norm);
    }
}

TEST(InteriorPoint, DoesNotMindRepeatedConstraints) {
  ConstraintArrays arrays = random_constraints(5, 6, 9, 9, 8);
  for (const std::ptrdiff_t k : {1, 7, 13}) arrays.left.row(k) = arrays.left.row(k - 1);
  arrays.relations.assign(30, Relation::at_least);
  // The same equality twice, once of double size.
  arrays.left.row(19) = 2 * arrays.left.row(18);
  arrays.relations[18] = arrays.relations[19] = Relation::equal;
  arrays.bounds[18] = -0.7, arrays.bounds[19] = -1.4;
  for (const Norm& norm : interior_norms())
    expect_certified(solve_inside(MarginConstraints(arrays), norm), norm, "repeated");
}

TEST(InteriorPoint, SolvesEqualitiesAlone) {
  ConstraintArrays arrays = random_constraints(5, 4, 8, 8, 9);
  arrays.relations.assign(20, Relation::equal);
  for (std::size_t k = 0; k < 20; ++k) arrays.bounds[k] = std::sin(1.0 + static_cast<double>(k));
  for (const Norm& norm : interior_norms())
    expect_certified(solve_inside(MarginConstraints(arrays), norm), norm, "equalities");
}

TEST(InteriorPoint, AcceptsBoundsOfZero) {
  ConstraintArrays arrays = random_constraints(6, 7, 8, 8, 10);
  for (std::size_t k = 0; k < arrays.bounds.size(); k += 2) arrays.bounds[k] = 0;
  for (const Norm& norm : interior_norms())
    expect_certified(solve_inside(MarginConstraints(arrays), norm), norm, "zeros");
  arrays.bounds.assign(arrays.bounds.size(), 0);
  const ScaledConstraints scaled{MarginConstraints(arrays)};
  const SolverAnswer zero =
      solve_interior_point(scaled, Norm::nuclear(), interior_limits(Norm::nuclear()), {});
  EXPECT_EQ(zero.outcome, Outcome::solved);
  EXPECT_EQ(zero.W.view().eigen().norm(), 0);
}

// One constraint: ||a z^T||_* is |a|_2 |z|_2 for every Schatten norm, and for a vector they all are the Euclidean norm.
TEST(InteriorPoint, AgreesWithClosedForms) {
  for (const Norm& kind : interior_norms()) {
    const ConstraintArrays single = random_constraints(1, 1, 5, 4, 11);
    const double expected = 1 / norm(test::constraint_matrix(single, 0), kind.dual());
    EXPECT_NEAR(solve_inside(MarginConstraints(single), kind).certificate.norm, expected,
                tolerance_of(kind) * expected);
  }
  const MarginConstraints vector(random_constraints(1, 15, 6, 1, 12));
  const double euclidean = solve_inside(vector, Norm::frobenius()).certificate.norm;
  for (const Norm& kind : interior_norms()) {
    if (kind.is_entrywise()) continue;
    EXPECT_NEAR(solve_inside(vector, kind).certificate.norm, euclidean, tolerance_of(kind) * euclidean);
  }
}

TEST(InteriorPoint, SchattenNormsKnowNoBasis) {
  ConstraintArrays arrays = random_constraints(6, 4, 7, 5, 13);
  const Matrix left = random_matrix(7, 7, 14), right = random_matrix(5, 5, 15);
  ConstraintArrays turned = arrays;
  turned.left = arrays.left * Matrix(Eigen::HouseholderQR<Eigen::MatrixXd>(left).householderQ());
  turned.right = arrays.right * Matrix(Eigen::HouseholderQR<Eigen::MatrixXd>(right).householderQ());
  for (const Norm& kind : interior_norms())
    if (!kind.is_entrywise()) {
      const double value = solve_inside(MarginConstraints(arrays), kind).certificate.norm;
      EXPECT_NEAR(solve_inside(MarginConstraints(turned), kind).certificate.norm, value,
                  tolerance_of(kind) * value);
    }
}

// The norm falls with p, and is continuous at its ends.
TEST(InteriorPoint, IsContinuousInP) {
  const MarginConstraints problem = sphere_rows(6, 8, 10, 4);
  for (const auto make : {&Norm::l, &Norm::schatten}) {
    double previous = INFINITY;
    std::vector<double> values;
    for (const double p : {1.0, 1.0001, 1.01, 1.5, 2.0, 4.0, 30.0, 3000.0, double{INFINITY}}) {
      values.push_back(solve_inside(problem, make(p)).certificate.norm);
      EXPECT_LE(values.back(), previous * (1 + 1e-9)) << p;
      previous = values.back();
    }
    EXPECT_NEAR(values[1], values[0], 2e-3 * values[0]);
    EXPECT_NEAR(values[7], values[8], 5e-3 * values[8]);
  }
}

TEST(InteriorPoint, StopsAtItsLimits) {
  const ScaledConstraints scaled(sphere_rows(6, 8, 10, 1));
  for (const Norm& norm : interior_norms()) {
    SolverLimits few = interior_limits(norm);
    few.iterations_left = 2;
    const SolverAnswer answer = solve_interior_point(scaled, norm, few, {});
    EXPECT_EQ(answer.outcome, Outcome::out_of_iterations) << to_string(norm);
    EXPECT_EQ(answer.iterations, 2) << to_string(norm);
    SolverLimits late = interior_limits(norm);
    late.deadline = std::chrono::steady_clock::now();
    EXPECT_EQ(solve_interior_point(scaled, norm, late, {}).outcome, Outcome::out_of_time);
  }
}

TEST(InteriorPoint, HasTheSameBitsOnAnyNumberOfThreads) {
  const ScaledConstraints scaled(sphere_rows(12, 8, 10, 5));
  ThreadPool pool(3);
  for (const Norm& norm : {Norm::l(1), Norm::nuclear(), spectral(), Norm::schatten(3), Norm::l(1.1)}) {
    SolverLimits many = interior_limits(norm);
    many.pool = &pool;
    const SolverAnswer one = solve_interior_point(scaled, norm, interior_limits(norm), {});
    const SolverAnswer three = solve_interior_point(scaled, norm, many, {});
    EXPECT_EQ(one.lambda, three.lambda) << to_string(norm);
    EXPECT_TRUE(test::same_bits(one.W.view(), three.W.view())) << to_string(norm);
  }
}

TEST(InteriorPoint, SolvesALargerProblem) {
  const MarginConstraints problem = sphere_rows(50, 16, 64, 1);
  for (const Norm& norm : {Norm::nuclear(), spectral(), Norm::l(1), Norm::l(INFINITY), Norm::schatten(1.5)})
    expect_certified(solve_inside(problem, norm), norm, "750 constraints");
}

TEST(SpectralNormalMatrix, IsTheDenseProduct) {
  const ScaledConstraints scaled{MarginConstraints(random_constraints(4, 3, 6, 5, 16))};
  const auto dense = [&](std::ptrdiff_t k) {
    return Matrix(scaled.left().eigen().row(k).transpose() * scaled.right().eigen().row(scaled.group_of(k)));
  };
  const Matrix L = random_matrix(6, 6, 17), R = random_matrix(5, 5, 18), alpha = random_matrix(6, 5, 19);
  const Matrix half = random_matrix(5, 5, 20), beta = half + half.transpose();
  const Matrix p = random_matrix(6, 6, 21), q = random_matrix(5, 5, 22), C = random_matrix(6, 5, 23);
  const Matrix P = p * p.transpose(), Q = q * q.transpose();
  PaddedMatrix general(12, 12), products(12, 12);
  normal_matrix_spectral(scaled,
                         {PaddedMatrix(Matrix(scaled.left().eigen() * L)),
                          PaddedMatrix(Matrix(scaled.right().eigen() * R)), alpha, beta},
                         general.view());
  normal_matrix_products(scaled, P, C, Q, products.view());
  for (std::ptrdiff_t k = 0; k < 12; ++k)
    for (std::ptrdiff_t l = 0; l <= k; ++l) {
      const Matrix rotated = L.transpose() * dense(l) * R;
      Matrix weighed = alpha.cwiseProduct(rotated);
      weighed.topRows(5) += beta.cwiseProduct(rotated.topRows(5).transpose());
      EXPECT_NEAR(general.view().eigen()(k, l), dense(k).cwiseProduct(L * weighed * R.transpose()).sum(),
                  1e-11);
      const Matrix image = 0.5 * (P * dense(l) * Q + C * dense(l).transpose() * C);
      EXPECT_NEAR(products.view().eigen()(k, l), dense(k).cwiseProduct(image).sum(), 1e-11);
    }
}

TEST(FullSvd, CompletesItsBases) {
  Matrix low = random_matrix(7, 2, 24) * random_matrix(2, 5, 25);
  for (const Matrix& a :
       {random_matrix(7, 5, 26), random_matrix(5, 7, 27), low, Matrix(Matrix::Zero(3, 4))}) {
    const FullSvd svd = full_svd(a);
    EXPECT_LT((svd.P.transpose() * svd.P - Matrix::Identity(a.rows(), a.rows())).norm(), 1e-13);
    EXPECT_LT((svd.Q.transpose() * svd.Q - Matrix::Identity(a.cols(), a.cols())).norm(), 1e-13);
    Matrix middle = Matrix::Zero(a.rows(), a.cols());
    middle.diagonal() = svd.values;
    EXPECT_LT((svd.P * middle * svd.Q.transpose() - a).norm(), 1e-13 * (1 + a.norm()));
  }
}

}  // namespace
}  // namespace attmirror
