// Paths against brute force where the ball has two dimensions, against the conditions of optimality where it has
// more, and against max-margin directions far out.
#include "support/random_data.hpp"
#include "support/same_bits.hpp"
#include <attmirror/attention/gradient.hpp>
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/descent/descend.hpp>
#include <attmirror/descent/regularization_path.hpp>
#include <attmirror/margin/max_margin.hpp>
#include <attmirror/margin/support.hpp>
#include <attmirror/mirror/direction.hpp>

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

// The least loss of a prompt in the plane over a fine grid of the ball ||p|| <= R.
double least_loss_of_prompt(const Attention& model, double radius, double p) {
  ThreadPool pool(1);
  GradientEngine engine(model, Jacobian::safe, pool);
  ParameterBlocks blocks(model.blocks());
  Parameters parameters = model.zero_parameters();
  double least = std::numeric_limits<double>::infinity();
  for (const double share : {0.25, 0.5, 0.75, 0.9, 1.0})
    for (int k = 0; k < 20'000; ++k) {
      const double angle = 2 * std::numbers::pi * k / 20'000;
      parameters.p(0) = std::cos(angle);
      parameters.p(1) = std::sin(angle);
      parameters.p *= share * radius / lp_norm(parameters.p, p);
      blocks.assign(parameters);
      least = std::min(least, engine.evaluate(blocks).loss);
    }
  return least;
}

Dataset plane_data(std::uint64_t seed) {
  return generate(SphereData{.samples = 3, .tokens = 4, .dim = 2, .seed = seed});
}

TEST(RegularizationPath, FindsTheLeastLossOfAllInThePlane) {
  for (const double p : {1.5, 2.0, 3.0})
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const Dataset data = plane_data(seed);
      const Attention model(data, Prompt{});
      const RegularizationPath path =
          regularization_path(model, {.norm = Norm::l(p), .radii = {0.5, 3, 20}, .starts = 12});
      ASSERT_EQ(path.points.size(), 3U);
      for (const PathPoint& point : path.points) {
        SCOPED_TRACE(::testing::Message() << "p " << p << ", seed " << seed << ", R " << point.radius);
        const double least = least_loss_of_prompt(model, point.radius, p);
        EXPECT_LE(point.loss, least + 1e-7);
        if (point.status != PointStatus::converged) continue;  // the least loss is inside
        EXPECT_NEAR(lp_norm(point.parameters.p, p), point.radius, 1e-9 * point.radius);
        EXPECT_GE(point.loss, least - 1e-4);  // what a grid may miss
      }
    }
}

// With d = 1 the ball is an interval: the loss at its ends and on a grid between.
TEST(RegularizationPath, OfOneNumberIsTheBetterEndOfTheInterval) {
  const Dataset data = generate(SphereData{.samples = 3, .tokens = 3, .dim = 1, .seed = 2});
  const Attention model(data);
  const RegularizationPath path = regularization_path(model, {.radii = {0.1, 1}});
  for (const PathPoint& point : path.points) {
    Parameters other = point.parameters;
    other.W = -other.W;
    EXPECT_DOUBLE_EQ(std::abs(point.parameters.W(0, 0)), point.radius);
    EXPECT_LE(point.loss, loss_and_gradient(model, other).loss);
  }
}

// -grad L = c grad ||W|| with c > 0, from the plain gradient: at R = 8 nothing underflows yet.
TEST(RegularizationPath, EndsWhereTheGradientIsNormalToTheBall) {
  const Dataset data = generate(SphereData{.samples = 4, .tokens = 5, .dim = 4, .seed = 3});
  const Attention model(data);
  for (const double p : {1.3, 2.0, 2.5, 3.0}) {
    const RegularizationPath path =
        regularization_path(model, {.norm = Norm::l(p), .radii = {8}, .starts = 2, .tol = 1e-12});
    const PathPoint& point = path.points.at(0);
    ASSERT_EQ(point.status, PointStatus::converged) << p << ", gap " << point.gap;
    const Matrix gradient = loss_and_gradient(model, point.parameters).gradient.W;
    const Matrix& W = point.parameters.W;
    EXPECT_NEAR(lp_norm(W, p), 8, 1e-11);
    const Matrix normal = W.array().sign() * W.array().abs().pow(p - 1);
    EXPECT_LE(1 - correlation(-gradient, normal), 1e-10) << p;
  }
}

