// Directional Bregman divergence and correlation.
#include "support/files.hpp"
#include "support/golden.hpp"
#include <attmirror/mirror/direction.hpp>

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace attmirror {
namespace {

using test::expect_bad_input;

Matrix random_matrix() {
  Matrix m(3, 4);
  for (std::ptrdiff_t i = 0; i < m.size(); ++i) m.data()[i] = *rc::gen::inRange(-1000, 1001) * 1e-3;
  m(0, 0) += 2;  // never zero
  return m;
}

RC_GTEST_PROP(DirectionalBregman, IsOneMinusCosineForP2, ()) {
  const Matrix a = random_matrix(), b = random_matrix();
  RC_ASSERT(std::abs(directional_bregman(a, b, 2) - (1 - correlation(a, b))) <= 1e-14);
}

RC_GTEST_PROP(DirectionalBregman, IsFreeOfScaleAndNonNegative, ()) {
  const Matrix a = random_matrix(), b = random_matrix();
  for (const double p : {1.1, 1.75, 3.0, 50.0}) {
    const double d = directional_bregman(a, b, p);
    RC_ASSERT(d >= 0 && d <= 2 + 1e-12);
    RC_ASSERT(std::abs(directional_bregman(1e200 * a, 1e-200 * b, p) - d) <= 1e-12 * (1 + d));
    RC_ASSERT(directional_bregman(a, a, p) == 0);
    RC_ASSERT(directional_bregman(3 * a, a, p) <= 1e-28);  // far below the rounding of 1 - <., .>
    RC_ASSERT(std::abs(directional_bregman(a, -a, p) - 2) <= 1e-12);
    if ((a / a.norm() - b / b.norm()).norm() > 1e-3) RC_ASSERT(d > 0);
  }
}

// The divergences that the reference found between its last iterates and its max-margin solutions.
TEST(DirectionalBregman, AgreesWithTheGoldenRuns) {
  const test::GoldenRuns golden(test::fixture("golden_local.npz"));
  const std::vector<double> all = golden.array("directional_bregman_last").to_doubles();
  for (std::ptrdiff_t a = 0; a < 3; ++a)
    for (std::ptrdiff_t b = 0; b < 3; ++b)
      for (std::ptrdiff_t seed = 0; seed < golden.seeds(); ++seed) {
        const auto& path = test::golden_geometries[a];
        const auto last = static_cast<std::ptrdiff_t>(golden.steps(path.tag, seed).size()) - 1;
        const double d = directional_bregman(golden.solution(test::golden_geometries[b].tag, seed),
                                             golden.W(path.tag, seed, last), path.p);
        EXPECT_NEAR(d, all[static_cast<std::size_t>((a * 3 + b) * golden.seeds() + seed)], 1e-9);
      }
}

TEST(DirectionalBregman, RefusesWhatHasNoDirection) {
  const Matrix one = Matrix::Ones(2, 2);
  expect_bad_input({"zero"}, [&] { directional_bregman(one, Matrix::Zero(2, 2), 2); });
  expect_bad_input({"not finite"}, [&] { directional_bregman(one * NAN, one, 2); });
  expect_bad_input({"shapes differ", "(2, 2)", "(2, 3)"},
                   [&] { directional_bregman(one, Matrix::Ones(2, 3), 2); });
  expect_bad_input({"p is 1"}, [&] { directional_bregman(one, one, 1); });
  expect_bad_input({"zero"}, [&] { correlation(Matrix::Zero(2, 2), one); });
}

}  // namespace
}  // namespace attmirror
