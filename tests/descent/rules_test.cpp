// Each update rule against the same formula written plainly, for every kind of block.
#include "descent/optimizer_list.hpp"
#include "descent/plain_rules.hpp"
#include "support/files.hpp"
#include "support/same_bits.hpp"
#include <attmirror/descent/descend.hpp>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

double relative_difference(const Matrix& a, const Matrix& b) {
  return (a - b).cwiseAbs().maxCoeff() / b.cwiseAbs().maxCoeff();
}

// Every parameterization, with and without v.
class Models {
 public:
  template <class Test>
  void each(Test test) const {
    const AttentionOptions none{}, with_v_W{{Block::W, Block::v}}, with_v_KQ{{Block::K, Block::Q, Block::v}},
        with_v_p{{Block::p, Block::v}};
    test(Attention(data_, W{}, Logistic{}, none));
    test(Attention(data_, W{}, Logistic{}, with_v_W));
    test(Attention(data_, KQ{.rank = 3}, Logistic{}, with_v_KQ));
    test(Attention(data_, Prompt{}, Logistic{}, none));
    test(Attention(data_, Prompt{}, Logistic{}, with_v_p));
  }

 private:
  Dataset data_ = generate(SphereData{.samples = 4, .tokens = 5, .dim = 6});
};

// Random gradients, with scales between e^-12 and e^0 that change from step to step.
void expect_follows(const Optimizer& optimizer, const Attention& model, int steps, double tolerance) {
  const Parameters start = random_parameters(model, 0.7, 3);
  DrivenRule real(optimizer, model, start);
  PlainRule plain(optimizer, real.weights());
  for (int t = 0; t < steps; ++t) {
    const Matrices stored = random_gradients(real.weights(), static_cast<std::uint64_t>(100 + t));
    Matrices truth = stored;
    std::vector<double> log_scale;
    for (std::size_t b = 0; b < stored.size(); ++b) {
      log_scale.push_back(-0.5 * ((7 * t + 3 * static_cast<int>(b)) % 24));
      truth[b] *= std::exp(log_scale[b]);
    }
    const double loss = 0.7 + 0.01 * t;
    real.step(stored, log_scale, loss);
    plain.step(truth, loss);
    for (std::size_t b = 0; b < real.count(); ++b)
      ASSERT_LT(relative_difference(real.weight(b), plain.weights()[b]), tolerance)
          << to_string(optimizer) << ", " << to_string(model.parameterization()) << ", block " << b
          << ", step " << t;
  }
}

TEST(UpdateRules, FollowTheirFormulas) {
  for (Optimizer optimizer : all_optimizers()) {
    // What Newton and Schulz make of a gradient is no simple formula; room mirror tests it.
    const auto* steepest = std::get_if<SteepestDescent>(&optimizer);
    if (steepest && steepest->orthogonalization == Orthogonalization::newton_schulz) continue;
    for (const EpsPolicy eps : {EpsPolicy::exact, EpsPolicy::paper}) {
      std::visit(
          [&](auto& options) {
            if constexpr (requires { options.eps; }) {
              options.eps = eps;
              options.eps_value = 1e-2;  // large enough to matter
            }
          },
          optimizer);
      // A power of the dual image multiplies its rounding, and each singular vector carries errors of its own.
      const bool plain_entries = measuring_norm(optimizer).is_entrywise();
      Models().each([&](const Attention& model) {
        expect_follows(optimizer, model, 1, plain_entries ? 1e-13 : 1e-12);
        expect_follows(optimizer, model, 12, 1e-11);
      });
    }
  }
}

TEST(UpdateRules, FollowTheirFormulasForEveryP) {
  Models().each([](const Attention& model) {
    for (const double p : {1.1, 4.0 / 3.0, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0})
      for (const bool normalized : {false, true})
        expect_follows(MirrorDescent{.p = p, .lr = 0.05, .normalized = normalized}, model, 1, 1e-12);
  });
}

