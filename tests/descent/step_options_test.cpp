// Momentum, schedules and Polyak's step against closed forms on f(w) = 1/2 sum a_j w_j^2.
#include "descent/plain_rules.hpp"
#include "support/files.hpp"
#include <attmirror/descent/step_options.hpp>

#include <cmath>
#include <complex>
#include <limits>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

class Quadratic : public ::testing::Test {
 protected:
  const Dataset data = generate(SphereData{});
  const Attention model{data, W{}, Logistic{}, {.train = {Block::W, Block::v}}};
  const Parameters start = random_parameters(model, 1, 5);

  static Matrix curvatures(const Matrix& w) {
    Matrix a(w.rows(), w.cols());
    for (Eigen::Index j = 0; j < a.size(); ++j) a.data()[j] = 0.05 + 0.031 * static_cast<double>(j);
    return a;
  }
  static Matrices gradients(const Matrices& weights) {
    Matrices result;
    for (const Matrix& w : weights) result.push_back(curvatures(w).cwiseProduct(w));
    return result;
  }
};

// w_{t+1} = (1 + beta - eta a) w_t - beta w_{t-1} with w_1 = (1 - eta a) w_0: c_1 r_1^t + c_2 r_2^t, r the roots of
// r^2 = (1 + beta - eta a) r - beta. Here eta = lr, times 1 - beta for an average.
double two_term_solution(double w0, double a, double eta, double beta, int t) {
  using Complex = std::complex<double>;
  const double half = (1 + beta - eta * a) / 2;
  const Complex root = std::sqrt(Complex(half * half - beta));
  const Complex r1 = half + root, r2 = half - root;
  const Complex c1 = (w0 * (1 - eta * a) - w0 * r2) / (r1 - r2);
  return (c1 * std::pow(r1, t) + (w0 - c1) * std::pow(r2, t)).real();
}

TEST_F(Quadratic, MomentumSolvesTheTwoTermRecurrence) {
  for (const MomentumKind kind : {MomentumKind::heavy_ball, MomentumKind::ema})
    for (const double beta : {0.0, 0.5, 0.9}) {
      const Momentum momentum{kind, beta};
      const double lr = 0.3, eta = kind == MomentumKind::ema ? lr * (1 - beta) : lr;
      for (const Optimizer& optimizer : {Optimizer{GradientDescent{.lr = lr, .momentum = momentum}},
                                         Optimizer{MirrorDescent{.lr = lr, .momentum = momentum}}}) {
        DrivenRule rule(optimizer, model, start);
        const Matrices before = rule.weights();
        for (int t = 1; t <= 100; ++t) {
          rule.step(gradients(rule.weights()));
          for (std::size_t b = 0; b < 2; ++b) {
            const Matrix w = rule.weight(b), a = curvatures(w);
            for (Eigen::Index j = 0; j < w.size(); ++j)
              ASSERT_NEAR(w.data()[j], two_term_solution(before[b].data()[j], a.data()[j], eta, beta, t),
                          1e-12 * std::abs(before[b].data()[j]))
                  << to_string(optimizer) << ", step " << t << ", a = " << a.data()[j];
          }
        }
      }
    }
}

// Steepest descent in l_2, not normalised, is gradient descent.
TEST_F(Quadratic, SteepestDescentInL2IsGradientDescent) {
  const Momentum momentum{MomentumKind::heavy_ball, 0.7};
  DrivenRule steepest(
      SteepestDescent{.norm = Norm::l(2), .lr = 0.2, .normalized = false, .momentum = momentum}, model,
      start);
  DrivenRule plain(GradientDescent{.lr = 0.2, .momentum = momentum}, model, start);
  for (int t = 0; t < 100; ++t) {
    steepest.step(gradients(steepest.weights()));
    plain.step(gradients(plain.weights()));
  }
  for (std::size_t b = 0; b < 2; ++b)
    EXPECT_LT((steepest.weight(b) - plain.weight(b)).cwiseAbs().maxCoeff(), 1e-13);
}

double half_square(const Matrices& weights) {
  double sum = 0;
  for (const Matrix& w : weights) sum += w.squaredNorm() / 2;
  return sum;
}

// On 1/2 |w|^2 Polyak's step is 1/2: all blocks halve, the value falls by 4.
TEST_F(Quadratic, PolyaksStepHalvesTheWayToTheMinimum) {
  for (const Optimizer& optimizer :
       {Optimizer{GradientDescent{.lr = 1, .schedule = {.kind = ScheduleKind::polyak}}},
        Optimizer{MirrorDescent{.lr = 1, .schedule = {.kind = ScheduleKind::polyak}}},
        Optimizer{SteepestDescent{
            .norm = Norm::l(2), .lr = 1, .normalized = false, .schedule = {.kind = ScheduleKind::polyak}}}}) {
    DrivenRule rule(optimizer, model, start);
    const Matrices before = rule.weights();
    for (int t = 1; t <= 60; ++t) {
      rule.step(rule.weights(), half_square(rule.weights()));
      for (std::size_t b = 0; b < 2; ++b)
        ASSERT_LT((rule.weight(b) - std::ldexp(1.0, -t) * before[b]).norm(),
                  1e-13 * std::ldexp(1.0, -t) * before[b].norm())
            << to_string(optimizer) << ", step " << t;
    }
  }
}

