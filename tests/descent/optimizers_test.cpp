// All optimizers on real attention: they never freeze, resume with the same bits, refuse what makes no sense.
#include "descent/optimizer_list.hpp"
#include "descent/update_rule.hpp"
#include "support/files.hpp"
#include "support/random_data.hpp"
#include "support/same_bits.hpp"
#include "support/size.hpp"
#include <attmirror/descent/checkpoint.hpp>
#include <attmirror/descent/descend.hpp>
#include <attmirror/descent/run_config.hpp>
#include <attmirror/mirror/direction.hpp>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

// log |gradient| of the one trained block.
double log_gradient(const Attention& model, const Parameters& at) {
  ThreadPool pool(1);
  GradientEngine engine(model, Jacobian::safe, pool);
  Gradient gradient = engine.make_gradient();
  ParameterBlocks weights(model.blocks());
  weights.assign(at);
  engine.evaluate(weights, gradient);
  return std::log(gradient.blocks.view(0).eigen().norm()) + gradient.log_scale[0];
}

// Normalised steepest descent goes lr a step in its own norm, however small gradients are; once the direction has
// settled, so does the norm. Adam's steps, with moments that forget as fast as gradients fall, settle too.
TEST(Optimizers, NeverFreeze) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  struct Case {
    Optimizer optimizer;
    double least, most;  // of the growth of the norm in the last third, over lr times its steps
  };
  const Adam forgetful{.beta1 = 0.8, .beta2 = 0.8};
  const Case cases[] = {{sign_descent(), 0.99, 1.01},
                        {coordinate_descent(1), 0.8, 1.01},
                        {spectral_descent(), 0.8, 1.01},
                        {signum(), 0.9, 1.01},
                        {Lion{}, 0.9, 1.01},
                        {muon(), 0.6, 1.3},
                        {muon(0.1, 0.95, Orthogonalization::exact), 0.8, 1.01},
                        {SteepestDescent{.norm = Norm::nuclear(), .lr = 0.5}, 0.8, 1.01},
                        {forgetful, 0.01, 1.5}};
  for (const Case& c : cases) {
    const DescentRun run =
        descend(model, c.optimizer, {.steps = 3000, .record = RecordSchedule::every(1000)});
    ASSERT_EQ(run.status, RunStatus::completed) << to_string(c.optimizer);
    EXPECT_LT(log_gradient(model, run.last()), std::log(1e-30)) << to_string(c.optimizer);
    const double lr = std::visit([](const auto& options) { return options.lr; }, c.optimizer);
    const double slope = (run.norm - run.records[2].norm) / (lr * 1000);
    EXPECT_GT(slope, c.least) << to_string(c.optimizer);
    EXPECT_LT(slope, c.most) << to_string(c.optimizer);
  }
}

// The published floor stops them.
TEST(Optimizers, FreezeWithThePapersEps) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  SteepestDescent sign = sign_descent();
  sign.eps = EpsPolicy::paper;
  for (const Optimizer& optimizer :
       {Optimizer{sign}, Optimizer{Adam{.beta2 = 0.8, .eps = EpsPolicy::paper}}}) {
    const DescentRun run = descend(model, optimizer, {.steps = 3000, .record = RecordSchedule::every(1000)});
    EXPECT_LT(run.norm - run.records[2].norm, 0.2 * 0.1 * 1000) << to_string(optimizer);
  }
}

TEST(Optimizers, ResumeWithTheSameBits) {
  const Dataset data = generate(SphereData{});
  const TemporaryFolder folder;
  const Attention models[] = {Attention(data, W{}, Logistic{}, {.train = {Block::W, Block::v}}),
                              Attention(data, KQ{.rank = 4}), Attention(data, Prompt{})};
  for (const Optimizer& optimizer : all_optimizers())
    for (const Attention& model : models) {
      DescentOptions options{.steps = 120};
      options.init = {.kind = InitKind::normal, .std = 0.5, .seed = 9};
      const DescentRun whole = descend(model, optimizer, options);
      ASSERT_EQ(whole.status, RunStatus::completed) << to_string(optimizer);
      for (const std::int64_t pause : {0, 1, 57}) {
        DescentOptions part = options;
        part.steps = pause;
        Descent first(model, optimizer, part);
        first.run();
        save_checkpoint(folder / "c.npz", first.checkpoint());
        const DescentRun rest = Descent(model, optimizer, options, load_checkpoint(folder / "c.npz")).run();
        EXPECT_TRUE(same_bits(whole.last(), rest.last())) << to_string(optimizer) << ", " << pause;
        EXPECT_EQ(whole.norm, rest.norm);
      }
    }
}

