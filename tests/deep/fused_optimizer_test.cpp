// What FusedOptimizer does around the arithmetic: layouts, refusals, masters, skipped steps, archives, autograd.
#include "deep/tensors.hpp"

#include <limits>

#include <torch/optim/sgd.h>

namespace attmirror::deep_tests {
namespace {

TEST(FusedOptimizer, LeavesParametersWithoutGradientAlone) {
  const at::Tensor with = leaf(random({5}, 1)), without = leaf(random({5}, 2)),
                   empty = leaf(at::empty({0, 3}));
  const at::Tensor before = without.detach().clone();
  give_gradient(with, random({5}, 3));
  give_gradient(empty, at::empty({0, 3}));
  am::MirrorDescent optimizer({with, without, empty}, am::MirrorDescentOptions(0.1).p(3));
  optimizer.step();
  EXPECT_TRUE(same_bits(without, before));
  EXPECT_EQ(optimizer.state_of(without), nullptr);
  ASSERT_NE(optimizer.state_of(with), nullptr);
  EXPECT_EQ(optimizer.state_of(with)->step(), 1);
  am::MirrorDescent({without}, am::MirrorDescentOptions(0.1)).step();  // nothing to do at all
}

TEST(FusedOptimizer, RefusesWhatItCannotTrainBeforeItWrites) {
  const at::Tensor good = leaf(random({2, 3}, 1)), before = good.detach().clone();
  give_gradient(good, at::ones({2, 3}));
  const auto refusal_of = [&](const at::Tensor& parameter, const at::Tensor& gradient) {
    give_gradient(parameter, gradient);
    am::MirrorDescent optimizer({good, parameter}, am::MirrorDescentOptions(0.1).p(1.5));
    const std::string message = refusal([&] { optimizer.step(); });
    EXPECT_TRUE(same_bits(good, before)) << message;
    EXPECT_TRUE(contains(message, "parameter 1 of group 0")) << message;
    return message;
  };
  const at::Tensor bad = random({2, 3}, 2);
  EXPECT_TRUE(contains(refusal_of(at::ones({2}, at::kLong), at::ones({2}, at::kLong)), "type Long"));
  EXPECT_TRUE(
      contains(refusal_of(at::ones({2}, at::kComplexFloat), at::ones({2}, at::kComplexFloat)), "Complex"));
  EXPECT_TRUE(contains(refusal_of(bad.to_sparse(), bad.to_sparse()), "sparse"));
  EXPECT_TRUE(contains(refusal_of(leaf(bad), bad.to_sparse()), "gradient of"));
  EXPECT_TRUE(contains(refusal_of(leaf(bad), bad.to(at::kDouble)), "type Double"));
  EXPECT_TRUE(contains(refusal_of(leaf(bad), bad.t()), "shape [3, 2]"));
  EXPECT_TRUE(contains(refusal_of(random({1, 3}, 3).expand({2, 3}), bad), "clone()"));
  EXPECT_TRUE(contains(refusal_of(good, at::ones({2, 3})), "same tensor as parameter 0 of group 0"));
}

TEST(FusedOptimizer, RefusesOptionsThatMakeNoSense) {
  const at::Tensor w = leaf(at::ones({2}));
  const auto refusal_of = [&](const am::MirrorDescentOptions& options) {
    return refusal([&] { am::MirrorDescent({w}, options); });
  };
  EXPECT_TRUE(contains(refusal_of(am::MirrorDescentOptions(-1)), "group 0: lr is -1"));
  EXPECT_TRUE(contains(refusal_of(am::MirrorDescentOptions(0.1).p(1)), "p is 1"));
  EXPECT_TRUE(contains(refusal_of(am::MirrorDescentOptions(0.1).momentum(1)), "momentum is 1"));
  EXPECT_TRUE(contains(refusal_of(am::MirrorDescentOptions(0.1).nesterov(true)), "nesterov"));
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(Tensors{w}, std::make_unique<torch::optim::SGDOptions>(0.1));
  EXPECT_TRUE(contains(refusal([&] { am::MirrorDescent(groups, am::MirrorDescentOptions(0.1)); }),
                       "another optimizer's"));
}

// Transposed matrices, channels last, every second column, gradients in another order: the numbers are those of a
// contiguous copy.
TEST(FusedOptimizer, TakesParametersAndGradientsOfAnyLayout) {
  const at::Tensor square = random({6, 4}, 1), image = random({2, 3, 4, 5}, 2);
  const Tensors parameters = {
      square.clone().t().detach().set_requires_grad(true),
      image.contiguous(at::MemoryFormat::ChannelsLast).detach().set_requires_grad(true),
      random({6, 8}, 3).slice(1, 0, 8, 2).detach().set_requires_grad(true),
      leaf(square),
  };
  ASSERT_FALSE(parameters[2].is_non_overlapping_and_dense());
  Tensors plain, gradients;
  for (const at::Tensor& parameter : parameters) plain.push_back(leaf(parameter.contiguous()));
  const am::MirrorDescentOptions options =
      am::MirrorDescentOptions(0.1).p(1.5).momentum(0.9).dual_state(am::MasterState::on);
  am::MirrorDescent one(parameters, options), other(plain, options);
  for (std::uint64_t step = 0; step < 5; ++step) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      at::Tensor g = random(parameters[i].sizes(), 10 + 4 * step + i);
      give_gradient(plain[i], g);
      // Gradients of the last one lie in memory column by column.
      if (i == 3) g = g.t().contiguous().t();
      give_gradient(parameters[i], g);
    }
    one.step();
    other.step();
    for (std::size_t i = 0; i < parameters.size(); ++i)
      EXPECT_TRUE(same_bits(parameters[i], plain[i])) << i << " at step " << step;
  }
}

