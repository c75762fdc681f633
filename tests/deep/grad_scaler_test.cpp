// GradScaler: the scale's ups and downs, steps that do not depend on it, and archives.
#include "deep/tensors.hpp"

#include <limits>

namespace attmirror::deep_tests {
namespace {

am::GradScalerOptions small_options() {
  am::GradScalerOptions options;
  options.initial_scale = 16;
  options.growth_interval = 3;
  return options;
}

TEST(GradScaler, GrowsAfterGoodStepsAndBacksOffAfterBadOnes) {
  const at::Tensor w = leaf(at::ones({2}, at::kHalf));
  am::MirrorDescent optimizer({w}, am::MirrorDescentOptions(1e-3).p(1.5));
  am::GradScaler scaler(small_options());
  const auto step = [&](double gradient) {
    give_gradient(w, at::full({2}, gradient, at::kHalf));
    scaler.step(optimizer);
    scaler.update();
  };
  for (int i = 0; i < 2; ++i) step(1);
  EXPECT_EQ(scaler.scale(), 16);
  step(1);
  EXPECT_EQ(scaler.scale(), 32);
  const at::Tensor before = w.detach().clone();
  step(std::numeric_limits<double>::infinity());
  EXPECT_TRUE(optimizer.last_step_skipped());
  EXPECT_TRUE(same_bits(w, before));
  EXPECT_EQ(scaler.scale(), 16);
  for (int i = 0; i < 2; ++i) step(1);
  EXPECT_EQ(scaler.scale(), 16);  // the count of good steps began anew
  step(1);
  EXPECT_EQ(scaler.scale(), 32);
  for (int i = 0; i < 2000; ++i) step(std::numeric_limits<double>::quiet_NaN());
  EXPECT_GT(scaler.scale(), 0);
  EXPECT_TRUE(contains(refusal([&] { scaler.update(); }), "comes after a step()"));
}

// A gradient that float16 has no number for, but for the scale.
TEST(GradScaler, SavesGradientsThatAreTooSmallForHalf) {
  for (const bool scaled : {false, true}) {
    const at::Tensor w = leaf(at::ones({1}, at::kHalf));
    am::MirrorDescent optimizer({w}, am::MirrorDescentOptions(1e6));
    am::GradScaler scaler;
    const at::Tensor loss = w.to(at::kFloat).sum() * 1e-8;
    if (scaled) {
      scaler.scale(loss).backward();
      scaler.step(optimizer);
      scaler.update();
    } else {
      loss.backward();
      optimizer.step();
    }
    EXPECT_NEAR(w.item<double>(), scaled ? 0.99 : 1.0, 5e-4);
  }
}

TEST(GradScaler, GoesOnFromAnArchive) {
  const at::Tensor w = leaf(at::ones({2}));
  am::MirrorDescent optimizer({w}, am::MirrorDescentOptions(1e-3));
  give_gradient(w, at::ones({2}));
  am::GradScaler scaler(small_options());
  const auto step = [&](am::GradScaler& one) {
    one.step(optimizer);
    one.update();
  };
  step(scaler);
  step(scaler);
  std::stringstream stream;
  torch::save(scaler, stream);
  am::GradScaler loaded;
  torch::load(loaded, stream);
  EXPECT_EQ(loaded.scale(), 16);
  step(loaded);
  EXPECT_EQ(loaded.scale(), 32);
}

TEST(GradScaler, RefusesOptionsThatMakeNoSense) {
  am::GradScalerOptions options;
  options.growth_factor = 1;
  EXPECT_TRUE(contains(refusal([&] { am::GradScaler{options}; }), "growth_factor is 1"));
  options = {};
  options.backoff_factor = 1;
  EXPECT_TRUE(contains(refusal([&] { am::GradScaler{options}; }), "backoff_factor is 1"));
  options = {};
  options.initial_scale = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(contains(refusal([&] { am::GradScaler{options}; }), "initial_scale is inf"));
}

}  // namespace
}  // namespace attmirror::deep_tests
