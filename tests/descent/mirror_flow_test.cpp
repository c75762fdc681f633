// The flow against closed forms, against plain steps, and against a law that it must conserve.
#include "support/files.hpp"
#include "support/same_bits.hpp"
#include <attmirror/data/generators.hpp>
#include <attmirror/descent/descend.hpp>
#include <attmirror/descent/mirror_flow.hpp>
#include <attmirror/margin/max_margin.hpp>
#include <attmirror/mirror/direction.hpp>

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

using test::expect_bad_input;

// Tokens 1 and 0, query and decoder 1, linear loss: L = -sigma(w), so dy/dt = 1 / (2 + 2 cosh w) from w = 0, which
// integrates to t = 2 w + 2 sinh w for p = 2 and to t = 2 w^2 + 4 (w sinh w - cosh w + 1) for p = 3.
Dataset one_number(double token) {
  DatasetArrays arrays;
  arrays.tokens.resize(2, 1);
  arrays.tokens << token, 0;
  arrays.lengths = {2};
  arrays.queries = Matrix::Constant(1, 1, 1.0);
  arrays.labels = {1};
  arrays.decoder = Vector::Constant(1, 1.0);
  return Dataset(arrays);
}

// log t of the closed form; for large w in logarithms, where e^w is beyond a double.
double log_time(double p, double w) {
  const double tail = std::exp(-2 * w);
  if (p == 2) return w + std::log1p(2 * w * std::exp(-w) - tail);
  return w + std::log(2 * w * w * std::exp(-w) + 2 * (w * (1 - tail) - (1 + tail) + 2 * std::exp(-w)));
}

