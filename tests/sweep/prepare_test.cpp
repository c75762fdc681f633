// The objects of a run: they are what its settings say, they do not depend on who asks, and the run can be repeated
// from what the results say of it.
#include "base/json.hpp"
#include "data/generator_kinds.hpp"
#include "data/npy.hpp"
#include "support/files.hpp"
#include "sweep/parsed_sweep.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/npz.hpp>
#include <attmirror/descent/run_config.hpp>
#include <attmirror/sweep/plan.hpp>

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

DescentRun train(const PreparedRun& run) { return descend(*run.model, run.optimizer, run.descent); }

void expect_same_weights(const Parameters& a, const Parameters& b, const std::string& what) {
  EXPECT_EQ(fingerprint(a), fingerprint(b)) << what;
  EXPECT_NE(fingerprint(a), 0u) << what;
}

// One run of every kind of data, model and optimizer.
const char* all_kinds = R"(
[train]
steps = 20
[[list]]
p = 1.75
normalized = true
[[list]]
optimizer = "gd"
momentum = "heavy-ball:0.5"
[[list]]
optimizer = "steepest"
norm = "nuclear"
normalized = false
schedule = "polyak:0.6"
[[list]]
optimizer = "coordinate"
[[list]]
optimizer = "muon"
[[list]]
optimizer = "adam"
eps = "paper"
[[list]]
geometry = "entropy"
entropy_beta = 0.5
normalized = true
[[list]]
geometry = "schatten"
p = 1.5
[[list]]
normalized = true
eps = "paper"
jacobian = "safe"
eps_value = 1e-12
[[list]]
params = "KQ"
rank = 3
init = "normal:0.1"
init_seed = 5
scaled = true
[[list]]
params = "KQ"
init_seed = "own"
[[list]]
generator = "multi-input"
seed = 4
params = "prompt"
[[list]]
generator = "joint-prompt"
label_margin = "slack"
params = "prompt"
train = "p,v"
init = "normal:1"
[[list]]
generator = "joint"
train = "W,v"
p = 3
[[list]]
generator = "loss-comparison"
score = 5
loss = "exponential"
params = "prompt"
penalty = 0.01
[[list]]
generator = "single-input"
scores = "unequal"
loss = "linear"
[[list]]
generator = "visualization2"
init = "uniform"
[[list]]
generator = "relu"
dim = 6
head = "relu"
[[list]]
generator = "orthonormal"
head = "quadratic:0.5"
[[list]]
samples = 4
tokens = 7
min_tokens = 3
dim = 5
query_from = "all"
mask = "causal"
storage = "float32"
data_path = "stream"
[[list]]
queries = 3
saturation = 0.5
)";

TEST(PreparedRuns, HaveTheirSettings) {
  const SweepPlan plan = test::parsed_sweep(R"(
[data]
samples = 4
tokens = 5
dim = 3
[train]
params = "KQ"
rank = 2
optimizer = "steepest"
norm = "nuclear"
lr = 0.03
loss = "exponential"
steps = 77
saturation = 0.9
init = "normal:0.25"
[grid]
seed = [11, 12]
[record]
margins = [2]
curves = ["margin.2"]
steps = [0, 7]
)");
  const PreparedRun run = plan.prepare(1);
  EXPECT_EQ(
      run.data->fingerprint(),
      generate(find_generator("sphere"), {.samples = 4, .tokens = 5, .dim = 3, .seed = 12}).fingerprint());
  EXPECT_EQ(&run.model->data(), run.data.get());
  EXPECT_EQ(run.model->rank(), 2);
  EXPECT_EQ(to_string(run.model->loss()), "exponential");
  const auto& optimizer = std::get<SteepestDescent>(run.optimizer);
  EXPECT_EQ(optimizer.norm, Norm::nuclear());
  EXPECT_EQ(optimizer.lr, 0.03);
  EXPECT_EQ(run.descent.steps, 77);
  EXPECT_EQ(run.descent.saturation, 0.9);
  EXPECT_EQ(run.descent.record.to_string(), "0,7");
  EXPECT_EQ(run.descent.keep, Keep::parameters);
  EXPECT_EQ(run.descent.init.kind, InitKind::normal);
  EXPECT_EQ(run.descent.init.std, 0.25);
  EXPECT_EQ(run.descent.init.seed, 12u);
  EXPECT_EQ(run.descent.threads, 1);
  EXPECT_EQ(test::parsed_sweep("[record]\ncurves = [\"loss\", \"norm\"]\n").prepare(0).descent.keep,
            Keep::metrics);
  EXPECT_EQ(test::parsed_sweep("[record]\nkeep = [\"path\"]\n").prepare(0).descent.keep, Keep::parameters);
  expect_bad_input({"run is 2", "2 runs"}, [&] { plan.prepare(2); });
}

