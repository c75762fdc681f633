#include "deep/views/example_models.hpp"
#include "deep/views/view_pages.hpp"
#include "support/files.hpp"
#include "support/paths.hpp"
#include <attmirror/deep/token_score.hpp>

#include <cmath>

#include <gtest/gtest.h>

namespace attmirror::view_tests {
namespace {

deep::SentenceScore score_of(const PivotalSentence& sentence, const std::vector<double>& attention) {
  return deep::sentence_score(example_vocabulary(), sentence,
                              example_vocabulary().encode_pieces(sentence.sentence), attention);
}

TEST(TokenScore, OneTokenByHand) {
  // [CLS] the movie was fantastic [SEP]
  const auto score =
      score_of({1, "fantastic", "The movie was fantastic"}, {0.05, 0.10, 0.05, 0.20, 0.30, 0.30});
  EXPECT_EQ(score.pivotal, (std::vector<std::size_t>{4}));
  ASSERT_TRUE(score.published && score.sum && score.largest && score.rank);
  EXPECT_NEAR(*score.published, 1, 1e-12);  // (0.30 - 0.05) / (0.30 - 0.05)
  EXPECT_NEAR(*score.sum, 1, 1e-12);
  EXPECT_EQ(*score.rank, 1);
  EXPECT_NEAR(score.share, 0.30 / 0.65, 1e-12);
  EXPECT_TRUE(score.dropped.empty());
  EXPECT_NEAR(score.tokens_attended, 1 / (2 * 0.05 * 0.05 + 0.01 + 0.04 + 2 * 0.09), 1e-9);
}

TEST(TokenScore, SpecialTokensCountInPublishedOnly) {
  const auto score =
      score_of({1, "fantastic", "The movie was fantastic"}, {0.01, 0.03, 0.02, 0.04, 0.10, 0.80});
  EXPECT_NEAR(*score.published, (0.10 - 0.01) / (0.80 - 0.01), 1e-12);
  EXPECT_NEAR(*score.sum, 1, 1e-12);
  const auto low = score_of({1, "movie", "The movie was fantastic"}, {0.01, 0.03, 0.02, 0.04, 0.10, 0.80});
  EXPECT_NEAR(*low.published, (0.02 - 0.01) / 0.79, 1e-12);
  EXPECT_NEAR(*low.sum, 0, 1e-12);
  EXPECT_EQ(*low.rank, 4);
}

TEST(TokenScore, SplitWordsAreDroppedByP1AndScoredByUs) {
  // [CLS] the projector over ##heat ##s [SEP]
  const auto score =
      score_of({0, "overheats", "The projector overheats"}, {0.1, 0.10, 0.25, 0.2, 0.1, 0.05, 0.2});
  EXPECT_FALSE(score.published);
  EXPECT_EQ(score.dropped, "\"overheats\" is split into over ##heat ##s");
  EXPECT_EQ(score.pivotal, (std::vector<std::size_t>{3, 4, 5}));
  EXPECT_NEAR(*score.sum, 1, 1e-12);                                 // 0.35 of 0.10, 0.25, 0.35
  EXPECT_NEAR(*score.largest, (0.2 - 0.10) / (0.25 - 0.10), 1e-12);  // 0.2 of 0.10, 0.25, 0.2
  EXPECT_EQ(*score.rank, 1);
  EXPECT_NEAR(score.share, 0.35 / 0.70, 1e-12);
}

TEST(TokenScore, AbsentWordsHaveNone) {
  const auto score = score_of({1, "great", "I enjoyed the movie"}, {0.1, 0.2, 0.2, 0.2, 0.2, 0.1});
  EXPECT_FALSE(score.published || score.sum || score.largest || score.rank);
  EXPECT_EQ(score.dropped, "\"great\" does not occur");
  // Part of a longer word is not the word.
  const auto part = score_of({0, "over", "The projector overheats"}, {0.1, 0.1, 0.2, 0.2, 0.1, 0.1, 0.2});
  EXPECT_EQ(part.dropped, "\"over\" does not occur");
}

TEST(TokenScore, AWordOfSeveralWordsIsOne) {
  // [CLS] the theater is well - kept [SEP]
  const auto score =
      score_of({1, "well-kept", "The theater is well-kept"}, {0.1, 0.1, 0.1, 0.2, 0.1, 0.1, 0.1, 0.2});
  EXPECT_EQ(score.pivotal, (std::vector<std::size_t>{4, 5, 6}));
  EXPECT_NEAR(*score.sum, 1, 1e-12);  // 0.3 against 0.1, 0.1, 0.2
  EXPECT_EQ(score.dropped, "\"well-kept\" is split into well - kept");
}

TEST(TokenScore, EqualAttentionIsNoSelection) {
  const auto score = score_of({1, "fantastic", "The movie was fantastic"}, std::vector<double>(6, 1.0 / 6));
  EXPECT_NEAR(*score.published, 0, 1e-12);
  EXPECT_FALSE(score.sum);  // no word has more than another: there is no scale
  EXPECT_NEAR(score.share, 0.25, 1e-12);
  test::expect_bad_input({"5", "6"}, [] {
    score_of({1, "fantastic", "The movie was fantastic"}, std::vector<double>(5, 0.2));
  });
}

TEST(TokenScore, Means) {
  const deep::ScoreMean mean = deep::mean_of(std::vector<double>{1, 2, 3, 4});
  EXPECT_EQ(mean.count, 4);
  EXPECT_DOUBLE_EQ(mean.mean, 2.5);
  EXPECT_NEAR(mean.standard_error, std::sqrt(5.0 / 3 / 4), 1e-12);
  EXPECT_TRUE(std::isnan(deep::mean_of({}).mean));
  EXPECT_TRUE(std::isnan(deep::mean_of(std::vector<double>{1}).standard_error));
}

TEST(TokenScore, OfANetworkIsThatOfItsAttention) {
  const deep::TextModel model{"sharp", example_encoder(7, {.sharpness = 5})};
  const auto sentences = example_sentences();
  const deep::ModelScore score = deep::token_score(model, example_vocabulary(), sentences);
  ASSERT_EQ(score.sentences.size(), sentences.size());
  EXPECT_EQ(score.published.count, 3);
  EXPECT_EQ(score.sum.count, 5);
  double sum = 0;
  std::int64_t right = 0;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    const auto pieces = example_vocabulary().encode_pieces(sentences[i].sentence);
    const auto attention = deep::text_attention(model, pieces, deep::AttentionRows::all);
    const auto expected =
        deep::sentence_score(example_vocabulary(), sentences[i], pieces, attention.answering_row());
    EXPECT_EQ(score.sentences[i].published, expected.published);
    EXPECT_EQ(score.sentences[i].sum, expected.sum);
    if (expected.published) sum += *expected.published;
    right += (attention.probability > 0.5) == (sentences[i].label == 1) ? 1 : 0;
  }
  EXPECT_NEAR(score.published.mean, sum / 3, 1e-12);
  EXPECT_EQ(score.correct, right);
  test::expect_bad_input({"no sentences"}, [&] { deep::token_score(model, example_vocabulary(), {}); });

