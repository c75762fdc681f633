#include "margin/scaled_constraints.hpp"

#include "margin/cholesky.hpp"
#include "margin/normal_matrix.hpp"
#include "margin/random_constraints.hpp"
#include <attmirror/base/error.hpp>

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::constraint_matrix;
using test::random_constraints;
using test::random_matrix;

AlignedVector multipliers(std::ptrdiff_t count, std::uint64_t seed) {
  const Matrix values = random_matrix(count, 1, seed);
  return AlignedVector(values.data(), values.data() + count);
}

TEST(Constraints, WrongArraysAreNamed) {
  const auto message = [](auto change) {
    ConstraintArrays arrays = random_constraints(2, 3, 4, 5, 1);
    change(arrays);
    try {
      const MarginConstraints c(arrays);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message([](auto&) {}), "accepted");
  EXPECT_EQ(message([](auto& a) { a.left(4, 2) = NAN; }), "left[4,2] is nan: expected a finite number");
  EXPECT_EQ(message([](auto& a) { a.right(1, 0) = INFINITY; }),
            "right[1,0] is inf: expected a finite number");
  EXPECT_EQ(message([](auto& a) { a.bounds[5] = -1; }),
            "bounds[5] is -1: expected a number >= 0 for an inequality");
  EXPECT_EQ(message([](auto& a) { a.bounds.pop_back(); }),
            "bounds has 5 entries: expected 6, one per row of left");
  EXPECT_EQ(message([](auto& a) { a.group_sizes[1] = 4; }),
            "group_sizes[1] is 4: expected 0 to 3, the constraints that are left");
  EXPECT_EQ(message([](auto& a) { a.group_sizes[1] = 2; }),
            "group_sizes add up to 5: expected 6, the rows of left");
}

// Operators and normal matrices equal those of the dense A_k, also where data are huge or tiny.
TEST(ScaledConstraints, AreTheSameProblemAtUnitSize) {
  for (const double size : {1.0, 1e140, 1e-140}) {
    ConstraintArrays arrays = random_constraints(3, 4, 5, 6, 7);
    arrays.left.row(2) *= 1e-9;
    const ConstraintArrays plain = arrays;
    arrays.left *= size;
    arrays.right *= size;
    const MarginConstraints constraints(arrays);
    const ScaledConstraints scaled(constraints);
    ASSERT_EQ(scaled.count(), 12);
    for (std::ptrdiff_t k = 0; k < 12; ++k) {
      const double largest = scaled.left().eigen().row(k).cwiseAbs().maxCoeff();
      EXPECT_GE(largest, 0.5);
      EXPECT_LT(largest, 1.0);
    }
    // Margins against bounds, and the direction of the adjoint, are those of the plain problem.
    const Matrix W = random_matrix(5, 6, 3);
    PaddedMatrix scratch = scaled.make_scratch(), U(5, 6);
    AlignedVector margins(12);
    scaled.forward(PaddedMatrix(W).view(), scratch, margins);
    const Matrix unscaled = scaled.unscale_weights(PaddedMatrix(W).view());
    EXPECT_EQ(scaled.scale_weights(unscaled), W);
    AlignedVector lambda = multipliers(12, 4);
    const Vector original = scaled.unscale_multipliers(lambda);
    scaled.adjoint(lambda, scratch, U.view());
    Matrix expected = Matrix::Zero(5, 6);
    for (std::ptrdiff_t k = 0; k < 12; ++k) {
      // In units in which neither side overflows: (unscaled size^2) . plain A_k = margin c_k / c'_k.
      const double margin = (constraint_matrix(plain, k).array() * (unscaled * size * size).array()).sum();
      EXPECT_NEAR(margin, margins[static_cast<std::size_t>(k)] / scaled.bounds()[static_cast<std::size_t>(k)],
                  1e-12 * std::fabs(margin) + 1e-10);
      expected += original[k] / original.cwiseAbs().maxCoeff() * constraint_matrix(plain, k);
    }
    const Matrix direction = U.view().eigen() / U.view().eigen().norm();
    EXPECT_LT((direction - expected / expected.norm()).norm(), 1e-13);
  }
}

TEST(ScaledConstraints, TrivialRowsAreLeftOutAndContradictionsNamed) {
  ConstraintArrays arrays = random_constraints(3, 2, 4, 4, 9);
  arrays.left.row(1).setZero();
  arrays.bounds[1] = 0;
  EXPECT_FALSE(ScaledConstraints(MarginConstraints(arrays)).contradiction());
  EXPECT_EQ(ScaledConstraints(MarginConstraints(arrays)).count(), 5);
  arrays.right.row(2).setZero();
  const ScaledConstraints scaled{MarginConstraints(arrays)};
  EXPECT_EQ(scaled.count(), 3);
  EXPECT_EQ(scaled.groups(), 2);
  ASSERT_TRUE(scaled.contradiction());
  EXPECT_EQ(*scaled.contradiction(), 4);
}

TEST(ScaledConstraints, SubsetsKeepScaleAndOrigin) {
  const MarginConstraints constraints(random_constraints(4, 3, 5, 5, 11));
  const ScaledConstraints all(constraints);
  const std::vector<std::ptrdiff_t> kept = {1, 2, 7, 11};
  const ScaledConstraints some = all.subset(kept);
  ASSERT_EQ(some.count(), 4);
  EXPECT_EQ(some.groups(), 3);
  const PaddedMatrix W(random_matrix(5, 5, 2));
  AlignedVector margins(12), fewer(4);
  PaddedMatrix scratch = all.make_scratch(), small = some.make_scratch();
  all.forward(W.view(), scratch, margins);
  some.forward(W.view(), small, fewer);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(some.original_index(static_cast<std::ptrdiff_t>(i)), kept[i]);
    EXPECT_NEAR(fewer[i], margins[static_cast<std::size_t>(kept[i])], 1e-14);
  }
}

