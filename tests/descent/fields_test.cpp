// Optimizers and models by their fields: what is given, what is refused, and that every object can be said again.
#include "data/generator_fields.hpp"
#include "descent/model_fields.hpp"
#include "descent/optimizer_fields.hpp"
#include "support/files.hpp"
#include "support/paths.hpp"
#include <attmirror/data/generators.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/run_config.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

TEST(OptimizerFields, HaveTheDefaultsOfTheStructs) {
  EXPECT_EQ(to_string(make_optimizer({})), to_string(Optimizer(MirrorDescent{})));
  EXPECT_EQ(to_string(make_optimizer({{"optimizer", std::string("gd")}})),
            to_string(Optimizer(GradientDescent{})));
  EXPECT_EQ(to_string(make_optimizer({{"optimizer", std::string("adam")}})), to_string(Optimizer(Adam{})));
  EXPECT_EQ(to_string(make_optimizer({{"optimizer", std::string("muon")}})), to_string(Optimizer(muon())));
  EXPECT_EQ(to_string(make_optimizer({{"optimizer", std::string("sign")}, {"lr", 0.5}})),
            to_string(Optimizer(sign_descent(0.5))));
}

// Any optimizer, in words and back.
TEST(OptimizerFields, SayEveryOptimizer) {
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
      AdaGrad{
          .lr = 2, .eps = EpsPolicy::paper, .eps_value = 1e-6, .schedule = {ScheduleKind::power, 0.25, 0}},
      Lion{.beta1 = 0.5, .beta2 = 0.75, .schedule = {ScheduleKind::power, 0.25, 0}},
      Adam{.beta1 = 0.5, .beta2 = 0.75, .eps = EpsPolicy::paper, .schedule = {ScheduleKind::power, 0.25, 0}},
  };
  for (const Optimizer& optimizer : optimizers) {
    const OptimizerMethod& method = method_of(optimizer);
    const Given given = given_of(optimizer, method);
    EXPECT_EQ(to_string(make_optimizer(given)), to_string(optimizer));
    EXPECT_EQ(given_of(make_optimizer(given), method), given) << to_string(optimizer);
  }
  // Sign descent is also steepest descent.
  EXPECT_EQ(given_of(sign_descent(), method_given({{"optimizer", std::string("steepest")}})).word("norm"),
            "inf");
  EXPECT_FALSE(given_of(sign_descent(), method_of(sign_descent())).has("norm"));
}

TEST(OptimizerFields, RefuseWhatWouldChangeNothing) {
  expect_bad_input({"optimizer is \"sgd\": expected md, gd, steepest"}, [] {
    make_optimizer({{"optimizer", std::string("sgd")}});
  });
  expect_bad_input({"p is 3: expected 2, the p of gradient descent; optimizer md takes any"}, [] {
    make_optimizer({{"optimizer", std::string("gd")}, {"p", 3.0}});
  });
  EXPECT_NO_THROW(make_optimizer({{"optimizer", std::string("gd")}, {"p", 2.0}}));
  expect_bad_input({"normalized is false, but optimizer is sign"}, [] {
    make_optimizer({{"optimizer", std::string("sign")}, {"normalized", false}});
  });
  EXPECT_NO_THROW(make_optimizer({{"optimizer", std::string("sign")}, {"normalized", true}}));
  EXPECT_NO_THROW(make_optimizer({{"normalized", false}}));
  expect_bad_input({"momentum is none, but optimizer is muon: without momentum it is optimizer spectral"},
                   [] {
                     make_optimizer({{"optimizer", std::string("muon")}, {"momentum", std::string("none")}});
                   });
  expect_bad_input({"eps is given, but optimizer is lion"}, [] {
    make_optimizer({{"optimizer", std::string("lion")}, {"eps", std::string("paper")}});
  });
  expect_bad_input({"momentum is given, but optimizer is lion", "beta1"}, [] {
    make_optimizer({{"optimizer", std::string("lion")}, {"momentum", std::string("ema")}});
  });
  expect_bad_input({"lr is 0"}, [] { make_optimizer({{"lr", 0.0}}); });
}

