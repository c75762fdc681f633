// Optimizers and models in words: what the words mean, what they are refused for, and that every object can be said in
// words again.
#include "support/files.hpp"
#include <attmirror/data/generators.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/model_words.hpp>
#include <attmirror/descent/optimizer_words.hpp>
#include <attmirror/descent/run_config.hpp>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

TEST(OptimizerWords, HaveTheDefaultsOfTheStructs) {
  EXPECT_EQ(to_string(make_optimizer({})), to_string(Optimizer(MirrorDescent{})));
  EXPECT_EQ(to_string(make_optimizer({.optimizer = "gd"})), to_string(Optimizer(GradientDescent{})));
  EXPECT_EQ(to_string(make_optimizer({.optimizer = "adam"})), to_string(Optimizer(Adam{})));
  EXPECT_EQ(to_string(make_optimizer({.optimizer = "muon"})), to_string(Optimizer(muon())));
  EXPECT_EQ(to_string(make_optimizer({.optimizer = "sign", .lr = 0.5})),
            to_string(Optimizer(sign_descent(0.5))));
}

// Any optimizer, in words and back.
TEST(OptimizerWords, SayEveryOptimizer) {
  const Optimizer optimizers[] = {
      MirrorDescent{.p = 1.75, .lr = 0.2, .normalized = true, .eps = EpsPolicy::paper, .eps_value = 1e-12},
      MirrorDescent{.p = 3, .jacobian = Jacobian::textbook, .power_path = PowerPath::general},
      MirrorDescent{.p = 1.5, .geometry = Geometry::schatten},
      MirrorDescent{
          .geometry = Geometry::hyperbolic_entropy, .beta = 0.25, .momentum = {MomentumKind::ema, 0.5}},
      GradientDescent{.schedule = {ScheduleKind::polyak, 0.5, 0.1}},
      GradientDescent{.normalized = true, .eps = EpsPolicy::paper, .jacobian = Jacobian::safe},
      SteepestDescent{.norm = Norm::nuclear(), .normalized = false},
      SteepestDescent{.norm = Norm::spectral(), .orthogonalization = Orthogonalization::newton_schulz},
      sign_descent(),
      coordinate_descent(),
      spectral_descent(),
      signum(0.1, 0.8),
      muon(),
      Adam{.beta1 = 0.5, .beta2 = 0.75, .eps = EpsPolicy::paper, .schedule = {ScheduleKind::power, 0.25, 0}},
  };
  for (const Optimizer& optimizer : optimizers) {
    const std::string method(method_name(optimizer));
    const OptimizerWords words = words_of(optimizer, method);
    EXPECT_EQ(to_string(make_optimizer(words)), to_string(optimizer));
    EXPECT_EQ(words_of(make_optimizer(words), method), words) << to_string(optimizer);
  }
  // Sign descent is also steepest descent.
  EXPECT_EQ(words_of(sign_descent(), "steepest").norm, "inf");
  EXPECT_EQ(words_of(sign_descent(), "sign").norm, std::nullopt);
}

TEST(OptimizerWords, RefuseWhatWouldChangeNothing) {
  expect_bad_input({"optimizer is \"sgd\": expected one of md, gd, steepest"},
                   [] { make_optimizer({.optimizer = "sgd"}); });
  expect_bad_input({"p is 3, but gradient descent has p = 2: use --optimizer md"},
                   [] { make_optimizer({.optimizer = "gd", .p = 3}); });
  EXPECT_NO_THROW(make_optimizer({.optimizer = "gd", .p = 2}));
  expect_bad_input({"normalized is false, but optimizer is sign"},
                   [] { make_optimizer({.optimizer = "sign", .normalized = false}); });
  EXPECT_NO_THROW(make_optimizer({.optimizer = "sign", .normalized = true}));
  EXPECT_NO_THROW(make_optimizer({.normalized = false}));
  expect_bad_input({"momentum is none, but optimizer is muon: without momentum it is --optimizer spectral"},
                   [] { make_optimizer({.optimizer = "muon", .momentum = "none"}); });
  expect_bad_input({"lr is 0"}, [] { make_optimizer({.lr = 0}); });
}

TEST(ModelWords, SayEveryModel) {
  const ModelWords models[] = {
      {},
      {.params = "KQ", .rank = 2, .init_seed = 7},
      {.params = "KQ", .init = "normal:0.25", .init_seed = 3},
      {.params = "prompt", .key_weights = "A.npy", .train = "p,v", .init = "uniform"},
      {.loss = "exponential", .head = "quadratic:0.5", .mask = "causal", .scaled = true, .penalty = 0.125},
      {.train = "v,W", .init = "file:W0.npy"},
  };
  for (const ModelWords& given : models) {
    const ModelPlan plan = plan_model(given);
    const ModelWords words = words_of(plan);
    EXPECT_EQ(words_of(plan_model(words)), words);
    if (given.params) EXPECT_EQ(words.params, given.params);
    if (given.rank) EXPECT_EQ(words.rank, given.rank);
    if (given.init) EXPECT_EQ(words.init, given.init);
    if (given.init_seed) EXPECT_EQ(words.init_seed, given.init_seed);
    if (given.penalty) EXPECT_EQ(words.penalty, given.penalty);
  }
  EXPECT_EQ(words_of(plan_model({})).train, "W");
  EXPECT_EQ(words_of(plan_model({})).init_seed, std::nullopt);
  EXPECT_EQ(words_of(plan_model({.params = "KQ"})).train, "K,Q");
  EXPECT_EQ(words_of(plan_model({.params = "KQ"})).init, "uniform");
  EXPECT_EQ(words_of(plan_model({.train = "v,W"})).train, "W,v");
  EXPECT_EQ(words_of(plan_model({.init = "normal"})).init, "normal:1");
}

TEST(ModelWords, RefuseWhatDoesNotGoTogether) {
  expect_bad_input({"rank is 2, but params is W"}, [] { plan_model({.rank = 2}); });
  expect_bad_input({"key-weights is given, but params is KQ"},
                   [] { plan_model({.params = "KQ", .key_weights = "A.npy"}); });
  expect_bad_input({"init-seed is given, but init is zero"}, [] { plan_model({.init_seed = 0}); });
  expect_bad_input({"std of init is \"x\": expected a number"}, [] { plan_model({.init = "normal:x"}); });
  expect_bad_input({"init is \"normal:\""}, [] { plan_model({.init = "normal:"}); });
  expect_bad_input({"init is \"file:\""}, [] { plan_model({.init = "file:"}); });
  expect_bad_input({"std of the initialization is -1"}, [] { plan_model({.init = "normal:-1"}); });
}

TEST(ModelWords, FilesAreReadWhenAskedFor) {
  const TemporaryFolder folder;
  const std::string path = (folder / "blocks.npz").string();
  const ModelPlan plan = plan_model({.init = "file:" + path});  // which is not there yet
  expect_bad_input({path}, [&] { load_files(plan); });
  const std::vector<double> values{1, 2, 3, 4};
  save_npz(path, {{"W", Array({2, 2}, std::span(values))}});
  EXPECT_EQ(load_files(plan).init.given.W(1, 0), 3);
  expect_bad_input({"the file has no K, which is to be trained"},
                   [&] { load_files(plan_model({.params = "KQ", .init = "file:" + path})); });
  const Dataset data = generate(SphereData{.dim = 2});
  const Attention model = make_attention(data, load_files(plan));
  EXPECT_TRUE(model.is_trained(Block::W));
}

}  // namespace
}  // namespace attmirror::test
