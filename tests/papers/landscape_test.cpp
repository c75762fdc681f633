// All selections of small problems, by class, and which of them training ends on.
#include "papers/result_of.hpp"
#include "support/random_data.hpp"
#include "support/same_bits.hpp"
#include <attmirror/attention/tokens.hpp>
#include <attmirror/base/error.hpp>
#include <attmirror/papers/landscape.hpp>

namespace attmirror {
namespace {

// Every class by its definition, from the raw data.
TEST(Landscape, ClassesFollowFromTheDefinitions) {
  for (const std::int64_t dim : {2, 3}) {
    const Dataset data = generate(SphereData{.samples = 2, .tokens = 3, .dim = dim, .seed = 4});
    const Landscape landscape = enumerate_landscape(data);
    ASSERT_EQ(landscape.entries.size(), 9U);
    for (const LandscapeEntry& entry : landscape.entries) {
      SCOPED_TRACE(to_string(entry.tokens));
      EXPECT_EQ(&landscape.at(entry.tokens), &entry);
      if (entry.kind == SelectionClass::infeasible) {
        EXPECT_EQ(entry.solution.status, MarginStatus::infeasible);
        continue;
      }
      ASSERT_EQ(entry.solution.status, MarginStatus::certified);
      bool local = true;
      for (std::ptrdiff_t i = 0; i < 2; ++i) {
        const std::ptrdiff_t chosen = entry.tokens.tokens[static_cast<std::size_t>(i)];
        const Vector logits =
            data.tokens(i).eigen() * entry.solution.W * data.queries().eigen().row(i).transpose();
        const Vector score = data.labels()[static_cast<std::size_t>(i)] * data.tokens(i).eigen() *
                             data.decoder().eigen().transpose();
        for (std::ptrdiff_t t = 0; t < 3; ++t)
          if (t != chosen && logits(chosen) - logits(t) < 1 + 1e-6 && score(t) >= score(chosen))
            local = false;
      }
      const bool best = entry.tokens == optimal_tokens(data);
      EXPECT_EQ(entry.kind, best    ? SelectionClass::global
                            : local ? SelectionClass::local
                                    : SelectionClass::feasible);
      if (best) {
        EXPECT_TRUE(local);
      }
    }
  }
}

TEST(Landscape, DependsOnTheNormAndNotOnThreads) {
  const Dataset data = generate(SphereData{.samples = 3, .tokens = 4, .dim = 3, .seed = 36});
  const Landscape frobenius = enumerate_landscape(data);
  const Landscape two = enumerate_landscape(data, {.margin = {.threads = 2}});
  EXPECT_EQ(frobenius.count(SelectionClass::local), 7);
  EXPECT_EQ(frobenius.count(SelectionClass::global), 1);
  for (std::size_t k = 0; k < 64; ++k)
    if (frobenius.entries[k].solution.status == MarginStatus::certified) {
      EXPECT_TRUE(test::same_bits(frobenius.entries[k].solution.W, two.entries[k].solution.W));
    }
  const Landscape other = enumerate_landscape(data, {.norm = Norm::l(1.2)});
  bool differs = false;
  for (std::size_t k = 0; k < 64; ++k) differs |= frobenius.entries[k].kind != other.entries[k].kind;
  EXPECT_TRUE(differs);
}

TEST(Landscape, CountsMaskedSelectionsAndRefusesTooMany) {
  const Dataset causal = with_causal_mask(generate(SphereData{
      .samples = 1, .tokens = 4, .dim = 4, .seed = 1, .query_from = SphereData::QueryFrom::all_tokens}));
  EXPECT_EQ(selection_count(causal), 24);
  EXPECT_EQ(enumerate_landscape(causal).entries.size(), 24U);
  const Dataset large = generate(SphereData{.samples = 20, .tokens = 8, .dim = 10, .seed = 1});
  EXPECT_THROW(enumerate_landscape(large), Error);
  const Dataset blind = generate(JointData{});
  EXPECT_THROW(enumerate_landscape(blind), Error);
  EXPECT_THROW(enumerate_landscape(causal).at(Selection{{0, 1, 2}}), Error);
}

TEST(Landscape, StopsWhenAsked) {
  const Dataset data = generate(SphereData{.samples = 3, .tokens = 4, .dim = 3, .seed = 36});
  const StopRequest stop = StopRequest::make();
  const Landscape landscape =
      enumerate_landscape(data, {.on_progress = [&](double) { stop.request(); }, .stop = stop});
  EXPECT_TRUE(landscape.interrupted);
  EXPECT_TRUE(landscape.entries.empty());
}

TEST(Landscape, LocallyOptimalSelectionsAttractAndOthersRepel) {
  const ExperimentResult result = test::quick_result("landscape");
  test::expect_sound(result);
  EXPECT_EQ(test::named(result, "saturated runs that end on locally").ours, 1);
  EXPECT_EQ(test::named(result, "locally optimal selections that attract").ours, 1);
  EXPECT_EQ(test::named(result, "other feasible selections that repel").ours, 1);
  EXPECT_EQ(test::named(result, "d = 3: infeasible").ours, 0);
  EXPECT_GT(test::named(result, "d = 2: locally optimal selections").ours,
            test::named(result, "d = 6: locally optimal selections").ours);
}

}  // namespace
}  // namespace attmirror