TEST(NormalMatrix, EqualsTheDenseProduct) {
  const ConstraintArrays arrays = random_constraints(4, 5, 6, 7, 13);
  const ScaledConstraints scaled{MarginConstraints(arrays)};
  const Matrix D = random_matrix(6, 7, 5).cwiseAbs();
  const std::vector<std::ptrdiff_t> J = {0, 3, 4, 9, 10, 11, 12, 19};
  PaddedMatrix M(8, 8), I(8, 8);
  normal_matrix(scaled, J, PaddedMatrix(D).view(), M.view());
  normal_matrix_identity(scaled, J, I.view());
  const auto dense = [&](std::ptrdiff_t k) {
    return Matrix(scaled.left().eigen().row(k).transpose() * scaled.right().eigen().row(scaled.group_of(k)));
  };
  for (std::ptrdiff_t r = 0; r < 8; ++r)
    for (std::ptrdiff_t s = 0; s <= r; ++s) {
      const Matrix a = dense(J[static_cast<std::size_t>(r)]), b = dense(J[static_cast<std::size_t>(s)]);
      EXPECT_NEAR(M.view().eigen()(r, s), (a.array() * D.array() * b.array()).sum(), 1e-13);
      EXPECT_NEAR(I.view().eigen()(r, s), (a.array() * b.array()).sum(), 1e-13);
    }
}

TEST(Cholesky, FactorsAndSolves) {
  for (const std::ptrdiff_t size : {1, 2, 5, 31, 64, 100}) {
    const Matrix half = random_matrix(size, size + 3, 21);
    const Matrix full = half * half.transpose();
    PaddedMatrix m{full};
    ASSERT_EQ(cholesky(m.view(), 1e-14), size);
    const Matrix x = random_matrix(size, 1, 22);
    Vector b = full * x;
    cholesky_solve(m.view(), size, b.data());
    EXPECT_LT((b - x).norm(), 1e-8 * x.norm());
  }
}

TEST(Cholesky, StopsAtTheFirstDependentRow) {
  Matrix half = random_matrix(6, 8, 23);
  half.row(4) = half.row(1) + half.row(2);
  PaddedMatrix m{Matrix(half * half.transpose())};
  EXPECT_EQ(cholesky(m.view(), 1e-13), 4);
}

}  // namespace
}  // namespace attmirror
