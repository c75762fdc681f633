// Attention under the quadratic head h(u) = v^T u - lambda |u|^2 becomes a sparsemax. With orthonormal tokens
// |X^T s| = |s|, so that for labels +1 the loss is least where
//
//   s = argmax over the simplex of gamma^T s - lambda |s|^2 = sparsemax(gamma / (2 lambda)),   gamma = X v,
//
// the projection of gamma / (2 lambda) onto the simplex: it keeps the tokens above a threshold, and training W must
// find both the kept tokens and their probabilities.
#include "support/size.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/descent/descend.hpp>

#include <algorithm>
#include <functional>
#include <set>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

// The projection of x onto the simplex: max(x - tau, 0), with tau from the k largest entries for the largest k
// that leaves all of those above it.
Vector sparsemax(const Vector& x) {
  std::vector<double> sorted(x.data(), x.data() + x.size());
  std::ranges::sort(sorted, std::greater<>());
  double sum = 0, tau = 0;
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    sum += sorted[k];
    const double candidate = (sum - 1) / static_cast<double>(k + 1);
    if (sorted[k] > candidate) tau = candidate;
  }
  return (x.array() - tau).max(0.0);
}

TEST(Sparsemax, OfTheTestIsAProjection) {
  const auto of = [](double a, double b, double c) {
    Vector x(3);
    x << a, b, c;
    const Vector s = sparsemax(x);
    return std::vector<double>(s.data(), s.data() + 3);
  };
  EXPECT_EQ(of(5, 1, 0), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(of(0.5, 1, -3), (std::vector<double>{0.25, 0.75, 0}));
  EXPECT_EQ(of(2, 2, 2.25), (std::vector<double>{0.25, 0.25, 0.5}));
}

// A token that is not kept fades like 1 / (steps times its distance from the threshold), so those within 0.03 of
// it are still on their way after these 100,000 steps; the others have arrived.
TEST(Sparsemax, IsWhereTheQuadraticHeadLeadsAttention) {
  const std::uint64_t seeds = test::reduced_size ? 1 : 5;
  int arrived = 0, sequences = 0;
  std::set<std::ptrdiff_t> kept_counts;
  for (const double lambda : {0.1, 0.25, 0.5, 1.0, 2.0}) {
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const Dataset data = generate(OrthonormalData{.seed = seed});
      const Attention model(data, attmirror::W{}, Logistic{}, {.head = QuadraticHead{lambda}});
      const DescentRun run = descend(model, GradientDescent{.lr = 10}, {.steps = 100'000});
      const std::vector<Vector> s = attention_probabilities(model, run.last());
      for (std::ptrdiff_t i = 0; i < data.samples(); ++i) {
        SCOPED_TRACE(::testing::Message() << "lambda " << lambda << ", seed " << seed << ", sequence " << i);
        const Vector gamma = data.tokens(i).eigen() * data.decoder().eigen().transpose();
        const Vector expected = sparsemax(gamma / (2 * lambda)), found = s[static_cast<std::size_t>(i)];
        const double threshold = gamma.maxCoeff() - 2 * lambda * expected.maxCoeff();
        const bool far_from_threshold = (gamma.array() - threshold).abs().minCoeff() > 0.03;
        EXPECT_LE((found - expected).lpNorm<Eigen::Infinity>(), far_from_threshold ? 3e-4 : 0.01);
        ++sequences;
        if (!far_from_threshold) continue;
        ++arrived;
        // P3 calls a token kept when its probability is 1e-3 or more.
        for (std::ptrdiff_t t = 0; t < found.size(); ++t) EXPECT_EQ(found(t) >= 1e-3, expected(t) > 0) << t;
        kept_counts.insert((found.array() >= 1e-3).count());
      }
    }
  }
  EXPECT_GE(arrived, sequences * 3 / 4);
  EXPECT_EQ(kept_counts, (std::set<std::ptrdiff_t>{1, 2, 3, 4}));  // lambda decides how many
}

}  // namespace
}  // namespace attmirror