// What stands in the row is enough: config.json with the generator's settings makes the same run.
TEST(PreparedRuns, AreRepeatedFromTheirConfiguration) {
  const SweepPlan plan = test::parsed_sweep(all_kinds);
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    const PreparedRun prepared = plan.prepare(i);
    const DescentRun run = train(prepared);
    EXPECT_NE(run.status, RunStatus::diverged) << i;

    const RunConfig config = parse_run_config(prepared.config, "config");
    const Json generator = Json::parse(prepared.config).at("data").at("generator");
    GeneratorSettings settings;
    const auto take = [&generator](const char* name, auto& field) {
      if (generator.contains(name))
        field = generator.at(name).get<typename std::remove_cvref_t<decltype(field)>::value_type>();
    };
    take("samples", settings.samples);
    take("tokens", settings.tokens);
    take("dim", settings.dim);
    take("seed", settings.seed);
    take("min_tokens", settings.min_tokens);
    take("queries", settings.queries);
    take("query_from", settings.query_from);
    take("scores", settings.scores);
    take("label_margin", settings.label_margin);
    take("score", settings.score);
    Dataset data = generate(find_generator(generator.at("kind").get<std::string>()), settings);
    if (config.mask == "causal") data = with_causal_mask(std::move(data));
    EXPECT_EQ(data.fingerprint(), config.data_fingerprint);
    Parameterization parameterization = W{};
    if (config.params == "KQ") parameterization = KQ{config.rank};
    if (config.params == "prompt") parameterization = Prompt{};
    const Attention model(data, parameterization, parse_loss(config.loss), attention_options(config));
    DescentOptions options;
    options.steps = config.steps;
    options.saturation = config.saturation;
    options.record = RecordSchedule::parse(config.record);
    options.keep = config.keep;
    options.path = config.path;
    options.storage = config.storage;
    options.init = {.kind = config.init_kind, .std = config.init_std, .seed = config.init_seed};
    expect_same_weights(descend(model, config.optimizer, options).last(), run.last(), prepared.config);
  }
}

TEST(PreparedRuns, AreTheSameFromManyThreads) {
  const SweepPlan plan = test::parsed_sweep(
      "[data]\nsamples = 3\ntokens = 4\ndim = 5\n[train]\nsteps = 5\ninit = \"normal:1\"\n"
      "[grid]\nseed = \"1:40\"\np = [1.75, 2, 3]\n");
  std::vector<std::uint64_t> expected;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    SweepPlan alone = plan;
    alone.cache = nullptr;
    expected.push_back(fingerprint(train(alone.prepare(i)).last()));
  }
  std::atomic<std::size_t> next = 0;
  std::vector<std::uint64_t> found(plan.runs.size());
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (std::size_t i; (i = next++) < plan.runs.size();)
          found[i] = fingerprint(train(plan.prepare(i)).last());
      });
  }
  EXPECT_EQ(found, expected);
}

TEST(PreparedRuns, ShareData) {
  const SweepPlan plan = test::parsed_sweep("[grid]\nseed = [1, 2]\nlr = [0.1, 0.2]\n[train]\nsteps = 1\n");
  const PreparedRun a = plan.prepare(0), b = plan.prepare(1), c = plan.prepare(2);
  EXPECT_EQ(a.data, b.data);
  EXPECT_NE(a.data, c.data);
}

