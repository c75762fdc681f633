// The ids of all 50,000 IMDb reviews equal those of the reference. (bench/wordpiece_bench.cpp times them.)
#include "deep/corpus/small_vocabulary.hpp"
#include "support/paths.hpp"
#include "support/size.hpp"
#include <attmirror/deep/tokenize.hpp>

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror {
namespace {

namespace fs = std::filesystem;

class Imdb : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const test::SharedFile golden("golden/imdb_wordpiece.json"),
        vocabulary("tokenizer/bert-base-uncased-vocab.txt"), reviews("data/imdb/" + GetParam() + ".tsv.xz");
    for (const auto& file : {golden, vocabulary, reviews})
      if (file.is_absent()) GTEST_SKIP() << file.absence();
    if (!test::has_component("unicode") || !test::has_component("xz"))
      GTEST_SKIP() << "this build lacks ICU or liblzma";
    std::ifstream file(golden.path());
    golden_ = nlohmann::json::parse(file)[GetParam()];
    texts_ = read_text_set(reviews.path());
    vocabulary_ = vocabulary.path();
  }
  nlohmann::json golden_;
  TextSet texts_;
  fs::path vocabulary_;
};

TEST_P(Imdb, IdsEqualTheReference) {
  const WordPiece wordpiece = load_wordpiece(vocabulary_);
  const TokenSet tokens = make_token_set(texts_, wordpiece, 512);
  EXPECT_EQ(tokens.rows(), golden_["rows"].get<std::int64_t>());
  EXPECT_EQ(std::count(tokens.labels.begin(), tokens.labels.end(), 1), 12'500);
  for (const int row : {0, 12'500, 24'999}) {
    const auto ids = tokens.row(row);
    EXPECT_EQ(std::vector<std::int32_t>(ids.begin(), ids.end()),
              golden_["row_" + std::to_string(row)].get<std::vector<std::int32_t>>());
  }
  const TokenStatistics statistics = token_statistics(tokens, wordpiece.unknown());
  EXPECT_EQ(statistics.tokens, golden_["tokens"].get<std::int64_t>());
  EXPECT_EQ(statistics.rows_of_full_length, golden_["rows_of_512"].get<std::int64_t>());
  EXPECT_DOUBLE_EQ(statistics.mean_length, golden_["mean_length"].get<double>());
  EXPECT_EQ(ids_sha256(tokens), golden_["sha256_uint16_le"].get<std::string>());
  EXPECT_NO_THROW(tokens.validate());
}

TEST_P(Imdb, BothEnginesAgree) {
  const WordPiece fast = load_wordpiece(vocabulary_);
  const WordPiece plain = load_wordpiece(vocabulary_, {.engine = WordPieceEngine::plain});
  const std::size_t step = test::reduced_size ? 500 : 25;
  for (std::size_t i = 0; i < texts_.texts.size(); i += step)
    ASSERT_EQ(fast.encode(texts_.texts[i], 4096), plain.encode(texts_.texts[i], 4096)) << "row " << i;
}

INSTANTIATE_TEST_SUITE_P(Halves, Imdb, testing::Values("train", "test"),
                         [](const auto& half) { return half.param; });

}  // namespace
}  // namespace attmirror
