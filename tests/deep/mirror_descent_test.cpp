// The arithmetic of MirrorDescent: against torch::optim::SGD at p = 2, against the formula for every p, and the kernels
// against tensor operations.
#include "deep/tensors.hpp"

#include <cmath>

#include <ATen/Parallel.h>
#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>
#include <torch/version.h>
#if TORCH_VERSION_MAJOR >= 2
#include <torch/optim/schedulers/reduce_on_plateau_scheduler.h>
#endif

namespace attmirror::deep_tests {
namespace {

at::Tensor power(const at::Tensor& x, double exponent) { return x.sign() * x.abs().pow(exponent); }

const std::vector<double> all_p = {1.1, 1.5, 1.75, 2, 3, 10};

TEST(MirrorDescent, IsSgdForPTwo) {
  struct Case {
    double momentum;
    bool nesterov;
    at::ScalarType type;
    double bound;
  };
  for (const Case& c : {Case{0, false, at::kFloat, 1e-6}, Case{0.9, false, at::kFloat, 1e-6},
                        Case{0.9, true, at::kFloat, 1e-6}, Case{0, false, at::kDouble, 1e-14},
                        Case{0.5, true, at::kDouble, 1e-14}}) {
    const Tensors ours = {leaf(random({17, 5}, 1, c.type)), leaf(random({9}, 2, c.type))};
    const Tensors theirs = {leaf(ours[0]), leaf(ours[1])};
    am::MirrorDescent optimizer(ours,
                                am::MirrorDescentOptions(0.05).momentum(c.momentum).nesterov(c.nesterov));
    torch::optim::SGD sgd(theirs, torch::optim::SGDOptions(0.05).momentum(c.momentum).nesterov(c.nesterov));
    for (std::uint64_t step = 0; step < 50; ++step) {
      for (std::size_t i = 0; i < ours.size(); ++i) {
        const at::Tensor g = random(ours[i].sizes(), 100 + 2 * step + i, c.type);
        give_gradient(ours[i], g);
        give_gradient(theirs[i], g.clone());
      }
      optimizer.step();
      sgd.step();
    }
    for (std::size_t i = 0; i < ours.size(); ++i)
      EXPECT_LT(distance(ours[i], theirs[i]), c.bound) << c.momentum << c.nesterov << c.type;
  }
}

// AdamW with a gradient of zeros does nothing but decay.
TEST(MirrorDescent, DecaysWeightsAsAdamWDoes) {
  const at::Tensor start = random({33}, 1, at::kDouble);
  const at::Tensor theirs = leaf(start);
  torch::optim::AdamW adamw({theirs}, torch::optim::AdamWOptions(0.1).weight_decay(0.3));
  for (const double p : all_p) {
    const at::Tensor ours = leaf(start);
    am::MirrorDescent optimizer({ours}, am::MirrorDescentOptions(0.1).p(p).weight_decay(0.3));
    for (int step = 0; step < 10; ++step) {
      give_gradient(ours, at::zeros_like(start));
      give_gradient(theirs, at::zeros_like(start));
      optimizer.step();
      if (p == all_p.front()) adamw.step();
    }
    EXPECT_LT(distance(ours, theirs), 1e-13) << p;
  }
  // And beside a gradient, at p = 2: w <- (1 - lr decay) w - lr g.
  const at::Tensor w = leaf(start), g = random({33}, 2, at::kDouble);
  give_gradient(w, g);
  am::MirrorDescent({w}, am::MirrorDescentOptions(0.1).weight_decay(0.3)).step();
  EXPECT_LT(distance(w, start * (1 - 0.1 * 0.3) - 0.1 * g), 1e-15);
}

TEST(MirrorDescent, FollowsTheFormulaForEveryP) {
  for (const double p : {1.01, 1.1, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 10.0}) {
    for (const bool fused : {true, false}) {
      for (const am::MasterState dual : {am::MasterState::off, am::MasterState::on}) {
        const at::Tensor w = leaf(random({29, 7}, 3, at::kDouble));
        at::Tensor expected = w.detach().clone();
        am::MirrorDescent optimizer({w}, am::MirrorDescentOptions(0.01).p(p).fused(fused).dual_state(dual));
        for (std::uint64_t step = 0; step < 100; ++step) {
          const at::Tensor g = random({29, 7}, 100 + step, at::kDouble);
          give_gradient(w, g);
          optimizer.step();
          const at::Tensor y = power(expected, p - 1) - 0.01 * g;
          expected = power(y, 1 / (p - 1));
        }
        EXPECT_LT(distance(w, expected), 1e-12) << p << ' ' << fused << ' ' << to_string(dual);
      }
    }
  }
}

TEST(MirrorDescent, NormalizesEachTensorInTheDualNorm) {
  for (const double p : all_p) {
    const double q = p / (p - 1);
    const Tensors w = {leaf(random({40}, 4, at::kDouble)), leaf(random({3, 5}, 5, at::kDouble))};
    Tensors expected;
    for (const at::Tensor& tensor : w) expected.push_back(tensor.detach().clone());
    am::MirrorDescent optimizer(w, am::MirrorDescentOptions(0.1).p(p).normalized(true).momentum(0.5));
    Tensors m = {at::zeros_like(w[0]), at::zeros_like(w[1])};
    for (std::uint64_t step = 0; step < 20; ++step) {
      for (std::size_t i = 0; i < w.size(); ++i) {
        const at::Tensor g = random(w[i].sizes(), 50 + 2 * step + i, at::kDouble, 1e-3);
        give_gradient(w[i], g);
        m[i] = 0.5 * m[i].detach() + g;
        const at::Tensor direction = m[i] / m[i].abs().pow(q).sum().pow(1 / q);
        expected[i] = power(power(expected[i], p - 1) - 0.1 * direction, 1 / (p - 1));
      }
      optimizer.step();
    }
    for (std::size_t i = 0; i < w.size(); ++i) EXPECT_LT(distance(w[i], expected[i]), 1e-12) << p;
  }
}

// Kernels and tensor operations agree to the rounding of the type; near p = 1 a weight is the tenth power of what
// is rounded.
TEST(MirrorDescent, FusedAndTensorStepsAgreeForAllTypes) {
  struct Type {
    at::ScalarType type;
    double unit;
  };
  for (const Type& t :
       {Type{at::kFloat, 1e-7}, Type{at::kDouble, 1e-15}, Type{at::kBFloat16, 4e-3}, Type{at::kHalf, 5e-4}}) {
    for (const double p : all_p) {
      for (int variant = 0; variant < 7; ++variant) {
        am::MirrorDescentOptions options(0.02);
        options.p(p);
        if (variant == 1) options.momentum(0.9);
        if (variant == 2) options.normalized(true).weight_decay(0.1);
        if (variant == 3) options.dual_state(am::MasterState::on).momentum(0.9).nesterov(true);
        if (variant == 4) options.dual_state(am::MasterState::off).gradient_scale(8);
        if (variant == 5) options.exact(true);
        if (variant == 6) options.maximize(true).momentum(0.9).normalized(true);
        const Tensors fused = {leaf(random({31}, 6, t.type)), leaf(random({4, 4}, 7, t.type))};
        const Tensors plain = {leaf(fused[0]), leaf(fused[1])};
        am::MirrorDescent one(fused, options);
        am::MirrorDescent other(plain, am::MirrorDescentOptions(options).fused(false));
        for (std::uint64_t step = 0; step < 3; ++step) {
          for (std::size_t i = 0; i < fused.size(); ++i) {
            const at::Tensor g = random(fused[i].sizes(), 30 + 2 * step + i, t.type);
            give_gradient(fused[i], g);
            give_gradient(plain[i], g);
          }
          one.step();
          other.step();
        }
        const bool is_brief = t.type == at::kBFloat16 || t.type == at::kHalf;
        const double bound = is_brief ? t.unit : 10 * t.unit * std::max(1.0, 1 / (p - 1));
        for (std::size_t i = 0; i < fused.size(); ++i)
          EXPECT_LT(distance(fused[i], plain[i]), bound) << t.type << " p " << p << " variant " << variant;
      }
    }
  }
}

TEST(MirrorDescent, MaximizesByStepsAlongTheNegatedGradient) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    for (const bool fused : {true, false}) {
      const at::Tensor up = leaf(random({40}, 1, type)), down = leaf(up);
      const auto options = am::MirrorDescentOptions(0.05).p(1.5).momentum(0.9).weight_decay(0.1).fused(fused);
      am::MirrorDescent one({up}, am::MirrorDescentOptions(options).maximize(true));
      am::MirrorDescent other({down}, options);
      for (std::uint64_t step = 0; step < 5; ++step) {
        const at::Tensor g = random({40}, 10 + step, type);
        give_gradient(up, g);
        give_gradient(down, -g);
        one.step();
        other.step();
      }
      EXPECT_TRUE(same_bits(up, down)) << type << fused;
    }
  }
}

