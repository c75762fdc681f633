#include "support/random_data.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/margin/general_svm.hpp>

#include <cmath>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::random_matrix;

TEST(GeneralSvm, KeepsProbableTokens) {
  const std::vector<Vector> probabilities = {Vector{{0.5, 1e-9, 0.4995, 0.0005}}, Vector{{0, 1, 0}}};
  EXPECT_EQ(kept_tokens(probabilities).tokens, (std::vector<std::vector<std::int64_t>>{{0, 2}, {1}}));
  EXPECT_EQ(kept_tokens(probabilities, 1e-4).tokens[0], (std::vector<std::int64_t>{0, 2, 3}));
  EXPECT_THROW(kept_tokens({Vector{{0.5, NAN}}}), Error);
  EXPECT_THROW(kept_tokens({Vector{{0.5, -0.1}}}), Error);
  EXPECT_THROW(kept_tokens({Vector::Constant(2000, 1.0 / 2000)}), Error);
  EXPECT_THROW(kept_tokens(probabilities, 0), Error);
}

TEST(GeneralSvm, EquivalentIsTheNearestPointOfTheLine) {
  const Matrix fin = random_matrix(3, 4, 1), dir = random_matrix(3, 4, 2), W = random_matrix(3, 4, 3);
  const SvmEquivalent nearest = svm_equivalent(fin, dir, W);
  EXPECT_LT((nearest.W - fin - nearest.R * dir).norm(), 1e-14);
  EXPECT_NEAR(((W - nearest.W).array() * dir.array()).sum(), 0, 1e-13);
  EXPECT_NEAR(svm_equivalent(fin, dir, fin + 7 * dir).R, 7, 1e-13);
  EXPECT_NEAR(svm_equivalent(1e-200 * fin, 1e-200 * dir, 1e-200 * (fin + 7 * dir)).R, 7, 1e-13);
  EXPECT_NEAR(svm_equivalent(fin, 1e200 * dir, fin + 7 * dir).R, 7e-200, 1e-213);
  EXPECT_EQ(svm_equivalent(fin, Matrix::Zero(3, 4), W).R, 0);
  EXPECT_EQ(svm_equivalent(fin, Matrix::Zero(3, 4), W).W, fin);
  EXPECT_THROW(svm_equivalent(fin, dir.transpose(), W), Error);
  Matrix bad = dir;
  bad(1, 1) = NAN;
  EXPECT_THROW(svm_equivalent(fin, bad, W), Error);
}

}  // namespace
}  // namespace attmirror
