#include "support/files.hpp"
#include "support/paths.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/data/array.hpp>
#include <attmirror/data/generators.hpp>
#include <attmirror/data/npz.hpp>

#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

std::string sphere_refusal(const SphereData& options) {
  return test::refusal([&] { options.validate(); });
}

// Setting B of the first paper's experiments: seed 1, as published to six decimals.
TEST(SphereData, SeedOneIsThePapers) {
  const Dataset data = generate(SphereData{});
  EXPECT_EQ(to_string(data), "6 sequences of 8 tokens, dimension 10, with decoder");
  const auto expect_row = [](ConstMatrixView rows, const std::vector<double>& expected) {
    for (std::size_t j = 0; j < expected.size(); ++j) EXPECT_NEAR(rows.data[j], expected[j], 0.51e-6);
  };
  expect_row(data.decoder(), {0.296722, 0.119758, 0.027672});
  expect_row(data.tokens(0), {0.881083, -0.033817, 0.073967});
  expect_row(data.queries(), {0.211180, 0.545044, -0.097153});
  EXPECT_EQ(std::vector<double>(data.labels().begin(), data.labels().end()),
            (std::vector<double>{-1, -1, -1, -1, 1, 1}));
}

TEST(SphereData, TheBestTokensOfSeedOneAreThePapers) {
  const Dataset data = generate(SphereData{});
  const std::ptrdiff_t best[] = {3, 2, 6, 2, 6, 2};
  for (std::ptrdiff_t i = 0; i < 6; ++i) {
    const Vector scores = data.labels()[static_cast<std::size_t>(i)] *
                          (data.tokens(i).eigen() * data.decoder().eigen().transpose());
    std::ptrdiff_t token = 0;
    scores.maxCoeff(&token);
    EXPECT_EQ(token, best[i]) << i;
  }
}

// torch's own data for seeds 1 to 30, to the last bit.
TEST(SphereData, AgreesWithTorchForThirtySeeds) {
  const test::SharedFile file("golden/md_local_seeds_001_030.npz");
  if (file.is_absent()) GTEST_SKIP() << file.absence();
  const NamedArrays golden = load_npz(file.path());
  const std::vector<std::int64_t> seeds = golden.at("seeds").to_int64();
  const std::vector<double> X = golden.at("X").to_doubles(), Y = golden.at("Y").to_doubles(),
                            Z = golden.at("Z").to_doubles(), v = golden.at("v").to_doubles();
  ASSERT_EQ(seeds.size(), 30u);
  const auto expect_equal = [](ConstMatrixView ours, const double* theirs, std::int64_t seed) {
    for (std::ptrdiff_t row = 0; row < ours.rows; ++row) {
      for (std::ptrdiff_t col = 0; col < ours.cols; ++col) {
        const double value = ours.data[row * ours.stride + col], expected = theirs[row * ours.cols + col];
        EXPECT_EQ(value, expected) << "seed " << seed << ", row " << row << ", column " << col;
      }
    }
  };
  for (std::size_t s = 0; s < seeds.size(); ++s) {
    const Dataset data = generate(SphereData{.seed = static_cast<std::uint64_t>(seeds[s])});
    expect_equal(data.all_tokens(), X.data() + s * 480, seeds[s]);
    expect_equal(data.queries(), Z.data() + s * 60, seeds[s]);
    expect_equal(data.decoder(), v.data() + s * 10, seeds[s]);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(data.labels()[i], Y[s * 6 + i]);
  }
}

TEST(SphereData, RowsHaveNormOneAndSeedsDiffer) {
  std::set<std::uint64_t> fingerprints;
  for (const std::uint64_t seed : {0u, 1u, 2u, 3u}) {
    const Dataset data = generate(SphereData{.samples = 20, .tokens = 5, .dim = 33, .seed = seed});
    EXPECT_LT((data.all_tokens().eigen().rowwise().norm().array() - 1).abs().maxCoeff(), 1e-6);
    EXPECT_LT((data.queries().eigen().rowwise().norm().array() - 1).abs().maxCoeff(), 1e-6);
    EXPECT_NEAR(data.decoder().eigen().norm(), 1, 1e-6);
    fingerprints.insert(data.fingerprint());
  }
  EXPECT_EQ(fingerprints.size(), 4u);
}

