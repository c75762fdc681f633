// Sentences in which networks differ: which they are, who wins, and what the page says of it.
#include "deep/views/differing_sentences.hpp"
#include "deep/views/example_models.hpp"
#include "deep/views/view_pages.hpp"
#include "support/files.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace attmirror::view_tests {
namespace {

using Scores = std::vector<std::optional<double>>;

std::vector<deep::ModelScore> made_up(const std::vector<std::pair<std::string, Scores>>& networks) {
  std::vector<deep::ModelScore> models;
  for (const auto& [name, scores] : networks) {
    deep::ModelScore& model = models.emplace_back();
    model.model = name;
    for (const std::optional<double>& score : scores) {
      deep::SentenceScore& one = model.sentences.emplace_back();
      one.published = one.sum = score;
      one.pieces.resize(model.sentences.size());
      one.tokens_attended = static_cast<double>(models.size() * model.sentences.size());
      if (!score) one.dropped = "\"x\" does not occur";
    }
  }
  return models;
}

std::vector<std::size_t> sentences_of(const std::vector<deep::SentenceRange>& group) {
  std::vector<std::size_t> sentences;
  for (const deep::SentenceRange& one : group) sentences.push_back(one.sentence);
  return sentences;
}

using Sentences = std::vector<std::size_t>;

// Ranges: 0.5, 0.25, none, 0.5, 0, 0.75, 0.
const std::vector<std::pair<std::string, Scores>> three_networks{
    {"a", {0.5, 0.25, 0.5, 1.0, 0.5, 1.0, 0.25}},
    {"b", {0.0, 0.50, {}, 0.5, 0.5, 0.5, 0.25}},
    {"c", {0.25, 0.25, 1.0, 1.0, 0.5, 0.25, 0.25}}};

TEST(DifferingSentences, AreThoseWithTheLargestAndTheSmallestRange) {
  const auto differing = deep::differing_sentences(made_up(three_networks), 3);
  EXPECT_EQ(differing.scored, 6);  // the third has no score of b
  EXPECT_EQ(sentences_of(differing.most), (Sentences{5, 0, 3}));
  EXPECT_EQ(sentences_of(differing.least), (Sentences{4, 6, 1}));
  EXPECT_DOUBLE_EQ(differing.most[0].range, 0.75);
  EXPECT_EQ(differing.most[0].highest, (Sentences{0}));
  EXPECT_EQ(differing.most[0].lowest, (Sentences{2}));
  EXPECT_EQ(differing.most[2].highest, (Sentences{0, 2}));
  EXPECT_EQ(differing.least[0].highest, (Sentences{0, 1, 2}));
  EXPECT_EQ(differing.least[2].lowest, (Sentences{0, 2}));
}

TEST(DifferingSentences, StandingsCountAllSentencesWithAScore) {
  const auto differing = deep::differing_sentences(made_up(three_networks), 1);
  ASSERT_EQ(differing.networks.size(), 3u);
  EXPECT_EQ(differing.networks[0].wins, 2);  // the first and the sixth
  EXPECT_EQ(differing.networks[1].wins, 1);
  EXPECT_EQ(differing.networks[2].wins, 0);
  EXPECT_EQ(differing.ties, 3);
  EXPECT_EQ(differing.networks[0].all.count, 6);
  EXPECT_DOUBLE_EQ(differing.networks[0].all.mean, 3.5 / 6);
  EXPECT_DOUBLE_EQ(differing.networks[2].all.mean, 2.5 / 6);  // without its 1.0 in the third
  EXPECT_DOUBLE_EQ(differing.networks[0].chosen, (1.0 + 0.5) / 2);
  // Sentence i has i + 1 tokens, of which the m-th network attends to m (i + 1). The third, without a score of b,
  // does not count.
  EXPECT_DOUBLE_EQ(differing.tokens, (28.0 - 3) / 6);
  EXPECT_DOUBLE_EQ(differing.networks[1].tokens_attended, 2 * (28.0 - 3) / 6);
  ASSERT_EQ(differing.pairs.size(), 3u);
  EXPECT_EQ(differing.pairs[0].published.first, 3);
  EXPECT_EQ(differing.pairs[0].published.second, 1);
  EXPECT_EQ(differing.pairs[0].published.ties, 2);
}

TEST(DifferingSentences, EqualRangesKeepTheOrderOfTheFileAndGroupsDoNotOverlap) {
  const auto differing =
      deep::differing_sentences(made_up({{"a", Scores(5, 0.5)}, {"b", Scores(5, 0.25)}}), 2);
  EXPECT_EQ(sentences_of(differing.most), (Sentences{0, 1}));
  EXPECT_EQ(sentences_of(differing.least), (Sentences{2, 3}));
}

TEST(DifferingSentences, RefusesWhatCannotBeChosen) {
  const auto models = made_up(three_networks);
  for (const std::int64_t count : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{4}})
    test::expect_bad_input({"differing is " + std::to_string(count), "1 to 3", "6 sentences"},
                           [&] { deep::differing_sentences(models, count); });
  test::expect_bad_input({"differing is 1", "1 network"},
                         [&] { deep::differing_sentences(std::span(models).first(1), 1); });
  const auto few = made_up({{"a", {0.5, {}}}, {"b", {0.5, 1.0}}});
  test::expect_bad_input({"differing is 1", "1 sentence "}, [&] { deep::differing_sentences(few, 1); });
}

