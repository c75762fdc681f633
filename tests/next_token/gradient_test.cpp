// The gradients of every stage, readout and embedding against differences of the loss in long double.
#include "next_token/reference.hpp"

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::Problem;
using test::Real;

constexpr NextTokenPath paths[] = {NextTokenPath::plain, NextTokenPath::fast};

// The largest error of the gradient, relative to its largest entry, over all entries of all trained blocks.
double error_of_gradient(const NextTokenModel& model, const Parameters& at, NextTokenPath path) {
  ThreadPool pool(1);
  NextTokenEngine engine(model, pool, path);
  ParameterBlocks weights(model.blocks());
  weights.assign(at);
  Gradient gradient = engine.make_gradient();
  const NextTokenEvaluation value = engine.evaluate(weights, gradient);
  const Real loss = test::reference_loss(model, at);
  EXPECT_NEAR(value.loss, static_cast<double>(loss), 1e-13 * (1 + std::abs(value.loss)));
  EXPECT_EQ(value.loss, engine.evaluate(weights).loss);
  double worst = 0;
  Parameters given = gradient.blocks.parameters();
  for (std::ptrdiff_t b = 0; b < gradient.blocks.count(); ++b) {
    const Block name = gradient.blocks.shape(b).name;
    const auto matrix = [&](Parameters& p) -> Matrix& { return make_matrix(p, name); };
    const Matrix& own = matrix(given);
    Parameters point = at;
    double error = 0, largest = 0;
    for (std::ptrdiff_t r = 0; r < own.rows(); ++r)
      for (std::ptrdiff_t c = 0; c < own.cols(); ++c) {
        const auto expected = static_cast<double>(
            test::difference(model, point, [&](Parameters& p) -> double& { return matrix(p)(r, c); }));
        const double actual = own(r, c) * std::exp(gradient.log_scale[static_cast<std::size_t>(b)]);
        error = std::max(error, std::abs(actual - expected));
        largest = std::max(largest, std::abs(expected));
      }
    EXPECT_GT(largest, 0);
    worst = std::max(worst, error / largest);
  }
  return worst;
}

TEST(Gradient, IsTheDerivativeOfTheLoss) {
  const std::pair<EmbeddingKind, std::ptrdiff_t> embeddings[] = {
      {EmbeddingKind::one_hot, 0}, {EmbeddingKind::orthonormal, 9}, {EmbeddingKind::gaussian, 5}};
  for (const auto& [kind, dim] : embeddings)
    for (const bool soft : {false, true})
      for (const Stage stage : {Stage::collocation, Stage::attention, Stage::joint})
        for (const double size : {0.0, 1.0, 4.0}) {
          const Problem problem = test::random_problem({.embedding = kind, .dim = dim, .soft = soft});
          const NextTokenModel model = problem.model(stage);
          Parameters at = test::random_parameters(model, size);
          if (size == 0 && stage == Stage::attention)
            at.matrices["W_ov"] = test::random_parameters(model, 1).matrix("W_ov");
          if (size == 0 && stage == Stage::joint) continue;  // without W_ov no gradient reaches W_kq
          for (const NextTokenPath path : paths)
            EXPECT_LT(error_of_gradient(model, at, path), 1e-8)
                << to_string(kind) << ", " << to_string(stage) << ", soft " << soft << ", weights " << size;
        }
}

TEST(Gradient, OfTheAttentionAsReadout) {
  for (const bool soft : {false, true})
    for (const EmbeddingKind kind : {EmbeddingKind::one_hot, EmbeddingKind::gaussian})
      for (const double size : {0.0, 1.0, 4.0}) {
        const Problem problem = test::random_problem({.embedding = kind, .soft = soft, .seed = 4});
        const NextTokenModel model = problem.model(Stage::attention, Readout::attention);
        for (const NextTokenPath path : paths)
          EXPECT_LT(error_of_gradient(model, test::random_parameters(model, size), path), 1e-8);
      }
}

TEST(Gradient, OfManySizes) {
  for (const std::ptrdiff_t V : {2, 3, 8, 16, 17, 31, 70})
    for (const Stage stage : {Stage::collocation, Stage::joint}) {
      const Problem problem = test::random_problem(
          {.vocabulary = V, .sentences = 5, .max_length = 9, .dim = 3, .seed = static_cast<unsigned>(V)});
      const NextTokenModel model = problem.model(stage);
      for (const NextTokenPath path : paths)
        EXPECT_LT(error_of_gradient(model, test::random_parameters(model, 1.5), path), 1e-8) << V;
    }
}

}  // namespace
}  // namespace attmirror
