// The loop: laws of the papers, same bits whatever the threads and the pauses, stop rules, nothing allocated.
#include "support/files.hpp"
#include "support/golden.hpp"
#include "support/random_data.hpp"
#include "support/same_bits.hpp"
#include "support/size.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/descent/descend.hpp>
#include <attmirror/mirror/direction.hpp>

#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::expect_bad_input;
using test::same_bits;

testing::AssertionResult same_run(const DescentRun& a, const DescentRun& b) {
  if (a.status != b.status || a.steps != b.steps || a.records.size() != b.records.size())
    return testing::AssertionFailure() << a.steps << " and " << b.steps << " steps, " << a.records.size()
                                       << " and " << b.records.size() << " records";
  for (std::size_t r = 0; r < a.records.size(); ++r) {
    const Record &x = a.records[r], &y = b.records[r];
    if (x.step != y.step) return testing::AssertionFailure() << "steps " << x.step << " and " << y.step;
    for (const auto& same : {same_bits(x.loss, y.loss), same_bits(x.max_softmax, y.max_softmax),
                             same_bits(x.norm, y.norm), same_bits(x.parameters, y.parameters)})
      if (!same) return testing::AssertionFailure() << "record " << r << ": " << same.message();
  }
  if (a.selected != b.selected) return testing::AssertionFailure() << "other tokens are selected";
  for (const auto& same : {same_bits(a.loss, b.loss), same_bits(a.last(), b.last())})
    if (!same) return testing::AssertionFailure() << "at the end: " << same.message();
  return testing::AssertionSuccess();
}

// Mirror descent with p = 2 is gradient descent, bit for bit.
TEST(Descend, MirrorDescentAtP2IsGradientDescent) {
  const Dataset data = generate(SphereData{});
  for (const bool normalized : {false, true})
    for (const EpsPolicy eps : {EpsPolicy::exact, EpsPolicy::paper})
      for (const Parameterization& form :
           {Parameterization{W{}}, Parameterization{KQ{3}}, Parameterization{Prompt{}}}) {
        const Attention model(data, form);
        DescentOptions options{.steps = 300};
        options.init = {.kind = InitKind::uniform, .seed = 4};
        const DescentRun md =
            descend(model, MirrorDescent{.p = 2, .lr = 0.1, .normalized = normalized, .eps = eps}, options);
        const DescentRun gd =
            descend(model, GradientDescent{.lr = 0.1, .normalized = normalized, .eps = eps}, options);
        EXPECT_TRUE(same_run(md, gd)) << to_string(form);
      }
}

// P2's lemma: gradient descent on a prompt p with step eta and on W with z_i = u for all i and step
// eta / |u|^2 run in parallel: W(k) = p(k) u^T / |u|^2 (our W is the transpose of P2's).
TEST(Descend, PromptAndWeightsRunInParallel) {
  const Dataset base = generate(SphereData{.samples = 5, .tokens = 6, .dim = 4, .seed = 2});
  const Vector u = test::random_matrix(4, 1, 7);
  DatasetArrays arrays;
  arrays.tokens = base.all_tokens().eigen();
  arrays.lengths.assign(5, 6);
  arrays.queries = Vector::Ones(5) * u.transpose();
  arrays.labels.assign(base.labels().begin(), base.labels().end());
  arrays.decoder = base.decoder().eigen().transpose();
  const Dataset data(arrays);
  const Attention prompt(data, Prompt{}), weights(data);
  const Vector p0 = test::random_matrix(4, 1, 8);
  DescentOptions options{.steps = 1000, .record = RecordSchedule::every(100)};
  options.init.given.p = p0;
  const DescentRun by_prompt = descend(prompt, GradientDescent{.lr = 0.5}, options);
  options.init.given = Parameters{};
  options.init.given.W = p0 * u.transpose() / u.squaredNorm();
  const DescentRun by_weights = descend(weights, GradientDescent{.lr = 0.5 / u.squaredNorm()}, options);
  ASSERT_EQ(by_prompt.records.size(), by_weights.records.size());
  for (std::size_t r = 0; r < by_prompt.records.size(); ++r) {
    const Matrix expected = by_prompt.records[r].parameters.p * u.transpose() / u.squaredNorm();
    EXPECT_LT((by_weights.records[r].parameters.W - expected).norm(), 1e-12 * expected.norm());
  }
  EXPECT_GT((by_prompt.last().p - p0).norm(), 0.1);
}

