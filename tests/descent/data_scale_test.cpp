// Step sizes, starts and lists of optimizers by the words of users.
#include "descent/data_scale.hpp"

#include "base/numbers.hpp"
#include "descent/optimizer_words.hpp"
#include "support/files.hpp"
#include "support/scaled_data.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/descent/initialization.hpp>

#include <cmath>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

// Against the definition, on matrices: the dual norm of (x_t - mean x) z^T.
TEST(DataScale, IsTheTypicalDualNorm) {
  const Dataset data = generate(SphereData{.samples = 3, .tokens = 4, .dim = 5, .seed = 3});
  const Attention model(data);
  for (const Norm& norm :
       {Norm::l(1), Norm::l(1.5), Norm::l(2), Norm::l(infinity), Norm::nuclear(), Norm::spectral()}) {
    double sum = 0;
    for (std::ptrdiff_t i = 0; i < 3; ++i) {
      Matrix X(4, 5), z(1, 5);
      for (std::ptrdiff_t c = 0; c < 5; ++c) {
        z(0, c) = data.queries().data[i * data.queries().stride + c];
        for (std::ptrdiff_t t = 0; t < 4; ++t) X(t, c) = data.tokens(i).data[t * data.tokens(i).stride + c];
      }
      const Matrix mean = X.colwise().mean();
      for (std::ptrdiff_t t = 0; t < 4; ++t) {
        const Matrix difference = X.row(t) - mean.row(0);
        const Matrix product = difference.transpose() * z;
        sum += std::pow(attmirror::norm(product, norm.dual()), 2);
      }
    }
    EXPECT_NEAR(logit_scale(model, norm), std::sqrt(sum / 12), 1e-12) << to_string(norm);
  }
}

TEST(DataScale, StepsMoveLogitsAlikeInAnyUnits) {
  const Dataset data = generate(SphereData{.seed = 1}), large = test::scaled_data(data, 1000, 0.01);
  const Attention model(data), scaled(large);
  const double factor = 1000 * 0.01;
  const auto lr = [](const Attention& of, const Optimizer& optimizer) {
    return lr_of(scaled_to(of, optimizer));
  };
  const GradientDescent plain, normalized{.normalized = true};
  EXPECT_NEAR(lr(model, normalized) / lr(scaled, normalized), factor, 0.02 * factor);
  EXPECT_NEAR(lr(model, plain) / lr(scaled, plain), factor * factor, 0.02 * factor * factor);
  for (const double p : {1.1, 1.75, 3.0}) {
    const MirrorDescent md{.p = p, .normalized = true};
    const double expected = std::pow(factor, p - 1);
    EXPECT_NEAR(lr(model, md) / lr(scaled, md), expected, 0.02 * expected) << p;
  }
  EXPECT_NEAR(lr(model, Adam{}) / lr(scaled, Adam{}), factor, 0.02 * factor);
  // The entropy has its size in beta.
  const MirrorDescent entropy{.normalized = true, .geometry = Geometry::hyperbolic_entropy};
  EXPECT_EQ(lr(model, entropy), lr(scaled, entropy));
  EXPECT_NEAR(std::get<MirrorDescent>(scaled_to(model, entropy)).beta /
                  std::get<MirrorDescent>(scaled_to(scaled, entropy)).beta,
              factor, 0.02 * factor);
  EXPECT_NEAR(score_scale(large) / score_scale(data), 1000, 1e-9);
}

TEST(DataScale, StartsHaveLogitsOfSizeOne) {
  const Dataset data = test::scaled_data(generate(SphereData{.samples = 20, .seed = 1}), 30, 7);
  const Attention model(data);
  double sum = 0;
  std::ptrdiff_t count = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const Parameters start =
        initial_parameters(model, {.kind = InitKind::normal, .std = start_deviation(model), .seed = seed});
    for (const Vector& one : logits(model, start)) {
      sum += (one.array() - one.mean()).square().sum();
      count += one.size();
    }
  }
  EXPECT_NEAR(std::sqrt(sum / static_cast<double>(count)), 1, 0.1);
}

TEST(DataScale, DataWithoutScaleAreRefused) {
  const Dataset data = test::scaled_data(generate(SphereData{.seed = 1}), 1, 0);
  const Attention model(data);
  test::expect_bad_input({"no scale", "all queries are 0"}, [&] { scaled_to(model, GradientDescent{}); });
  test::expect_bad_input({"no scale"}, [&] { start_deviation(model); });
}

std::vector<NamedOptimizer> words(const std::string& text, std::vector<double> p = {}) {
  return parse_optimizer_words(split_words(text), p);
}

TEST(OptimizerWords, MirrorDescentStandsForEachP) {
  const auto all = words("md,gd,sign,steepest:nuclear,adam:0.95", {1.1, 3});
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0].word, "md:1.1");
  EXPECT_EQ(all[1].title, "ℓ3 mirror descent");
  EXPECT_EQ(all[2].word, "gd");
  EXPECT_TRUE(std::get<GradientDescent>(all[2].optimizer).normalized);
  EXPECT_EQ(std::get<SteepestDescent>(all[4].optimizer).norm, Norm::nuclear());
  EXPECT_EQ(std::get<Adam>(all[5].optimizer).beta2, 0.95);
  EXPECT_EQ(words("md").front().title, "ℓ2 mirror descent");
  EXPECT_EQ(words("md:1.5").front().word, "md:1.5");
}

TEST(OptimizerWords, OthersAreRefusedWithTheNearest) {
  test::expect_bad_input({"unknown optimizer \"sgin\"", "did you mean \"sign\""}, [] { words("md,sgin"); });
  test::expect_bad_input({"\"md:x\"", "a number after the colon"}, [] { words("md:x"); });
  test::expect_bad_input({"\"md:0.5\"", "p is 0.5", "greater than 1"}, [] { words("md:0.5"); });
  test::expect_bad_input({"\"steepest\"", "steepest:nuclear"}, [] { words("steepest"); });
  test::expect_bad_input({"\"gd:2\"", "takes nothing after a colon"}, [] { words("gd:2"); });
  test::expect_bad_input({"\"gd\" is given twice"}, [] { words("gd,gd"); });
  test::expect_bad_input({"\"md:3\" is given twice"}, [] { words("md:3,md", {3}); });
  test::expect_bad_input({"p is given, but no optimizer takes it"}, [] { words("gd", {2, 3}); });
  test::expect_bad_input({"unknown optimizer \"\""}, [] { words("gd,"); });
  test::expect_bad_input({"norm is \"nuklear\"", "did you mean \"nuclear\""},
                         [] { parse_norm_words(split_words("2,nuklear")); });
  test::expect_bad_input({"\"2\" is given twice"}, [] { parse_norm_words(split_words("frobenius,2")); });
}

}  // namespace
}  // namespace attmirror
