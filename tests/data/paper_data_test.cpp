// The data of P2's toy experiments, P3's figures in the plane and its nonlinear heads. What torch drew is
// written out to nine digits, which is to the last bit of single precision.
#include "support/files.hpp"
#include <attmirror/data/generators.hpp>

#include <limits>
#include <set>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

std::vector<double> labels_of(const Dataset& data) { return {data.labels().begin(), data.labels().end()}; }

void expect_floats(ConstMatrixView rows, std::ptrdiff_t row, std::initializer_list<float> expected) {
  std::ptrdiff_t col = 0;
  for (const float value : expected) {
    EXPECT_EQ(rows.data[row * rows.stride + col], static_cast<double>(value))
        << "row " << row << ", column " << col;
    ++col;
  }
}

// The scores Y_i X_i v.
std::vector<std::ptrdiff_t> best_tokens(const Dataset& data) {
  std::vector<std::ptrdiff_t> best;
  for (std::ptrdiff_t i = 0; i < data.samples(); ++i) {
    const Vector scores = data.labels()[static_cast<std::size_t>(i)] *
                          (data.tokens(i).eigen() * data.decoder().eigen().transpose());
    scores.maxCoeff(&best.emplace_back());
  }
  return best;
}

TEST(SingleInputData, IsThePapers) {
  using enum SingleInputData::Scores;
  const Dataset data = generate(SingleInputData{equal}), other = generate(SingleInputData{unequal});
  EXPECT_EQ(to_string(data), "1 sequence of 3 tokens, dimension 3, with decoder");
  expect_floats(data.tokens(0), 0, {-0.1f, 1, 1});
  expect_floats(data.tokens(0), 1, {1, 0, 0.9f});
  expect_floats(data.tokens(0), 2, {0, 0, 0.9f});
  expect_floats(other.tokens(0), 2, {0, 0, 0});
  expect_floats(data.decoder(), 0, {0, 0, 1});
  expect_floats(data.queries(), 0, {1, 0, 0});
  EXPECT_EQ(best_tokens(data), std::vector<std::ptrdiff_t>{0});
  EXPECT_EQ(labels_of(data), std::vector<double>{1});
  test::expect_bad_input({"scores is 2", "equal or unequal"},
                         [] { generate(SingleInputData{static_cast<SingleInputData::Scores>(2)}); });
}

TEST(MultiInputData, SeedZeroIsThePapers) {
  const Dataset data = generate(MultiInputData{});
  EXPECT_EQ(to_string(data), "3 sequences of 7 tokens, dimension 3, with decoder");
  // The optimal tokens to four decimals.
  const double optimal[3][2] = {{.7748, -.2305}, {.6890, -.0683}, {.9421, .0105}};
  for (std::ptrdiff_t i = 0; i < 3; ++i) {
    for (std::ptrdiff_t j = 0; j < 2; ++j) EXPECT_NEAR(data.tokens(i).eigen()(0, j), optimal[i][j], .51e-4);
    for (std::ptrdiff_t t = 0; t < 7; ++t) EXPECT_EQ(data.tokens(i).eigen()(t, 2), t == 0 ? 1 : 0.5);
  }
  // To the last bit: torch's noise, and the sum rounded to single precision.
  expect_floats(data.tokens(0), 1, {-0.086775765f - 1, 0.169742078f + 1});
  expect_floats(data.tokens(0), 4, {0.023968302f - 0.5f, 0.247531578f - 0.5f});
  expect_floats(data.tokens(2), 6, {-0.213396072f - 0.5f, 0.222987920f - 0.5f});
  EXPECT_EQ(best_tokens(data), (std::vector<std::ptrdiff_t>{0, 0, 0}));
  EXPECT_EQ(labels_of(data), (std::vector<double>{1, 1, 1}));
  EXPECT_NE(generate(MultiInputData{.seed = 1}).fingerprint(), data.fingerprint());
}