// Normalised descent grows like (eta k)^{1/(p-1)}.
TEST(Descend, NormLawOfNormalizedSteps) {
  if (test::reduced_size) GTEST_SKIP() << "tens of thousands of steps";
  const test::GoldenRuns golden(test::fixture("golden_local.npz"));
  const Dataset data = golden.data(0);
  const Attention model(data);
  struct Law {
    double p;
    std::int64_t steps;
  };
  for (const Law& law : {Law{1.75, 10'000}, Law{2, 10'000}, Law{3, 10'000}}) {
    const DescentRun run =
        descend(model, MirrorDescent{.p = law.p, .lr = 0.1, .normalized = true}, {.steps = law.steps});
    const double predicted = std::pow(0.1 * static_cast<double>(law.steps), 1 / (law.p - 1));
    EXPECT_NEAR(run.norm / predicted, 1.0, 0.01) << "p = " << law.p;
  }
}

// Plain descent grows like ||W^mm||_p log k. The slope approaches its limit from below, slower for
// larger p.
TEST(Descend, NormLawOfPlainSteps) {
  if (test::reduced_size) GTEST_SKIP() << "millions of steps";
  const test::GoldenRuns golden(test::fixture("golden_local.npz"));
  const Dataset data = golden.data(0);
  const Attention model(data);
  struct Law {
    double p;
    const char* tag;
    std::int64_t steps;
    double least;
  };
  for (const Law& law :
       {Law{1.75, "p1_75", 400'000, 0.95}, Law{2, "p2", 1'000'000, 0.93}, Law{3, "p3", 400'000, 0.80}}) {
    const DescentRun run =
        descend(model, MirrorDescent{.p = law.p, .lr = 1},
                {.steps = law.steps, .record = RecordSchedule::at({100, 10'000, law.steps / 4})});
    ASSERT_EQ(run.selected.tokens, golden.selected(law.tag, 0));
    const double solution_norm = lp_norm(golden.solution(law.tag, 0), law.p);
    const double slope = (run.norm - run.records[2].norm) / std::log(4.0) / solution_norm;
    EXPECT_GT(slope, law.least) << "p = " << law.p;
    EXPECT_LT(slope, 1.0) << "p = " << law.p;
    if (law.p == 2) {
      EXPECT_NEAR(run.records[0].norm, 2.756, 1e-3);
      EXPECT_NEAR(run.records[1].norm, 16.356, 1e-3);
      EXPECT_NEAR(run.norm, 27.973, 1e-3);
    }
  }
}

TEST(Descend, FastAndGeneralPowersGiveTheSameRun) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  for (const double p : {1.1, 4.0 / 3.0, 1.5, 1.75, 2.0, 3.0, 4.0}) {
    MirrorDescent rule{.p = p, .lr = 0.1, .normalized = true};
    const DescentOptions options{.steps = 100};
    const DescentRun fast = descend(model, rule, options);
    rule.power_path = PowerPath::general;
    const DescentRun general = descend(model, rule, options);
    EXPECT_LT(test::relative_error(fast.last().W, general.last().W), 1e-8) << p;
    EXPECT_EQ(fast.selected, general.selected) << p;
  }
}

TEST(Descend, HasTheSameBitsForAnyNumberOfThreads) {
  const Dataset data = test::ragged_data(250, 64, 48, 5);
  const Attention model(data, W{}, Logistic{}, {.train = {Block::W, Block::v}});
  const MirrorDescent rule{.p = 1.75, .lr = 0.1, .normalized = true};
  DescentOptions options{.steps = 15};
  options.init = {.kind = InitKind::normal, .std = 0.5, .seed = 3};
  const DescentRun one = descend(model, rule, options);
  for (const int threads : {2, 8}) {
    options.threads = threads;
    EXPECT_TRUE(same_run(one, descend(model, rule, options))) << threads;
  }
}

TEST(Descend, ResumesWithTheSameBits) {
  const Dataset data = generate(SphereData{});
  for (const Optimizer& optimizer : {Optimizer{MirrorDescent{.p = 3, .lr = 0.1, .normalized = true}},
                                     Optimizer{MirrorDescent{.p = 1.1, .lr = 0.1, .normalized = true}},
                                     Optimizer{GradientDescent{.lr = 0.3}}}) {
    const Attention model(data, W{}, Logistic{}, {.train = {Block::W, Block::v}});
    DescentOptions options{.steps = 700};
    options.init = {.kind = InitKind::normal, .seed = 9};
    const DescentRun whole = descend(model, optimizer, options);
    for (const std::int64_t pause : {0, 1, 10, 333, 700}) {
      DescentOptions part = options;
      part.steps = pause;
      Descent first(model, optimizer, part);
      first.run();
      const Checkpoint checkpoint = first.checkpoint();
      EXPECT_EQ(checkpoint.step, pause);
      EXPECT_TRUE(same_run(whole, Descent(model, optimizer, options, checkpoint).run())) << pause;
    }
  }
}

TEST(Descend, RefusesForeignCheckpoints) {
  const Dataset data = generate(SphereData{}), other = generate(SphereData{.seed = 2});
  const Attention model(data);
  const MirrorDescent rule{.p = 3};
  Descent run(model, rule, {.steps = 5});
  run.run();
  const Checkpoint checkpoint = run.checkpoint();
  expect_bad_input({"another optimizer", "p = 3", "p = 2"},
                   [&] { Descent(model, MirrorDescent{.p = 2}, {}, checkpoint); });
  const Attention foreign(other), kq(data, KQ{});
  expect_bad_input({"another dataset"}, [&] { Descent(foreign, rule, {}, checkpoint); });
  expect_bad_input({"another model", "KQ"}, [&] { Descent(kq, rule, {}, checkpoint); });
  Checkpoint broken = checkpoint;
  broken.state.clear();
  expect_bad_input({"lacks", "dual"}, [&] { Descent(model, rule, {}, broken); });
  expect_bad_input({"at step 5", "0 to 4"}, [&] { Descent(model, rule, {.steps = 4}, checkpoint); });
  broken = checkpoint;
  broken.seconds = NAN;
  expect_bad_input({"seconds are nan"}, [&] { Descent(model, rule, {}, broken); });
  broken = checkpoint;
  broken.weights.W(0, 0) = NAN;
  expect_bad_input({"W[0,0] is nan"}, [&] { Descent(model, rule, {}, broken); });
}

TEST(Descend, StopRules) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  const MirrorDescent rule{.p = 2, .lr = 0.1, .normalized = true};
  const DescentRun saturated = descend(model, rule, {.steps = 100'000, .saturation = 0.99});
  EXPECT_EQ(saturated.status, RunStatus::saturated);
  EXPECT_GE(saturated.max_softmax, 0.99);
  EXPECT_LT(saturated.steps, 1000);
  EXPECT_EQ(saturated.records.back().step, saturated.steps);

  const DescentRun timed =
      descend(model, rule, {.steps = std::numeric_limits<std::int64_t>::max(), .max_seconds = 0.05});
  EXPECT_EQ(timed.status, RunStatus::out_of_time);
  EXPECT_GE(timed.seconds, 0.05);
  EXPECT_LT(timed.seconds, 5);

  const DescentRun none = descend(model, rule, {.steps = 0});
  EXPECT_EQ(none.status, RunStatus::completed);
  EXPECT_EQ(none.steps, 0);
  EXPECT_TRUE(none.last().W.isZero(0));
  EXPECT_EQ(none.records.size(), 1u);

  int pulses = 0;
  const StopRequest stop = StopRequest::make();
  const auto second_pulse_asks = [&](const Descent& run) {
    EXPECT_GT(run.step(), 0);
    if (++pulses == 2) stop.request();
  };
  const DescentRun stopped = descend(model, rule, {.steps = std::numeric_limits<std::int64_t>::max()},
                                     {.on_pulse = second_pulse_asks, .stop = stop});
  EXPECT_EQ(stopped.status, RunStatus::interrupted);
  EXPECT_EQ(pulses, 2);
}

// From another thread, without a callback: noticed within a tenth of a second, and not a step is lost or added.
TEST(Descend, AStopFromAnotherThreadEndsTheRunBetweenSteps) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  const MirrorDescent rule{.p = 3, .lr = 0.1, .normalized = true};
  const StopRequest stop = StopRequest::make();
  std::chrono::steady_clock::time_point asked;
  std::thread asker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    asked = std::chrono::steady_clock::now();
    stop.request();
  });
  Descent descent(model, rule, {.steps = std::numeric_limits<std::int64_t>::max()});
  const DescentRun run = descent.run({.stop = stop});
  const auto noticed = std::chrono::steady_clock::now();
  asker.join();
  EXPECT_EQ(run.status, RunStatus::interrupted);
  EXPECT_GT(run.steps, 0);
  EXPECT_LT(noticed - asked, std::chrono::seconds(1));  // a tenth, on a machine that has nothing else to do

  const DescentRun alone = descend(model, rule, {.steps = run.steps});
  EXPECT_TRUE(test::same_bits(run.last().W, alone.last().W));
  Descent rest(model, rule, {.steps = run.steps + 100}, descent.checkpoint());
  EXPECT_TRUE(
      test::same_bits(rest.run().last().W, descend(model, rule, {.steps = run.steps + 100}).last().W));
}

TEST(Descend, AStopThatCameBeforeTheRunEndsItAtItsStart) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  const StopRequest stop = StopRequest::make();
  stop.request();
  const DescentRun run = descend(model, MirrorDescent{}, {.steps = 1000}, {.stop = stop});
  EXPECT_EQ(run.status, RunStatus::interrupted);
  EXPECT_EQ(run.steps, 0);
}

// What a record asks for is noticed before the next step, and the run goes on from there with the same records.
TEST(Descend, AStopByARecordEndsTheRunAtThatRecord) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  const MirrorDescent rule{.p = 3, .lr = 0.1, .normalized = true};
  const DescentOptions options{.steps = 1000, .record = RecordSchedule::every(10)};
  const StopRequest stop = StopRequest::make();
  Descent descent(model, rule, options);
  const DescentRun run = descent.run({.on_record =
                                          [&](const Record& record) {
                                            if (record.step == 500) stop.request();
                                          },
                                      .stop = stop});
  EXPECT_EQ(run.status, RunStatus::interrupted);
  EXPECT_EQ(run.steps, 500);
  EXPECT_EQ(run.records.back().step, 500);
  const DescentRun rest = Descent(model, rule, options, descent.checkpoint()).run();
  const DescentRun whole = descend(model, rule, options);
  EXPECT_TRUE(test::same_bits(rest.last().W, whole.last().W));
  ASSERT_EQ(rest.records.size(), whole.records.size());
  EXPECT_EQ(rest.records[50].step, whole.records[50].step);
  EXPECT_EQ(rest.records[51].step, whole.records[51].step);
}

// With W and v both growing, slopes and gaps of 1e20 meet in one exponent; the weights of the sequences survive it.
TEST(Descend, JointTrainingNearP1DoesNotDiverge) {
  for (const double p : {1.1, 1.05})
    for (const Dataset& data : {generate(JointData{}), generate(SphereData{})}) {
      const Attention model(data, W{}, Logistic{}, {.train = {Block::W, Block::v}});
      const DescentRun run =
          descend(model, MirrorDescent{.p = p, .lr = 0.1, .normalized = true}, {.steps = 5000});
      EXPECT_EQ(run.status, RunStatus::completed) << p << ", step " << run.steps;
      EXPECT_EQ(run.max_softmax, 1.0);
    }
}

TEST(Descend, AZeroGradientMovesNothing) {
  DatasetArrays arrays;
  arrays.tokens = Matrix::Identity(3, 3);
  arrays.lengths = {3};
  arrays.queries = Matrix::Ones(1, 3);
  arrays.labels = {1};
  arrays.decoder = Vector::Zero(3);
  const Dataset data(arrays);
  const Attention model(data);
  for (const EpsPolicy eps : {EpsPolicy::exact, EpsPolicy::paper}) {
    const MirrorDescent rule{.p = 3, .normalized = true, .eps = eps, .eps_value = 0};
    const DescentRun run = descend(model, rule, {.steps = 10});
    EXPECT_EQ(run.status, RunStatus::completed);
    EXPECT_TRUE(run.last().W.isZero(0));
  }
}

// Near p = 1 the weights grow like (eta k)^{1/(p-1)} and leave the doubles: the run says when.
TEST(Descend, ReportsDivergence) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  const DescentRun run =
      descend(model, MirrorDescent{.p = 1.01, .lr = 10, .normalized = true}, {.steps = 100'000});
  EXPECT_EQ(run.status, RunStatus::diverged);
  EXPECT_GT(run.steps, 10);
  EXPECT_LT(run.steps, 100'000);
  EXPECT_TRUE(run.selected.tokens.empty());
  EXPECT_TRUE(std::isfinite(run.records.back().loss));
}

TEST(Descend, RecordsWhatTheScheduleAsksFor) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  std::vector<std::int64_t> seen;
  const DescentRun run = descend(model, MirrorDescent{},
                                 {.steps = 25, .record = RecordSchedule::every(10), .keep = Keep::metrics},
                                 {.on_record = [&](const Record& record) { seen.push_back(record.step); }});
  EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 10, 20, 25}));
  EXPECT_FALSE(run.records.back().scheduled);
  EXPECT_TRUE(run.records[2].scheduled);
  EXPECT_EQ(run.records.front().parameters.W.size(), 0);
}

