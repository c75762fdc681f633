#include "margin/nonnegative_qp.hpp"

#include "support/count_allocations.hpp"
#include "support/random_data.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <Eigen/Cholesky>
#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

using test::random_matrix;
using Outcome = QpResult::Outcome;

struct SolvedQp {
  QpResult result;
  Vector x;
};

SolvedQp solve_qp(const Matrix& M, const Vector& b, const std::vector<unsigned char>& is_free = {},
                  const Vector& start = {}, int most = 100) {
  PaddedMatrix lower{M};
  for (std::ptrdiff_t k = 0; k < M.rows(); ++k)  // only the lower triangle may be read
    for (std::ptrdiff_t l = k + 1; l < M.cols(); ++l) lower.view().eigen()(k, l) = NAN;
  SolvedQp solved{{}, start.size() > 0 ? start : Vector::Zero(b.size())};
  NonnegativeQp qp(b.size());
  solved.result = qp.solve(lower.view(), {b.data(), static_cast<std::size_t>(b.size())}, is_free,
                           {solved.x.data(), static_cast<std::size_t>(b.size())}, most);
  return solved;
}

// The largest violation of the KKT conditions, relative to what cancels in M x - b.
double kkt_error(const Matrix& M, const Vector& b, const Vector& x,
                 const std::vector<unsigned char>& is_free = {}) {
  const Vector g = M * x - b, size = M.cwiseAbs() * x.cwiseAbs() + b.cwiseAbs();
  double worst = 0;
  for (std::ptrdiff_t k = 0; k < b.size(); ++k) {
    const bool free = !is_free.empty() && is_free[static_cast<std::size_t>(k)] != 0;
    if (!free && x[k] < 0) return INFINITY;
    const double violation = free || x[k] > 0 ? std::fabs(g[k]) : std::max(-g[k], 0.0);
    if (!(violation == 0)) worst = std::max(worst, violation / size[k]);
  }
  return worst;
}

// x >= 0 or free, M x = 0, b^T x > 0.
void expect_proof(const Matrix& M, const Vector& b, const Vector& x,
                  const std::vector<unsigned char>& is_free = {}) {
  for (std::ptrdiff_t k = 0; k < b.size(); ++k)
    EXPECT_TRUE(x[k] >= 0 || (!is_free.empty() && is_free[static_cast<std::size_t>(k)] != 0)) << k;
  EXPECT_LT((M * x).norm(), 1e-11 * M.norm() * x.norm());
  EXPECT_GT(b.dot(x), 1e-6 * x.norm());
}

TEST(NonnegativeQp, SolvesRegularProblems) {
  for (const std::ptrdiff_t size : {1, 2, 7, 42, 150}) {
    const Matrix half = random_matrix(size, size + 5, 3);
    const Matrix M = half * half.transpose();
    Vector b = random_matrix(size, 1, 4);
    b[0] = 1;
    const SolvedQp s = solve_qp(M, b);
    EXPECT_EQ(s.result.outcome, Outcome::solved) << size;
    EXPECT_LT(kkt_error(M, b, s.x), 1e-14) << size;
    EXPECT_LE(s.result.factorizations, 12) << size;
    // Started at the solution one factorization confirms it.
    const SolvedQp again = solve_qp(M, b, {}, s.x);
    EXPECT_EQ(again.result.outcome, Outcome::solved);
    EXPECT_EQ(again.result.factorizations, 1) << size;
    EXPECT_LE((again.x - s.x).norm(), 1e-12 * s.x.norm());
  }
}

TEST(NonnegativeQp, ZeroIsTheAnswerWhereNothingPulls) {
  const Matrix half = random_matrix(6, 8, 1);
  const SolvedQp s = solve_qp(half * half.transpose(), Vector::Constant(6, -1.0));
  EXPECT_EQ(s.result.outcome, Outcome::solved);
  EXPECT_EQ(s.x, Vector::Zero(6));
}

