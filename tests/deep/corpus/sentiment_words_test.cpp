#include "base/atomic_file.hpp"
#include "deep/corpus/small_vocabulary.hpp"
#include "support/files.hpp"
#include "support/paths.hpp"
#include <attmirror/deep/sentiment_words.hpp>
#include <attmirror/deep/tokenize.hpp>

#include <algorithm>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

const WordPiece& toy_vocabulary() {
  static const WordPiece words(
      {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "film", "great", "##er", "dull", "lovely", "9", "."});
  return words;
}

TokenSet toy_reviews(std::int64_t length = 16) {
  TextSet texts;
  const auto add = [&](std::int32_t label, const char* text) {
    texts.labels.push_back(label);
    texts.texts.emplace_back(text);
  };
  add(1, "a great film . 9");
  add(1, "great great great . 9");
  add(1, "lovely film 9");
  add(1, "a greater film 9");  // great is a part of a word here
  add(0, "dull film , great a");
  add(0, "a dull film");
  add(0, "dull");
  add(1, "dull");
  return make_token_set(texts, toy_vocabulary(), length);
}

TEST(SentimentWords, RuleOnToyReviews) {
  // great is in 3 reviews, 2 of them positive; dull in 4, 3 of them negative; lovely in 1; 9 is no word, film in 5,
  // 3 of them positive.
  const auto words =
      sentiment_words(toy_reviews(), toy_vocabulary(), {.least_reviews = 2, .least_share = 0.65});
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[0], (SentimentWord{"dull", 0, 4, 0.75}));
  EXPECT_EQ(words[1], (SentimentWord{"great", 1, 3, 2.0 / 3}));
  const auto shares =
      sentiment_words(toy_reviews(), toy_vocabulary(), {.least_reviews = 1, .least_share = 0.75});
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].word, "dull");  // 75 % is enough
  EXPECT_EQ(shares[1], (SentimentWord{"lovely", 1, 1, 1.0}));
  EXPECT_TRUE(sentiment_words(toy_reviews(), toy_vocabulary()).empty());
}

TEST(SentimentWords, TheLastTokenOfACutRowIsNone) {
  // [CLS] dull: whether the word goes on is not known.
  const auto words =
      sentiment_words(toy_reviews(2), toy_vocabulary(), {.least_reviews = 1, .least_share = 0.51});
  EXPECT_TRUE(words.empty());
}

TEST(SentimentWords, BadInput) {
  test::expect_bad_input({"least_reviews is 0"},
                         [] { sentiment_words(toy_reviews(), toy_vocabulary(), {.least_reviews = 0}); });
  for (const double share : {0.5, 1.1})
    test::expect_bad_input({"least_share is"},
                           [&] { sentiment_words(toy_reviews(), toy_vocabulary(), {.least_share = share}); });
  TokenSet three = toy_reviews();
  three.labels[5] = 2;
  test::expect_bad_input({"labels[5] is 2", "0 or 1"}, [&] { sentiment_words(three, toy_vocabulary()); });
  const WordPiece other({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "film"});
  test::expect_bad_input({"12 pieces", "5 pieces"}, [&] { sentiment_words(toy_reviews(), other); });
  test::expect_bad_input({"12 pieces", "5 pieces"}, [&] { reviews_with_words(toy_reviews(), other, {}); });
  test::expect_bad_input({"limit is -1"},
                         [&] { reviews_with_words(toy_reviews(), toy_vocabulary(), {}, -1); });
}

TEST(SentimentWords, ListsAreReadBack) {
  const auto words =
      sentiment_words(toy_reviews(), toy_vocabulary(), {.least_reviews = 2, .least_share = 0.65});
  const std::string text = format_sentiment_words(words);
  EXPECT_TRUE(text.starts_with("word,label,count,share\ndull,0,4,0.75\ngreat,1,3,0.6666666666666666\n"))
      << text;
  EXPECT_EQ(parse_sentiment_words(text, "words.csv", toy_vocabulary()), words);
  const auto brief = parse_sentiment_words("word,label\ndull,0\n", "words.csv", toy_vocabulary());
  EXPECT_EQ(brief, (std::vector<SentimentWord>{{"dull", 0}}));
  EXPECT_EQ(format_sentiment_words(brief), "word,label\ndull,0\n");
}