TEST(SphereData, RaggedDataKeepTheFirstTokens) {
  const SphereData box{.samples = 200, .tokens = 7, .dim = 3, .seed = 5};
  SphereData ragged = box;
  ragged.min_tokens = 2;
  const Dataset whole = generate(box), cut = generate(ragged);
  std::set<std::ptrdiff_t> lengths;
  for (std::ptrdiff_t i = 0; i < cut.samples(); ++i) {
    lengths.insert(cut.length(i));
    EXPECT_EQ(Matrix(cut.tokens(i).eigen()), Matrix(whole.tokens(i).eigen().topRows(cut.length(i))));
  }
  EXPECT_EQ(lengths, (std::set<std::ptrdiff_t>{2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(Matrix(cut.queries().eigen()), Matrix(whole.queries().eigen()));
  EXPECT_EQ(Matrix(cut.decoder().eigen()), Matrix(whole.decoder().eigen()));
  EXPECT_EQ(generate(ragged).fingerprint(), cut.fingerprint());
  ragged.min_tokens = 7;
  EXPECT_EQ(generate(ragged).fingerprint(), whole.fingerprint());
}

TEST(SphereData, RefusesImpossibleSizes) {
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(sphere_refusal({}), "accepted");
  EXPECT_EQ(sphere_refusal({.samples = 0}), "samples is 0: expected 1 or more");
  EXPECT_EQ(sphere_refusal({.tokens = -3}), "tokens is -3: expected 1 or more");
  EXPECT_EQ(sphere_refusal({.dim = 0}), "dim is 0: expected 1 or more");
  EXPECT_EQ(sphere_refusal({.min_tokens = 0}), "min_tokens is 0: expected 1 to 8, the number of tokens");
  EXPECT_EQ(sphere_refusal({.min_tokens = 9}), "min_tokens is 9: expected 1 to 8, the number of tokens");
  EXPECT_NE(sphere_refusal({.samples = huge}), "accepted");
  EXPECT_NE(sphere_refusal({.samples = huge / 128, .tokens = 2, .dim = 2}), "accepted");
  EXPECT_NE(sphere_refusal({.dim = huge}), "accepted");
  EXPECT_THROW(generate(SphereData{.samples = 0}), Error);
}

TEST(SphereData, DrawsSeveralQueriesAsOneBlock) {
  const SphereData one{.samples = 5, .tokens = 4, .dim = 3, .seed = 8};
  SphereData several = one;
  several.queries = 6;
  const Dataset single = generate(one), data = generate(several);
  EXPECT_EQ(to_string(data), "5 sequences of 4 tokens, dimension 3, 30 queries, with decoder");
  EXPECT_EQ(Matrix(data.all_tokens().eigen()), Matrix(single.all_tokens().eigen()));
  EXPECT_EQ(Matrix(data.decoder().eigen()), Matrix(single.decoder().eigen()));
  EXPECT_LT((data.queries().eigen().rowwise().norm().array() - 1).abs().maxCoeff(), 1e-6);
  for (std::ptrdiff_t j = 0; j < 30; ++j) {
    EXPECT_EQ(data.sequence_of(j), j / 6);
    EXPECT_EQ(data.labels()[static_cast<std::size_t>(j)], single.labels()[static_cast<std::size_t>(j / 6)]);
  }
  several.queries = 1;
  EXPECT_EQ(generate(several).fingerprint(), single.fingerprint());
}

TEST(SphereData, TakesQueriesFromTheTokens) {
  const SphereData cross{.samples = 30, .tokens = 7, .dim = 3, .seed = 5, .min_tokens = 2};
  const Dataset drawn = generate(cross);
  const auto from = [&](SphereData::QueryFrom which) {
    SphereData self = cross;
    self.query_from = which;
    Dataset data = generate(self);
    EXPECT_EQ(Matrix(data.all_tokens().eigen()), Matrix(drawn.all_tokens().eigen()));
    return data;
  };
  const Dataset first = from(SphereData::QueryFrom::first_token),
                last = from(SphereData::QueryFrom::last_token), all = from(SphereData::QueryFrom::all_tokens);
  EXPECT_TRUE(first.one_query_each());
  EXPECT_TRUE(last.one_query_each());
  EXPECT_EQ(Matrix(all.queries().eigen()), Matrix(all.all_tokens().eigen()));
  EXPECT_EQ(with_causal_mask(all).attended_length(all.first_query(3) + 1), 2);
  for (std::ptrdiff_t i = 0; i < 30; ++i) {
    const Matrix tokens = drawn.tokens(i).eigen();
    EXPECT_EQ(Matrix(first.queries().eigen().row(i)), Matrix(tokens.topRows(1)));
    EXPECT_EQ(Matrix(last.queries().eigen().row(i)), Matrix(tokens.bottomRows(1)));
    EXPECT_EQ(first.query_index()[static_cast<std::size_t>(i)], 0);
    EXPECT_EQ(last.query_index()[static_cast<std::size_t>(i)], tokens.rows() - 1);
    EXPECT_EQ(all.query_count(i), tokens.rows());
  }
}

TEST(SphereData, RefusesImpossibleQueries) {
  EXPECT_EQ(sphere_refusal({.queries = 0}), "queries is 0: expected 1 or more");
  EXPECT_EQ(sphere_refusal({.queries = 3, .query_from = SphereData::QueryFrom::last_token}),
            "queries is 3: expected 1, because they are tokens of their sequence");
  EXPECT_EQ(sphere_refusal({.queries = std::numeric_limits<std::int64_t>::max()}).substr(0, 12),
            "samples is 6");
  EXPECT_NE(sphere_refusal({.query_from = static_cast<SphereData::QueryFrom>(9)}), "accepted");
}

TEST(JointData, IsThePapers) {
  const Dataset data = generate(JointData{});
  EXPECT_EQ(to_string(data), "2 sequences of 3 tokens, dimension 2, no decoder");
  EXPECT_EQ(data.tokens(0).eigen()(0, 0), static_cast<double>(-2.7f));
  EXPECT_EQ(data.tokens(0).eigen()(1, 1), static_cast<double>(2.1f));
  EXPECT_EQ(data.tokens(1).eigen()(2, 0), static_cast<double>(0.9f));
  for (std::ptrdiff_t i = 0; i < 2; ++i) {
    EXPECT_EQ(Matrix(data.queries().eigen().row(i)), Matrix(data.tokens(i).eigen().row(0)));
  }
  EXPECT_EQ(data.labels()[0], 1);
  EXPECT_EQ(data.labels()[1], -1);
}

TEST(JointData, AgreesWithTheGoldenFile) {
  const test::SharedFile file("golden/md_joint.npz");
  if (file.is_absent()) GTEST_SKIP() << file.absence();
  const Dataset golden = load_dataset(file.path());
  EXPECT_EQ(golden.fingerprint(), generate(JointData{}).fingerprint());
}

}  // namespace
}  // namespace attmirror