TEST(MirrorFlow, FollowsClosedFormsOverAllTimes) {
  const Dataset data = one_number(1);
  const Attention model(data, W{}, LinearLoss{});
  for (const double p : {2.0, 3.0}) {
    const FlowRun run = mirror_flow(model, {.p = p, .times = log_times(1e-3, 1e300, 1), .tol = 1e-10});
    ASSERT_EQ(run.status, FlowStatus::completed);
    ASSERT_EQ(run.records.size(), 304u);
    for (const FlowRecord& record : run.records)
      EXPECT_NEAR(log_time(p, record.parameters.W(0, 0)), std::log(record.time),
                  2e-8 * (1 + std::log1p(record.time)))
          << "p " << p << ", t " << record.time;
    EXPECT_LT(run.evaluations, 20'000);
  }
}

TEST(MirrorFlow, ErrorFallsWithTheTolerance) {
  const Dataset data = one_number(1);
  const Attention model(data, W{}, LinearLoss{});
  double before = 1;
  for (const double tol : {1e-4, 1e-6, 1e-8, 1e-10}) {
    const FlowRun run = mirror_flow(model, {.times = {1e6}, .tol = tol});
    const double error = std::abs(log_time(2, run.last().W(0, 0)) - std::log(1e6));
    EXPECT_LT(error, 30 * tol);
    EXPECT_LT(error, before);
    before = error;
  }
}

// The flow after some plain steps is what plain steps go on to do. They part by 1/steps, not by lr.
TEST(MirrorFlow, GoesOnAsPlainStepsWould) {
  const Dataset data = generate(SphereData{.seed = 1});
  const Attention model(data);
  const std::vector<std::int64_t> steps{1000, 10'000, 50'000};
  for (const double p : {1.5, 1.75, 2.0, 3.0}) {
    const DescentRun plain = descend(model, MirrorDescent{.p = p, .lr = 1},
                                     {.steps = steps.back(), .record = RecordSchedule::at(steps)});
    const FlowRun flow = mirror_flow(model, {.p = p, .times = {1e3, 1e4, 5e4}, .plain_steps = 1000, .lr = 1});
    ASSERT_EQ(flow.status, FlowStatus::completed);
    EXPECT_EQ(flow.records[0].parameters.W,
              plain.records[0].parameters.W);  // to the bit: nothing has flowed yet
    EXPECT_EQ(flow.records[0].norm, plain.records[0].norm);
    for (const std::size_t r : {1u, 2u}) {
      const Matrix& expected = plain.records[r].parameters.W;
      EXPECT_LT((flow.records[r].parameters.W - expected).norm(), 1e-3 * expected.norm()) << p << " " << r;
      EXPECT_NEAR(flow.records[r].loss, plain.records[r].loss, 1e-6);
    }
    EXPECT_EQ(flow.selected, plain.selected);
    // And without plain steps they part at first, by lr.
    const FlowRun pure = mirror_flow(model, {.p = p, .times = {1e3}});
    const double apart = (pure.last().W - plain.records[0].parameters.W).norm();
    EXPECT_GT(apart, 1e-4 * pure.last().W.norm());
    EXPECT_LT(apart, 0.1 * pure.last().W.norm());
  }
}

// Independent code, plain steps at lr 1: |W| = 2.756, 16.356, 27.973 and D = .391, .0934, .0398 at 1e2, 1e4, 1e6.
TEST(MirrorFlow, ReproducesPlainDescentAtP2) {
  const Dataset data = generate(SphereData{.seed = 1});
  const Attention model(data);
  const FlowRun run = mirror_flow(model, {.times = {1e2, 1e4, 1e6, 1e12}, .plain_steps = 1000});
  const MarginSolution svm = max_margin(data, run.selected, Norm::frobenius());
  ASSERT_EQ(svm.status, MarginStatus::certified);
  const double norms[] = {2.756, 16.356, 27.973}, divergences[] = {0.391, 0.0934, 0.0398};
  for (const std::size_t r : {0u, 1u, 2u}) {
    EXPECT_NEAR(run.records[r].norm, norms[r], 1e-3);
    EXPECT_NEAR(directional_bregman(svm.W, run.records[r].parameters.W, 2), divergences[r],
                6e-4 * std::pow(0.1, r / 1.2));
  }
  // From there on |W| grows by |W_svm| for each unit of log t, to a few hundredths.
  EXPECT_NEAR((run.records[3].norm - run.records[2].norm) / std::log(1e6), svm.norm, 0.03 * svm.norm);
}

// In the flow of K and Q at p = 2, K^T K - Q^T Q never changes.
TEST(MirrorFlow, ConservesTheBalanceOfKAndQ) {
  EXPECT_TRUE(rc::check([] {
    const auto seed = *rc::gen::inRange<std::uint64_t>(1, 1000);
    const auto rank = *rc::gen::inRange<std::ptrdiff_t>(1, 5);
    const Dataset data = generate(SphereData{.samples = 3, .tokens = 4, .dim = 5, .seed = seed});
    const Attention model(data, KQ{rank});
    MirrorFlow flow{.times = {10, 1e5}, .tol = 1e-9};
    flow.init = {.kind = InitKind::normal, .std = 0.5, .seed = seed};
    const Parameters start = initial_parameters(model, flow.init);
    const FlowRun run = mirror_flow(model, flow);
    RC_ASSERT(run.status == FlowStatus::completed);
    const auto balance = [](const Parameters& at) -> Matrix {
      return at.K.transpose() * at.K - at.Q.transpose() * at.Q;
    };
    const double size = run.last().K.squaredNorm() + run.last().Q.squaredNorm();
    RC_ASSERT((balance(run.last()) - balance(start)).norm() <= 1e-6 * size);
    RC_ASSERT((run.last().K - start.K).norm() > 0.01);
  }));
}

TEST(MirrorFlow, OtherGeometriesAgreeWithShortSteps) {
  const Dataset data = generate(SphereData{.samples = 3, .tokens = 4, .dim = 5, .seed = 2});
  const Attention model(data);
  for (const Geometry geometry : {Geometry::schatten, Geometry::hyperbolic_entropy}) {
    const DescentRun plain =
        descend(model, MirrorDescent{.p = 1.5, .lr = 1e-3, .geometry = geometry}, {.steps = 50'000});
    const FlowRun flow = mirror_flow(model, {.p = 1.5, .geometry = geometry, .times = {50}});
    ASSERT_EQ(flow.status, FlowStatus::completed);
    EXPECT_LT((flow.last().W - plain.last().W).norm(), 3e-3 * plain.last().W.norm()) << to_string(geometry);
    EXPECT_NEAR(flow.records[0].norm, plain.norm, 3e-3 * plain.norm);
  }
}

TEST(MirrorFlow, SameBitsForAnyThreadsAndMetricsAlone) {
  const Dataset data = generate(SphereData{.samples = 300, .tokens = 20, .dim = 16});
  const Attention model(data);
  MirrorFlow flow{.p = 1.75, .times = {1, 100}, .plain_steps = 3, .threads = 1};
  const FlowRun one = mirror_flow(model, flow);
  flow.threads = 3;
  const FlowRun three = mirror_flow(model, flow);
  EXPECT_TRUE(test::same_bits(one.last().W, three.last().W));
  EXPECT_EQ(one.records[1].loss, three.records[1].loss);
  EXPECT_EQ(one.evaluations, three.evaluations);
  flow.keep = Keep::metrics;
  EXPECT_EQ(mirror_flow(model, flow).records[1].parameters.W.size(), 0);
}

TEST(MirrorFlow, EndsEarlyWithAStatus) {
  const Dataset data = generate(SphereData{.seed = 1});
  const Attention model(data);
  const FlowRun few = mirror_flow(model, {.times = {1, 1e12}, .max_evaluations = 200});
  EXPECT_EQ(few.status, FlowStatus::out_of_evaluations);
  EXPECT_LE(few.evaluations, 200);
  EXPECT_EQ(few.records.size(), 1u);
  EXPECT_GT(few.time, 1);
  EXPECT_EQ(summary(few).find("out_of_evaluations at time"), 0u);

  // In the flow, or in the steps before it: what was recorded stays, and the weights are those of the time reached.
  const StopRequest stop = StopRequest::make();
  stop.request();
  for (const std::int64_t plain_steps : {0, 5}) {
    const FlowRun none =
        mirror_flow(model, {.times = {0, 1e12}, .plain_steps = plain_steps, .lr = 0.1, .stop = stop});
    EXPECT_EQ(none.status, FlowStatus::interrupted);
    EXPECT_EQ(none.records.size(), 1u);
    EXPECT_EQ(none.time, 0);
    EXPECT_TRUE(none.last().W.isZero(0));
  }
  EXPECT_EQ(to_string(FlowStatus::interrupted), "interrupted");

  // The decoder of a linear loss grows like 10 t, beyond what a double holds.
  const Dataset large = one_number(10);
  const Attention joint(large, W{}, LinearLoss{}, {.train = {Block::W, Block::v}});
  const FlowRun run = mirror_flow(joint, {.times = {1e3, 1.7e308}});
  EXPECT_EQ(run.status, FlowStatus::diverged);
  EXPECT_EQ(run.records.size(), 1u);
  EXPECT_TRUE(run.selected.tokens.empty());
}

TEST(MirrorFlow, AZeroGradientMovesNothing) {
  DatasetArrays arrays;
  arrays.tokens = Matrix::Identity(3, 4);
  arrays.lengths = {3};
  arrays.queries = Matrix::Constant(1, 4, 1.0);
  arrays.labels = {1};
  arrays.decoder = Vector::Zero(4);
  const Dataset data(arrays);
  const Attention model(data);
  const FlowRun run = mirror_flow(model, {.p = 3, .times = {1e9}});
  EXPECT_EQ(run.status, FlowStatus::completed);
  EXPECT_TRUE(run.last().W.isZero(0));
}

TEST(MirrorFlow, RefusesWhatIsWrong) {
  expect_bad_input({"times is empty"}, [] { MirrorFlow{}.validate(); });
  expect_bad_input({"times[1] is 1 after 1"}, [] { MirrorFlow{.times = {1, 1}}.validate(); });
  expect_bad_input({"times[0] is -1"}, [] { MirrorFlow{.times = {-1}}.validate(); });
  expect_bad_input({"times[0] is nan"}, [] { MirrorFlow{.times = {std::nan("")}}.validate(); });
  expect_bad_input({"p is 1"}, [] { MirrorFlow{.p = 1, .times = {1}}.validate(); });
  expect_bad_input({"tol is 0"}, [] { MirrorFlow{.times = {1}, .tol = 0}.validate(); });
  expect_bad_input({"plain_steps is -1"}, [] { MirrorFlow{.times = {1}, .plain_steps = -1}.validate(); });
  expect_bad_input({"lr is 0"}, [] { MirrorFlow{.times = {1}, .lr = 0}.validate(); });
  expect_bad_input({"max_evaluations is 0"},
                   [] { MirrorFlow{.times = {1}, .max_evaluations = 0}.validate(); });
  expect_bad_input({"threads is -1"}, [] { MirrorFlow{.times = {1}, .threads = -1}.validate(); });
  expect_bad_input({"times from 0 to 1"}, [] { log_times(0, 1); });
  expect_bad_input({"per_decade is 0"}, [] { log_times(1, 10, 0); });
}

TEST(LogTimes, HaveBothEndsAndWholePowersOfTen) {
  EXPECT_EQ(log_times(1, 1e3, 1), (std::vector<double>{1, 10, 100, 1000}));
  EXPECT_EQ(log_times(5, 5), std::vector<double>{5});
  const std::vector<double> times = log_times(1, 1e12, 10);
  EXPECT_EQ(times.size(), 121u);
  EXPECT_EQ(times[60], 1e6);
  EXPECT_EQ(log_times(2, 30, 1), (std::vector<double>{2, 20, 30}));
}

}  // namespace
}  // namespace attmirror
