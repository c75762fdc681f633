// Optimizers in config.json: nothing is lost, every difference is noticed, files of the first version still load.
#include "descent/optimizer_fields.hpp"

#include "descent/optimizer_list.hpp"
#include "support/files.hpp"
#include <attmirror/data/generators.hpp>
#include <attmirror/descent/run_config.hpp>

#include <string>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

using Json = nlohmann::ordered_json;

TEST(OptimizerConfig, LosesNothing) {
  for (const Optimizer& optimizer : all_optimizers()) {
    const Json json = optimizer_json(optimizer);
    const Optimizer back = parse_optimizer(Json::parse(json.dump()));
    EXPECT_EQ(back.index(), optimizer.index());
    EXPECT_EQ(to_string(back), to_string(optimizer));
    EXPECT_EQ(optimizer_json(back), json);
  }
}

TEST(OptimizerConfig, NoticesEveryDifference) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  const auto difference = [&](const Optimizer& there, const Optimizer& here) {
    return first_difference(describe_run(model, there, {}, {"d.npz", {}, {}}),
                            describe_run(model, here, {}, {"d.npz", {}, {}}))
        .value_or("none");
  };
  const Momentum ema{MomentumKind::ema};
  const Schedule power{.kind = ScheduleKind::power}, polyak{.kind = ScheduleKind::polyak};
  const auto md = [](Geometry geometry) { return MirrorDescent{.geometry = geometry}; };
  EXPECT_EQ(difference(MirrorDescent{}, md(Geometry::schatten)),
            "optimizer.geometry is \"lp\" there and \"schatten\" here");
  EXPECT_EQ(difference(md(Geometry::hyperbolic_entropy),
                       MirrorDescent{.geometry = Geometry::hyperbolic_entropy, .beta = 2}),
            "optimizer.beta is 1.0 there and 2.0 here");
  EXPECT_EQ(difference(md(Geometry::schatten), MirrorDescent{.p = 3, .geometry = Geometry::schatten}),
            "optimizer.p is 2.0 there and 3.0 here");
  EXPECT_EQ(difference(MirrorDescent{}, MirrorDescent{.momentum = ema}),
            "optimizer.momentum is \"none\" there and \"ema:0.9\" here");
  EXPECT_EQ(
      difference(GradientDescent{.momentum = {MomentumKind::ema, 0.8}}, GradientDescent{.momentum = ema}),
      "optimizer.momentum is \"ema:0.8\" there and \"ema:0.9\" here");
  EXPECT_EQ(difference(GradientDescent{}, GradientDescent{.schedule = power}),
            "optimizer.schedule is \"constant\" there and \"power:0.5\" here");
  EXPECT_EQ(difference(GradientDescent{.schedule = polyak},
                       GradientDescent{.schedule = {.kind = ScheduleKind::polyak, .lower_bound = 0.5}}),
            "optimizer.schedule is \"polyak:0\" there and \"polyak:0.5\" here");
  EXPECT_EQ(difference(GradientDescent{}, SteepestDescent{}),
            "optimizer.kind is \"gd\" there and \"steepest\" here");
  EXPECT_EQ(difference(sign_descent(), coordinate_descent()),
            "optimizer.norm is \"inf\" there and \"1\" here");
  EXPECT_EQ(difference(sign_descent(), SteepestDescent{.normalized = false}),
            "optimizer.normalized is true there and false here");
  EXPECT_EQ(difference(muon(), muon(0.1, 0.95, Orthogonalization::exact)),
            "optimizer.orthogonalization is \"newton-schulz\" there and \"exact\" here");
  EXPECT_EQ(difference(Adam{}, Adam{.beta1 = 0.8}), "optimizer.beta1 is 0.9 there and 0.8 here");
  EXPECT_EQ(difference(Adam{}, Adam{.beta2 = 0.9}), "optimizer.beta2 is 0.999 there and 0.9 here");
  EXPECT_EQ(difference(Adam{}, Adam{.eps_value = 1e-7}), "optimizer.eps_value is 1e-08 there and 1e-07 here");
  EXPECT_EQ(difference(AdaGrad{}, AdaGrad{.lr = 0.5}), "optimizer.lr is 0.1 there and 0.5 here");
  EXPECT_EQ(difference(Lion{}, Lion{.beta2 = 0.9}), "optimizer.beta2 is 0.99 there and 0.9 here");
  EXPECT_EQ(difference(Lion{}, Lion{.jacobian = Jacobian::textbook}),
            "optimizer.jacobian is \"safe\" there and \"textbook\" here");
  for (const Optimizer& optimizer : all_optimizers()) EXPECT_EQ(difference(optimizer, optimizer), "none");
}

// What attmirror 0.1 wrote has no geometry, momentum or schedule.
TEST(OptimizerConfig, LoadsFilesOfTheFirstVersion) {
  for (const Optimizer& optimizer :
       {Optimizer{MirrorDescent{.p = 1.75, .normalized = true}}, Optimizer{GradientDescent{.lr = 0.3}}}) {
    Json json = optimizer_json(optimizer);
    for (const char* field : {"geometry", "momentum", "schedule"}) json.erase(field);
    EXPECT_EQ(to_string(parse_optimizer(json)), to_string(optimizer));
  }
}

TEST(OptimizerConfig, RefusesWhatIsNone) {
  const auto refuse = [](const Optimizer& optimizer, const char* field, const char* value,
                         std::initializer_list<std::string_view> words) {
    Json json = optimizer_json(optimizer);
    json[field] = value;
    expect_bad_input(words, [&] { parse_optimizer(json); });
  };
  refuse(MirrorDescent{}, "kind", "sgd", {"\"sgd\"", "md, gd, steepest, adam, lion or adagrad"});
  refuse(MirrorDescent{}, "geometry", "l2", {"geometry is \"l2\""});
  refuse(MirrorDescent{}, "momentum", "much", {"momentum is \"much\""});
  refuse(GradientDescent{}, "schedule", "soon", {"schedule is \"soon\""});
  refuse(SteepestDescent{}, "norm", "long", {"long"});
  refuse(SteepestDescent{}, "orthogonalization", "qr", {"qr"});
  Json json = optimizer_json(Adam{});
  json.erase("beta2");
  EXPECT_THROW(parse_optimizer(json), Json::exception);
}

}  // namespace
}  // namespace attmirror::test
