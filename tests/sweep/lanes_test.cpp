// Runs in lanes against descend(): the same bits in every lane, whatever its neighbours do.
#include "sweep/lane_cases.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/isa.hpp>
#include <attmirror/data/generators.hpp>

#include <functional>
#include <limits>
#include <map>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

DescentRun alone(const DescentTask& task) { return descend(*task.model, task.optimizer, task.options); }

// Compares a group in lanes with descend() of each. Returns how the runs ended.
std::map<RunStatus, int> expect_same_bits(const LaneCase& group, const LaneOptions& options,
                                          std::uint64_t seed) {
  std::map<RunStatus, int> ends;
  const std::vector<DescentRun> runs = descend_in_lanes(group.tasks, options);
  EXPECT_EQ(runs.size(), group.tasks.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(difference(runs[i], alone(group.tasks[i])), "")
        << "seed " << seed << ", lane " << i << " of width " << options.width << ": "
        << lane_group(group.tasks[i]);
    ++ends[runs[i].status];
  }
  return ends;
}

// The papers' size; all tasks of one group, each with data of its own.
LaneCase sphere_runs(std::int64_t count, const Optimizer& optimizer, const DescentOptions& options) {
  LaneCase runs;
  for (std::int64_t k = 0; k < count; ++k) {
    runs.data.push_back(generate(SphereData{.seed = static_cast<std::uint64_t>(k + 1)}));
    runs.models.emplace_back(runs.data.back());
    runs.tasks.push_back({&runs.models.back(), optimizer, options});
  }
  return runs;
}

constexpr MirrorDescent cubic{.p = 3, .lr = 0.1, .normalized = true};

TEST(Lanes, RandomTrainingsHaveTheBitsOfSingleRuns) {
  std::int64_t configurations = 0;
  std::map<RunStatus, int> ends;
  for (std::uint64_t seed = 1; configurations < 5000 && !HasFailure(); ++seed) {
    Draw draw(seed);
    LaneGroup group = draw_group(draw);
    group.steps = draw.one_of<std::int64_t>({1, 60, 60, 60});
    if (draw.once_in(20)) group.steps = 500;
    std::ptrdiff_t width = 1;
    while (2 * width <= lane_width() && !draw.once_in(3)) width *= 2;
    LaneCase tasks;
    for (std::int64_t count = draw.whole(1, width); count > 0; --count) add_task(tasks, group, draw);
    for (const auto& [status, runs] : expect_same_bits(tasks, {.width = width}, seed)) ends[status] += runs;
    configurations += static_cast<std::int64_t>(tasks.tasks.size());
  }
  // The draw is worth something only if runs end in all ways.
  EXPECT_GT(ends[RunStatus::completed], 1000);
  EXPECT_GT(ends[RunStatus::saturated], 100);
  EXPECT_GT(ends[RunStatus::diverged], 10);
}

TEST(Lanes, LongRunsOfThePapersSizeHaveTheBitsOfSingleRuns) {
  for (const double p : {1.1, 1.5, 1.75, 1.9, 2.0, 3.0})
    expect_same_bits(
        sphere_runs(lane_width(), MirrorDescent{.p = p, .lr = 0.1, .normalized = true}, {.steps = 3000}), {},
        static_cast<std::uint64_t>(100 * p));
}

TEST(Lanes, ARunDoesNotDependOnItsNeighboursOrTheWidth) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Draw draw(seed);
    LaneGroup group = draw_group(draw);
    LaneCase first;
    add_task(first, group, draw);
    const DescentRun reference = descend_in_lanes(first.tasks, {.width = 1}).front();
    for (std::ptrdiff_t width = 1; width <= lane_width(); width *= 2) {
      LaneCase others;
      for (std::ptrdiff_t k = 1; k < width; ++k) add_task(others, group, draw);
      std::vector<DescentTask> tasks = others.tasks;
      const auto place = static_cast<std::size_t>(draw.whole(0, width - 1));
      tasks.insert(tasks.begin() + static_cast<std::ptrdiff_t>(place), first.tasks.front());
      EXPECT_EQ(difference(descend_in_lanes(tasks, {.width = width})[place], reference), "")
          << "seed " << seed << ", width " << width;
    }
  }
}