// A view of made-up scores, for what is said of them; the maps are not looked at.
deep::DifferingView view_of(const std::vector<std::pair<std::string, Scores>>& networks, std::int64_t count) {
  deep::DifferingView view;
  view.scores = made_up(networks);
  for (std::size_t i = 0; i < networks.front().second.size(); ++i)
    view.sentences.push_back({1, "x", "sentence " + std::to_string(i)});
  view.differing = deep::differing_sentences(view.scores, count);
  return view;
}

std::string conclusion_of(const std::vector<std::pair<std::string, Scores>>& networks) {
  return deep::differing_page(view_of(networks, 1)).conclusion;
}

TEST(DifferingPage, ConclusionNamesTheBestAndWhatTheSignTestSays) {
  // 8 : 0 wins have p = 2 / 2^8, 7 : 1 wins p = 2 * 9 / 2^8.
  Scores best(8, 0.75), worse(8, 0.25), close(8, 0.5);
  close[5] = 1;
  worse[2] = 0;
  EXPECT_EQ(
      conclusion_of({{"worse", worse}, {"best", best}, {"close", close}}),
      "Over all 8 sentences with a score, best attends most to the pivotal word, with the highest mean score, 0.7500 ± 0.0000 "
      "(1 is the most attention of all tokens). Sentence by sentence, the sign test confirms this against worse "
      "(8 : 0 wins, p = 0.0078), but not against close (7 : 1 wins, p = 0.07). They differ most in “sentence 2”: "
      "best has the highest score, 0.750, and worse has the lowest score, 0.000.");
}

TEST(DifferingPage, ConclusionSaysWhereTheSignTestDisagreesWithTheMean) {
  // The mean of `rare` is higher by two sentences, but `often` wins the other ten: p = 2 (1 + 12 + 66) / 2^12.
  Scores rare(12, 0.25), often(12, 0.375);
  rare[0] = rare[1] = 1;
  often[0] = often[1] = 0;
  const std::string said = conclusion_of({{"often", often}, {"rare", rare}});
  for (const char* words :
       {"rare attends most to the pivotal word", "the sign test decides in favor of often",
        "(2 : 10 wins, p = 0.039)", "“sentence 0”"})
    EXPECT_NE(said.find(words), std::string::npos) << said;
}

TEST(DifferingPage, ConclusionOfEqualNetworks) {
  EXPECT_EQ(conclusion_of({{"a", Scores(4, 0.5)}, {"b", Scores(4, 0.5)}}),
            "Over all 4 sentences with a score, a and b share the highest mean score of the pivotal word, "
            "0.5000 ± 0.0000. The networks have the same score in every sentence.");
}

TEST(DifferingPage, SaysWhereTheTwoScoresDecideDifferently) {
  // By P1's score a wins all 8 against b, and c has the scores of a; over words c wins all 8 against a.
  deep::DifferingView view =
      view_of({{"a", Scores(8, 0.75)}, {"b", Scores(8, 0.25)}, {"c", Scores(8, 0.75)}}, 1);
  const auto said = [&] {
    const Page page = deep::differing_page(view);
    std::string text;
    for (const PageBlock& block : page.sections.back().blocks)
      if (const auto* paragraph = std::get_if<Paragraph>(&block)) text = paragraph->text;
    return text;
  };
  EXPECT_EQ(said(), "The sign test decides alike by both scores for every pair.");
  for (deep::SentenceScore& one : view.scores[2].sentences) one.sum = 1;
  view.differing = deep::differing_sentences(view.scores, 1);
  EXPECT_EQ(
      said(),
      "The two scores do not agree on whom the sign test favors: a : c (neither by P1's score, c over words).");
}

