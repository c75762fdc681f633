// A model that the library does not know: it trains, records, resumes and is refused like those that it has.
#include "base/atomic_file.hpp"
#include "descent/run_text.hpp"
#include "descent/saved_model.hpp"
#include "support/bilinear_objective.hpp"
#include "support/files.hpp"
#include "support/same_bits.hpp"
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/run_folder.hpp>

#include <cmath>
#include <optional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::test {
namespace {

DescentOptions bilinear_options(std::int64_t steps) {
  DescentOptions options;
  options.steps = steps;
  options.record = RecordSchedule::every(10);
  options.init = {.kind = InitKind::normal, .std = 0.5, .seed = 3};
  options.init.given.vectors["offset"] = Vector::Constant(4, 0.25);
  return options;
}

void expect_same_blocks(const Parameters& a, const Parameters& b) {
  ASSERT_EQ(block_names(a), block_names(b));
  EXPECT_TRUE(same_bits(a.matrix("U"), b.matrix("U")));
  EXPECT_TRUE(same_bits(Matrix(a.vector("w")), Matrix(b.vector("w"))));
  EXPECT_TRUE(same_bits(Matrix(a.vector("offset")), Matrix(b.vector("offset"))));
}

// Goes on with the run in the folder, or begins it.
DescentRun train_in(const std::filesystem::path& path, const Objective& objective, const Optimizer& optimizer,
                    const DescentOptions& options) {
  RunFolder folder(path);
  const RunConfig config = describe_run(objective, optimizer, options, {});
  const std::optional<Checkpoint> checkpoint = folder.checkpoint(config);
  Descent descent = checkpoint ? Descent(objective, optimizer, options, *checkpoint)
                               : Descent(objective, optimizer, options);
  folder.resume(config, checkpoint);
  DescentCallbacks callbacks;
  callbacks.on_record = [&](const Record& record) { folder.append(record); };
  DescentRun run = descent.run(callbacks);
  folder.finish(objective, run, descent.checkpoint(), config);
  return run;
}

TEST(OwnObjective, ItsGradientIsTheDerivative) {
  const BilinearObjective objective;
  ParameterBlocks weights(objective.blocks());
  weights.assign(objective.initial_parameters(bilinear_options(0).init));
  Gradient gradient = objective.make_gradient(), unused = objective.make_gradient();
  objective.evaluate(weights, gradient);
  for (const std::ptrdiff_t b : {1, 2})
    for (std::ptrdiff_t r = 0; r < weights.view(b).rows; ++r)
      for (std::ptrdiff_t c = 0; c < weights.view(b).cols; ++c) {
        double& entry = weights.view(b).data[r * weights.view(b).stride + c];
        const double at = entry, h = 1e-6;
        entry = at + h;
        const double above = objective.evaluate(weights, unused).loss;
        entry = at - h;
        const double below = objective.evaluate(weights, unused).loss;
        entry = at;
        EXPECT_NEAR(gradient.blocks.view(b - 1).eigen()(r, c), (above - below) / (2 * h), 1e-8);
      }
}

TEST(OwnObjective, EveryOptimizerLowersItsLoss) {
  const BilinearObjective objective;
  for (const Optimizer& optimizer :
       {Optimizer(MirrorDescent{.p = 1.5, .lr = 0.05}), Optimizer(GradientDescent{.lr = 0.05}),
        Optimizer(SteepestDescent{.norm = Norm::spectral(), .lr = 0.01}), Optimizer(Adam{.lr = 0.01}),
        Optimizer(Lion{.lr = 0.005}), Optimizer(AdaGrad{.lr = 0.05})}) {
    const DescentRun run = descend(objective, optimizer, bilinear_options(200));
    EXPECT_EQ(run.status, RunStatus::completed) << to_string(optimizer);
    EXPECT_LT(run.loss, 0.9 * run.records.front().loss) << to_string(optimizer);
    EXPECT_EQ(run.last().vector("offset"), Vector::Constant(4, 0.25)) << "it is fixed";
    EXPECT_EQ(run.norm, norm(run.last().matrix("U"), measuring_norm(optimizer)))
        << "of the first trained block";
    EXPECT_TRUE(run.selected.tokens.empty());
  }
  const GradientDescent polyak{.lr = 0.1, .schedule = {.kind = ScheduleKind::polyak}};
  EXPECT_EQ(descend(objective, polyak, bilinear_options(1)).status, RunStatus::completed);
}

TEST(OwnObjective, StartsAreDrawnByBlockAndSeed) {
  const BilinearObjective objective;
  const auto start = [&](const Initialization& init) { return objective.initial_parameters(init); };
  const Parameters zero = start({});
  EXPECT_TRUE(zero.matrix("U").isZero(0) && zero.vector("w").isZero(0) && zero.vector("offset").isZero(0));
  const Parameters normal = start({.kind = InitKind::normal, .std = 2, .seed = 5});
  const Parameters again = start({.kind = InitKind::normal, .std = 2, .seed = 5});
  expect_same_blocks(normal, again);
  EXPECT_NE(normal.matrix("U"), start({.kind = InitKind::normal, .std = 2, .seed = 6}).matrix("U"));
  EXPECT_NE(normal.matrix("U")(0, 0), normal.vector("w")(0)) << "each block has numbers of its own";
  EXPECT_TRUE(normal.vector("offset").isZero(0)) << "it is not trained";
  const Parameters uniform = start({.kind = InitKind::uniform, .std = 1, .seed = 5});
  EXPECT_LE(uniform.matrix("U").cwiseAbs().maxCoeff(), 1 / std::sqrt(3.0));
  EXPECT_GT(uniform.matrix("U").cwiseAbs().maxCoeff(), 0.2);
}

TEST(OwnObjective, ItsFolderIsResumedToTheSameBits) {
  const TemporaryFolder folder;
  const BilinearObjective objective;
  for (const Optimizer& optimizer :
       {Optimizer(MirrorDescent{.p = 3, .lr = 0.02, .momentum = {MomentumKind::ema, 0.5}}),
        Optimizer(Adam{.lr = 0.01})}) {
    const std::filesystem::path path = folder / to_string(optimizer).substr(0, 2);
    const DescentRun whole = descend(objective, optimizer, bilinear_options(60));
    train_in(path, objective, optimizer, bilinear_options(27));
    const DescentRun resumed = train_in(path, objective, optimizer, bilinear_options(60));
    expect_same_blocks(whole.last(), resumed.last());
    ASSERT_EQ(whole.records.size(), resumed.records.size());

    const SavedRun saved = load_run(path);
    expect_same_blocks(saved.parameters, whole.last());
    ASSERT_EQ(saved.records.size(), whole.records.size());
    for (std::size_t r = 0; r < whole.records.size(); ++r) {
      expect_same_blocks(saved.records[r].parameters, whole.records[r].parameters);
      ASSERT_EQ(saved.records[r].metrics.size(), 1U);
      EXPECT_EQ(saved.records[r].metrics[0].name, "largest_error");
      EXPECT_EQ(saved.records[r].metrics[0].value, whole.records[r].metrics[0].value);
    }
    const NamedArrays last = load_npz(path / "final.npz"), trace = load_npz(path / "trace.npz");
    EXPECT_EQ(last.at("w").shape(), (Shape{3}));
    EXPECT_EQ(last.at("U").shape(), (Shape{4, 3}));
    EXPECT_EQ(last.at("fixed_offset").shape(), (Shape{4}));
    EXPECT_EQ(trace.at("w").shape(), (Shape{7, 3}));
    EXPECT_FALSE(trace.contains("offset"));
  }
}

TEST(OwnObjective, ConfigSaysWhatItIs) {
  const BilinearObjective objective(1.5);
  const RunConfig config = describe_run(objective, GradientDescent{}, bilinear_options(5), {});
  const auto json = nlohmann::ordered_json::parse(to_json(config));
  EXPECT_EQ(json["model"].begin().key(), "kind");
  EXPECT_EQ(json["model"]["kind"], "bilinear");
  EXPECT_EQ(json["model"]["weight"], 1.5);
  EXPECT_EQ(json["model"]["squared"], true);
  EXPECT_EQ(json["model"]["note"], "for tests");
  EXPECT_EQ(json["model"]["train"], nlohmann::ordered_json({"U", "w"}));
  EXPECT_EQ(json["data"]["samples"], 7);
  for (const char* foreign : {"params", "rank", "loss", "head"})
    EXPECT_FALSE(json["model"].contains(foreign));
  EXPECT_FALSE(json["data"].contains("mask"));

  const RunConfig back = parse_run_config(to_json(config), "it");
  EXPECT_EQ(to_json(back), to_json(config));
  EXPECT_EQ(first_difference(back, config), std::nullopt);
  EXPECT_FALSE(is_attention_run(back));
  EXPECT_TRUE(is_own_run(back));
  EXPECT_EQ(model_text(back), "bilinear, weight 1.5, squared true, note for tests, trains U, w");
  EXPECT_EQ(norm_text(back), "‖U‖_2");
  EXPECT_EQ(objective.description(),
            "bilinear, weight 1.5, squared true, note for tests, samples 7, trains U w");
}

TEST(OwnObjective, IsNotResumedAsAnother) {
  const TemporaryFolder folder;
  const GradientDescent rule{.lr = 0.05};
  train_in(folder / "run", BilinearObjective(1), rule, bilinear_options(10));
  expect_bad_input({"cannot resume", "model.weight is 1.0 there and 2.0 here"},
                   [&] { train_in(folder / "run", BilinearObjective(2), rule, bilinear_options(20)); });
  expect_bad_input({"cannot resume", "data.fingerprint"},
                   [&] { train_in(folder / "run", BilinearObjective(1, 2), rule, bilinear_options(20)); });
  RunConfig attention;
  const RunConfig own = describe_run(BilinearObjective(), rule, bilinear_options(10), {});
  EXPECT_EQ(first_difference(attention, own), "the model is attention there and bilinear here");
  RunConfig more = own;
  more.model_facts.push_back({"depth", std::int64_t{2}});
  EXPECT_EQ(first_difference(own, more), "model.depth is null there and 2 here");
  expect_bad_input({"is a run of bilinear: expected one of attmirror train"},
                   [&] { load_trained_run(folder / "run"); });
}

// What a user may get wrong, each refused in words.
class WrongObjective final : public Objective {
 public:
  std::vector<BlockShape> shapes{BlockShape::vector("w", 2)};
  std::vector<Block> names{"w"};
  ModelFacts stated{.kind = "wrong"};
  std::vector<BlockShape> blocks() const override { return shapes; }
  std::vector<Block> trained() const override { return names; }
  ModelFacts facts() const override { return stated; }
  std::uint64_t data_fingerprint() const override { return 1; }
};

TEST(OwnObjective, RefusesWhatCannotBe) {
  const auto train = [](const Objective& objective, const Optimizer& optimizer = GradientDescent{}) {
    descend(objective, optimizer, {.steps = 3});
  };
  const auto describe = [](const Objective& objective) {
    describe_run(objective, GradientDescent{}, {}, {});
  };
  WrongObjective wrong;
  expect_bad_input({"wrong overrides neither evaluate() nor make_engine()"}, [&] { train(wrong); });
  expect_bad_input({"schedule is polyak", "wrong", "lower bound"},
                   [&] { train(wrong, GradientDescent{.schedule = {.kind = ScheduleKind::polyak}}); });
  wrong.names = {"x"};
  expect_bad_input({"cannot train x", "wrong"}, [&] { train(wrong); });
  wrong.names = {};
  expect_bad_input({"trains no block"}, [&] { train(wrong); });
  wrong.names = {"w"};
  wrong.shapes = {BlockShape::vector("w", 0)};
  expect_bad_input({"block w has shape (1, 0)"}, [&] { train(wrong); });
  wrong.shapes = {BlockShape::vector("w", 2), BlockShape::matrix("w", 2, 2)};
  expect_bad_input({"two blocks are called w"}, [&] { train(wrong); });

  wrong.stated = {.kind = ""};
  expect_bad_input({"kind of the model is empty"}, [&] { describe(wrong); });
  wrong.stated = {.kind = "wrong", .model = {{"train", "all"}}};
  expect_bad_input({"called \"train\"", "something else"}, [&] { describe(wrong); });
  wrong.stated = {.kind = "wrong", .model = {{"a", true}, {"a", false}}};
  expect_bad_input({"called \"a\"", "another one"}, [&] { describe(wrong); });
  wrong.stated = {.kind = "wrong", .data = {{"size", std::nan("")}}};
  expect_bad_input({"size of the model wrong is nan"}, [&] { describe(wrong); });

  BilinearObjective objective;
  expect_bad_input({"an initial W is given", "bilinear"}, [&] {
    DescentOptions options = bilinear_options(1);
    options.init.given.W = Matrix::Ones(2, 2);
    descend(objective, GradientDescent{}, options);
  });
  objective.metric_name = "U";
  expect_bad_input({"a metric of the model is called \"U\""},
                   [&] { descend(objective, GradientDescent{}, bilinear_options(1)); });
}

}  // namespace
}  // namespace attmirror::test