TEST(ModelFields, SayEveryModel) {
  const Given models[] = {
      {},
      {{"params", std::string("KQ")}, {"rank", std::int64_t{2}}, {"init_seed", std::uint64_t{7}}},
      {{"params", std::string("KQ")}, {"init", std::string("normal:0.25")}, {"init_seed", std::uint64_t{3}}},
      {{"params", std::string("prompt")},
       {"key_weights", std::string("A.npy")},
       {"train", std::string("p,v")},
       {"init", std::string("uniform")}},
      {{"loss", std::string("exponential")},
       {"head", std::string("quadratic:0.5")},
       {"mask", std::string("causal")},
       {"scaled", true},
       {"penalty", 0.125}},
      {{"train", std::string("v,W")}, {"init", std::string("file:W0.npy")}},
  };
  for (const Given& given : models) {
    const Given all = given_of(plan_model(given));
    EXPECT_EQ(given_of(plan_model(all)), all);
    for (const auto& [name, value] : given)
      if (name != "train") EXPECT_EQ(attmirror::to_text(*all.find(name)), attmirror::to_text(value)) << name;
  }
  EXPECT_EQ(given_of(plan_model({})).word("train"), "W");
  EXPECT_FALSE(given_of(plan_model({})).has("init_seed"));
  const Given low_rank = given_of(plan_model({{"params", std::string("KQ")}}));
  EXPECT_EQ(low_rank.word("train"), "K,Q");
  EXPECT_EQ(low_rank.word("init"), "uniform");
  EXPECT_EQ(given_of(plan_model({{"train", std::string("v,W")}})).word("train"), "W,v");
  EXPECT_EQ(given_of(plan_model({{"init", std::string("normal")}})).word("init"), "normal:1");
}

TEST(ModelFields, RefuseWhatDoesNotGoTogether) {
  expect_bad_input({"rank is 2, but params is W"}, [] { plan_model({{"rank", std::int64_t{2}}}); });
  expect_bad_input({"key_weights is given, but params is KQ"}, [] {
    plan_model({{"params", std::string("KQ")}, {"key_weights", std::string("A.npy")}});
  });
  expect_bad_input({"init_seed is given, but init is zero"}, [] {
    plan_model({{"init_seed", std::uint64_t{0}}});
  });
  expect_bad_input({"std of init is \"x\": expected a number"}, [] {
    plan_model({{"init", std::string("normal:x")}});
  });
  expect_bad_input({"init is \"normal:\""}, [] { plan_model({{"init", std::string("normal:")}}); });
  expect_bad_input({"init is \"file:\""}, [] { plan_model({{"init", std::string("file:")}}); });
  expect_bad_input({"std of the initialization is -1"}, [] {
    plan_model({{"init", std::string("normal:-1")}});
  });
}

TEST(ModelFields, FilesAreReadWhenAskedFor) {
  const TemporaryFolder folder;
  const std::string path = (folder / "blocks.npz").string();
  const ModelPlan plan = plan_model({{"init", "file:" + path}});  // which is not there yet
  expect_bad_input({path}, [&] { load_files(plan); });
  const std::vector<double> values{1, 2, 3, 4};
  save_npz(path, {{"W", Array({2, 2}, std::span(values))}});
  EXPECT_EQ(load_files(plan).init.given.W(1, 0), 3);
  expect_bad_input({"the file has no K, which is to be trained"}, [&] {
    load_files(plan_model({{"params", std::string("KQ")}, {"init", "file:" + path}}));
  });
  const Dataset data = generate(SphereData{.dim = 2});
  const Attention model = make_attention(data, load_files(plan));
  EXPECT_TRUE(model.is_trained(Block::W));
}

