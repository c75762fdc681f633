// What the dual state is for: 200 steps of a small transformer with bfloat16 parameters end at the loss of float32
// ones if there is one, and visibly above it if not.
#include "deep/small_transformer.hpp"

#include <cstdio>

#include <ATen/Parallel.h>

namespace attmirror::deep_tests {
namespace {

// The mean loss of the last 20 of 200 steps.
double trained_loss(double p, double lr, at::ScalarType type, am::MasterState dual_state) {
  SmallTransformer model(type);
  MadeUpLanguage language;
  am::MirrorDescent optimizer(model.parameters, am::MirrorDescentOptions(lr).p(p).dual_state(dual_state));
  double sum = 0;
  for (int step = 0; step < 200; ++step) {
    optimizer.zero_grad();
    const at::Tensor loss = model.loss(language.sentences());
    if (step >= 180) sum += loss.item<double>();
    loss.backward();
    optimizer.step();
  }
  return sum / 20;
}

TEST(SmallTransformer, InBfloat16TrainsAsInFloat32WithADualStateOnly) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  struct Case {
    double p, lr;
  };
  for (const Case& c : {Case{1.1, 0.03}, Case{3, 0.01}}) {
    const double reference = trained_loss(c.p, c.lr, at::kFloat, am::MasterState::automatic);
    const double dual = trained_loss(c.p, c.lr, at::kBFloat16, am::MasterState::automatic);
    const double naive = trained_loss(c.p, c.lr, at::kBFloat16, am::MasterState::off);
    std::printf("p = %-4g loss in float32 %.4f, in bfloat16 with a dual state %.4f, without %.4f\n", c.p,
                reference, dual, naive);
    EXPECT_LT(reference, 2.1) << "training goes down, from 3.15";
    EXPECT_NEAR(dual, reference, 0.01 * reference) << c.p;
    EXPECT_GT(naive, 1.02 * reference) << c.p;
  }
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace attmirror::deep_tests