TEST(JointPromptData, IsThePapers) {
  using enum JointPromptData::LabelMargin;
  const Dataset data = generate(JointPromptData{tight}), other = generate(JointPromptData{slack});
  EXPECT_EQ(to_string(data), "3 sequences of 2 tokens, dimension 2, no decoder");
  for (std::ptrdiff_t i = 0; i < 3; ++i) expect_floats(data.tokens(i), 0, {0, 0});
  expect_floats(data.tokens(0), 1, {1, 1});
  expect_floats(data.tokens(1), 1, {1, -1});
  expect_floats(data.tokens(2), 1, {0.5f, 1});
  expect_floats(other.tokens(2), 1, {0.5f, 1.5f});
  EXPECT_EQ(labels_of(data), (std::vector<double>{1, -1, 1}));
  test::expect_bad_input({"label_margin is -1", "tight or slack"},
                         [] { generate(JointPromptData{static_cast<JointPromptData::LabelMargin>(-1)}); });
}

TEST(LossComparisonData, IsThePapers) {
  const Dataset data = generate(LossComparisonData{.score = 7});
  EXPECT_EQ(to_string(data), "2 sequences of 2 tokens, dimension 3, with decoder");
  expect_floats(data.tokens(0), 0, {0, 0, 0});
  expect_floats(data.tokens(0), 1, {1, 1, 7});
  expect_floats(data.tokens(1), 1, {1, -1, 1});
  EXPECT_EQ(best_tokens(data), (std::vector<std::ptrdiff_t>{1, 1}));
  for (const double score :
       {0.0, -1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    test::expect_bad_input({"score is", "above 0"}, [&] { generate(LossComparisonData{.score = score}); });
}

TEST(PromptData, KeyWeightsHideTheScore) {
  Matrix expected = Matrix::Zero(3, 3);
  expected(0, 0) = expected(1, 1) = 1;
  EXPECT_EQ(score_blind_key_weights(), expected);
}

TEST(Visualization1Data, SeedOneIsThePapers) {
  const Dataset data = generate(Visualization1Data{});
  EXPECT_EQ(to_string(data), "2 sequences of 3 tokens, dimension 2, with decoder");
  expect_floats(data.decoder(), 0, {0.927319944f, 0.374269664f});
  expect_floats(data.tokens(0), 0, {0.018503178f - 1, 0.186395198f});
  expect_floats(data.tokens(1), 2, {-0.058652878f + 1, -0.289690793f});
  expect_floats(data.queries(), 0, {0.845011353f, 0.534748375f});
  expect_floats(data.queries(), 1, {-0.636263967f, -0.771471381f});
  EXPECT_EQ(best_tokens(data), (std::vector<std::ptrdiff_t>{0, 2}));
  EXPECT_EQ(labels_of(data), (std::vector<double>{1, 1}));
}

TEST(Visualization2Data, SeedThreeIsThePapers) {
  const Dataset data = generate(Visualization2Data{});
  EXPECT_EQ(to_string(data), "2 sequences of 5 tokens, dimension 2, with decoder");
  expect_floats(data.decoder(), 0, {0.977123797f, 0.212671429f});
  expect_floats(data.tokens(0), 0, {1, 0.5f});
  expect_floats(data.tokens(0), 1, {0.810275376f - 1, -0.798354030f});
  expect_floats(data.tokens(1), 0, {1, -0.5f});
  expect_floats(data.tokens(1), 4, {0.386836588f - 1, -0.054621760f});
  expect_floats(data.queries(), 0, {-0.539128959f, -0.842223227f});
  expect_floats(data.queries(), 1, {0.952551901f, 0.304376423f});
  EXPECT_EQ(best_tokens(data), (std::vector<std::ptrdiff_t>{0, 0}));
}

TEST(ReluHeadData, SeedOneIsTorchs) {
  const Dataset data = generate(ReluHeadData{.seed = 1});
  EXPECT_EQ(to_string(data), "3 sequences of 4 tokens, dimension 4, with ReLU head of 4, no decoder");
  // head_weights() is V^T, so its first column is V's first row.
  const Matrix V = data.head_weights().eigen().transpose();
  const float first[] = {-0.403826177f, -0.198586822f, -0.173109144f, -0.426031619f},
              last[] = {-0.058835134f, 0.446579963f, 0.060464282f, 0.123783402f};
  for (std::ptrdiff_t j = 0; j < 4; ++j) {
    EXPECT_EQ(V(0, j), static_cast<double>(first[j])) << j;
    EXPECT_EQ(V(3, j), static_cast<double>(last[j])) << j;
  }
  expect_floats(data.tokens(0), 0, {-0.453485727f, -0.755250454f, 0.455157876f, 0.129532635f});
  expect_floats(data.tokens(2), 3, {0.400360137f, -0.226181030f, -0.866438031f, -0.194522679f});
  expect_floats(data.queries(), 0, {-0.116239287f, 0.698409259f, -0.208180249f, -0.674813986f});
  expect_floats(data.queries(), 2, {0.710590601f, -0.552796185f, 0.366245866f, 0.235247210f});
  EXPECT_EQ(labels_of(data), (std::vector<double>{1, -1, 1}));
}

TEST(ReluHeadData, HasNormOneThroughout) {
  std::set<std::uint64_t> fingerprints;
  for (const std::uint64_t seed : {0u, 1u, 2u}) {
    const Dataset data = generate(ReluHeadData{.samples = 5, .tokens = 7, .dim = 10, .seed = seed});
    EXPECT_NEAR(data.head_weights().eigen().norm(), 1, 1e-6);
    EXPECT_LT((data.all_tokens().eigen().rowwise().norm().array() - 1).abs().maxCoeff(), 1e-6);
    EXPECT_LT((data.queries().eigen().rowwise().norm().array() - 1).abs().maxCoeff(), 1e-6);
    fingerprints.insert(data.fingerprint());
  }
  EXPECT_EQ(fingerprints.size(), 3u);
}

TEST(OrthonormalData, TokensAreOrthonormal) {
  std::set<std::uint64_t> fingerprints;
  for (const auto& [tokens, dim] : {std::pair<std::int64_t, std::int64_t>{4, 4}, {1, 1}, {3, 8}, {20, 20}}) {
    for (const std::uint64_t seed : {1u, 2u}) {
      const Dataset data =
          generate(OrthonormalData{.samples = 5, .tokens = tokens, .dim = dim, .seed = seed});
      for (std::ptrdiff_t i = 0; i < 5; ++i) {
        const Matrix X = data.tokens(i).eigen();
        EXPECT_LT((X * X.transpose() - Matrix::Identity(tokens, tokens)).norm(), 1e-13);
      }
      EXPECT_NEAR(data.decoder().eigen().norm(), 1, 1e-6);
      EXPECT_EQ(labels_of(data), std::vector<double>(5, 1.0));
      fingerprints.insert(data.fingerprint());
    }
  }
  EXPECT_GE(fingerprints.size(), 7u);  // in one dimension all numbers are +-1
}

// In the order of Gram and Schmidt: the first token is the direction of the first row drawn, which is what the
// sphere data of one token per sequence have.
TEST(OrthonormalData, KeepsTheDirectionsDrawn) {
  const Dataset narrow = generate(OrthonormalData{.samples = 4, .tokens = 1, .dim = 6, .seed = 9});
  const Dataset wide = generate(OrthonormalData{.samples = 1, .tokens = 4, .dim = 6, .seed = 9});
  EXPECT_EQ(Matrix(narrow.decoder().eigen()), Matrix(wide.decoder().eigen()));
  const Matrix drawn = narrow.all_tokens().eigen(), X = wide.all_tokens().eigen();
  // The rows of both come from the same numbers; row t of the wide one has no part in earlier rows drawn and a
  // positive one in its own.
  for (std::ptrdiff_t t = 0; t < 4; ++t) {
    for (std::ptrdiff_t s = 0; s < t; ++s) EXPECT_NEAR(X.row(t).dot(drawn.row(s)), 0, 1e-13);
    EXPECT_GT(X.row(t).dot(drawn.row(t)), 0);
  }
}

TEST(HeadData, RefusesImpossibleSizes) {
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  test::expect_bad_input({"samples is 0: expected 1 or more"}, [] { generate(ReluHeadData{.samples = 0}); });
  test::expect_bad_input({"dim is -1"}, [] { generate(ReluHeadData{.dim = -1}); });
  test::expect_bad_input({"dim is 8589934592", "V"},
                         [] { generate(ReluHeadData{.samples = 1, .tokens = 1, .dim = 1LL << 33}); });
  test::expect_bad_input({"too large"}, [] { generate(ReluHeadData{.samples = huge}); });
  test::expect_bad_input({"tokens is 5: expected at most 4"}, [] { generate(OrthonormalData{.tokens = 5}); });
  test::expect_bad_input({"tokens is 0"}, [] { generate(OrthonormalData{.tokens = 0}); });
}

}  // namespace
}  // namespace attmirror