TEST(Lanes, NeighboursThatDivergeAtOnceDisturbNobody) {
  // A start so large that the logits overflow in the first evaluation, and a step so large that the next one does.
  for (const bool normalized : {false, true}) {
    LaneCase runs = sphere_runs(lane_width(), MirrorDescent{.p = 1.5, .lr = 0.1, .normalized = normalized},
                                {.steps = 200});
    Parameters huge = runs.models[0].zero_parameters();
    huge.W.setConstant(std::numeric_limits<double>::max());
    huge.v = Vector();
    runs.tasks[0].options.init.given = huge;
    if (runs.tasks.size() > 2) std::get<MirrorDescent>(runs.tasks[2].optimizer).lr = 1e300;
    const std::vector<DescentRun> results = descend_in_lanes(runs.tasks);
    EXPECT_EQ(results[0].status, RunStatus::diverged);
    EXPECT_EQ(results[0].steps, 0);
    EXPECT_TRUE(results[0].selected.tokens.empty());
    EXPECT_EQ(results[1].status, RunStatus::completed);
    if (results.size() > 2) {
      EXPECT_EQ(results[2].status, RunStatus::diverged);
      EXPECT_GT(results[2].steps, 0);
    }
    expect_same_bits(runs, {}, 0);
  }
}

TEST(Lanes, EachLaneStopsAtItsOwnStep) {
  LaneCase runs = sphere_runs(lane_width(), cubic, {.record = RecordSchedule::every(50)});
  for (std::size_t k = 0; k < runs.tasks.size(); ++k) {
    runs.tasks[k].options.steps = static_cast<std::int64_t>(37 * k);
    if (k % 3 == 1) {
      runs.tasks[k].options.steps = 5000;
      runs.tasks[k].options.saturation = 0.6;
    }
  }
  const std::vector<DescentRun> results = descend_in_lanes(runs.tasks);
  EXPECT_EQ(results[0].steps, 0);
  EXPECT_EQ(results[0].records.size(), 1u);
  EXPECT_EQ(results[1].status, RunStatus::saturated);
  EXPECT_LT(results[1].steps, 5000);
  EXPECT_GE(results[1].max_softmax, 0.6);
  expect_same_bits(runs, {}, 0);
}

TEST(Lanes, TinyGradientsAreScaledAsInASingleRun) {
  // Scores of about 1e-70, and an exponent 11 of the dual norm: every sum of powers underflows.
  LaneCase runs;
  for (std::int64_t k = 0; k < lane_width(); ++k) {
    Draw draw(static_cast<std::uint64_t>(k + 1));
    DatasetArrays arrays;
    arrays.tokens = draw.matrix(12, 5, k % 2 == 0 ? 1e-69 : 1.0);
    arrays.lengths = {4, 4, 4};
    arrays.queries = draw.matrix(3, 5, 1e-69);
    arrays.labels = {1, -1, 1};
    arrays.decoder = draw.matrix(5, 1, k % 3 == 0 ? 1e-69 : 1.0);
    runs.data.emplace_back(arrays);
    runs.models.emplace_back(runs.data.back());
    runs.tasks.push_back({&runs.models.back(), MirrorDescent{.p = 1.1, .lr = 0.5, .normalized = true},
                          DescentOptions{.steps = 40}});
  }
  expect_same_bits(runs, {}, 0);

  // Weights so large that attention is one-hot: under the textbook Jacobian the gradient is the losers' probability,
  // down to denormal numbers.
  for (const double p : {1.1, 1.9, 2.0, 3.0})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      LaneCase large = sphere_runs(
          lane_width(), MirrorDescent{.p = p, .lr = 0.5, .normalized = true, .jacobian = Jacobian::textbook},
          {.steps = 3, .init = {.kind = InitKind::normal, .std = 500}});
      for (DescentTask& task : large.tasks) task.options.init.seed = seed++;
      expect_same_bits(large, {}, seed);
    }
}