TEST(NonnegativeQp, FreeIndicesSolveTheLinearSystem) {
  const Matrix half = random_matrix(20, 25, 5);
  const Matrix M = half * half.transpose();
  const Vector b = random_matrix(20, 1, 6);
  const SolvedQp all = solve_qp(M, b, std::vector<unsigned char>(20, 1));
  EXPECT_EQ(all.result.outcome, Outcome::solved);
  EXPECT_EQ(all.result.factorizations, 1);
  EXPECT_LT((all.x - M.llt().solve(b)).norm(), 1e-11 * all.x.norm());
  std::vector<unsigned char> some(20, 0);
  for (std::size_t k = 0; k < 20; k += 3) some[k] = 1;
  const SolvedQp mixed = solve_qp(M, b, some);
  EXPECT_EQ(mixed.result.outcome, Outcome::solved);
  EXPECT_LT(kkt_error(M, b, mixed.x, some), 1e-14);
  EXPECT_LT(mixed.x.minCoeff(), 0);
}

TEST(NonnegativeQp, DuplicatedRowsDoNotMatter) {
  const Matrix half = random_matrix(15, 20, 7);
  Matrix twice(45, 20);
  twice << half, half, half;
  Vector b = random_matrix(15, 1, 8).cwiseAbs(), thrice(45);
  thrice << b, b, b;
  const SolvedQp s = solve_qp(twice * twice.transpose(), thrice),
                 single = solve_qp(half * half.transpose(), b);
  EXPECT_EQ(s.result.outcome, Outcome::solved);
  EXPECT_LT(kkt_error(twice * twice.transpose(), thrice, s.x), 1e-14);
  EXPECT_LT((twice.transpose() * s.x - half.transpose() * single.x).norm(), 1e-12);
}

TEST(NonnegativeQp, UnboundednessIsProved) {
  // A vector that a positive combination of the others cancels.
  Matrix half = random_matrix(8, 10, 9);
  half.row(7) = -half.row(2) - 0.5 * half.row(4);
  const SolvedQp s = solve_qp(half * half.transpose(), Vector::Ones(8));
  EXPECT_EQ(s.result.outcome, Outcome::unbounded);
  expect_proof(half * half.transpose(), Vector::Ones(8), s.x);
  // Many vectors in few dimensions.
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    half = random_matrix(40, 4, seed);
    const SolvedQp few = solve_qp(half * half.transpose(), Vector::Ones(40));
    EXPECT_EQ(few.result.outcome, Outcome::unbounded) << seed;
    expect_proof(half * half.transpose(), Vector::Ones(40), few.x);
  }
  // Free indices whose equations contradict each other: x_0 = 1 and x_0 = 2; and a zero row with a bound.
  const Matrix ones = Matrix::Ones(2, 2);
  const std::vector<unsigned char> free = {1, 1};
  const SolvedQp equal = solve_qp(ones, Vector{{1.0, 2.0}}, free);
  EXPECT_EQ(equal.result.outcome, Outcome::unbounded);
  expect_proof(ones, Vector{{1.0, 2.0}}, equal.x, free);
  EXPECT_EQ(solve_qp(Matrix::Zero(1, 1), Vector::Ones(1)).result.outcome, Outcome::unbounded);
}

// Any rank, with duplicates, free indices and any start: a solution or a proof.
TEST(NonnegativeQp, AlwaysAnswers) {
  EXPECT_TRUE(rc::check([] {
    const auto size = *rc::gen::inRange<std::ptrdiff_t>(1, 40);
    const auto rank = *rc::gen::inRange<std::ptrdiff_t>(1, 45);
    const auto seed = *rc::gen::arbitrary<std::uint32_t>();
    Matrix half = random_matrix(size, rank, seed);
    for (std::ptrdiff_t k = 1; k < size; ++k)
      if (*rc::gen::inRange(0, 6) == 0) half.row(k) = half.row(*rc::gen::inRange<std::ptrdiff_t>(0, k));
    Vector b = random_matrix(size, 1, seed + 1ULL);
    const bool consistent = *rc::gen::arbitrary<bool>();
    if (consistent) b = half * random_matrix(rank, 1, seed + 2ULL);  // a feasible dual: bounded
    std::vector<unsigned char> is_free(static_cast<std::size_t>(size));
    for (auto& f : is_free) f = *rc::gen::inRange(0, 5) == 0;
    const Matrix M = half * half.transpose();
    const SolvedQp s = solve_qp(M, b, is_free, random_matrix(size, 1, seed + 3ULL));
    RC_ASSERT(s.result.outcome != Outcome::stalled);
    if (consistent) RC_ASSERT(s.result.outcome == Outcome::solved);
    if (s.result.outcome == Outcome::solved) {
      RC_ASSERT(kkt_error(M, b, s.x, is_free) < 1e-11);
    } else {
      RC_ASSERT((M * s.x).norm() < 1e-6 * M.norm() * s.x.norm());  // the square root of what v^T M v can be
      RC_ASSERT(b.dot(s.x) > 1e-9 * s.x.norm());
    }
  }));
}