TEST(Descend, RefusesBadOptions) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  expect_bad_input({"p is 1"}, [&] { descend(model, MirrorDescent{.p = 1}); });
  expect_bad_input({"p is nan"}, [&] { descend(model, MirrorDescent{.p = NAN}); });
  expect_bad_input({"lr is 0"}, [&] { descend(model, MirrorDescent{.lr = 0}); });
  expect_bad_input({"lr is -1"}, [&] { descend(model, GradientDescent{.lr = -1}); });
  expect_bad_input({"eps_value is -1"}, [&] { descend(model, GradientDescent{.eps_value = -1}); });
  expect_bad_input({"steps is -1"}, [&] { descend(model, MirrorDescent{}, {.steps = -1}); });
  expect_bad_input({"saturation is 1.5"}, [&] { descend(model, MirrorDescent{}, {.saturation = 1.5}); });
  expect_bad_input({"seconds is nan"}, [&] { descend(model, MirrorDescent{}, {.max_seconds = NAN}); });
  DescentOptions options;
  options.init.given.W = Matrix::Zero(3, 3);
  expect_bad_input({"W has shape (3, 3)"}, [&] { descend(model, MirrorDescent{}, options); });
  options.init.given = Parameters{};
  options.init.given.K = Matrix::Zero(10, 10);
  expect_bad_input({"initial K", "W has no such block"}, [&] { descend(model, MirrorDescent{}, options); });
  const Attention kq(data, KQ{});
  expect_bad_input({"K and Q both start at 0"}, [&] { descend(kq, MirrorDescent{}); });
  options.init = {.kind = InitKind::normal, .std = -1};
  expect_bad_input({"std", "-1"}, [&] { descend(model, MirrorDescent{}, options); });
}

TEST(Initialization, IsSeededPerBlock) {
  const Dataset data = generate(SphereData{});
  const Attention model(data, KQ{4});
  const Parameters a = initial_parameters(model, {.kind = InitKind::uniform, .seed = 1});
  const Parameters b = initial_parameters(model, {.kind = InitKind::uniform, .seed = 1});
  const Parameters c = initial_parameters(model, {.kind = InitKind::uniform, .seed = 2});
  EXPECT_TRUE(same_bits(a, b));
  EXPECT_NE(a.K, c.K);
  EXPECT_NE(a.K, a.Q);
  EXPECT_LE(a.K.cwiseAbs().maxCoeff(), 1 / std::sqrt(10.0));
  EXPECT_GT(a.K.cwiseAbs().maxCoeff(), 0.8 / std::sqrt(10.0));
  const Attention w(data);
  const Parameters n = initial_parameters(w, {.kind = InitKind::normal, .std = 2, .seed = 1});
  EXPECT_NEAR(n.W.norm() / 10, 2, 0.4);
  EXPECT_EQ(n.v, data.decoder().eigen().transpose());
}

}  // namespace
}  // namespace attmirror
