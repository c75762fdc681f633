// SteepestDescent against its formulas, and the polar factor against the singular value decomposition.
#include "deep/tensors.hpp"

#include <cmath>
#include <limits>
#include <memory>

namespace attmirror::deep_tests {
namespace {

at::Tensor direction(const at::Tensor& d, double p) {
  const double q = p / (p - 1);
  const at::Tensor unit = d / d.abs().pow(q).sum().pow(1 / q);
  return unit.sign() * unit.abs().pow(1 / (p - 1));
}

at::Tensor polar_by_svd(const at::Tensor& d) {
  const auto svd = at::linalg_svd(d, false);
  return at::mm(std::get<0>(svd), std::get<2>(svd));
}

TEST(SteepestDescent, FollowsTheFormulasOfLpNorms) {
  for (const double p : {1.1, 1.5, 2.0, 3.0, 10.0}) {
    for (const bool fused : {true, false}) {
      const at::Tensor w = leaf(random({5, 9}, 1, at::kDouble));
      at::Tensor expected = w.detach().clone(), m = at::zeros_like(expected);
      am::SteepestDescent optimizer({w}, am::SteepestDescentOptions(0.1)
                                             .norm(Norm::l(p))
                                             .momentum(0.9)
                                             .nesterov(true)
                                             .weight_decay(0.2)
                                             .fused(fused));
      for (std::uint64_t step = 0; step < 30; ++step) {
        const at::Tensor g = random({5, 9}, 10 + step, at::kDouble, 1e-4);
        give_gradient(w, g);
        optimizer.step();
        m = 0.9 * m + g;
        expected = (1 - 0.1 * 0.2) * expected - 0.1 * direction(g + 0.9 * m, p);
      }
      EXPECT_LT(distance(w, expected), 1e-12) << p << ' ' << fused;
    }
  }
}

TEST(SteepestDescent, OfLInfinityStepsBySigns) {
  for (const char* norm : {"linf", "sign", "inf"}) {
    const at::Tensor w = leaf(at::zeros({4}));
    give_gradient(w, at::tensor({-3.0F, 1e-30F, 0.0F, 7.0F}));
    am::SteepestDescent({w}, am::SteepestDescentOptions(0.5).norm(norm)).step();
    EXPECT_TRUE(same_bits(w, at::tensor({0.5F, -0.5F, 0.0F, -0.5F}))) << norm;
  }
}

TEST(SteepestDescent, SpectralStepsByThePolarFactor) {
  for (const auto& sizes :
       std::vector<std::vector<std::int64_t>>{{6, 6}, {4, 9}, {9, 4}, {3, 2, 2, 2}, {7}, {1, 5}}) {
    const at::Tensor w = leaf(random(sizes, 1, at::kDouble)), g = random(sizes, 2, at::kDouble, 1e-5);
    const at::Tensor before = w.detach().clone();
    am::SteepestDescent optimizer(
        {w}, am::SteepestDescentOptions(0.3).norm("spectral").polar(am::PolarMethod::svd).weight_decay(0.5));
    give_gradient(w, g);
    optimizer.step();
    const at::Tensor polar = polar_by_svd(g.reshape({sizes[0], -1})).reshape(sizes);
    EXPECT_LT(distance(w, (1 - 0.3 * 0.5) * before - 0.3 * polar), 1e-12) << g.sizes();
  }
}

// Muon's polynomial leaves the singular vectors alone and the values near 1.
TEST(SteepestDescent, NewtonSchulzIsNearThePolarFactor) {
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{16, 16}, {8, 30}, {30, 8}}) {
    const at::Tensor g = random(sizes, 3, at::kFloat, 1e-20);
    const at::Tensor near = am::polar_factor(g, am::PolarMethod::newton_schulz).to(at::kDouble);
    const at::Tensor exact = polar_by_svd(g.to(at::kDouble));
    const at::Tensor values = std::get<1>(at::linalg_svd(near));
    EXPECT_GT(values.min().item<double>(), 0.3);
    EXPECT_LT(values.max().item<double>(), 1.25);
    // U V^T times its near copy is symmetric and positive: the same vectors.
    const at::Tensor product = at::mm(exact.t(), near);
    EXPECT_LT(distance(product, product.t()), 1e-4);
    // Turns of the polynomial itself, on the values of g.
    at::Tensor s = std::get<1>(at::linalg_svd(g.to(at::kDouble)));
    s = s / s.norm();
    for (int turn = 0; turn < 5; ++turn) s = 3.4445 * s - 4.7750 * s.pow(3) + 2.0315 * s.pow(5);
    EXPECT_LT(distance(std::get<0>(values.sort()), std::get<0>(s.sort())), 1e-4);
  }
}

TEST(SteepestDescent, NotANumberReachesTheWeightsAndStopsNobodyHalfway) {
  for (const am::PolarMethod method : {am::PolarMethod::svd, am::PolarMethod::newton_schulz}) {
    const at::Tensor first = leaf(random({4, 3}, 1)), second = leaf(random({4, 3}, 2));
    am::SteepestDescent optimizer({first, second},
                                  am::SteepestDescentOptions(0.1).norm("spectral").polar(method));
    give_gradient(first, random({4, 3}, 3));
    at::Tensor bad = random({4, 3}, 4);
    bad[1][2] = std::numeric_limits<double>::quiet_NaN();
    give_gradient(second, bad);
    optimizer.step();
    EXPECT_TRUE(at::isfinite(first).all().item<bool>());
    EXPECT_TRUE(at::isnan(second).all().item<bool>());
  }
}