// The order of the settings is part of a sweep's fingerprints.
TEST(OptimizerFields, StandInAFixedOrder) {
  std::string names;
  for (const FieldInfo* field : optimizer_fields()) names += field->name + " ";
  EXPECT_EQ(names,
            "optimizer geometry p entropy_beta norm lr normalized momentum schedule beta1 beta2 "
            "orthogonalization eps "
            "eps_value jacobian powers ");
}

TEST(OptimizerFields, DefaultsAreThoseOfTheMethods) {
  const auto default_of = [](std::string_view name) {
    for (const FieldInfo* field : optimizer_fields())
      if (field->name == name) return optimizer_default(*field);
    return std::string("no such field");
  };
  EXPECT_EQ(default_of("optimizer"), "md");
  EXPECT_EQ(default_of("p"), "2");
  EXPECT_EQ(default_of("norm"), "");
  EXPECT_EQ(default_of("momentum"), "none; ema:0.9 for signum; ema:0.95 for muon");
  EXPECT_EQ(default_of("orthogonalization"), "exact; newton-schulz for muon");
}

// A front end spells a field in its own way; the error says which one it is about.
TEST(Fields, ErrorsCarryFieldAndValue) {
  try {
    MirrorDescent{.geometry = Geometry::hyperbolic_entropy, .beta = -1}.validate();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "beta is -1: expected a finite number greater than 0");
    EXPECT_EQ(error.field(), "beta");
    EXPECT_EQ(error.value(), "-1");
    EXPECT_FALSE(error.index());
    const auto command = [](std::string_view field) { return command_spelling(training_fields(), field); };
    const auto sweep = [](std::string_view field) { return sweep_spelling(training_fields(), field); };
    EXPECT_EQ(error.message(command), "--entropy-beta is -1: expected a finite number greater than 0");
    EXPECT_EQ(error.in("run 3").message(sweep),
              "run 3: entropy_beta is -1: expected a finite number greater than 0");
    EXPECT_EQ(error.in("run 3").field(), "beta");
  }
}

// A help text stands in its table and nowhere else.
TEST(Fields, AreDescribedOnce) {
  std::string sources;
  for (const char* folder : {"src", "include"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source_folder() / folder))
      if (entry.path().extension() == ".cpp" || entry.path().extension() == ".hpp") {
        std::ifstream file(entry.path());
        sources.append(std::istreambuf_iterator<char>(file), {});
      }
  std::vector<const FieldInfo*> fields = training_fields();
  for (const FieldInfo& field : generator_fields()) fields.push_back(&field);
  for (const FieldInfo* field : fields) {
    if (field->help.empty()) continue;
    const std::string literal = "\"" + field->help + "\"";
    const std::size_t first = sources.find(literal);
    EXPECT_NE(first, std::string::npos) << field->name << ": " << literal;
    EXPECT_EQ(sources.find(literal, first + 1), std::string::npos) << field->name << ": " << literal;
  }
}

// What must be said to repeat an optimizer is what differs from the method's own, and a later field's default may
// depend on an earlier one.
TEST(Fields, ChangesAreWhatDiffers) {
  const auto changes = [](const MirrorDescent& md) {
    Given given;
    add_changes(fields_of(md), md, MirrorDescent{}, given);
    std::string text;
    for (const auto& [name, value] : given) text += fmt::format("{}={} ", name, attmirror::to_text(value));
    return text;
  };
  EXPECT_EQ(changes({}), "p=2 lr=0.1 ");
  EXPECT_EQ(changes({.p = 3, .normalized = true, .eps = EpsPolicy::paper}),
            "p=3 lr=0.1 normalized=true eps=paper ");
  EXPECT_EQ(changes({.eps = EpsPolicy::paper, .jacobian = Jacobian::safe}),
            "p=2 lr=0.1 eps=paper jacobian=safe ");
  EXPECT_EQ(changes({.geometry = Geometry::hyperbolic_entropy, .beta = 2}),
            "geometry=entropy entropy_beta=2 lr=0.1 ");
}

}  // namespace
}  // namespace attmirror::test