TEST(MirrorDescent, MaximizeIsKeptInArchivesAndOffInOlderOnes) {
  const at::Tensor w = leaf(random({5}, 1)), other = leaf(w);
  const am::MirrorDescent saver({w}, am::MirrorDescentOptions(0.1).maximize(true));
  am::MirrorDescent loader({other}, am::MirrorDescentOptions(0.1));
  load(loader, saved(saver));
  const auto& loaded = loader.param_groups()[0].options();
  EXPECT_TRUE(static_cast<const am::MirrorDescentOptions&>(loaded).maximize());

  torch::serialize::OutputArchive older;
  for (const char* name : {"lr", "p", "momentum", "weight_decay", "gradient_scale"})
    older.write(name, c10::IValue(1.5));
  for (const char* name : {"nesterov", "normalized", "skip_nonfinite", "exact", "fused"})
    older.write(name, c10::IValue(true));
  older.write("dual_state", c10::IValue(std::int64_t{0}));
  std::stringstream stream;
  older.save_to(stream);
  torch::serialize::InputArchive archive;
  archive.load_from(stream);
  am::MirrorDescentOptions options(0.1);
  options.maximize(true);
  options.serialize(archive);
  EXPECT_FALSE(options.maximize());
  EXPECT_EQ(options.p(), 1.5);
}