TEST(Lanes, AStopEndsAllRunsAsInterrupted) {
  LaneCase runs = sphere_runs(lane_width(), cubic, {.steps = 100'000'000});
  runs.tasks[0].options.steps = 10;
  std::int64_t steps = 0;
  const StopRequest stop = StopRequest::make();
  const auto ask = [&](std::int64_t now) {
    steps = now;
    stop.request();
  };
  const std::vector<DescentRun> results = descend_in_lanes(runs.tasks, {.on_pulse = ask, .stop = stop});
  EXPECT_EQ(results[0].status, RunStatus::completed);
  std::int64_t sum = 0;
  double seconds = 0;
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (k > 0) {
      EXPECT_EQ(results[k].status, RunStatus::interrupted);
      EXPECT_EQ(results[k].steps, results.back().steps);
      EXPECT_FALSE(results[k].selected.tokens.empty());
      // What was interrupted is a run of so many steps.
      DescentTask same = runs.tasks[k];
      same.options.steps = results[k].steps;
      EXPECT_EQ(difference(results[k].final_parameters, alone(same).final_parameters), "");
    }
    sum += results[k].steps;
    seconds += results[k].seconds;
  }
  EXPECT_GT(steps, 0);
  EXPECT_EQ(steps, sum);
  EXPECT_GT(seconds, 0.09);
}