TEST(FusedOptimizer, TellsAutogradWhatChanged) {
  for (const bool fused : {true, false}) {
    const at::Tensor w = leaf(random({4}, 1));
    am::MirrorDescent optimizer({w}, am::MirrorDescentOptions(0.1).fused(fused));
    const at::Tensor loss = (w * w).sum();  // keeps w for its backward pass
    give_gradient(w, at::ones({4}));
    optimizer.step();
    EXPECT_THROW(loss.backward(), c10::Error) << fused;
  }
}

TEST(FusedOptimizer, BriefTypesHaveAMasterOnTheirOwn) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    const at::Tensor w = leaf(at::ones({4}, type));
    am::MirrorDescent optimizer({w}, am::MirrorDescentOptions(1e-4).p(1.1));
    for (int step = 0; step < 100; ++step) {
      give_gradient(w, at::ones({4}, type));
      optimizer.step();
    }
    const bool is_brief = type == at::kBFloat16 || type == at::kHalf;
    EXPECT_EQ(optimizer.state_of(w)->master().defined(), is_brief);
    // (1 - 100 lr)^10; a bfloat16 alone would still be 1, or have moved in steps of 1/128.
    EXPECT_NEAR(w[0].item<double>(), 0.9044, 4e-3) << type;
  }
}

TEST(FusedOptimizer, MastersFollowWhatOthersDoToAParameter) {
  const at::Tensor w = leaf(at::full({3}, 4.0, at::kBFloat16));
  const at::Tensor zero = at::zeros({3}, at::kBFloat16);
  am::MirrorDescent optimizer({w}, am::MirrorDescentOptions(0.5).p(3));
  const auto master = [&] { return optimizer.state_of(w)->master()[0].item<double>(); };
  give_gradient(w, zero);
  optimizer.step();
  EXPECT_EQ(master(), 16);
  {
    const at::NoGradGuard no_gradients;
    w.fill_(3);  // in place
  }
  optimizer.step();
  EXPECT_EQ(master(), 9);
  EXPECT_EQ(w[0].item<double>(), 3);
  w.set_data(at::full({3}, 2.0, at::kBFloat16));  // other memory
  optimizer.step();
  EXPECT_EQ(master(), 4);
  static_cast<am::MirrorDescentOptions&>(optimizer.param_groups()[0].options()).p(4);  // another mirror image
  optimizer.step();
  EXPECT_EQ(master(), 8);
  w.set_data(at::full({3}, 2.0, at::kDouble));  // another type, which has no master
  give_gradient(w, at::zeros({3}, at::kDouble));
  optimizer.step();
  EXPECT_FALSE(optimizer.state_of(w)->master().defined());
}