TEST(Optimizers, ResumeFarOut) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  for (const Optimizer& optimizer :
       {Optimizer{signum()}, Optimizer{Adam{.beta1 = 0.8, .beta2 = 0.8}}, Optimizer{Lion{.beta2 = 0.8}}}) {
    const DescentRun whole = descend(model, optimizer, {.steps = 2000});
    Descent first(model, optimizer, {.steps = 1700});
    first.run();
    const Checkpoint checkpoint = first.checkpoint();
    EXPECT_LT(checkpoint.numbers.begin()->second[0], -100) << "the scale has moved";
    EXPECT_TRUE(same_bits(whole.last(), Descent(model, optimizer, {.steps = 2000}, checkpoint).run().last()));
  }
}

// Where the loss starts so low that gradients cannot be written as numbers, AdaGrad's first steps are as long as
// anywhere, and its runs resume there too.
TEST(Optimizers, AdaGradStartsAndResumesFarOut) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  const DescentRun out = descend(model, sign_descent(), {.steps = 20000, .record = RecordSchedule::none()});
  ASSERT_LT(log_gradient(model, out.last()), std::log(1e-300) - 100);
  DescentOptions options{.steps = 100};
  options.init.given = out.last();
  const DescentRun one = descend(model, AdaGrad{}, {.steps = 1, .init = options.init});
  EXPECT_NEAR((one.last().W - out.last().W).cwiseAbs().minCoeff(), 0.1, 1e-9);
  const DescentRun whole = descend(model, AdaGrad{}, options);
  DescentOptions part = options;
  part.steps = 60;
  Descent first(model, AdaGrad{}, part);
  first.run();
  EXPECT_LT(first.checkpoint().numbers.begin()->second[0], -700) << "the scale has moved";
  EXPECT_TRUE(same_bits(whole.last(), Descent(model, AdaGrad{}, options, first.checkpoint()).run().last()));
}

TEST(Optimizers, RefuseBrokenCheckpoints) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  const Optimizer rule = signum();
  Descent run(model, rule, {.steps = 5});
  run.run();
  const Checkpoint good = run.checkpoint();
  EXPECT_TRUE(is_finite(good));
  const auto refuse = [&](const Checkpoint& checkpoint, std::initializer_list<std::string_view> words) {
    expect_bad_input(words, [&] { Descent(model, rule, {}, checkpoint); });
  };
  Checkpoint broken = good;
  broken.numbers.clear();
  refuse(broken, {"lacks", "momentum.log_scale"});
  broken = good;
  broken.numbers["momentum.log_scale"].push_back(1);
  refuse(broken, {"\"momentum.log_scale\" are 2: expected 1"});
  broken = good;
  broken.numbers["momentum.log_scale"][0] = std::numeric_limits<double>::infinity();
  refuse(broken, {"momentum.log_scale[0] is inf"});
  EXPECT_FALSE(is_finite(broken));
  broken = good;
  broken.state.clear();
  refuse(broken, {"lacks", "\"momentum\""});
  expect_bad_input({"another optimizer", "momentum ema:0.9"},
                   [&] { Descent(model, sign_descent(), {}, good); });
}