TEST(NonnegativeQp, LimitsAndNonsenseEnd) {
  const Matrix half = random_matrix(30, 40, 11);
  const Matrix M = half * half.transpose();
  EXPECT_EQ(solve_qp(M, random_matrix(30, 1, 12), {}, {}, 0).result.outcome, Outcome::stalled);
  Matrix broken = M;
  broken(7, 3) = NAN;
  const SolvedQp s = solve_qp(broken, Vector::Ones(30));
  EXPECT_EQ(s.result.outcome, Outcome::stalled);
  EXPECT_TRUE(s.x.allFinite());
  EXPECT_EQ(solve_qp(M, Vector::Constant(30, INFINITY)).result.outcome, Outcome::stalled);
}

// The factor that it leaves behind is that of the passive rows, from either method.
TEST(NonnegativeQp, SolvesWithItsLastFactor) {
  for (const std::ptrdiff_t rank : {5, 50}) {
    const Matrix half = random_matrix(40, rank, 15);
    const Matrix M = half * half.transpose();
    const Vector b = half * random_matrix(rank, 1, 16);
    Vector x = Vector::Zero(40);
    NonnegativeQp qp(40);
    ASSERT_EQ(qp.solve(PaddedMatrix(M).view(), {b.data(), 40}, {}, {x.data(), 40}, 100).outcome,
              Outcome::solved);
    const auto passive = qp.passive();
    ASSERT_GT(passive.size(), 0);
    AlignedVector v(passive.size());
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = b[passive[i]];
    qp.solve_passive(v.data());
    for (std::size_t i = 0; i < v.size(); ++i) EXPECT_NEAR(v[i], x[passive[i]], 1e-9 * x.norm());
  }
}

TEST(GrowingCholesky, GainsAndLosesRows) {
  constexpr std::ptrdiff_t size = 12;
  const Matrix half = random_matrix(size, size, 17);
  const Matrix M = half * half.transpose();
  std::vector<double> memory(size * size), rotations(2 * size);
  GrowingCholesky<double> L(memory.data(), size, rotations);
  std::vector<std::ptrdiff_t> rows;
  const auto append = [&](std::ptrdiff_t k) {
    for (std::size_t i = 0; i < rows.size(); ++i) L.next_row()[i] = M(k, rows[i]);
    const double pivot = L.append(M(k, k));
    if (pivot > 1e-12) {
      L.accept();
      rows.push_back(k);
    }
    return pivot;
  };
  const auto error = [&] {
    const Vector b = random_matrix(static_cast<std::ptrdiff_t>(rows.size()), 1, 18);
    Vector x = b;
    L.solve(x.data());
    return (M(rows, rows) * x - b).norm() / b.norm();
  };
  for (std::ptrdiff_t k = 0; k < size; ++k) append(k);
  EXPECT_LT(error(), 1e-10);
  for (const std::ptrdiff_t position : {3, 0, 9, 5}) {  // in the middle, first, last, in the middle
    L.remove(position);
    rows.erase(rows.begin() + position);
    ASSERT_EQ(L.size(), static_cast<std::ptrdiff_t>(rows.size()));
    EXPECT_LT(error(), 1e-10) << position;
  }
  EXPECT_GT(append(3), 1e-12);
  EXPECT_LT(error(), 1e-10);
  EXPECT_LT(append(3), 1e-12);  // it is there already
}

#if defined(ATTMIRROR_COUNTS_ALLOCATIONS)
TEST(NonnegativeQp, DoesNotAllocate) {
  const Matrix regular = random_matrix(60, 70, 13), few = random_matrix(60, 5, 14);
  const Vector b = Vector::Ones(60);
  NonnegativeQp qp(60);
  for (const Matrix* half : {&regular, &few}) {
    const PaddedMatrix M{*half * half->transpose()};
    Vector x = Vector::Zero(60);
    const long before = test::allocations.load();
    qp.solve(M.view(), {b.data(), 60}, {}, {x.data(), 60}, 100);
    EXPECT_EQ(test::allocations.load(), before);
  }
}
#endif

}  // namespace
}  // namespace attmirror