TEST(FusedOptimizer, SkipsAStepAsAWholeIfAGradientIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  for (const bool two_groups : {false, true}) {
    for (const bool fused : {true, false}) {
      for (const float bad : {infinity, -infinity, nan}) {
        const Tensors w = {leaf(random({7}, 1)), leaf(random({7}, 2))};
        std::vector<torch::optim::OptimizerParamGroup> groups;
        if (two_groups) {
          groups.emplace_back(Tensors{w[0]});
          groups.emplace_back(Tensors{w[1]});
        } else {
          groups.emplace_back(w);
        }
        am::MirrorDescent optimizer(groups, am::MirrorDescentOptions(0.1)
                                                .p(1.5)
                                                .momentum(0.9)
                                                .dual_state(am::MasterState::on)
                                                .skip_nonfinite(true)
                                                .fused(fused));
        for (const at::Tensor& tensor : w) give_gradient(tensor, at::ones({7}));
        optimizer.step();
        EXPECT_FALSE(optimizer.last_step_skipped());
        Tensors before;
        for (const at::Tensor& tensor : w) {
          before.push_back(tensor.detach().clone());
          before.push_back(optimizer.state_of(tensor)->master().clone());
          before.push_back(optimizer.state_of(tensor)->momentum().clone());
        }
        const auto version = w[0]._version();
        w[1].mutable_grad()[6] = bad;
        optimizer.step();
        EXPECT_TRUE(optimizer.last_step_skipped());
        EXPECT_EQ(w[0]._version(), version);
        for (std::size_t i = 0; i < w.size(); ++i) {
          EXPECT_TRUE(same_bits(w[i], before[3 * i]));
          EXPECT_TRUE(same_bits(optimizer.state_of(w[i])->master(), before[3 * i + 1]));
          EXPECT_TRUE(same_bits(optimizer.state_of(w[i])->momentum(), before[3 * i + 2]));
          EXPECT_EQ(optimizer.state_of(w[i])->step(), 1);
        }
        w[1].mutable_grad()[6] = 1.0F;
        optimizer.step();
        EXPECT_FALSE(optimizer.last_step_skipped());
        EXPECT_FALSE(same_bits(w[0], before[0]));
      }
    }
  }
}

TEST(FusedOptimizer, SkipsForGradientsAndNotForMomentum) {
  for (const bool two_groups : {false, true})
    for (const bool fused : {true, false}) {
      const Tensors w = {leaf(random({7}, 1)), leaf(random({7}, 2))};
      std::vector<torch::optim::OptimizerParamGroup> groups;
      if (two_groups) {
        groups.emplace_back(Tensors{w[0]});
        groups.emplace_back(Tensors{w[1]});
      } else {
        groups.emplace_back(w);
      }
      am::MirrorDescent optimizer(
          groups, am::MirrorDescentOptions(0.1).p(1.5).momentum(0.9).skip_nonfinite(true).fused(fused));
      for (const at::Tensor& tensor : w) give_gradient(tensor, at::ones({7}));
      optimizer.step();
      at::Tensor momentum = optimizer.state_of(w[1])->momentum();
      momentum[3] = std::numeric_limits<float>::infinity();
      optimizer.step();
      EXPECT_FALSE(optimizer.last_step_skipped()) << two_groups << fused;
      EXPECT_EQ(optimizer.state_of(w[0])->step(), 2) << two_groups << fused;
      w[0].mutable_grad()[0] = std::numeric_limits<float>::quiet_NaN();
      optimizer.step();
      EXPECT_TRUE(optimizer.last_step_skipped()) << two_groups << fused;
    }
}