TEST(MirrorDescent, GroupsHaveTheirOwnPAndRate) {
  const at::Tensor a = leaf(random({8}, 1, at::kDouble)), b = leaf(random({8}, 2, at::kDouble));
  const at::Tensor a0 = a.detach().clone(), b0 = b.detach().clone(), g = random({8}, 3, at::kDouble);
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(Tensors{a});
  groups.emplace_back(Tensors{b},
                      std::make_unique<am::MirrorDescentOptions>(am::MirrorDescentOptions(0.2).p(3)));
  am::MirrorDescent optimizer(groups, am::MirrorDescentOptions(0.1).p(1.5));
  give_gradient(a, g);
  give_gradient(b, g);
  optimizer.step();
  EXPECT_LT(distance(a, power(power(a0, 0.5) - 0.1 * g, 2)), 1e-14);
  EXPECT_LT(distance(b, power(power(b0, 2) - 0.2 * g, 0.5)), 1e-14);
}

// LibTorch's schedulers do to us what they do to its own SGD.
TEST(MirrorDescent, SchedulersSetTheRate) {
  const at::Tensor w = leaf(random({8}, 1, at::kDouble)), other = leaf(at::ones({1}));
  at::Tensor expected = w.detach().clone();
  am::MirrorDescent optimizer({w}, am::MirrorDescentOptions(0.4).p(3));
  torch::optim::SGD sgd({other}, torch::optim::SGDOptions(0.4));
  torch::optim::StepLR scheduler(optimizer, 2, 0.5), sgd_scheduler(sgd, 2, 0.5);
  for (std::uint64_t step = 0; step < 6; ++step) {
    const double rate = sgd.param_groups()[0].options().get_lr();
    const at::Tensor g = random({8}, 10 + step, at::kDouble);
    give_gradient(w, g);
    optimizer.step();
    scheduler.step();
    sgd_scheduler.step();
    expected = power(power(expected, 2) - rate * g, 0.5);
  }
  EXPECT_LT(optimizer.param_groups()[0].options().get_lr(), 0.2);
  EXPECT_LT(distance(w, expected), 1e-13);
#if TORCH_VERSION_MAJOR >= 2
  torch::optim::ReduceLROnPlateauScheduler plateau(optimizer);
  for (int i = 0; i < 20; ++i) plateau.step(1);
  EXPECT_LT(optimizer.param_groups()[0].options().get_lr(), 0.02);
#endif
}

TEST(MirrorDescent, ClosureIsCalledWithGradientsOn) {
  const at::Tensor w = leaf(at::ones({3}));
  am::MirrorDescent optimizer({w}, am::MirrorDescentOptions(0.5));
  const at::NoGradGuard no_gradients;
  const at::Tensor loss = optimizer.step([&] {
    optimizer.zero_grad();
    at::Tensor value = (w * w).sum();
    value.backward();
    return value;
  });
  EXPECT_EQ(loss.item<float>(), 3);
  EXPECT_TRUE(same_bits(w, at::zeros({3})));
}

TEST(MirrorDescent, HasTheSameBitsForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (const bool normalized : {false, true}) {
    Tensors results;
    for (const int count : {1, 2, 3}) {
      at::set_num_threads(count);
      const at::Tensor w = leaf(random({70'001}, 1));
      give_gradient(w, random({70'001}, 2));
      am::MirrorDescent({w}, am::MirrorDescentOptions(0.1).p(1.5).normalized(normalized)).step();
      results.push_back(w);
    }
    EXPECT_TRUE(same_bits(results[0], results[1]) && same_bits(results[0], results[2]));
  }
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace attmirror::deep_tests