TEST(SentimentWords, BadListsAreRefusedInASentence) {
  const auto refused = [](const std::string& text, std::initializer_list<std::string_view> said) {
    test::expect_bad_input(said, [&] { parse_sentiment_words(text, "words.csv", toy_vocabulary()); });
  };
  refused("", {"words.csv", "word,label,count,share"});
  refused("dull,0\n", {"words.csv line 1"});
  refused("word,label\n", {"words.csv has no words"});
  refused("word,label\nsplendid,1\n", {"words.csv line 2", "word is \"splendid\"", "vocabulary"});
  refused("word,label\n##er,1\n", {"line 2", "##er"});
  refused("word,label\ndull,0\ndull,1\n", {"line 3", "dull", "once"});
  refused("word,label\ndull,2\n", {"line 2", "label is \"2\"", "0 or 1"});
  refused("word,label\ndull,no\n", {"line 2", "label is \"no\""});
  refused("word,label,count,share\ndull,0,-1,0.9\n", {"count is \"-1\""});
  refused("word,label,count,share\ndull,0,1,1.5\n", {"share is \"1.5\""});
}

TEST(SentimentWords, ReviewsWithWordsOfTheirOwnLabel) {
  const std::vector<SentimentWord> words{{"dull", 0}, {"great", 1}};
  const ReviewChoice all = reviews_with_words(toy_reviews(), toy_vocabulary(), words);
  // Not the third (no word), the fourth (greater), the last (dull, but positive); in the fifth dull counts, great
  // does not.
  std::vector<std::int64_t> rows;
  for (const ReviewWords& review : all.reviews) rows.push_back(review.row);
  EXPECT_EQ(rows, (std::vector<std::int64_t>{0, 1, 4, 5, 6}));
  EXPECT_EQ(all.found, 5);
  EXPECT_EQ(all.reviews[1].places, (std::vector<std::size_t>{1, 2, 3}));
  EXPECT_EQ(all.reviews[2].places, (std::vector<std::size_t>{1}));
  const ReviewChoice two = reviews_with_words(toy_reviews(), toy_vocabulary(), words, 2);
  ASSERT_EQ(two.reviews.size(), 2u);
  EXPECT_EQ(two.found, 5);
  EXPECT_EQ(two.reviews[0].row, 0);
  EXPECT_EQ(two.reviews[1].row, 4);
}

// The list of docs/deep-views.md.
TEST(SentimentWords, OfTheTrainingReviewsOfIMDb) {
  const test::SharedFile reviews("data/imdb/train.tsv.xz"),
      vocabulary("tokenizer/bert-base-uncased-vocab.txt");
  for (const auto& file : {reviews, vocabulary})
    if (file.is_absent()) GTEST_SKIP() << file.absence();
  if (!test::has_component("unicode") || !test::has_component("xz"))
    GTEST_SKIP() << "this build lacks ICU or liblzma";
  const WordPiece wordpiece = load_wordpiece(vocabulary.path());
  const auto words =
      sentiment_words(make_token_set(read_text_set(reviews.path()), wordpiece, 512, 0), wordpiece);
  std::string listed[2];
  for (const SentimentWord& word : words)
    listed[word.label] += (listed[word.label].empty() ? "" : ", ") + word.word;
  EXPECT_EQ(std::ranges::count(words, 1, &SentimentWord::label), 22);
  EXPECT_EQ(words.size(), 59u);
  std::string page = read_text_file(test::source_folder() / "docs/deep-views.md");
  std::ranges::replace(page, '\n', ' ');
  for (const std::string& list : listed) EXPECT_NE(page.find(list), std::string::npos) << list;
}

}  // namespace
}  // namespace attmirror