struct Trained {
  Tensors parameters;
  std::unique_ptr<am::MirrorDescent> optimizer;

  Trained(at::ScalarType type, double lr) {
    parameters = {leaf(random({6, 5}, 1, type)), leaf(random({4}, 2, type)), leaf(random({5}, 3, type))};
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(Tensors{parameters[0], parameters[1]});
    groups.emplace_back(Tensors{parameters[2]},
                        std::make_unique<am::MirrorDescentOptions>(
                            am::MirrorDescentOptions(lr).p(3).nesterov(true).momentum(0.5)));
    optimizer =
        std::make_unique<am::MirrorDescent>(groups, am::MirrorDescentOptions(lr).p(1.1).momentum(0.9));
  }
  void run(std::uint64_t first, std::uint64_t steps) {
    for (std::uint64_t step = first; step < first + steps; ++step) {
      for (std::size_t i = 0; i < 3; ++i)
        if (i != 1 || step > 3)  // one parameter has no gradient at first
          give_gradient(parameters[i],
                        random(parameters[i].sizes(), 100 + 3 * step + i, parameters[i].scalar_type()));
      optimizer->step();
    }
  }
};

TEST(FusedOptimizer, GoesOnFromAnArchiveWithTheSameBits) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    for (const std::uint64_t when : {2, 7}) {
      Trained whole(type, 0.03), half(type, 0.03);
      half.run(0, when);
      half.optimizer->param_groups()[1].options().set_lr(0.01);  // as a scheduler would
      const std::string bytes = saved(*half.optimizer);
      Trained rest(type, 1);  // other options, which the archive replaces
      {
        const at::NoGradGuard no_gradients;
        for (std::size_t i = 0; i < 3; ++i) rest.parameters[i].copy_(half.parameters[i]);
      }
      load(*rest.optimizer, bytes);
      EXPECT_EQ(rest.optimizer->param_groups()[1].options().get_lr(), 0.01);
      rest.run(when, 20);
      whole.run(0, when);
      whole.optimizer->param_groups()[1].options().set_lr(0.01);
      whole.run(when, 20);
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(same_bits(whole.parameters[i], rest.parameters[i])) << type << ' ' << i;
        EXPECT_EQ(whole.optimizer->state_of(whole.parameters[i])->step(),
                  rest.optimizer->state_of(rest.parameters[i])->step());
      }
    }
  }
}

TEST(FusedOptimizer, ALoadedMasterOfOtherWeightsIsNotUsed) {
  Trained trained(at::kBFloat16, 0.03);
  trained.run(0, 5);
  const std::string bytes = saved(*trained.optimizer);
  Trained other(at::kBFloat16, 0.03);  // at the weights of the start
  load(*other.optimizer, bytes);
  Tensors before;
  for (const at::Tensor& parameter : other.parameters) {
    before.push_back(parameter.detach().clone());
    give_gradient(parameter, at::zeros_like(parameter));
  }
  for (auto& group : other.optimizer->param_groups())
    static_cast<am::MirrorDescentOptions&>(group.options()).momentum(0).nesterov(false);
  other.optimizer->step();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(other.parameters[i], before[i])) << i;
}