// A thousand runs on one file, from many threads: the file is read once, so it may vanish after the first run.
TEST(PreparedRuns, ReadAFileOnce) {
  const TemporaryFolder folder;
  save_dataset(folder / "data.npz", generate(find_generator("sphere"), {.dim = 4, .seed = 3}));
  const SweepPlan plan = test::parsed_sweep(
      "[data]\nfile = \"data.npz\"\n[train]\ninit = \"normal:1\"\nsteps = 1\n"
      "[grid]\ninit_seed = \"1:1000\"\n",
      folder.path());
  ASSERT_EQ(plan.runs.size(), 1000u);
  const auto data = plan.prepare(0).data;
  std::filesystem::remove(folder / "data.npz");
  for (std::size_t i = 0; i < plan.runs.size(); i += 111) EXPECT_EQ(plan.prepare(i).data, data);
  const Json config = Json::parse(plan.prepare(5).config);
  EXPECT_EQ(config.at("init").at("seed"), 6);
  EXPECT_FALSE(config.at("data").contains("generator"));
  EXPECT_EQ(config.at("data").at("path"), (folder / "data.npz").string());
}

TEST(PreparedRuns, TakeArraysFromFiles) {
  const TemporaryFolder folder;
  const std::vector<double> values{1, 0, 0, 0, 1, 0, 0, 0, 0};
  save_npy(folder / "A.npy", Array({3, 3}, std::span(values)));
  save_npy(folder / "p0.npy", Array({3}, std::span(values).first(3)));
  save_npy(folder / "short.npy", Array({2}, std::span(values).first(2)));
  const SweepPlan plan = test::parsed_sweep(R"(
[data]
generator = "multi-input"
[train]
params = "prompt"
key_weights = "A.npy"
steps = 3
[grid]
init = ["zero", "file:p0.npy", "file:short.npy"]
)",
                                            folder.path());
  const PreparedRun zero = plan.prepare(0), given = plan.prepare(1);
  EXPECT_EQ(std::get<Prompt>(zero.model->parameterization()).key_weights(1, 1), 1);
  EXPECT_EQ(std::get<Prompt>(zero.model->parameterization()).key_weights(2, 2), 0);
  EXPECT_EQ(given.descent.init.given.p(0), 1);
  EXPECT_EQ(zero.descent.init.given.p.size(), 0);
  EXPECT_EQ(Json::parse(given.config).at("init").at("file").at("path"), (folder / "p0.npy").string());
  expect_bad_input({"run 2", "p"}, [&] { plan.prepare(2); });
}

TEST(PreparedRuns, AFileThatIsNoDatasetIsAnErrorOfThatRun) {
  const TemporaryFolder folder;
  const std::vector<double> values{1, 2};
  save_npy(folder / "data.npz", Array({2}, std::span(values)));
  const SweepPlan plan = test::parsed_sweep("[data]\nfile = \"data.npz\"\n", folder.path());
  expect_bad_input({"run 0", "data.npz"}, [&] { plan.prepare(0); });
  expect_bad_input({"run 0", "data.npz"},
                   [&] { plan.prepare(0); });  // again, and not from a memory of the failure
}

TEST(Commands, NameWhatDiffersFromTheDefaults) {
  const SweepPlan plan =
      test::parsed_sweep("[data]\nseed = 7\n[train]\np = 1.5\nnormalized = true\nsteps = 10\n");
  EXPECT_EQ(commands_of(plan, 0),
            (std::vector<std::string>{
                "attmirror generate --kind sphere --samples 6 --tokens 8 --dim 10 --seed 7 --min-tokens 0 "
                "--queries 1 --query-from draw -o data.npz",
                "attmirror train data.npz --p 1.5 --lr 0.1 --normalized --steps 10"}));
  const TemporaryFolder folder;
  save_dataset(folder / "it's.npz", generate(find_generator("sphere"), {}));
  const SweepPlan file = test::parsed_sweep(
      "[data]\nfile = \"it's.npz\"\n[train]\noptimizer = \"steepest\"\nnorm = 1\nnormalized = false\n",
      folder.path());
  const std::vector<std::string> commands = commands_of(file, 0);
  ASSERT_EQ(commands.size(), 1u);
  EXPECT_TRUE(commands[0].starts_with("attmirror train '" + folder.path().string() +
                                      "/it'\\''s.npz' --optimizer steepest"));
  EXPECT_TRUE(commands[0].find(" --unnormalized ") != std::string::npos) << commands[0];
}

}  // namespace
}  // namespace attmirror::test
