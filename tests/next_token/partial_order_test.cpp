#include "next_token/target_data.hpp"
#include "support/files.hpp"
#include <attmirror/next_token/partial_order.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

using test::expect_bad_input;
using Tokens = std::vector<Token>;
using Pairs = std::set<std::pair<Token, Token>>;

Pairs pairs_of(const PartialOrders& orders, Token query) {
  Pairs pairs;
  for (const Preference& preference : orders.preferences(query))
    pairs.emplace(preference.better, preference.worse);
  return pairs;
}

TEST(PartialOrders, TheSuccessorsTokenBeatsTheOthers) {
  // n(x) = x + 1; two sentences of query 4, one of query 0, which is its own best token.
  const Collocations next = Collocations::hard(Tokens{1, 2, 3, 4, 5, 0});
  const Sentences sentences = test::sentences_of(6, {{{2, 0, 0, 4}, 3}, {{1, 2, 4}, 2}, {{3, 5, 0}, 1}});
  const PartialOrders orders(sentences, next);
  EXPECT_EQ(pairs_of(orders, 4), (Pairs{{2, 0}, {2, 4}, {1, 2}, {1, 4}}));
  EXPECT_EQ(pairs_of(orders, 0), (Pairs{{0, 3}, {0, 5}}));
  EXPECT_EQ(orders.total_preferences(), 6);
  EXPECT_EQ(orders.queries(), (Tokens{0, 4}));
  EXPECT_TRUE(orders.is_realizable());
  EXPECT_EQ(orders.token_class(4, 1), TokenClass::optimal);
  EXPECT_EQ(orders.token_class(4, 2), TokenClass::non_optimal) << "it beats others, and is beaten";
  EXPECT_EQ(orders.token_class(4, 3), TokenClass::non_comparable);
  EXPECT_EQ(orders.token_class(1, 1), TokenClass::non_comparable);
  using enum TokenClass;
  EXPECT_EQ(orders.token_classes(0), (std::vector<TokenClass>{optimal, non_comparable, non_comparable,
                                                              non_optimal, non_comparable, non_optimal}));
  EXPECT_EQ(to_string(non_comparable), "non-comparable");
}

TEST(PartialOrders, TokensWithTheSameSuccessorAreNotCompared) {
  const Collocations map = Collocations::hard(Tokens{3, 3, 0, 1});
  const PartialOrders orders(test::sentences_of(4, {{{0, 1, 2}, 3}}), map);
  EXPECT_EQ(pairs_of(orders, 2), (Pairs{{0, 2}, {1, 2}}));
}

TEST(PartialOrders, SoftCollocationsExplainByAnyOfTheirSuccessors) {
  Collocations soft = Collocations::identity(4);
  soft.add(0, 3);
  const PartialOrders orders(test::sentences_of(4, {{{0, 1, 2}, 3}, {{0, 1, 2}, 0}, {{3, 0, 1}, 3}}), soft);
  EXPECT_EQ(pairs_of(orders, 2), (Pairs{{0, 1}, {0, 2}}));
  EXPECT_EQ(pairs_of(orders, 1), (Pairs{{0, 1}, {3, 1}})) << "3 and 0 both explain the label";
}

TEST(PartialOrders, LabelsThatNoTokenExplainsAreKeptAside) {
  const PartialOrders orders(
      test::sentences_of(4, {{{0, 1}, 1}, {{1, 0}, 3}, {{1, 2, 0}, 2}, {{0, 1, 2}, 3}}),
      Collocations::identity(4));
  ASSERT_EQ(orders.unexplained().size(), 2u);
  EXPECT_EQ(orders.unexplained()[0].sentence, 1);
  EXPECT_EQ(orders.unexplained()[1].sentence, 3);
  EXPECT_FALSE(orders.find_cycle());
  EXPECT_FALSE(orders.is_realizable());
  EXPECT_EQ(pairs_of(orders, 0), (Pairs{{2, 1}, {2, 0}}));
}

