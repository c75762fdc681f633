// Whole trainings against one that is written as the formulas read, in long double: the engine over blocks, the one
// that streams, the one chosen by size, and lanes. A few random ones by default; 500 where ATTMIRROR_NIGHTLY is 1.
// (That lanes have the bits of single runs is the matter of lanes_test.cpp, 5,000 trainings each time.)
#include "attention/reference.hpp"
#include "support/nightly.hpp"
#include "sweep/lane_cases.hpp"

#include <cmath>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::Real;
using test::RealMatrix;

RealMatrix signed_powers(const RealMatrix& m, Real exponent) {
  return m.unaryExpr(
      [=](Real x) { return x == 0 ? Real(0) : std::copysign(std::pow(std::fabs(x), exponent), x); });
}

// Whether some query attends to one token but for 1e-6. From there on the textbook Jacobian of the reference loses its
// digits, and a gradient divided by its norm has none left.
bool is_saturated(const Attention& model, const Parameters& at) {
  for (std::ptrdiff_t j = 0; j < model.data().total_queries(); ++j) {
    const test::RealVector a = test::reference_logits(model, at, j);
    const Real sum = (a.array() - a.maxCoeff()).exp().sum();
    if (!(sum - 1 > 1e-6L)) return true;
  }
  return false;
}

struct PlainTraining {
  std::int64_t steps = 0;
  RealMatrix
      image;  // grad psi(W): a small difference of it stays small in every entry, which is not so of W for p > 2
};

// y <- y - lr g, w = (grad psi)^-1(y), g divided by its dual norm where that is asked for; until attention saturates.
PlainTraining train_plainly(const Attention& model, const MirrorDescent& rule, const Parameters& start,
                            std::int64_t most_steps) {
  Parameters at = start;
  const Real p = rule.p, q = p / (p - 1);
  PlainTraining training{0, signed_powers(start.W.cast<Real>(), p - 1)};
  while (training.steps < most_steps && !is_saturated(model, at)) {
    RealMatrix g = test::reference_gradient(model, at).W;
    if (rule.normalized) g /= std::pow(g.cwiseAbs().array().pow(q).sum(), 1 / q);
    training.image -= Real(rule.lr) * g;
    at.W = signed_powers(training.image, 1 / (p - 1)).cast<double>();
    ++training.steps;
  }
  return training;
}

struct RandomTraining {
  LaneCase holder;
  MirrorDescent rule;
  Parameters start;
  std::string text;
};

RandomTraining random_training(std::uint64_t seed) {
  Draw draw(seed);
  RandomTraining training;
  const std::ptrdiff_t n = draw.whole(1, 8), T = draw.whole(2, 12), d = draw.whole(1, 12);
  DatasetArrays arrays;
  arrays.tokens = draw.matrix(n * T, d, 1);
  arrays.lengths.assign(static_cast<std::size_t>(n), T);
  arrays.queries = draw.matrix(n, d, 1);
  for (std::ptrdiff_t i = 0; i < n; ++i) arrays.labels.push_back(draw.once_in(2) ? 1 : -1);
  arrays.decoder = draw.matrix(d, 1, 1);
  training.holder.data.emplace_back(arrays);
  training.holder.models.emplace_back(training.holder.data.back());
  training.rule = {.p = draw.one_of({1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0}),
                   .lr = draw.power_of_ten(-2, -0.5),
                   .normalized = draw.once_in(2),
                   .jacobian = draw.one_of({Jacobian::safe, Jacobian::textbook})};
  training.start = training.holder.models.back().zero_parameters();
  training.start.W = draw.matrix(d, d, 0.5);
  DescentTask task;
  task.model = &training.holder.models.back();
  task.optimizer = training.rule;
  task.options.steps = draw.whole(1, 40);
  task.options.record = RecordSchedule::none();
  task.options.init.given = training.start;
  training.holder.tasks.push_back(task);
  training.text =
      fmt::format("seed {}: n = {}, T = {}, d = {}, p = {}, lr = {}, normalized {}, {} steps", seed, n, T, d,
                  training.rule.p, training.rule.lr, training.rule.normalized, task.options.steps);
  return training;
}

TEST(TrainingDifferential, EveryEngineFollowsTheFormulas) {
  constexpr double tolerance = 1e-8;  // some 40 steps, each of which may double an error
  const std::uint64_t count = test::nightly_count(40, 500);
  std::int64_t steps = 0;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    const RandomTraining training = random_training(seed);
    SCOPED_TRACE(training.text);
    DescentTask task = training.holder.tasks.front();
    const PlainTraining plain = train_plainly(*task.model, training.rule, training.start, task.options.steps);
    task.options.steps = plain.steps;
    steps += plain.steps;
    const auto error = [&](const DescentRun& run) {
      EXPECT_EQ(run.steps, plain.steps);
      const RealMatrix image = signed_powers(run.final_parameters.W.cast<Real>(), training.rule.p - 1);
      return static_cast<double>((image - plain.image).cwiseAbs().maxCoeff() /
                                 plain.image.cwiseAbs().maxCoeff());
    };
    for (const DataPath path : {DataPath::automatic, DataPath::block, DataPath::stream}) {
      DescentOptions options = task.options;
      options.path = path;
      EXPECT_LE(error(descend(*task.model, task.optimizer, options)), tolerance) << to_string(path);
    }
    EXPECT_LE(error(descend_in_lanes({&task, 1}).front()), tolerance) << "lanes";
  }
  EXPECT_GT(steps, static_cast<std::int64_t>(5 * count));  // not all saturate at once
}

}  // namespace
}  // namespace attmirror