TEST(Optimizers, HaveTheSameBitsForAnyNumberOfThreads) {
  const Dataset data = ragged_data(250, 64, 48, 5);
  const Attention model(data, W{}, Logistic{}, {.train = {Block::W, Block::v}});
  for (const Optimizer& optimizer : all_optimizers()) {
    DescentOptions options{.steps = 4, .record = RecordSchedule::none()};
    options.init = {.kind = InitKind::normal, .std = 0.5, .seed = 3};
    const DescentRun one = descend(model, optimizer, options);
    for (const int threads : {2, 8}) {
      options.threads = threads;
      EXPECT_TRUE(same_bits(one.last(), descend(model, optimizer, options).last())) << to_string(optimizer);
    }
  }
}

// Mirror descent with p = 2 is gradient descent, bit for bit, whatever is added to both.
TEST(Optimizers, MirrorDescentAtP2IsGradientDescent) {
  const Dataset data = generate(SphereData{});
  const Attention model(data, W{}, Logistic{}, {.train = {Block::W, Block::v}});
  const Schedule power{.kind = ScheduleKind::power}, polyak{.kind = ScheduleKind::polyak};
  for (const MomentumKind kind : {MomentumKind::none, MomentumKind::heavy_ball, MomentumKind::ema})
    for (const Schedule& schedule : {Schedule{}, power, polyak})
      for (const bool normalized : {false, true}) {
        if (schedule.kind == ScheduleKind::polyak && (normalized || kind != MomentumKind::none)) continue;
        const MirrorDescent md{.lr = 0.1, .normalized = normalized, .momentum = {kind}, .schedule = schedule};
        const GradientDescent gd{
            .lr = 0.1, .normalized = normalized, .momentum = {kind}, .schedule = schedule};
        const DescentRun a = descend(model, md, {.steps = 300}), b = descend(model, gd, {.steps = 300});
        EXPECT_TRUE(same_bits(a.last(), b.last())) << to_string(Optimizer{md});
        EXPECT_EQ(a.norm, b.norm);
      }
}

// Geometries that are gradient descent in a limit, or in other words.
TEST(Optimizers, MeetGradientDescent) {
  const Dataset data = generate(SphereData{});
  for (const Parameterization& form :
       {Parameterization{W{}}, Parameterization{KQ{3}}, Parameterization{Prompt{}}}) {
    const Attention model(data, form);
    DescentOptions options{.steps = 100};
    options.init = {.kind = InitKind::uniform, .seed = 4};
    const auto end = [&](const Optimizer& optimizer) {
      const Parameters last = descend(model, optimizer, options).last();
      return last.p.size() > 0 ? Matrix(last.p) : combined_weights(last);
    };
    for (const bool normalized : {false, true}) {
      const Matrix gd = end(GradientDescent{.lr = 0.1, .normalized = normalized});
      const Matrix schatten =
          end(MirrorDescent{.p = 2, .lr = 0.1, .normalized = normalized, .geometry = Geometry::schatten});
      EXPECT_LT((schatten - gd).norm(), 1e-12 * gd.norm()) << to_string(form);
      const Matrix l2 = end(SteepestDescent{.norm = Norm::l(2), .lr = 0.1, .normalized = normalized});
      EXPECT_LT((l2 - gd).norm(), 1e-12 * gd.norm()) << to_string(form);
    }
    // w = beta sinh(y) with y = asinh(w / beta): for large beta a step of lr / beta in y is one of lr in w, up to
    // (w / beta)^2.
    const Matrix gd = end(GradientDescent{.lr = 0.1});
    double before = 0;
    for (const double beta : {1e2, 1e3}) {
      const Matrix entropy =
          end(MirrorDescent{.lr = 0.1 / beta, .geometry = Geometry::hyperbolic_entropy, .beta = beta});
      const double error = (entropy - gd).norm() / gd.norm();
      EXPECT_LT(error, 10 / (beta * beta)) << to_string(form);
      if (before > 0) {
        EXPECT_NEAR(before / error, 100, 5);
      }
      before = error;
    }
  }
}