TEST(RegularizationPath, LossFallsWithTheRadius) {
  const Dataset data = generate(SphereData{.seed = 5});
  const Attention model(data);
  const RegularizationPath path = regularization_path(model, {.radii = geometric_radii(0.5, 50, 12)});
  EXPECT_TRUE(path.converged());
  for (std::size_t k = 1; k < path.points.size(); ++k)
    EXPECT_LT(path.points[k].loss, path.points[k - 1].loss) << k;
}

// W_R / R tends to the max-margin direction; the angle falls like 1/R, so 1 - cos falls like 1/R^2.
TEST(RegularizationPath, TendsToTheMaxMarginDirection) {
  const Dataset data = generate(SphereData{.seed = 1});
  const Attention model(data);
  for (const double p : {1.1, 1.75, 2.0, 3.0}) {
    const MarginSolution svm = max_margin(data, optimal_tokens(data), Norm::l(p));
    ASSERT_EQ(svm.status, MarginStatus::certified);
    const RegularizationPath path =
        regularization_path(model, {.norm = Norm::l(p), .radii = geometric_radii(10, 1e3, 5), .starts = 0});
    ASSERT_TRUE(path.converged()) << p;
    EXPECT_EQ(path.points[4].selected, optimal_tokens(data));
    const double far = directional_bregman(svm.W, path.points[4].parameters.W, p);
    const double near = directional_bregman(svm.W, path.points[3].parameters.W, p);
    EXPECT_LE(far, p < 1.5 ? 1e-3 : 1e-4) << p;
    EXPECT_NEAR(std::log10(near / far), 1.0, 0.35) << p;  // radii differ by sqrt(10)
  }
}

TEST(RegularizationPath, NormsNearFrobeniusGiveNearlyItsPath) {
  const Dataset data = generate(SphereData{.samples = 4, .tokens = 5, .dim = 4, .seed = 3});
  const Attention model(data);
  PathOptions options{.radii = {2, 20}, .starts = 0, .tol = 1e-12};
  const RegularizationPath path = regularization_path(model, options);
  for (const Norm& norm : {Norm::l(2 - 1e-7), Norm::l(2 + 1e-7), Norm::schatten(2 - 1e-7)}) {
    options.norm = norm;
    const RegularizationPath other = regularization_path(model, options);
    ASSERT_TRUE(other.converged());
    for (std::size_t k = 0; k < 2; ++k) {
      const Matrix &a = path.points[k].parameters.W, &b = other.points[k].parameters.W;
      EXPECT_LE((a - b).norm(), 1e-4 * a.norm()) << to_string(norm) << " at " << path.points[k].radius;
    }
  }
}

// |K|^2 + |Q|^2 <= 2R is ||K Q^T||_* <= R: W = K Q^T must be optimal in the nuclear ball, where a direction of any rank
// could be better.
TEST(RegularizationPath, OfKeysAndQueriesIsThatOfTheNuclearBall) {
  const Dataset data = generate(SphereData{.samples = 4, .tokens = 5, .dim = 4, .seed = 3});
  const Attention factored(data, KQ{}), whole(data);
  const RegularizationPath path = regularization_path(
      factored, {.norm = Norm::nuclear(), .radii = {2, 6, 12}, .starts = 3, .tol = 1e-13});
  ASSERT_EQ(path.points.size(), 3U);
  for (const PathPoint& point : path.points) {
    ASSERT_EQ(point.status, PointStatus::converged) << point.gap;
    const Matrix W = combined_weights(point.parameters);
    EXPECT_NEAR(norm(W, Norm::nuclear()), point.radius, 1e-5 * point.radius);
    EXPECT_NEAR(point.parameters.K.squaredNorm() + point.parameters.Q.squaredNorm(), 2 * point.radius,
                1e-9 * point.radius);
    Parameters weights = whole.zero_parameters();
    weights.W = W;
    const Matrix gradient = loss_and_gradient(whole, weights).gradient.W;
    const double gap = 1 + gradient.cwiseProduct(W).sum() / (point.radius * norm(gradient, Norm::spectral()));
    EXPECT_NEAR(gap, 0, 1e-4) << point.radius;
  }
}