TEST(DifferingPage, TableComparesWithTheFirstNetwork) {
  const Table table = deep::differing_table(view_of(three_networks, 1));
  EXPECT_EQ(table.columns[1].name, "mean of all 6");
  EXPECT_EQ(table.columns[2].name, "mean of the 2 chosen");
  EXPECT_EQ(table.columns[5].name, "against a");
  ASSERT_EQ(table.rows.size(), 3u);
  EXPECT_EQ(table.rows[0],
            (std::vector<std::string>{"a", "0.5833 ± 0.1394", "0.7500", "4.17", "2", "–", "–", "–"}));
  EXPECT_EQ(table.rows[1][5], "1 : 3");
  EXPECT_EQ(table.rows[1][6], "2");
  EXPECT_EQ(table.rows[1][7], "0.62");
}

TEST(DifferingPage, ShowsNetworksOnTheSentencesTheyDifferIn) {
  // Unequal lengths: all read a sentence as the shortest does, so that scores are those of the maps.
  const std::vector<deep::TextModel> models{
      {"sharp", example_encoder(1, {.sharpness = 5})},
      {"deep", example_encoder(2, {.blocks = 3, .heads = 3, .sharpness = 4})},
      {"even", example_encoder(3)},
      {"short", example_encoder(4, {.length = 8, .sharpness = 5})}};
  std::vector<PivotalSentence> sentences = example_sentences();
  sentences.push_back({1, "great", "the movie was great . i enjoyed it . the plot was great"});
  const auto view = deep::differing_view(models, example_vocabulary(), sentences, 2);
  EXPECT_EQ(view.differing.scored, 4);
  ASSERT_EQ(view.most.maps.texts.size(), 2u);
  ASSERT_EQ(view.least.maps.texts.size(), 2u);
  for (const auto& [group, attention] :
       {std::pair{&view.differing.most, &view.most}, std::pair{&view.differing.least, &view.least}})
    for (std::size_t i = 0; i < 2; ++i) {
      const TokenText& text = attention->maps.texts[i];
      ASSERT_EQ(text.marked.size(), 1u);
      EXPECT_NE(text.title.find("scores differ by"), std::string::npos) << text.title;
      double most = 0, least = 1;
      for (std::size_t m = 0; m < models.size(); ++m) {
        // What the map shows for the pivotal word is the score.
        const double shown = min_max(first_row(text.models[m], text.tokens.size()))[text.marked.front()];
        const double score = *view.scores[m].sentences[(*group)[i].sentence].published;
        EXPECT_NEAR(shown, score, 1e-6);
        EXPECT_TRUE(text.models[m].note.starts_with(fmt::format("score {:.3f}", score)))
            << text.models[m].note;
        most = std::max(most, shown);
        least = std::min(least, shown);
      }
      EXPECT_NEAR((*group)[i].range, most - least, 1e-6);
    }
  for (const deep::SentenceRange& far : view.differing.most)
    for (const deep::SentenceRange& near : view.differing.least) EXPECT_GE(far.range, near.range);

  const Page page = deep::differing_page(view);
  page.validate();
  const std::string html = to_html(page);
  for (const char* words :
       {"Where the networks differ most", "Where the networks differ least", "the highest", "the lowest",
        "4 of 7 sentences have a score", "Sentences that P1's score drops"})
    EXPECT_NE(html.find(words), std::string::npos) << words;
  EXPECT_EQ(html.find("The page has room for"), std::string::npos);
}

TEST(DifferingPage, EachGroupHasHalfOfTheRoom) {
  const std::vector<deep::TextModel> models{{"a", example_encoder(1, {.sharpness = 5})},
                                            {"b", example_encoder(2, {.sharpness = 5})}};
  std::vector<PivotalSentence> sentences;
  for (const char* word : {"movie", "plot", "theater", "projector"})
    sentences.push_back({1, word, std::string("the ") + word + " was great"});
  // Both networks have 4 maps: 6 tokens take 128 bytes with one row each.
  const auto view = deep::differing_view(models, example_vocabulary(), sentences, 2, {.most_bytes = 300});
  EXPECT_EQ(view.most.maps.texts.size(), 1u);
  EXPECT_EQ(view.least.maps.texts.size(), 1u);
  EXPECT_EQ(view.differing.most.size(), 2u);
  const Page page = deep::differing_page(view);
  page.validate();
  // What is said of all that were chosen does not call them shown.
  const std::string html = to_html(page);
  for (const char* words : {"The page shows the first 1 of 2 texts",
                            "The page has room for 2 of these 4 sentences.", "mean of the 4 chosen"})
    EXPECT_NE(html.find(words), std::string::npos) << words;
  EXPECT_EQ(html.find("shown were chosen"), std::string::npos);
  EXPECT_EQ(page.subtitle, "2 networks, 2 of 4 sentences");
}

}  // namespace
}  // namespace attmirror::view_tests