// Gradient flow on (K, Q) conserves K^T K - Q^T Q: a step changes it by lr^2 (g_K^T g_K - g_Q^T g_Q) only, so that
// over a fixed time lr * steps the drift is in proportion to lr.
TEST(Optimizers, SmallStepsConserveTheBalanceOfKeysAndQueries) {
  const Dataset data = generate(SphereData{});
  const Attention model(data, KQ{.rank = 4});
  const auto drift = [&](double lr) {
    DescentOptions options{.steps = std::llround(20 / lr), .record = RecordSchedule::none()};
    options.init = {.kind = InitKind::normal, .std = 0.3, .seed = 4};
    const auto balance = [](const Parameters& at) {
      return Matrix(at.K.transpose() * at.K - at.Q.transpose() * at.Q);
    };
    const Matrix before = balance(initial_parameters(model, options.init));
    return (balance(descend(model, GradientDescent{.lr = lr}, options).last()) - before).norm();
  };
  const double one = drift(0.04), half = drift(0.02), quarter = drift(0.01);
  EXPECT_GT(one, 1e-5);
  EXPECT_NEAR(one / half, 2, 0.2);
  EXPECT_NEAR(half / quarter, 2, 0.1);
}

TEST(Optimizers, AreMeasuredInTheirOwnNorm) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(geometry_norm(MirrorDescent{.p = 1.75}), Norm::l(1.75));
  EXPECT_EQ(geometry_norm(MirrorDescent{.p = 3, .geometry = Geometry::schatten}), Norm::schatten(3));
  EXPECT_EQ(geometry_norm(MirrorDescent{.geometry = Geometry::hyperbolic_entropy}), Norm::l(1));
  EXPECT_EQ(geometry_norm(GradientDescent{}), Norm::frobenius());
  EXPECT_EQ(geometry_norm(muon()), Norm::spectral());
  EXPECT_EQ(geometry_norm(coordinate_descent()), Norm::l(1));
  EXPECT_EQ(geometry_norm(Adam{}), Norm::l(infinity));
  EXPECT_EQ(geometry_norm(Lion{}), Norm::l(infinity));
  EXPECT_EQ(geometry_norm(AdaGrad{}), std::nullopt);
  EXPECT_EQ(measuring_norm(AdaGrad{}), Norm::frobenius());
  EXPECT_EQ(geometry_p(AdaGrad{}), 2);
  for (const Optimizer& optimizer : all_optimizers())
    EXPECT_EQ(measuring_norm(optimizer), geometry_norm(optimizer).value_or(Norm::frobenius()));
  EXPECT_EQ(geometry_p(MirrorDescent{.p = 1.75}), 1.75);
  EXPECT_EQ(geometry_p(MirrorDescent{.p = 3, .geometry = Geometry::schatten}), 2);
  EXPECT_EQ(geometry_p(sign_descent()), 2);

  const Dataset data = generate(SphereData{});
  for (const Parameterization& form :
       {Parameterization{W{}}, Parameterization{KQ{3}}, Parameterization{Prompt{}}}) {
    const Attention model(data, form);
    const Parameters at = random_parameters(model, 1, 2);
    const Matrix weights = at.p.size() > 0 ? Matrix(at.p) : combined_weights(at);
    EXPECT_EQ(attention_norm(at, Norm::l(1.75)), lp_norm(weights, 1.75));  // as ever, to the bit
    EXPECT_EQ(attention_norm(at, 1.75), lp_norm(weights, 1.75));
    EXPECT_EQ(attention_norm(at, Norm::l(infinity)), weights.cwiseAbs().maxCoeff());
    EXPECT_NEAR(attention_norm(at, Norm::l(1)), weights.cwiseAbs().sum(), 1e-12 * weights.cwiseAbs().sum());
    EXPECT_NEAR(attention_norm(at, Norm::schatten(2)), weights.norm(), 1e-13 * weights.norm());
  }
  const Attention model(data);
  const DescentRun run = descend(model, spectral_descent(), {.steps = 20});
  EXPECT_EQ(run.norm, attention_norm(run.last(), Norm::spectral()));
  EXPECT_EQ(run.records.back().norm, run.norm);
}