// At p = 10 the image of 1e-6 is 0; a weight that never moved does not come back from it, and yet the state is its own.
TEST(FusedOptimizer, ALoadedMasterIsUsedBesideWeightsThatNeverMoved) {
  const auto make = [] { return leaf(at::tensor({0.5, 1e-6, 3e4}, at::kDouble).to(at::kBFloat16)); };
  const at::Tensor w = make(), copy = make(),
                   gradient = at::tensor({1.0, 0.0, 0.0}, at::kDouble).to(at::kBFloat16);
  am::MirrorDescent whole({w}, am::MirrorDescentOptions(1e-6).p(10));
  give_gradient(w, gradient);
  for (int i = 0; i < 3; ++i) whole.step();
  am::MirrorDescent rest({copy}, am::MirrorDescentOptions(1e-6).p(10));
  give_gradient(copy, gradient);
  {
    const at::NoGradGuard no_gradients;
    copy.copy_(w);
  }
  load(rest, saved(whole));
  whole.step();
  rest.step();
  EXPECT_TRUE(same_bits(whole.state_of(w)->master(), rest.state_of(copy)->master()));
  EXPECT_TRUE(same_bits(w, copy));
}

TEST(FusedOptimizer, ALoadedMasterTakesTheLayoutOfItsParameter) {
  const at::Tensor values = random({2, 3, 4, 4}, 8, at::kBFloat16, 0.02);
  const at::Tensor w = leaf(values.contiguous(at::MemoryFormat::ChannelsLast)), copy = leaf(values);
  am::MirrorDescent whole({w}, am::MirrorDescentOptions(1e-3).p(1.5));
  const auto gradient = [](std::uint64_t step) {
    return random({2, 3, 4, 4}, 20 + step, at::kBFloat16, 0.1);
  };
  for (std::uint64_t i = 0; i < 10; ++i) {
    give_gradient(w, gradient(i));
    whole.step();
  }
  {
    const at::NoGradGuard no_gradients;
    copy.copy_(w);
  }
  am::MirrorDescent rest({copy}, am::MirrorDescentOptions(1e-3).p(1.5));
  load(rest, saved(whole));
  for (std::uint64_t i = 10; i < 30; ++i) {
    give_gradient(w, gradient(i));
    give_gradient(copy, gradient(i));
    whole.step();
    rest.step();
  }
  EXPECT_TRUE(same_bits(w, copy));
  EXPECT_TRUE(same_bits(whole.state_of(w)->master(), rest.state_of(copy)->master()));
}

TEST(FusedOptimizer, RefusesAPlainArchiveOfAnotherSize) {
  const at::Tensor w = leaf(random({3}, 1)), other = leaf(random({7, 2}, 2));
  am::MirrorDescent plain({w}, am::MirrorDescentOptions(0.1).p(3));
  give_gradient(w, random({3}, 3));
  plain.step();
  am::MirrorDescent larger({other}, am::MirrorDescentOptions(0.1).p(3));
  EXPECT_TRUE(contains(refusal([&] { load(larger, saved(plain)); }),
                       "size of parameter 0 of group 0 is 3: expected 14"));
}

TEST(FusedOptimizer, RefusesArchivesOfOthersAndStaysAsItWas) {
  Trained trained(at::kFloat, 0.03);
  trained.run(0, 5);
  const std::string bytes = saved(*trained.optimizer);
  const Tensors w = {leaf(random({6, 5}, 1)), leaf(random({4}, 2)), leaf(random({7}, 3))};
  am::MirrorDescent one_group(w, am::MirrorDescentOptions(0.5));
  EXPECT_TRUE(contains(refusal([&] { load(one_group, bytes); }), "number of groups is 2: expected 1"));

  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(Tensors{w[0], w[1]});
  groups.emplace_back(Tensors{w[2]});
  am::MirrorDescent other_shape(groups, am::MirrorDescentOptions(0.5));
  EXPECT_TRUE(contains(refusal([&] { load(other_shape, bytes); }),
                       "momentum of parameter 0 of group 1 has shape [5]"));
  EXPECT_EQ(other_shape.param_groups()[0].options().get_lr(), 0.5);
  EXPECT_EQ(other_shape.state_of(w[0]), nullptr);
}

}  // namespace
}  // namespace attmirror::deep_tests
