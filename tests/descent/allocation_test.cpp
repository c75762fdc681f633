// The training loop allocates nothing per step. Sanitizers have a malloc of their own, so this file is empty
// under them.
#include "descent/optimizer_list.hpp"
#include "support/count_allocations.hpp"
#include <attmirror/data/generators.hpp>
#include <attmirror/descent/descend.hpp>
#include <attmirror/descent/mirror_flow.hpp>

#include <gtest/gtest.h>

#if defined(ATTMIRROR_COUNTS_ALLOCATIONS)

namespace attmirror {
namespace {

using test::allocations;

long allocations_of(const Attention& model, const Optimizer& optimizer, std::int64_t steps, int threads) {
  DescentOptions options{.steps = steps, .record = RecordSchedule::none(), .threads = threads};
  options.init = {.kind = InitKind::uniform, .seed = 1};
  const long before = allocations.load();
  descend(model, optimizer, options);
  return allocations.load() - before;
}

TEST(Allocation, NonePerStep) {
  const Dataset small = generate(SphereData{}),
                large = generate(SphereData{.samples = 100, .tokens = 64, .dim = 48});
  for (const Dataset* data : {&small, &large})
    for (const Parameterization& form :
         {Parameterization{W{}}, Parameterization{KQ{3}}, Parameterization{Prompt{}}})
      for (const Optimizer& optimizer : test::all_optimizers())
        for (const int threads : {1, 2}) {
          const Attention model(*data, form);
          allocations_of(model, optimizer, 1, threads);  // what is set up once, at the first use
          const long few = allocations_of(model, optimizer, 10, threads);
          EXPECT_GT(few, 0);  // the count counts
          EXPECT_EQ(few, allocations_of(model, optimizer, 60, threads))
              << to_string(form) << ", " << to_string(optimizer);
        }
}

TEST(Allocation, NonePerStepOfTheFlow) {
  const Dataset data = generate(SphereData{});
  const Attention model(data);
  const auto allocations_to = [&](double time) {
    const MirrorFlow flow{.p = 1.75, .times = {time}, .plain_steps = 3};
    const long before = allocations.load();
    EXPECT_EQ(mirror_flow(model, flow).status, FlowStatus::completed);
    return allocations.load() - before;
  };
  allocations_to(10);
  const long few = allocations_to(10);
  EXPECT_GT(few, 0);
  EXPECT_EQ(few, allocations_to(1e9));
}

// The engine by itself, on the path for large data, in every parameterization.
TEST(Allocation, NonePerGradientOfAStream) {
  const Dataset data =
      generate(SphereData{.samples = 200, .tokens = 40, .dim = 24, .seed = 5, .min_tokens = 1});
  for (const Parameterization& form :
       {Parameterization{W{}}, Parameterization{KQ{}}, Parameterization{Prompt{}}}) {
    AttentionOptions trained{.train = Attention(data, form).trained()};
    trained.train.push_back(Block::v);
    const Attention model(data, form, Logistic{}, trained);
    ParameterBlocks weights(model.blocks());
    weights.assign(model.zero_parameters());
    ThreadPool pool(2);
    for (const TokenStorage storage : {TokenStorage::float64, TokenStorage::float32}) {
      GradientEngine engine(model, EngineOptions{.path = DataPath::stream, .storage = storage}, pool);
      Gradient gradient = engine.make_gradient();
      const long before = allocations.load();
      for (int k = 0; k < 3; ++k) engine.evaluate(weights, gradient);
      EXPECT_EQ(allocations.load(), before);
    }
  }
}

}  // namespace
}  // namespace attmirror

#endif
