// The Lipschitz constant of the gradient: its numbers by hand, and that no two gradients differ by more.
#include "support/random_data.hpp"
#include <attmirror/attention/gradient.hpp>
#include <attmirror/attention/smoothness.hpp>
#include <attmirror/data/generators.hpp>

#include <cmath>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

// One sequence of two tokens (2, 0), (0, 1), query (3, 0), v = (0, 1): |X| = 2, |z| = 3, |v| = 1.
Dataset small_case() {
  DatasetArrays arrays;
  arrays.tokens = Matrix{{2.0, 0.0}, {0.0, 1.0}};
  arrays.lengths = {2};
  arrays.queries = Matrix{{3.0, 0.0}};
  arrays.labels = {1};
  arrays.decoder = Vector{{0.0, 1.0}};
  return Dataset(arrays);
}

TEST(Smoothness, HasTheNumbersOfTheFormula) {
  const Dataset data = small_case();
  // z^2 (M0 v^2 X^4 + 3 M1 v X^3)
  EXPECT_NEAR(*gradient_lipschitz(Attention(data)), 9 * (0.25 * 16 + 3 * 8), 1e-12);
  EXPECT_NEAR(*gradient_lipschitz(Attention(data, W{}, LinearLoss{})), 9 * 3 * 8, 1e-12);
  EXPECT_NEAR(*gradient_lipschitz(Attention(data, W{}, Sigmoid{})),
              9 * (16 / (6 * std::sqrt(3.0)) + 3 * 8 * 0.25), 1e-12);
  // Margins are at most |v| max |x| = 2.
  EXPECT_NEAR(*gradient_lipschitz(Attention(data, W{}, Exponential{})), 9 * std::exp(2.0) * (16 + 24), 1e-9);
  // Key weights of norm 5 stand for |z|; a penalty adds its own second derivative; 1/sqrt(d) scales z.
  EXPECT_NEAR(*gradient_lipschitz(Attention(data, Prompt{Matrix{{5.0, 0.0}, {0.0, 1.0}}})), 25 * (4 + 24),
              1e-12);
  EXPECT_NEAR(*gradient_lipschitz(Attention(data, W{}, Logistic{}, {.penalty = 0.5})), 9 * (4 + 24) + 1,
              1e-12);
  EXPECT_NEAR(*gradient_lipschitz(Attention(data, W{}, Logistic{}, {.scaled = true})), 9 * (4 + 24) / 2.0,
              1e-12);
}

TEST(Smoothness, HasNoneWhereThereIsNone) {
  const Dataset data = small_case();
  EXPECT_FALSE(gradient_lipschitz(Attention(data, KQ{})));
  EXPECT_FALSE(gradient_lipschitz(Attention(data, W{}, Logistic{}, {.train = {Block::W, Block::v}})));
  EXPECT_FALSE(gradient_lipschitz(Attention(data, W{}, Logistic{}, {.head = QuadraticHead{0.1}})));
}

// |grad L(W) - grad L(W')| <= L |W - W'|, near and far, for every loss.
TEST(Smoothness, BoundsEveryDifferenceOfGradients) {
  std::uint64_t seed = 1;
  for (const Loss& loss : {Loss(Logistic{}), Loss(Exponential{}), Loss(LinearLoss{}), Loss(Sigmoid{})})
    for (const std::int64_t d : {2, 5, 10}) {
      const Dataset data = generate(SphereData{.samples = 3, .tokens = 4, .dim = d, .seed = seed});
      const Attention model(data, W{}, loss);
      const double L = *gradient_lipschitz(model);
      for (const double size : {1e-3, 1.0, 30.0}) {
        Parameters a = model.zero_parameters(), b = a;
        a.W = test::random_matrix(d, d, ++seed) * 3;
        b.W = a.W + size * test::random_matrix(d, d, ++seed);
        const Matrix difference =
            loss_and_gradient(model, a).gradient.W - loss_and_gradient(model, b).gradient.W;
        EXPECT_LE(difference.norm(), L * (a.W - b.W).norm()) << to_string(loss) << ", d = " << d;
      }
    }
}

}  // namespace
}  // namespace attmirror