TEST(Optimizers, RefuseWhatMakesNoSense) {
  const Schedule polyak{.kind = ScheduleKind::polyak};
  const Momentum ema{MomentumKind::ema};
  const auto refuse = [](const Optimizer& optimizer, std::initializer_list<std::string_view> words) {
    expect_bad_input(words, [&] { validate(optimizer); });
  };
  refuse(GradientDescent{.normalized = true, .schedule = polyak}, {"polyak", "normalized"});
  refuse(GradientDescent{.momentum = ema, .schedule = polyak}, {"polyak", "momentum ema:0.9"});
  refuse(MirrorDescent{.p = 3, .schedule = polyak}, {"polyak", "mirror descent", "p = 3"});
  refuse(MirrorDescent{.geometry = Geometry::schatten, .schedule = polyak}, {"polyak", "schatten"});
  refuse(SteepestDescent{.schedule = polyak}, {"polyak", "normalized"});
  refuse(Adam{.schedule = polyak}, {"polyak", "Adam"});
  refuse(MirrorDescent{.geometry = Geometry::hyperbolic_entropy, .beta = 0}, {"beta is 0"});
  refuse(MirrorDescent{.beta = std::nan("")}, {"beta is nan"});
  refuse(MirrorDescent{.power_path = PowerPath::general, .geometry = Geometry::schatten},
         {"power_path", "schatten"});
  refuse(MirrorDescent{.momentum = {MomentumKind::ema, 1}}, {"momentum's beta is 1"});
  refuse(GradientDescent{.schedule = {.kind = ScheduleKind::power, .exponent = -1}}, {"exponent is -1"});
  refuse(SteepestDescent{.orthogonalization = Orthogonalization::newton_schulz},
         {"newton-schulz", "norm inf"});
  refuse(SteepestDescent{.lr = 0}, {"lr is 0"});
  refuse(Adam{.beta1 = 1}, {"beta1 is 1"});
  refuse(Adam{.beta2 = -0.1}, {"beta2 is -0.1"});
  refuse(Adam{.lr = -1}, {"lr is -1"});
  refuse(AdaGrad{.schedule = polyak}, {"polyak", "AdaGrad"});
  refuse(AdaGrad{.lr = 0}, {"lr is 0"});
  refuse(AdaGrad{.eps_value = -1}, {"eps_value is -1"});
  refuse(Lion{.schedule = polyak}, {"polyak", "Lion"});
  refuse(Lion{.beta1 = 1}, {"beta1 is 1"});
  refuse(Lion{.beta2 = -0.1}, {"beta2 is -0.1"});
  refuse(Lion{.lr = std::nan("")}, {"lr is nan"});
  expect_bad_input({"geometry is \"l2\"", "lp, schatten or entropy"}, [] { parse_geometry("l2"); });

  const Dataset data = generate(SphereData{});
  const Attention linear(data, W{}, LinearLoss{});
  expect_bad_input({"polyak", "linear loss", "no lower bound"},
                   [&] { descend(linear, GradientDescent{.schedule = polyak}); });
}

TEST(Optimizers, TextsTellThemApart) {
  std::vector<std::string> texts;
  for (const Optimizer& optimizer : all_optimizers()) texts.push_back(to_string(optimizer));
  for (std::size_t i = 0; i < texts.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(texts[i], texts[j]);
  // As the first version wrote it: its checkpoints stay readable.
  EXPECT_EQ(to_string(Optimizer{MirrorDescent{.p = 3, .normalized = true}}),
            "mirror descent, p = 3, lr = 0.1, normalized, eps exact, safe Jacobian");
  EXPECT_EQ(to_string(Optimizer{GradientDescent{.eps = EpsPolicy::paper, .eps_value = 1e-8}}),
            "gradient descent, lr = 0.1, eps paper 1e-08, textbook Jacobian");
  EXPECT_EQ(to_string(Optimizer{Lion{}}), "Lion, beta1 = 0.9, beta2 = 0.99, lr = 0.1, safe Jacobian");
}

}  // namespace
}  // namespace attmirror::test