TEST(RegularizationPath, HasTheSameBitsForAnyNumberOfThreads) {
  const Dataset data = generate(SphereData{.samples = 4, .tokens = 5, .dim = 4, .seed = 3});
  const Attention model(data);
  PathOptions options{.norm = Norm::l(1.75), .radii = {1, 10, 100}, .starts = 5, .seed = 9};
  const RegularizationPath one = regularization_path(model, options);
  options.threads = 3;
  const RegularizationPath three = regularization_path(model, options);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_TRUE(test::same_bits(one.points[k].parameters.W, three.points[k].parameters.W));
    EXPECT_EQ(one.points[k].start, three.points[k].start);
    EXPECT_EQ(one.points[k].evaluations, three.points[k].evaluations);
  }
}

// Tokens that training ends with though they are not optimal: far out the local path of their solution keeps them.
// Closer in, a better token that is almost a support token is no longer suppressed, and the solution ceases to exist:
// for seed 2, whose better token has a margin of 1.005, below R = 3000.
TEST(RegularizationPath, LocalPathsStayWithTheirTokens) {
  int tested = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Dataset data = generate(SphereData{.seed = seed});
    const Attention model(data);
    const DescentRun run = descend(model, GradientDescent{.lr = 0.1, .normalized = true},
                                   {.steps = 2000, .init = {.kind = InitKind::normal, .seed = seed}});
    if (run.selected == optimal_tokens(data) || run.max_softmax < 0.9999) continue;
    const MarginSolution svm = max_margin(data, run.selected, Norm::frobenius());
    if (svm.status != MarginStatus::certified) continue;
    const Vector v = data.decoder().eigen().transpose();
    if (!local_optimality(data, run.selected, constraints(data, AttentionSvm{run.selected}), svm.support,
                          linear_scores(data, v))
             .holds)
      continue;
    Parameters start;
    start.W = svm.W;
    const RegularizationPath path = regularization_path(
        model, {.radii = geometric_radii(1e3, 1e5, 3), .kind = PathKind::local, .given = {start}});
    ++tested;
    EXPECT_EQ(to_string(path.points[2].selected), to_string(run.selected)) << seed;
    EXPECT_TRUE(path.converged()) << seed;
    EXPECT_LE(1 - correlation(svm.W, path.points[2].parameters.W), 1e-7) << seed;
    if (seed == 2) {
      EXPECT_NE(path.points[0].selected, run.selected);
    }
  }
  EXPECT_GE(tested, 3);
}

// P2: with all three inputs supporting the decoder's margin the prompt tends to (4, 1), else to the relaxed solution
// (1, 0); the decoder to (0, 1) both times.
TEST(RegularizationPath, JointPathsTendToTheRelaxedProblemWhereItIsNotTight) {
  using Margin = JointPromptData::LabelMargin;
  for (const Margin margin : {Margin::tight, Margin::slack}) {
    const Dataset data = generate(JointPromptData{margin});
    const Attention model(data, Prompt{}, Logistic{}, {.train = {Block::p, Block::v}});
    const RegularizationPath path = regularization_path(model, {.radii = {10, 100, 1000}, .starts = 2});
    ASSERT_TRUE(path.converged());
    Matrix expected(2, 1), decoder(2, 1);
    expected << (margin == Margin::tight ? 4 : 1), (margin == Margin::tight ? 1 : 0);
    decoder << 0, 1;
    const PathPoint& last = path.points.back();
    EXPECT_LE(1 - correlation(expected, last.parameters.p), 1e-6);
    EXPECT_LE(1 - correlation(decoder, last.parameters.v), 1e-6);
    EXPECT_NEAR(last.parameters.v.norm(), 1000, 1e-6);
    EXPECT_DOUBLE_EQ(last.decoder_radius, 1000);
  }
}

TEST(RegularizationPath, RadiusOfTheDecoderFollowsItsRelation) {
  const Dataset data = generate(JointPromptData{});
  const Attention model(data, Prompt{}, Logistic{}, {.train = {Block::p, Block::v}});
  const RegularizationPath path =
      regularization_path(model, {.radii = {4, 16}, .decoder_scale = 3, .decoder_power = 0.5, .starts = 1});
  EXPECT_NEAR(path.points[0].parameters.v.norm(), 6, 1e-9);
  EXPECT_NEAR(path.points[1].parameters.v.norm(), 12, 1e-9);
}