// Spectral descent's step is lr U V^T of the singular value decomposition.
TEST(UpdateRules, SpectralDescentMovesAllSingularValuesAlike) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  DrivenRule rule(spectral_descent(0.25), model, random_parameters(model, 1, 5));
  for (int t = 0; t < 20; ++t) {
    const Matrix before = rule.weight(0);
    const Matrices g = random_gradients(rule.weights(), static_cast<std::uint64_t>(t));
    rule.step(g);
    const Eigen::JacobiSVD<Eigen::MatrixXd> svd(g[0], Eigen::ComputeThinU | Eigen::ComputeThinV);
    const Matrix expected = 0.25 * svd.matrixU() * svd.matrixV().transpose();
    EXPECT_LT((before - rule.weight(0) - expected).cwiseAbs().maxCoeff(), 1e-12);
  }
}

TEST(UpdateRules, ExactMuonIsSpectralDescentAlongAnAverage) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  const Parameters start = random_parameters(model, 1, 5);
  DrivenRule by_name(muon(0.1, 0.95, Orthogonalization::exact), model, start);
  DrivenRule by_parts(
      SteepestDescent{.norm = Norm::spectral(), .lr = 0.1, .momentum = {MomentumKind::ema, 0.95}}, model,
      start);
  DrivenRule published(muon(0.1), model, start);
  for (int t = 0; t < 50; ++t) {
    const Matrices g = random_gradients(by_name.weights(), static_cast<std::uint64_t>(t));
    const Matrix before = published.weight(0);
    by_name.step(g);
    by_parts.step(g);
    published.step(g);
    EXPECT_EQ(by_name.weight(0), by_parts.weight(0));
    // Newton and Schulz leave singular values between 0.68 and 1.14, and those far below the largest below that.
    const double largest = plain_norm(before - published.weight(0), Norm::spectral()) / 0.1;
    EXPECT_GT(largest, 0.68);
    EXPECT_LT(largest, 1.2);
  }
}

// The same run whatever unit the gradient has, down to where it could not be written as a number.
TEST(UpdateRules, ExactStepsDoNotDependOnTheUnitOfTheGradient) {
  const Dataset data = generate(SphereData{});
  const Attention model(data, W{}, Logistic{}, {.train = {Block::W, Block::v}});
  const Parameters start = random_parameters(model, 1, 5);
  const std::vector<Optimizer> optimizers{
      Adam{.lr = 0.01},
      Adam{.lr = 0.01, .beta1 = 0.5, .beta2 = 0.3},
      Lion{.lr = 0.01},
      AdaGrad{},
      sign_descent(),
      coordinate_descent(),
      spectral_descent(),
      signum(),
      muon(),
      muon(0.1, 0.9, Orthogonalization::exact),
      GradientDescent{.normalized = true, .momentum = {MomentumKind::heavy_ball, 0.9}},
      MirrorDescent{.p = 1.5, .normalized = true, .momentum = {MomentumKind::ema, 0.9}},
      MirrorDescent{.p = 1.5, .normalized = true, .geometry = Geometry::schatten},
      MirrorDescent{.normalized = true, .geometry = Geometry::hyperbolic_entropy}};
  for (const Optimizer& optimizer : optimizers)
    for (const double log_scale : {-5000.0, 4000.0}) {
      DrivenRule one(optimizer, model, start), other(optimizer, model, start), small(optimizer, model, start);
      for (int t = 0; t < 300; ++t) {
        // The size itself falls, too, by e^-9 a step for a while: averages must be rescaled on the way.
        const double fall = t < 150 ? -9.0 * t : -9.0 * 150 + 5.0 * (t - 150);
        Matrices g = random_gradients(one.weights(), static_cast<std::uint64_t>(t));
        one.step(g, {fall, fall});
        other.step(g, {fall + log_scale, fall + log_scale});
        for (Matrix& block : g) block *= 1e-200;
        small.step(g, {fall, fall});
      }
      for (std::size_t b = 0; b < 2; ++b) {
        EXPECT_LT(relative_difference(other.weight(b), one.weight(b)), 1e-10) << to_string(optimizer);
        EXPECT_LT(relative_difference(small.weight(b), one.weight(b)), 1e-10) << to_string(optimizer);
        EXPECT_GT((one.weight(b) - DrivenRule(optimizer, model, start).weight(b)).norm(), 0.1);
      }
    }
}