TEST(Lanes, PulsesChangeNothing) {
  LaneCase runs = sphere_runs(2, cubic, {.steps = 200'000});
  std::vector<std::int64_t> pulses;
  const auto results =
      descend_in_lanes(runs.tasks, {.on_pulse = [&](std::int64_t steps) { pulses.push_back(steps); }});
  EXPECT_TRUE(std::ranges::is_sorted(pulses));
  EXPECT_EQ(difference(results[1], descend_in_lanes(runs.tasks)[1]), "");
}

// ---- what cannot run in lanes
// --------------------------------------------------------------------------------------

class OwnLoss final : public CustomLoss {
 public:
  std::string name() const override { return "own"; }
  double value(double margin) const override { return -margin; }
  double log_abs_derivative(double) const override { return 0; }
};

class OwnHead final : public CustomHead {
 public:
  std::string name() const override { return "own"; }
  double evaluate(std::span<const double>, std::span<double> gradient) const override {
    std::ranges::fill(gradient, 0.0);
    return 0;
  }
};

TEST(Lanes, EachReasonAgainstALaneIsNamed) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  const auto reason = [&](const Attention& m, const Optimizer& optimizer = MirrorDescent{},
                          const DescentOptions& options = {}) {
    return why_not_in_lanes({&m, optimizer, options});
  };
  EXPECT_EQ(reason(model), "");
  EXPECT_EQ(reason(model, GradientDescent{}), "");
  EXPECT_EQ(reason(model, MirrorDescent{.geometry = Geometry::schatten}), "the geometry schatten");
  EXPECT_EQ(reason(model, MirrorDescent{.geometry = Geometry::hyperbolic_entropy}), "the geometry entropy");
  const Momentum heavy{.kind = MomentumKind::heavy_ball};
  EXPECT_EQ(reason(model, MirrorDescent{.momentum = heavy}), "momentum");
  EXPECT_EQ(reason(model, GradientDescent{.momentum = heavy}), "momentum");
  EXPECT_EQ(reason(model, SteepestDescent{}), "steepest descent");
  EXPECT_EQ(reason(model, Adam{}), "Adam");
  EXPECT_EQ(reason(model, Lion{}), "Lion");
  EXPECT_EQ(reason(model, AdaGrad{}), "AdaGrad");
  EXPECT_EQ(reason(model, MirrorDescent{}, {.max_seconds = 1}), "a limit of time");
  EXPECT_EQ(reason(model, MirrorDescent{}, {.storage = TokenStorage::float32}), "tokens stored as float32");
  EXPECT_EQ(reason(model, MirrorDescent{}, {.path = DataPath::stream}), "the data path stream");
  EXPECT_EQ(reason(Attention(data, W{}, std::make_shared<const OwnLoss>())), "a custom loss");
  EXPECT_EQ(reason(Attention(data, W{}, Logistic{}, {.head = std::make_shared<const OwnHead>()})),
            "a custom head");

  const Dataset ragged = generate(SphereData{.min_tokens = 2});
  EXPECT_EQ(reason(Attention(ragged)), "sequences of different lengths");
  const Dataset many = generate(SphereData{.queries = 3});
  EXPECT_EQ(reason(Attention(many)), "several queries per sequence");
  const Dataset causal =
      with_causal_mask(generate(SphereData{.query_from = SphereData::QueryFrom::last_token}));
  EXPECT_EQ(reason(Attention(causal)), "a mask");
  const Dataset self = generate(SphereData{.query_from = SphereData::QueryFrom::first_token});
  EXPECT_EQ(reason(Attention(self)), "");
  const Dataset large = generate(SphereData{.samples = 400});
  EXPECT_EQ(reason(Attention(large)), "data of more than one block");
  const Dataset larger = generate(SphereData{.samples = 2048, .tokens = 16, .dim = 32});
  EXPECT_EQ(reason(Attention(larger)), "the data path stream");
  EXPECT_THROW(why_not_in_lanes({}), Error);
}

TEST(Lanes, GroupsDifferInAllThatDecidesTheOperations) {
  const Dataset data = generate(SphereData{}), other = generate(SphereData{.seed = 9});
  const Dataset longer = generate(SphereData{.tokens = 9});
  const Attention model(data);
  const auto group = [](const Attention& m, const Optimizer& optimizer = MirrorDescent{},
                        const DescentOptions& options = {}) {
    return lane_group({&m, optimizer, options});
  };
  const std::string own = group(model);
  // These may differ.
  EXPECT_EQ(group(Attention(other)), own);
  EXPECT_EQ(group(model, MirrorDescent{.lr = 7}), own);
  EXPECT_EQ(group(model, MirrorDescent{},
                  {.steps = 3, .saturation = 0.9, .record = RecordSchedule::none(), .keep = Keep::metrics}),
            own);
  EXPECT_EQ(group(model, MirrorDescent{}, {.init = {.kind = InitKind::normal, .seed = 3}}), own);
  // These may not.
  std::vector<std::string> groups{own};
  groups.push_back(group(Attention(longer)));
  groups.push_back(group(Attention(data, KQ{})));
  groups.push_back(group(Attention(data, KQ{.rank = 3})));
  groups.push_back(group(Attention(data, Prompt{})));
  groups.push_back(group(Attention(data, Prompt{.key_weights = Matrix::Identity(10, 10)})));
  groups.push_back(group(Attention(data, W{}, Exponential{})));
  groups.push_back(group(Attention(data, W{}, LinearLoss{})));
  groups.push_back(group(Attention(data, W{}, Sigmoid{})));
  groups.push_back(group(Attention(data, W{}, Logistic{}, {.train = {Block::W, Block::v}})));
  groups.push_back(group(Attention(data, W{}, Logistic{}, {.head = QuadraticHead{.lambda = 0.5}})));
  groups.push_back(group(Attention(data, W{}, Logistic{}, {.head = QuadraticHead{.lambda = 0.25}})));
  groups.push_back(group(Attention(data, W{}, Logistic{}, {.head = ReluHead{Matrix::Ones(10, 2)}})));
  groups.push_back(group(Attention(data, W{}, Logistic{}, {.head = ReluHead{Matrix::Ones(10, 3)}})));
  groups.push_back(group(Attention(data, W{}, Logistic{}, {.scaled = true})));
  groups.push_back(group(Attention(data, W{}, Logistic{}, {.penalty = 0.1})));
  groups.push_back(group(model, GradientDescent{}));
  groups.push_back(group(model, MirrorDescent{.p = 3}));
  groups.push_back(group(model, MirrorDescent{.p = 3, .power_path = PowerPath::general}));
  groups.push_back(group(model, MirrorDescent{.normalized = true}));
  groups.push_back(group(model, MirrorDescent{.eps = EpsPolicy::paper}));
  groups.push_back(group(model, MirrorDescent{.eps = EpsPolicy::paper, .eps_value = 1e-8}));
  groups.push_back(group(model, MirrorDescent{.jacobian = Jacobian::textbook}));
  groups.push_back(group(model, MirrorDescent{.schedule = {.kind = ScheduleKind::power}}));
  std::ranges::sort(groups);
  EXPECT_EQ(std::ranges::adjacent_find(groups), groups.end()) << *std::ranges::adjacent_find(groups);
  EXPECT_THROW(group(model, Adam{}), Error);
}

TEST(Lanes, WrongCallsAreRefused) {
  LaneCase runs = sphere_runs(lane_width() + 1, cubic, {.steps = 2});
  const std::span<const DescentTask> all = runs.tasks;
  EXPECT_THROW(descend_in_lanes({}), Error);
  EXPECT_THROW(descend_in_lanes(all), Error);
  const std::span<const DescentTask> two = all.first(2);
  EXPECT_NO_THROW(descend_in_lanes(two));
  EXPECT_THROW(descend_in_lanes(two, {.width = 1}), Error);
  EXPECT_THROW(descend_in_lanes(two, {.width = 3}), Error);
  EXPECT_THROW(descend_in_lanes(two, {.width = -1}), Error);
  EXPECT_THROW(descend_in_lanes(two, {.width = 16}), Error);
  if (lane_width() < 8) {
    EXPECT_THROW(descend_in_lanes(two, {.width = 8}), Error);
  }
  const auto message = [](const std::vector<DescentTask>& tasks) -> std::string {
    try {
      descend_in_lanes(tasks);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  std::vector<DescentTask> tasks(two.begin(), two.end());
  tasks[1].model = nullptr;
  EXPECT_EQ(message(tasks), "tasks[1].model is null");
  tasks[1] = all[1];
  tasks[1].optimizer = MirrorDescent{.p = 2};
  EXPECT_NE(message(tasks).find("tasks[1] is of another group than tasks[0]"), std::string::npos);
  tasks[1].optimizer = MirrorDescent{.p = 0.5};
  EXPECT_NE(message(tasks).find("p is 0.5"), std::string::npos);
  tasks[1].optimizer = Adam{};
  EXPECT_EQ(message(tasks), "tasks[1] cannot run in a lane: Adam");
  tasks[1] = all[1];
  tasks[1].options.steps = -1;
  EXPECT_NE(message(tasks).find("steps is -1"), std::string::npos);
  // What descend() refuses when the run starts, lanes refuse, too.
  const Attention keys(runs.data[0], KQ{});
  EXPECT_NE(message({{&keys, cubic, {}}}).find("K and Q both start at 0"), std::string::npos);
  const Attention linear(runs.data[0], W{}, LinearLoss{});
  EXPECT_NE(
      message({{&linear, GradientDescent{.schedule = {.kind = ScheduleKind::polyak}}, {}}}).find("polyak"),
      std::string::npos);
}

TEST(Lanes, TheWidthIsThatOfTheInstructionSet) {
  const std::ptrdiff_t expected = active_isa() == Isa::avx512 ? 8 : active_isa() == Isa::avx2 ? 4 : 2;
  EXPECT_EQ(lane_width(), expected);
}

TEST(Lanes, StandStillWhereASingleRunDoes) {
  DatasetArrays arrays;
  const Dataset one = generate(SphereData{.samples = 1, .tokens = 7, .dim = 9, .seed = 5});
  arrays.tokens.resize(14, 9);
  arrays.tokens << one.all_tokens().eigen(), one.all_tokens().eigen();
  arrays.queries.resize(2, 9);
  arrays.queries << one.queries().eigen(), one.queries().eigen();
  arrays.lengths = {7, 7};
  arrays.labels = {1, -1};
  arrays.decoder = one.decoder().eigen().row(0).transpose();
  const Dataset data(arrays);
  const Attention model(data, W{}, LinearLoss{});
  const Optimizer optimizer = MirrorDescent{.p = 3, .lr = 0.1, .normalized = true};
  const DescentOptions options{.steps = 20, .init = {.kind = InitKind::normal, .std = 0.3, .seed = 3}};
  const DescentTask task{&model, optimizer, options};
  const std::vector<DescentTask> tasks(2, task);  // as many as every instruction set has lanes for
  const DescentRun single = alone(task);
  EXPECT_EQ(single.last().W, initial_parameters(model, options.init).W);
  for (const DescentRun& run : descend_in_lanes(tasks, {})) EXPECT_EQ(difference(run, single), "");
}

}  // namespace
}  // namespace attmirror