TEST(PartialOrders, AComparisonNamesItsFirstSentence) {
  const PartialOrders orders(test::sentences_of(3, {{{2, 1}, 1}, {{0, 1}, 0}, {{0, 2, 1}, 0}, {{0, 1}, 0}}),
                             Collocations::identity(3));
  ASSERT_EQ(orders.preferences(1).size(), 3u);
  EXPECT_EQ(orders.preferences(1)[0], (Preference{0, 1}));
  EXPECT_EQ(orders.preferences(1)[0].sentence, 1);
  EXPECT_EQ(orders.preferences(1)[1].sentence, 2);
  EXPECT_EQ(orders.preferences(1)[2], (Preference{1, 2}));
}

TEST(PartialOrders, TwoLabelsOfOneSentenceAreACycleOfTwo) {
  const Vocabulary words({"the", "dog", "cat"});
  const PartialOrders orders(test::sentences_of(3, {{{1, 2, 0}, 1}, {{1, 2, 0}, 2}}),
                             Collocations::identity(3));
  const auto cycle = orders.find_cycle();
  ASSERT_TRUE(cycle);
  EXPECT_EQ(cycle->query, 0);
  EXPECT_EQ(to_string(*cycle, words), "after the: dog > cat (sentence 1) > dog (sentence 2)");
  const std::vector<std::int64_t> lines = {12, 40};
  EXPECT_EQ(to_string(*cycle, words, lines), "after the: dog > cat (line 12) > dog (line 40)");
  EXPECT_EQ(orders.token_class(0, 1), TokenClass::non_optimal);
  EXPECT_FALSE(orders.is_realizable());
}

TEST(PartialOrders, ACycleIsShortestAndOfTheLowestQuery) {
  // Under 7: 0 > 1 > 2 > 3 > 0 with the short cut 2 > 0; under 8: a pair. 7 is last everywhere and beaten by all.
  const PartialOrders orders(test::sentences_of(10, {{{5, 6, 8}, 5},
                                                     {{6, 5, 8}, 6},
                                                     {{0, 1, 7}, 0},
                                                     {{1, 2, 7}, 1},
                                                     {{2, 3, 7}, 2},
                                                     {{3, 0, 7}, 3},
                                                     {{2, 0, 7}, 2},
                                                     {{9, 0, 7}, 9}}),
                             Collocations::identity(10));
  const auto cycle = orders.find_cycle();
  ASSERT_TRUE(cycle);
  EXPECT_EQ(to_string(*cycle, Vocabulary::numbered(10)),
            "after w7: w0 > w1 (sentence 3) > w2 (sentence 4) > w0 (sentence 7)");
}

TEST(PartialOrders, LongChainsAndLongCyclesAreFine) {
  constexpr Token size = 5'000;
  Sentences sentences(size);
  for (Token x = 0; x + 2 < size; ++x) sentences.add(Tokens{x, x + 1, size - 1}, x);
  const PartialOrders chain(sentences, Collocations::identity(size));
  EXPECT_TRUE(chain.is_realizable());
  sentences.add(Tokens{size - 2, 0, size - 1}, size - 2);
  const auto cycle = PartialOrders(sentences, Collocations::identity(size)).find_cycle();
  ASSERT_TRUE(cycle);
  EXPECT_EQ(cycle->steps.size(), std::size_t{size} - 1);
  const std::string text = to_string(*cycle, Vocabulary::numbered(size));
  EXPECT_NE(text.find("(4987 more)"), std::string::npos) << text;
  EXPECT_LT(text.size(), 500u);
}

TEST(PartialOrders, RefusesDifferentVocabularies) {
  expect_bad_input({"3 words", "one of 4"}, [] { PartialOrders(Sentences(3), Collocations::identity(4)); });
}