  const Table dropped = deep::dropped_table(score, sentences);
  ASSERT_EQ(dropped.rows.size(), 3u);
  EXPECT_EQ(dropped.rows[1][2], "no score either");
  const Table table = deep::score_table(std::span(&score, 1));
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0][3], "3 of 6");
  EXPECT_EQ(table.rows[1][2], "0.4387");
  EXPECT_EQ(table.rows[2][2], "0.3122");
}

// With bert-base-uncased's vocabulary six of P1's fifty are dropped.
TEST(TokenScore, P1sSentences) {
  const test::SharedFile sentences("data/p1_sentences.tsv"),
      vocabulary("tokenizer/bert-base-uncased-vocab.txt");
  for (const auto& file : {sentences, vocabulary})
    if (file.is_absent()) GTEST_SKIP() << file.absence();
  const WordPiece words = load_wordpiece(vocabulary.path());
  int absent = 0, split = 0, kept = 0;
  for (const PivotalSentence& sentence : read_pivotal_sentences(sentences.path())) {
    const auto pieces = words.encode_pieces(sentence.sentence);
    std::vector<double> attention(pieces.size());
    for (std::size_t t = 0; t < attention.size(); ++t) attention[t] = static_cast<double>(t + 1);
    const auto score = deep::sentence_score(words, sentence, pieces, attention);
    kept += score.published ? 1 : 0;
    split += score.dropped.find("split") != std::string::npos ? 1 : 0;
    absent += score.dropped.find("occur") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(absent, 3);
  EXPECT_EQ(split, 3);
  EXPECT_EQ(kept, 44);
}

}  // namespace
}  // namespace attmirror::view_tests