// The quadratic head keeps several tokens: the loss has a finite minimiser, and large balls contain it.
TEST(RegularizationPath, SaysThatTheLeastLossIsInside) {
  const Dataset data = generate(OrthonormalData{.seed = 1});
  const Attention model(data, W{}, Logistic{}, {.head = QuadraticHead{2}});
  const RegularizationPath path =
      regularization_path(model, {.radii = {1e3}, .starts = 1, .max_evaluations = 2000});
  EXPECT_EQ(path.points.at(0).status, PointStatus::inside) << path.points.at(0).gap;
  EXPECT_FALSE(path.converged());
}

TEST(RegularizationPath, StopsWhenAsked) {
  const Dataset data = generate(SphereData{.samples = 60, .tokens = 40, .dim = 30, .seed = 1});
  const Attention model(data);
  int calls = 0, points = 0;
  const StopRequest stop = StopRequest::make();
  const RegularizationPath path =
      regularization_path(model, {.norm = Norm::l(1.3), .radii = geometric_radii(1, 1e4, 60)},
                          {.on_point = [&](const PathPoint&) { ++points; },
                           .on_progress =
                               [&](double share) {
                                 EXPECT_GE(share, 0);
                                 EXPECT_LE(share, 1);
                                 if (++calls == 2) stop.request();
                               },
                           .stop = stop});
  EXPECT_TRUE(path.interrupted);
  EXPECT_FALSE(path.converged());
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(path.points.size(), static_cast<std::size_t>(points));
  EXPECT_LT(points, 60);
}

TEST(RegularizationPath, ReadsRadii) {
  const std::vector<double> radii = parse_radii("1:1e3:4");
  ASSERT_EQ(radii.size(), 4U);
  EXPECT_NEAR(radii[1], 10, 1e-12);
  EXPECT_EQ(radii[3], 1e3);
  EXPECT_EQ(parse_radii("0.5,2,7"), (std::vector<double>{0.5, 2, 7}));
  for (const char* wrong :
       {"", "1:10", "1:10:1", "10:1:3", "0:1:3", "1:10:2.5", "1:10:x", "1,,2", "1,b", "nan:1:2"})
    EXPECT_THROW(parse_radii(wrong), Error) << wrong;
}

template <class Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "no error";
}

TEST(RegularizationPath, RefusesWhatDoesNotFit) {
  const Dataset data = generate(SphereData{.samples = 2, .tokens = 3, .dim = 2, .seed = 1});
  const Attention model(data), factored(data, KQ{});
  const auto refusal = [](const Attention& of, const PathOptions& options) {
    return message_of([&] { regularization_path(of, options); });
  };
  EXPECT_EQ(refusal(model, {.norm = Norm::nuclear()}),
            "the norm is nuclear: expected l_p or Schatten-p with 1 < p < infinity; paths of the nuclear "
            "norm are those "
            "of (K,Q)");
  EXPECT_EQ(refusal(factored, {}), "the norm is 2: paths of (K,Q) are those of the nuclear norm of K Q^T");
  EXPECT_EQ(refusal(model, {.radii = {1, 1}}), "radii[1] is 1 after 1: expected ascending radii");
  EXPECT_EQ(refusal(model, {.radii = {-1}}), "radii[0] is -1: expected a number in (0, 1e12]");
  EXPECT_EQ(refusal(model, {.kind = PathKind::local}),
            "a local path has 0 directions to start from: expected 1");
  EXPECT_EQ(refusal(model, {.tol = 0}), "tol is 0: expected 1e-14 to 1");
  Parameters wrong;
  wrong.K = Matrix::Ones(2, 2);
  EXPECT_EQ(refusal(model, {.given = {wrong}}), "a start gives K, but parameterization W has no such block");
}

TEST(RegularizationPath, FactorsAreBalanced) {
  const Matrix W = test::random_matrix(4, 4, 7);
  const Parameters factors = balanced_factors(W, 4);
  EXPECT_LE((factors.K * factors.Q.transpose() - W).norm(), 1e-13);
  EXPECT_NEAR((factors.K.squaredNorm() + factors.Q.squaredNorm()) / 2, norm(W, Norm::nuclear()), 1e-12);
}

}  // namespace
}  // namespace attmirror