TEST(UpdateRules, AdamFollowsTheTextbook) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  for (const EpsPolicy eps : {EpsPolicy::exact, EpsPolicy::paper}) {
    const double eps_value = eps == EpsPolicy::paper ? 1e-8 : 0;
    DrivenRule adam(Adam{.lr = 0.01, .eps = eps}, model, random_parameters(model, 1, 5));
    Matrix w = adam.weight(0), m = Matrix::Zero(10, 10), v = m;
    for (int t = 1; t <= 200; ++t) {
      const Matrices g = random_gradients(adam.weights(), static_cast<std::uint64_t>(t));
      adam.step(g);
      for (Eigen::Index j = 0; j < w.size(); ++j) {
        const double x = g[0].data()[j];
        m.data()[j] = 0.9 * m.data()[j] + 0.1 * x;
        v.data()[j] = 0.999 * v.data()[j] + 0.001 * x * x;
        const double mean = m.data()[j] / (1 - std::pow(0.9, t)),
                     square = v.data()[j] / (1 - std::pow(0.999, t));
        w.data()[j] -= 0.01 * mean / (std::sqrt(square) + eps_value);
      }
      ASSERT_LT(relative_difference(adam.weight(0), w), 1e-13) << t;
    }
  }
}

// Entries far below the largest of their block have squares below the smallest double.
TEST(UpdateRules, AdamMovesTinyEntriesLikeLargeOnes) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  DrivenRule adam(Adam{.lr = 0.01}, model, model.zero_parameters());
  for (int t = 0; t < 50; ++t) {
    Matrix g = Matrix::Constant(10, 10, 1e-250);
    g(0, 0) = -1;
    g(3, 4) = 0;
    adam.step({g});
  }
  EXPECT_NEAR(adam.weight(0)(0, 0), 0.5, 1e-12);
  EXPECT_NEAR(adam.weight(0)(9, 9), -0.5, 1e-12);
  EXPECT_EQ(adam.weight(0)(3, 4), 0.0);
}

// In long double, from the formulas of the paper: its weights are lr times whole numbers, so they are the same but for
// the rounding of w itself.
TEST(UpdateRules, LionFollowsItsPaper) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  DrivenRule lion(Lion{.lr = 0.01}, model, model.zero_parameters());
  std::vector<long double> m(100, 0);
  std::vector<int> way(100, 0);
  for (int t = 1; t <= 500; ++t) {
    const Matrices g = random_gradients(lion.weights(), static_cast<std::uint64_t>(t));
    lion.step(g);
    for (std::size_t j = 0; j < 100; ++j) {
      const long double x = g[0].data()[j], c = 0.9L * m[j] + 0.1L * x;
      way[j] += (c > 0) - (c < 0);
      m[j] = 0.99L * m[j] + 0.01L * x;
      ASSERT_NEAR(lion.weight(0).data()[j], -0.01 * way[j], 1e-13) << t << ", " << j;
    }
  }
}

TEST(UpdateRules, LionWithEqualWeightsIsSignum) {
  const Dataset data = generate(SphereData{});
  const Attention model(data, W{}, Logistic{}, {.train = {Block::W, Block::v}});
  const Parameters start = random_parameters(model, 1, 5);
  DrivenRule lion(Lion{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.8}, model, start),
      same(signum(0.01, 0.8), model, start);
  for (int t = 0; t < 300; ++t) {
    const Matrices g = random_gradients(lion.weights(), static_cast<std::uint64_t>(t));
    lion.step(g, {-9.0 * t, -7.0 * t});
    same.step(g, {-9.0 * t, -7.0 * t});
  }
  for (std::size_t b = 0; b < 2; ++b) EXPECT_TRUE(same_bits(lion.weight(b), same.weight(b)));
}

// An entry moves by its sign, however small it is beside the others; one without a gradient stays.
TEST(UpdateRules, LionMovesEveryEntryThatHasASign) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  DrivenRule lion(Lion{.lr = 0.01}, model, model.zero_parameters());
  for (int t = 0; t < 50; ++t) {
    Matrix g = Matrix::Constant(10, 10, 1e-250);
    g(0, 0) = -1;
    g(3, 4) = 0;
    lion.step({g}, {-2000.0});  // entries are at 1e-868 and 1e-1118
  }
  EXPECT_NEAR(lion.weight(0)(0, 0), 0.5, 1e-12);
  EXPECT_NEAR(lion.weight(0)(9, 9), -0.5, 1e-12);
  EXPECT_EQ(lion.weight(0)(3, 4), 0.0);
}