// The definitions word by word, on anything: pairs by brute force, a cycle's length by powers of the relation.
TEST(PartialOrders, AgreesWithTheDefinitions) {
  EXPECT_TRUE(rc::check("comparisons, classes and cycles", [] {
    const Token size = *rc::gen::inRange<Token>(1, 7);
    const auto token = rc::gen::inRange<Token>(0, size);
    Tokens map =
        *rc::gen::container<Tokens>(static_cast<std::size_t>(size), rc::gen::inRange<Token>(-1, size));
    Collocations collocations = Collocations::hard(map);
    if (*rc::gen::arbitrary<bool>()) collocations.add(*token, *token);
    Sentences sentences(size);
    const auto count = *rc::gen::inRange(0, 12);
    for (int i = 0; i < count; ++i) {
      const Tokens tokens = *rc::gen::nonEmpty(rc::gen::container<Tokens>(token));
      sentences.add(tokens, *token);
    }
    const PartialOrders orders(sentences, collocations);

    std::vector<Pairs> expected(static_cast<std::size_t>(size));
    std::vector<std::int64_t> unexplained;
    for (std::ptrdiff_t i = 0; i < sentences.count(); ++i) {
      bool explained = false;
      for (const Token x : sentences.tokens(i)) {
        if (!collocations.follows(sentences.label(i), x)) continue;
        explained = true;
        for (const Token other : sentences.tokens(i))
          if (!collocations.follows(sentences.label(i), other))
            expected[static_cast<std::size_t>(sentences.query(i))].emplace(x, other);
      }
      if (!explained) unexplained.push_back(i);
    }
    RC_ASSERT(orders.unexplained().size() == unexplained.size());
    for (std::size_t k = 0; k < unexplained.size(); ++k)
      RC_ASSERT(orders.unexplained()[k].sentence == unexplained[k]);

    std::optional<std::pair<Token, std::size_t>> shortest;  // query and length
    for (Token q = 0; q < size; ++q) {
      const Pairs& pairs = expected[static_cast<std::size_t>(q)];
      RC_ASSERT(pairs_of(orders, q) == pairs);
      RC_ASSERT(std::is_sorted(orders.preferences(q).begin(), orders.preferences(q).end(),
                               [](const Preference& a, const Preference& b) {
                                 return std::pair(a.better, a.worse) < std::pair(b.better, b.worse);
                               }));
      for (Token x = 0; x < size; ++x) {
        bool compared = false, beaten = false;
        for (const auto& pair : pairs) {
          compared = compared || pair.first == x || pair.second == x;
          beaten = beaten || pair.second == x;
        }
        const TokenClass wanted = !compared ? TokenClass::non_comparable
                                  : beaten  ? TokenClass::non_optimal
                                            : TokenClass::optimal;
        RC_ASSERT(orders.token_class(q, x) == wanted);
        RC_ASSERT(orders.token_classes(q)[static_cast<std::size_t>(x)] == wanted);
      }
      Pairs power = pairs;
      for (std::size_t length = 1; length <= static_cast<std::size_t>(size) && !shortest; ++length) {
        for (const auto& pair : power)
          if (pair.first == pair.second) shortest = {q, length};
        Pairs next;
        for (const auto& walk : power)
          for (const auto& step : pairs)
            if (walk.second == step.first) next.emplace(walk.first, step.second);
        power = next;
      }
    }
    const auto cycle = orders.find_cycle();
    RC_ASSERT(cycle.has_value() == shortest.has_value());
    RC_ASSERT(orders.is_realizable() == (unexplained.empty() && !cycle));
    if (!cycle) return;
    RC_ASSERT(cycle->query == shortest->first);
    RC_ASSERT(cycle->steps.size() == shortest->second);
    for (std::size_t k = 0; k < cycle->steps.size(); ++k) {
      const Preference& step = cycle->steps[k];
      RC_ASSERT(step.worse == cycle->steps[(k + 1) % cycle->steps.size()].better);
      RC_ASSERT(expected[static_cast<std::size_t>(cycle->query)].contains({step.better, step.worse}));
      RC_ASSERT(step.better >= cycle->steps.front().better);
      RC_ASSERT(sentences.query(step.sentence) == cycle->query);
    }
  }));
}

}  // namespace
}  // namespace attmirror