TEST(SteepestDescent, GradientsOfZerosMoveNothing) {
  for (const char* norm : {"l1.5", "l2", "sign", "spectral"}) {
    for (const am::PolarMethod method : {am::PolarMethod::newton_schulz, am::PolarMethod::svd}) {
      const at::Tensor w = leaf(random({3, 4}, 1)), before = w.detach().clone();
      give_gradient(w, at::zeros({3, 4}));
      am::SteepestDescent({w}, am::SteepestDescentOptions(0.5).norm(norm).polar(method)).step();
      EXPECT_TRUE(same_bits(w, before)) << norm;
    }
  }
  // Of a gradient of rank 1, the exact factor moves that rank alone.
  const at::Tensor g = at::ger(random({5}, 1, at::kDouble), random({6}, 2, at::kDouble));
  EXPECT_LT(distance(am::polar_factor(g, am::PolarMethod::svd), g / g.norm()), 1e-12);
}

TEST(SteepestDescent, MaximizesByStepsAlongTheNegatedGradient) {
  for (const char* norm : {"l1.5", "l2", "sign", "spectral"}) {
    const at::Tensor up = leaf(random({6, 5}, 1)), down = leaf(up);
    const auto options = am::SteepestDescentOptions(0.05).norm(norm).momentum(0.5);
    am::SteepestDescent one({up}, am::SteepestDescentOptions(options).maximize(true));
    am::SteepestDescent other({down}, options);
    for (std::uint64_t step = 0; step < 3; ++step) {
      const at::Tensor g = random({6, 5}, 10 + step);
      give_gradient(up, g);
      give_gradient(down, -g);
      one.step();
      other.step();
    }
    EXPECT_TRUE(same_bits(up, down)) << norm;
  }
}

TEST(SteepestDescent, BriefWeightsHaveMasters) {
  for (const char* norm : {"l3", "sign", "spectral"}) {
    const at::Tensor w = leaf(at::ones({2, 2}, at::kBFloat16));
    am::SteepestDescent optimizer({w},
                                  am::SteepestDescentOptions(1e-3).norm(norm).polar(am::PolarMethod::svd));
    for (int step = 0; step < 100; ++step) {
      give_gradient(w, at::ones({2, 2}, at::kBFloat16));
      optimizer.step();
    }
    const double size = std::string(norm) == "sign" ? 1
                        : std::string(norm) == "l3" ? std::pow(4.0, -1.0 / 3)
                                                    : 0.5;
    EXPECT_NEAR(w[1][0].item<double>(), 1 - 0.1 * size, 3e-3) << norm;
  }
}

TEST(SteepestDescent, GoesOnFromAnArchiveWithTheSameBits) {
  for (const char* norm : {"l1.5", "sign", "spectral"}) {
    const auto make = [&](const at::Tensor& w, double lr) {
      return std::make_unique<am::SteepestDescent>(Tensors{w},
                                                   am::SteepestDescentOptions(lr).norm(norm).momentum(0.9));
    };
    const auto run = [](am::SteepestDescent& optimizer, const at::Tensor& w, std::uint64_t first) {
      for (std::uint64_t step = first; step < first + 5; ++step) {
        give_gradient(w, random({4, 6}, 10 + step, at::kBFloat16));
        optimizer.step();
      }
    };
    const at::Tensor w = leaf(random({4, 6}, 1, at::kBFloat16));
    const auto optimizer = make(w, 0.01);
    run(*optimizer, w, 0);
    const at::Tensor other = leaf(w);
    const auto resumed = make(other, 1);
    load(*resumed, saved(*optimizer));
    run(*optimizer, w, 5);
    run(*resumed, other, 5);
    EXPECT_TRUE(same_bits(w, other)) << norm;
    am::MirrorDescent mirror({other}, am::MirrorDescentOptions(0.1));
    EXPECT_TRUE(contains(refusal([&] { load(mirror, saved(*optimizer)); }),
                         "optimizer is SteepestDescent: expected MirrorDescent"));
  }
}

TEST(SteepestDescent, RefusesOtherNorms) {
  const at::Tensor w = leaf(at::ones({2}));
  for (const char* norm : {"l1", "nuclear", "schatten:3", "l0.5", "euclid", "", "l"}) {
    const std::string message =
        refusal([&] { am::SteepestDescent({w}, am::SteepestDescentOptions(0.1).norm(norm)); });
    EXPECT_TRUE(contains(message, "group 0: norm is \"" + std::string(norm) + "\"")) << message;
  }
  EXPECT_TRUE(contains(refusal([&] {
                         am::SteepestDescent({w},
                                             am::SteepestDescentOptions(0.1).norm("spectral").iterations(0));
                       }),
                       "iterations is 0"));
}

}  // namespace
}  // namespace attmirror::deep_tests
