// Evaluations allocate nothing. Sanitizers have a malloc of their own, so this file is empty under them.
#include "next_token/reference.hpp"
#include "support/count_allocations.hpp"

#include <gtest/gtest.h>

#if defined(ATTMIRROR_COUNTS_ALLOCATIONS)

namespace attmirror {
namespace {

TEST(NextTokenEngine, AllocatesNothingPerEvaluation) {
  for (const EmbeddingKind kind : {EmbeddingKind::one_hot, EmbeddingKind::gaussian})
    for (const std::ptrdiff_t vocabulary : {9, 150})
      for (const NextTokenPath path : {NextTokenPath::plain, NextTokenPath::fast}) {
        const test::Problem problem = test::random_problem(
            {.vocabulary = vocabulary, .sentences = 400, .embedding = kind, .soft = true});
        std::vector<NextTokenModel> models;
        for (const Stage stage : {Stage::collocation, Stage::attention, Stage::joint})
          models.push_back(problem.model(stage));
        models.push_back(problem.model(Stage::attention, Readout::attention));
        for (const NextTokenModel& model : models) {
          ParameterBlocks weights(model.blocks());
          weights.assign(test::random_parameters(model, 1));
          ThreadPool pool(2);
          const long at_first = test::allocations.load();
          NextTokenEngine engine(model, pool, path);
          Gradient gradient = engine.make_gradient();
          EXPECT_GT(test::allocations.load(), at_first);  // the count counts
          const long before = test::allocations.load();
          for (int k = 0; k < 3; ++k) {
            engine.new_frozen_weights();
            engine.evaluate(weights, gradient);
            engine.evaluate(weights);
          }
          EXPECT_EQ(test::allocations.load(), before) << to_string(model.stage()) << ", " << vocabulary;
        }
      }
}

}  // namespace
}  // namespace attmirror

#endif