// With the right lower bound the same holds for 1/2 |w|^2 + 3; below the bound nothing moves; lr scales.
TEST_F(Quadratic, PolyaksStepKnowsItsLowerBound) {
  DrivenRule rule(GradientDescent{.lr = 0.5, .schedule = {.kind = ScheduleKind::polyak, .lower_bound = 3}},
                  model, start);
  const Matrices before = rule.weights();
  rule.step(before, half_square(before) + 3);
  for (std::size_t b = 0; b < 2; ++b)
    EXPECT_LT((rule.weight(b) - 0.75 * before[b]).norm(), 1e-14 * before[b].norm());
  const Matrices now = rule.weights();
  rule.step(now, 2.5);
  EXPECT_EQ(rule.weight(0), now[0]);
}

// The loss is still a number where the gradient is none, and blocks may have very different scales.
TEST_F(Quadratic, PolyaksStepIsRightBelowTheSmallestDouble) {
  DrivenRule rule(GradientDescent{.lr = 1, .schedule = {.kind = ScheduleKind::polyak}}, model, start);
  const Matrices before = rule.weights(), g = random_gradients(before, 1);
  const double loss = 1e-305;
  rule.step(g, {-710, -1500}, loss);  // |g| about 1e-307: its square is far below
  const Matrix expected = before[0] - loss * std::exp(355) * std::exp(355) / g[0].squaredNorm() * g[0];
  EXPECT_LT((rule.weight(0) - expected).norm(), 1e-12 * expected.norm());
  EXPECT_GT((rule.weight(0) - before[0]).norm(), 1);
  EXPECT_EQ(rule.weight(1), before[1]);

  DrivenRule even(GradientDescent{.lr = 1, .schedule = {.kind = ScheduleKind::polyak}}, model, start);
  even.step(g, {-710, -711}, loss);
  const double sum = g[0].squaredNorm() + g[1].squaredNorm() * std::exp(-2);
  const double factor = loss * std::exp(355) * std::exp(355) / sum;
  EXPECT_LT((even.weight(0) - (before[0] - factor * g[0])).norm(), 1e-12 * even.weight(0).norm());
  EXPECT_LT((even.weight(1) - (before[1] - factor * std::exp(-1) * g[1])).norm(),
            1e-12 * even.weight(1).norm());
}

TEST_F(Quadratic, PowerSchedulesShortenTheSteps) {
  const Schedule schedule{.kind = ScheduleKind::power, .exponent = 0.75};
  for (const Optimizer& optimizer : {Optimizer{SteepestDescent{.lr = 0.4, .schedule = schedule}},
                                     Optimizer{Adam{.lr = 0.4, .schedule = schedule}},
                                     Optimizer{MirrorDescent{.p = 3, .lr = 0.4, .schedule = schedule}}}) {
    DrivenRule rule(optimizer, model, model.zero_parameters());
    const Matrices g{Matrix::Ones(10, 10), Matrix::Ones(1, 10)};
    double way = 0;
    for (int t = 0; t < 30; ++t) {
      rule.step(g);
      way += 0.4 * std::pow(t + 1, -0.75);
      const double expected = std::holds_alternative<MirrorDescent>(optimizer) ? std::sqrt(way) : way;
      EXPECT_NEAR(rule.weight(0)(2, 3), -expected, 1e-13 * expected) << to_string(optimizer) << ", " << t;
    }
  }
}

TEST(StepOptions, ReadWhatTheyWrite) {
  for (const char* text : {"none", "heavy-ball:0.9", "ema:0.95", "ema:0"})
    EXPECT_EQ(to_string(parse_momentum(text)), text);
  EXPECT_EQ(to_string(parse_momentum("ema")), "ema:0.9");
  EXPECT_EQ(to_string(parse_momentum("heavy-ball")), "heavy-ball:0.9");
  for (const char* text : {"constant", "power:0.25", "polyak:0", "polyak:-1.5"})
    EXPECT_EQ(to_string(parse_schedule(text)), text);
  EXPECT_EQ(to_string(parse_schedule("power")), "power:0.5");
  EXPECT_EQ(to_string(parse_schedule("polyak")), "polyak:0");

  expect_bad_input({"momentum is \"nesterov\"", "heavy-ball:BETA"}, [] { parse_momentum("nesterov"); });
  expect_bad_input({"momentum is \"none:1\""}, [] { parse_momentum("none:1"); });
  expect_bad_input({"momentum is \"\""}, [] { parse_momentum(""); });
  expect_bad_input({"\"ema:\"", "number after the colon"}, [] { parse_momentum("ema:"); });
  expect_bad_input({"\"ema:0.9x\"", "number after the colon"}, [] { parse_momentum("ema:0.9x"); });
  expect_bad_input({"beta is 1:"}, [] { parse_momentum("ema:1"); });
  expect_bad_input({"beta is nan"}, [] { parse_momentum("heavy-ball:nan"); });
  expect_bad_input({"schedule is \"cosine\"", "power:EXPONENT"}, [] { parse_schedule("cosine"); });
  expect_bad_input({"schedule is \"constant:2\""}, [] { parse_schedule("constant:2"); });
  expect_bad_input({"exponent is -1"}, [] { parse_schedule("power:-1"); });
  expect_bad_input({"exponent is inf"}, [] { parse_schedule("power:inf"); });
  expect_bad_input({"lower bound is nan"}, [] { parse_schedule("polyak:nan"); });
}

}  // namespace
}  // namespace attmirror::test
