// The generators by name: defaults, refusals, and what is known of data before they are made.
#include "data/generator_kinds.hpp"

#include "support/files.hpp"
#include <attmirror/data/generators.hpp>

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

TEST(GeneratorKinds, MakeWhatTheirOptionsMake) {
  EXPECT_EQ(generate(find_generator("sphere"), {}).fingerprint(), generate(SphereData{}).fingerprint());
  EXPECT_EQ(
      generate(find_generator("sphere"), {.samples = 3, .dim = 5, .seed = 9, .min_tokens = 2}).fingerprint(),
      generate(SphereData{.samples = 3, .dim = 5, .seed = 9, .min_tokens = 2}).fingerprint());
  EXPECT_EQ(generate(find_generator("sphere"), {.query_from = "all"}).fingerprint(),
            generate(SphereData{.query_from = SphereData::QueryFrom::all_tokens}).fingerprint());
  EXPECT_EQ(generate(find_generator("orthonormal"), {.tokens = 2}).fingerprint(),
            generate(OrthonormalData{.tokens = 2}).fingerprint());
}

TEST(GeneratorKinds, ResolvedSettingsAreTheDefaultsAndMakeTheSameData) {
  for (const GeneratorKind& kind : generator_kinds()) {
    const GeneratorSettings all = resolved(kind, {});
    EXPECT_EQ(resolved(kind, all), all) << kind.name;
    EXPECT_EQ(generate(kind, all).fingerprint(), generate(kind, {}).fingerprint()) << kind.name;
    EXPECT_EQ(kind.takes("seed"), all.seed.has_value()) << kind.name;
    EXPECT_EQ(kind.takes("samples"), all.samples.has_value()) << kind.name;
    EXPECT_EQ(kind.takes("query_from"), all.query_from.has_value()) << kind.name;
  }
  EXPECT_EQ(resolved(find_generator("sphere"), {}).min_tokens, 0);
  EXPECT_EQ(resolved(find_generator("visualization2"), {}).seed, 3u);
  EXPECT_EQ(resolved(find_generator("joint-prompt"), {}).label_margin, "tight");
}

TEST(GeneratorKinds, TheOutlineIsThatOfTheData) {
  for (const GeneratorKind& kind : generator_kinds()) {
    for (const char* query_from : {"draw", "last"}) {
      GeneratorSettings settings;
      if (kind.takes("dim")) settings.dim = 7;
      if (kind.takes("query_from")) settings.query_from = query_from;
      const Dataset data = generate(kind, settings);
      const DataOutline expected{.dim = data.dim(),
                                 .has_decoder = data.has_decoder(),
                                 .has_head_weights = data.head_weights().rows > 0,
                                 .queries_are_tokens = !data.query_index().empty()};
      // The queries of the joint data are tokens, but are stored as vectors.
      EXPECT_EQ(kind.outline(settings), expected) << kind.name;
    }
  }
}

TEST(GeneratorKinds, RefuseWhatTheyDoNotTake) {
  expect_bad_input({"kind is \"spere\"", "sphere, joint,"}, [] { find_generator("spere"); });
  expect_bad_input({"samples is given, but the joint data have fixed sizes and no seed"},
                   [] { resolved(find_generator("joint"), {.samples = 3}); });
  expect_bad_input({"score is given, but the relu data take samples, tokens, dim, seed only"},
                   [] { generate(find_generator("relu"), {.score = 3}); });
  expect_bad_input({"scores is \"x\": expected equal or unequal"},
                   [] { resolved(find_generator("single-input"), {.scores = "x"}); });
  expect_bad_input({"dim is 0"}, [] { resolved(find_generator("sphere"), {.dim = 0}); });
}

}  // namespace
}  // namespace attmirror::test
