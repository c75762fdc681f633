#include "deep/views/example_models.hpp"
#include "deep/views/view_pages.hpp"
#include "support/files.hpp"
#include <attmirror/deep/packed_batch.hpp>
#include <attmirror/deep/review_score.hpp>
#include <attmirror/deep/tokenize.hpp>

#include <cmath>

#include <gtest/gtest.h>

namespace attmirror::view_tests {
namespace {

using Places = std::vector<std::size_t>;

// [CLS] the movie was great . [SEP]
deep::ReviewScore score_of(const Places& places, const std::vector<double>& attention) {
  return deep::review_score(example_vocabulary(), example_vocabulary().encode("The movie was great."), places,
                            attention);
}

TEST(ReviewScore, ByHand) {
  const auto score = score_of({4}, {0.05, 0.05, 0.10, 0.15, 0.25, 0.05, 0.35});
  EXPECT_NEAR(score.score, (0.25 - 0.05) / (0.35 - 0.05), 1e-12);  // [SEP] has the most, and takes part
  EXPECT_NEAR(score.share, 0.25 / 0.60, 1e-12);  // of the five words, without [CLS] and [SEP]
  EXPECT_NEAR(score.token_share, 1.0 / 5, 1e-12);
  EXPECT_NEAR(score.lift, 0.25 / 0.60 * 5, 1e-12);
  EXPECT_TRUE(score.top);
}

TEST(ReviewScore, SeveralWords) {
  const auto score = score_of({2, 4}, {0.0, 0.3, 0.1, 0.1, 0.2, 0.1, 0.2});
  EXPECT_NEAR(score.score, (0.1 / 0.3 + 0.2 / 0.3) / 2, 1e-12);
  EXPECT_NEAR(score.share, 0.3 / 0.8, 1e-12);
  EXPECT_NEAR(score.token_share, 2.0 / 5, 1e-12);
  EXPECT_FALSE(score.top);  // "the" has more
  EXPECT_TRUE(score_of({1, 4}, {0.0, 0.3, 0.1, 0.1, 0.2, 0.1, 0.2}).top);
}

TEST(ReviewScore, EqualAttentionTellsNothingApart) {
  const auto score = score_of({4}, std::vector<double>(7, 1.0 / 7));
  EXPECT_EQ(score.score, 0);
  EXPECT_NEAR(score.lift, 1, 1e-12);
  EXPECT_NEAR(score.tokens_attended, 7, 1e-9);
}

TEST(ReviewScore, BadInput) {
  test::expect_bad_input({"6 numbers", "7"}, [] { score_of({4}, std::vector<double>(6, 0.1)); });
  test::expect_bad_input({"places is empty"}, [] { score_of({}, std::vector<double>(7, 0.1)); });
  test::expect_bad_input({"places has 7"}, [] { score_of({7}, std::vector<double>(7, 0.1)); });
}

TokenSet example_reviews() {
  TextSet texts;
  for (int i = 0; i < 7; ++i)
    for (const PivotalSentence& one : example_sentences()) {
      texts.texts.push_back(one.sentence + (i % 2 == 0 ? "" : ". I enjoyed it"));
      texts.labels.push_back(one.label);
    }
  return make_token_set(texts, example_vocabulary(), 12);
}
const std::vector<SentimentWord> example_words{{"fantastic", 1}, {"enjoyed", 1}, {"hated", 0}, {"boring", 0}};

TEST(ReviewScore, OfANetworkIsThatOfItsAttention) {
  const deep::TextModel model{"sharp", example_encoder(7, {.blocks = 3, .sharpness = 5})};
  const TokenSet reviews = example_reviews();
  const ReviewChoice choice = reviews_with_words(reviews, example_vocabulary(), example_words);
  ASSERT_GT(choice.reviews.size(), 20u);  // several batches, the last one not full
  const deep::ModelReviews scores = deep::review_scores(model, example_vocabulary(), reviews, choice.reviews);
  ASSERT_EQ(scores.reviews.size(), choice.reviews.size());
  double sum = 0;
  std::int64_t tops = 0, right = 0;
  for (std::size_t i = 0; i < choice.reviews.size(); ++i) {
    const auto row = reviews.row(choice.reviews[i].row);
    std::vector<TextPiece> pieces;
    for (const std::int32_t id : row) pieces.push_back({id, example_vocabulary().piece(id)});
    const auto attention = deep::text_attention(model, pieces, deep::AttentionRows::all);
    const auto expected =
        deep::review_score(example_vocabulary(), row, choice.reviews[i].places, attention.answering_row());
    EXPECT_NEAR(scores.reviews[i].score, expected.score, 1e-5);
    EXPECT_NEAR(scores.reviews[i].lift, expected.lift, 1e-4);
    EXPECT_EQ(scores.reviews[i].top, expected.top);
    EXPECT_NEAR(scores.reviews[i].probability, attention.probability, 1e-6);
    EXPECT_EQ(scores.reviews[i].row, choice.reviews[i].row);
    sum += expected.score;
    tops += expected.top ? 1 : 0;
    right += (attention.probability > 0.5) ==
                     (reviews.labels[static_cast<std::size_t>(choice.reviews[i].row)] == 1)
                 ? 1
                 : 0;
  }
  const auto count = static_cast<double>(choice.reviews.size());
  EXPECT_NEAR(scores.score.mean, sum / count, 1e-5);
  EXPECT_NEAR(scores.top.mean, static_cast<double>(tops) / count, 1e-12);
  EXPECT_EQ(scores.correct, right);
}

TEST(ReviewScore, DoesNotDependOnThreads) {
  const deep::TextModel model{"sharp", example_encoder(7, {.sharpness = 5})};
  const TokenSet reviews = example_reviews();
  const ReviewChoice choice = reviews_with_words(reviews, example_vocabulary(), example_words);
  const auto run = [&](int threads) {
    std::int64_t last = 0;
    const auto scores = deep::review_scores(model, example_vocabulary(), reviews, choice.reviews,
                                            {.threads = threads, .on_progress = [&](std::int64_t done) {
                                               EXPECT_GT(done, last);
                                               last = done;
                                             }});
    EXPECT_EQ(last, std::ssize(choice.reviews));
    return scores;
  };
  const auto one = run(1), three = run(3);
  for (std::size_t i = 0; i < one.reviews.size(); ++i) {
    EXPECT_EQ(one.reviews[i].score, three.reviews[i].score);
    EXPECT_EQ(one.reviews[i].probability, three.reviews[i].probability);
  }
  EXPECT_EQ(one.lift.mean, three.lift.mean);
}

TEST(ReviewScore, RefusesWhatDoesNotFit) {
  const TokenSet reviews = example_reviews();
  const ReviewChoice choice = reviews_with_words(reviews, example_vocabulary(), example_words);
  const auto score = [&](const deep::TextModel& model, std::span<const ReviewWords> chosen) {
    return deep::review_scores(model, example_vocabulary(), reviews, chosen);
  };
  const deep::TextModel good{"good", example_encoder(1)};
  test::expect_bad_input({"no reviews"}, [&] { score(good, {}); });
  test::expect_bad_input({"12 tokens", "short", "8 places"}, [&] {
    score({"short", example_encoder(1, {.length = 8})}, choice.reviews);
  });
  test::expect_bad_input({"other", "40 pieces"}, [&] {
    score({"other", example_encoder(1, {.vocabulary = 40})}, choice.reviews);
  });
  const deep::TextModel broken{"broken", example_encoder(1)};
  {
    const at::NoGradGuard no_gradients;
    broken.network->parameters().front().fill_(std::nan(""));
  }
  test::expect_bad_input({"broken", "not finite"}, [&] { score(broken, choice.reviews); });
}

// Networks of made-up numbers: 3 reviews won, 1 lost, 1 tie.
TEST(ReviewScore, PairsAndTables) {
  const auto model = [](const char* name, const std::vector<double>& scores) {
    deep::ModelReviews result;
    result.model = name;
    for (std::size_t i = 0; i < scores.size(); ++i)
      result.reviews.push_back(
          {.row = static_cast<std::int64_t>(2 * i), .score = scores[i], .lift = 1 - scores[i]});
    result.score = deep::mean_of(scores);
    result.lift = result.top = result.share = result.token_share = result.tokens_attended = result.score;
    return result;
  };
  deep::ReviewStudy study;
  study.words = example_words;
  study.found = 9;
  study.models = {model("gd", {0.1, 0.2, 0.3, 0.9, 0.5}), model("md", {0.2, 0.3, 0.4, 0.8, 0.5})};
  const auto pairs = deep::score_pairs(study.models);
  ASSERT_EQ(pairs.size(), 1u);
  EXPECT_EQ(pairs[0].published.first, 1);
  EXPECT_EQ(pairs[0].published.second, 3);
  EXPECT_EQ(pairs[0].published.ties, 1);
  EXPECT_NEAR(pairs[0].published.p, 2 * (1.0 + 4) / 16, 1e-12);
  EXPECT_EQ(pairs[0].words.first, 3);
  const Table table = deep::review_pairs_table(study);
  EXPECT_EQ(table.rows,
            (std::vector<std::vector<std::string>>{{"gd : md", "1 : 3", "1", "0.62", "3 : 1", "1", "0.62"}}));
  const std::string conclusion = deep::review_conclusion(study);
  EXPECT_NE(conclusion.find("md gives sentiment words the highest mean score"), std::string::npos)
      << conclusion;
  EXPECT_NE(conclusion.find("in 3, the latter in 1"), std::string::npos) << conclusion;
  EXPECT_EQ(deep::review_table(study).rows.size(), 2u);
  const std::string html = to_html(deep::review_page(study));
  for (const char* words : {"fantastic, enjoyed", "hated, boring", "5 of them, evenly spaced", "was given"})
    EXPECT_NE(html.find(words), std::string::npos) << words;
  study.models[1].reviews[2].row = 5;
  test::expect_bad_input({"gd", "md", "different reviews"}, [&] { deep::score_pairs(study.models); });
}

TEST(TokenScore, PairsOfSentences) {
  const auto sentence = [](std::optional<double> published, std::optional<double> sum) {
    deep::SentenceScore score;
    score.published = published;
    score.sum = sum;
    return score;
  };
  std::vector<deep::ModelScore> models(3);
  models[0].sentences = {sentence(0.5, 0.2), sentence({}, 0.3), sentence(1, 1)};
  models[1].sentences = {sentence(0.4, 0.4), sentence({}, 0.4), sentence(1, {})};
  models[2].sentences = models[0].sentences;
  const auto pairs = deep::score_pairs(models);
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_EQ(pairs[0].published.first, 1);
  EXPECT_EQ(pairs[0].published.ties, 1);
  EXPECT_EQ(pairs[0].words.second, 2);
  EXPECT_NEAR(pairs[0].words.p, 0.5, 1e-12);
  EXPECT_EQ(pairs[1].second, 2u);
  EXPECT_EQ(pairs[1].words.ties, 3);
  // The page names the winner of each sentence: a of the first by P1's score, b of the first two by words.
  const std::vector<PivotalSentence> texts{{1, "x", "one"}, {1, "x", "two"}, {1, "x", "three"}};
  models[0].model = "a";
  models[1].model = "b";
  const Page page = deep::score_page(std::span(models).first(2), texts, {});
  const Table* sentences = nullptr;
  for (const PageBlock& block : page.sections.front().blocks)
    if (const auto* folded = std::get_if<Folded>(&block))
      sentences = &std::get<TableBlock>(folded->blocks.front()).table;
  ASSERT_TRUE(sentences);
  const auto winners = [&](std::size_t i) {
    const auto& row = sentences->rows[i];
    return row[row.size() - 2] + " " + row.back();
  };
  EXPECT_EQ(winners(0), "a b");
  EXPECT_EQ(winners(1), "– b");
  EXPECT_EQ(winners(2), "tie –");
  const std::vector<std::string> names{"a", "b", "c"};
  const Table table = deep::pairs_table(pairs, names, "sentences", "words, sum");
  EXPECT_EQ(table.rows[0], (std::vector<std::string>{"a : b", "1 : 0", "1", "1", "0 : 2", "0", "0.5"}));
}

}  // namespace
}  // namespace attmirror::view_tests