// In long double, with sums instead of roots.
TEST(UpdateRules, AdaGradFollowsItsPaper) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  for (const EpsPolicy eps : {EpsPolicy::exact, EpsPolicy::paper}) {
    const long double eps_value = eps == EpsPolicy::paper ? 1e-10L : 0;
    DrivenRule adagrad(AdaGrad{.lr = 0.1, .eps = eps}, model, model.zero_parameters());
    std::vector<long double> w(100, 0), sum(100, 0);
    for (int t = 1; t <= 1000; ++t) {
      const Matrices g = random_gradients(adagrad.weights(), static_cast<std::uint64_t>(t));
      adagrad.step(g);
      for (std::size_t j = 0; j < 100; ++j) {
        const long double x = g[0].data()[j];
        sum[j] += x * x;
        w[j] -= 0.1L * x / (std::sqrt(sum[j]) + eps_value);
        ASSERT_NEAR(adagrad.weight(0).data()[j], static_cast<double>(w[j]), 1e-13) << t << ", " << j;
      }
    }
  }
}

// After 100 steps of torch.optim.Adagrad (1.13) with lr = 0.1 and its eps of 1e-10, on gradients that are exact in
// binary and between 1 and 2^-36 in size, where eps begins to matter.
TEST(UpdateRules, AdaGradHasTheNumbersOfPyTorch) {
  const double torch[] = {-0.61519113829634553, -0.5829923781123677,  -0.43987998276632823,
                          -0.54090974125677005, -0.56504183017257525, -0.452510794318909,
                          -0.46279764635910892, -0.56479610821053183, -0.54666721825059827,
                          -0.33636630012027402};
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  DrivenRule adagrad(AdaGrad{.lr = 0.1, .eps = EpsPolicy::paper}, model, model.zero_parameters());
  for (int t = 1; t <= 100; ++t) {
    Matrix g(10, 10);
    for (int i = 0; i < 10; ++i)
      for (int j = 0; j < 10; ++j) g(i, j) = std::ldexp((t * 7 + j * 3) % 11 - 4, -4 * j);
    adagrad.step({g});
  }
  for (int j = 0; j < 10; ++j) EXPECT_NEAR(adagrad.weight(0)(3, j), torch[j], 1e-14) << j;
}

// An entry's first step is lr long, however small the entry is beside the others, and steps fall like 1 / sqrt(t).
TEST(UpdateRules, AdaGradMovesTinyEntriesLikeLargeOnes) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  DrivenRule adagrad(AdaGrad{}, model, model.zero_parameters());
  double way = 0;
  for (int t = 1; t <= 50; ++t) {
    Matrix g = Matrix::Constant(10, 10, 1e-250);
    g(0, 0) = -1;
    g(3, 4) = 0;
    adagrad.step({g}, {-2000.0});  // entries are at 1e-868 and 1e-1118
    way += 0.1 / std::sqrt(t);
  }
  EXPECT_NEAR(adagrad.weight(0)(0, 0), way, 1e-12);
  EXPECT_NEAR(adagrad.weight(0)(9, 9), -way, 1e-12);
  EXPECT_EQ(adagrad.weight(0)(3, 4), 0.0);
}

TEST(UpdateRules, AZeroGradientMovesNothing) {
  const Dataset data = generate(SphereData{});
  const Attention model(data, W{}, Logistic{}, {.train = {Block::W, Block::v}});
  const double none = -std::numeric_limits<double>::infinity();  // the scale of a gradient that is 0
  for (const Optimizer& optimizer : all_optimizers()) {
    DrivenRule rule(optimizer, model, random_parameters(model, 1, 5));
    const Matrices before = rule.weights();
    const Matrices zero{Matrix::Zero(10, 10), Matrix::Zero(1, 10)};
    for (int t = 0; t < 3; ++t) rule.step(zero, t == 1 ? std::vector<double>{0, 0} : std::vector{none, none});
    for (std::size_t b = 0; b < 2; ++b)
      EXPECT_LT(relative_difference(rule.weight(b), before[b]), 1e-14) << to_string(optimizer);
    for (const auto& [name, numbers] : rule.rule().numbers())
      for (const double x : numbers) EXPECT_TRUE(std::isfinite(x)) << name;
  }
}

}  // namespace
}  // namespace attmirror::test
