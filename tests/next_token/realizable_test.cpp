#include "support/files.hpp"
#include <attmirror/next_token/realizable.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace attmirror {
namespace {

using test::expect_bad_input;
using Tokens = std::vector<Token>;

Tokens tokens_of(const Sentences& sentences, std::ptrdiff_t i) {
  return {sentences.tokens(i).begin(), sentences.tokens(i).end()};
}

std::ptrdiff_t rank_of(const RealizableData& data, Token q, Token x) {
  const Tokens& ranking = data.rankings[static_cast<std::size_t>(q)];
  return std::find(ranking.begin(), ranking.end(), x) - ranking.begin();
}

bool holds_a_token_twice(Tokens tokens) {
  std::sort(tokens.begin(), tokens.end());
  return std::adjacent_find(tokens.begin(), tokens.end()) != tokens.end();
}

TEST(Realizable, ThreeClassesAreWhatTheySay) {
  const RealizableData data = make_realizable({.repetition = Repetition::avoided});
  EXPECT_EQ(data.options.optimal, 5);
  EXPECT_EQ(data.options.non_optimal, 10);
  EXPECT_EQ(data.sentences.count(), 100);
  EXPECT_EQ(data.vocabulary.word(19), "w19");
  EXPECT_EQ(data.collocations.count(), 20);
  std::set<Token> successors;
  for (Token x = 0; x < 20; ++x) successors.insert(data.collocations.successor(x));
  EXPECT_EQ(successors.size(), 20u) << "a permutation";
  std::set<std::size_t> lengths, places;
  int own = 0;
  for (std::ptrdiff_t i = 0; i < 100; ++i) {
    const Tokens tokens = tokens_of(data.sentences, i);
    const Token q = data.sentences.query(i);
    EXPECT_EQ(q, i % 20);
    EXPECT_EQ(data.sentences.weight(i), 1);
    EXPECT_FALSE(holds_a_token_twice(tokens));
    lengths.insert(tokens.size());
    Tokens optimal;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      EXPECT_LT(rank_of(data, q, tokens[t]), 15) << "an unused token";
      if (rank_of(data, q, tokens[t]) >= 5) continue;
      optimal.push_back(tokens[t]);
      if (tokens[t] != q) places.insert(t);
    }
    ASSERT_EQ(optimal.size(), 1u);
    EXPECT_EQ(data.sentences.label(i), data.collocations.successor(optimal.front()));
    if (rank_of(data, q, q) < 5) {
      EXPECT_EQ(optimal.front(), q);
      ++own;
    }
  }
  EXPECT_EQ(lengths, (std::set<std::size_t>{4, 5, 6}));
  EXPECT_GE(places.size(), 4u) << "the best token may stand anywhere before the query";
  EXPECT_GT(own, 0);
  EXPECT_LT(own, 60);
}

// As in P4's experiment: the others are independent draws, and a query that is optimal stands there twice.
TEST(Realizable, RepetitionIsIndependentDraws) {
  const RealizableData data = make_realizable({.sentences = 20'000});
  std::vector<std::ptrdiff_t> drawn(20, 0);
  std::ptrdiff_t total = 0;
  for (std::ptrdiff_t i = 0; i < data.sentences.count(); ++i) {
    Tokens tokens = tokens_of(data.sentences, i);
    const Token q = tokens.back();
    tokens.pop_back();
    std::ptrdiff_t optimal = 0;
    for (const Token x : tokens) {
      const std::ptrdiff_t rank = rank_of(data, q, x);
      ASSERT_LT(rank, 15);
      optimal += rank < 5 ? 1 : 0;
      if (rank < 5) {
        EXPECT_EQ(data.sentences.label(i), data.collocations.successor(x));
        EXPECT_TRUE(rank_of(data, q, q) >= 5 || x == q);
        continue;
      }
      ++drawn[static_cast<std::size_t>(rank)];
      ++total;
    }
    ASSERT_EQ(optimal, 1) << "the best token once before the query";
  }
  EXPECT_NEAR(static_cast<double>(total), 3 * 20'000, 500) << "two to four others";
  const double each = static_cast<double>(total) / 10;
  for (std::size_t rank = 5; rank < 15; ++rank)
    EXPECT_NEAR(static_cast<double>(drawn[rank]), each, 5 * std::sqrt(each));
}

TEST(Realizable, LinearOrdersChooseTheBestRanked) {
  const RealizableData data = make_realizable(
      {.sentences = 400, .order = OrderKind::linear, .repetition = Repetition::avoided, .seed = 3});
  for (std::ptrdiff_t i = 0; i < data.sentences.count(); ++i) {
    const Tokens tokens = tokens_of(data.sentences, i);
    const Token q = data.sentences.query(i);
    EXPECT_FALSE(holds_a_token_twice(tokens));
    const Token best = *std::min_element(tokens.begin(), tokens.end(), [&](Token a, Token b) {
      return rank_of(data, q, a) < rank_of(data, q, b);
    });
    EXPECT_EQ(data.sentences.label(i), data.collocations.successor(best));
  }
  EXPECT_TRUE(PartialOrders(data.sentences, data.collocations).is_realizable());
}

// Whatever the options are: the data are realizable, and of three classes a token has the class that its rank says.
TEST(Realizable, AlwaysIs) {
  EXPECT_TRUE(rc::check("any options", [] {
    RealizableOptions options;
    options.vocabulary = *rc::gen::inRange<std::ptrdiff_t>(2, 25);
    options.sentences = *rc::gen::inRange<std::ptrdiff_t>(1, 300);
    options.min_length = *rc::gen::inRange<std::ptrdiff_t>(2, 8);
    options.max_length = options.min_length + *rc::gen::inRange<std::ptrdiff_t>(0, 30);
    options.order = *rc::gen::element(OrderKind::three_class, OrderKind::linear);
    options.successor = *rc::gen::element(SuccessorKind::permutation, SuccessorKind::map);
    options.repetition = *rc::gen::element(Repetition::allowed, Repetition::avoided);
    options.seed = *rc::gen::arbitrary<std::uint64_t>();
    if (options.order == OrderKind::three_class) {
      options.optimal = *rc::gen::inRange<std::ptrdiff_t>(0, options.vocabulary);
      options.non_optimal = *rc::gen::inRange<std::ptrdiff_t>(
          0, options.vocabulary - std::max<std::ptrdiff_t>(options.optimal, 1) + 1);
    }
    const RealizableData data = make_realizable(options);
    RC_ASSERT(data.sentences.count() == options.sentences);
    const PartialOrders orders(data.sentences, data.collocations);
    RC_ASSERT(orders.unexplained().empty());
    RC_ASSERT(!orders.find_cycle());
    for (std::ptrdiff_t i = 0; i < data.sentences.count(); ++i) {
      const auto length = static_cast<std::ptrdiff_t>(data.sentences.tokens(i).size());
      RC_ASSERT(length >= options.min_length && length <= options.max_length);
    }
    if (options.order == OrderKind::linear) return;
    RC_ASSERT(data.options.optimal >= 1 && data.options.non_optimal >= 1);
    for (Token q = 0; q < options.vocabulary; ++q)
      for (const Preference& preference : orders.preferences(q)) {
        RC_ASSERT(rank_of(data, q, preference.better) < data.options.optimal);
        RC_ASSERT(rank_of(data, q, preference.worse) >= data.options.optimal);
        RC_ASSERT(rank_of(data, q, preference.worse) < data.options.optimal + data.options.non_optimal);
      }
  }));
}

// Tokens that share a successor are what a careless generator stumbles over; there must be some to stumble over.
TEST(Realizable, MapsShareSuccessors) {
  for (const OrderKind order : {OrderKind::three_class, OrderKind::linear})
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const RealizableData data = make_realizable({.vocabulary = 12,
                                                   .sentences = 240,
                                                   .order = order,
                                                   .successor = SuccessorKind::map,
                                                   .seed = seed});
      std::set<Token> successors;
      for (Token x = 0; x < 12; ++x) successors.insert(data.collocations.successor(x));
      EXPECT_LT(successors.size(), 12u);
      EXPECT_TRUE(PartialOrders(data.sentences, data.collocations).is_realizable());
    }
}

TEST(Realizable, SeedsAreAddresses) {
  const RealizableData few = make_realizable({.sentences = 30, .seed = 9});
  const RealizableData many = make_realizable({.sentences = 300, .seed = 9});
  EXPECT_EQ(few.rankings, many.rankings);
  for (std::ptrdiff_t i = 0; i < 30; ++i)
    EXPECT_EQ(tokens_of(few.sentences, i), tokens_of(many.sentences, i)) << "more sentences change none";
  EXPECT_NE(make_realizable({.seed = 10}).sentences.fingerprint(),
            make_realizable({.seed = 9}).sentences.fingerprint());
}

TEST(Realizable, RepeatsTokensOnlyWhereItMust) {
  const RealizableData data = make_realizable({.vocabulary = 5,
                                               .sentences = 50,
                                               .min_length = 9,
                                               .max_length = 9,
                                               .order = OrderKind::linear,
                                               .repetition = Repetition::avoided});
  for (std::ptrdiff_t i = 0; i < 50; ++i) {
    std::vector<int> times(5, 0);
    for (const Token x : data.sentences.tokens(i)) ++times[static_cast<std::size_t>(x)];
    for (Token x = 0; x < 5; ++x)
      EXPECT_EQ(times[static_cast<std::size_t>(x)], x == data.sentences.query(i) ? 1 : 2);
  }
}

TEST(Realizable, RefusesWhatHasNoMeaning) {
  const auto refuse = [](const RealizableOptions& options, std::initializer_list<std::string_view> words) {
    expect_bad_input(words, [&] { make_realizable(options); });
  };
  refuse({.vocabulary = 1}, {"vocabulary is 1"});
  refuse({.vocabulary = 1'000'000}, {"vocabulary is 1000000"});
  refuse({.sentences = 0}, {"sentences is 0"});
  refuse({.min_length = 1}, {"min_length is 1"});
  refuse({.min_length = 5, .max_length = 4}, {"max_length is 4", "5"});
  refuse({.optimal = -1}, {"optimal is -1"});
  refuse({.non_optimal = -1}, {"non_optimal is -1"});
  refuse({.optimal = 12, .non_optimal = 9}, {"optimal is 12", "non_optimal 9", "20"});
  refuse({.optimal = 20}, {"optimal is 20"});
  refuse({.order = OrderKind::linear, .optimal = 2}, {"optimal is 2", "linear"});
  EXPECT_EQ((RealizableOptions{.optimal = 15}.resolved().non_optimal), 5) << "what is left";
  EXPECT_EQ((RealizableOptions{.non_optimal = 18}.resolved().optimal), 2);

  EXPECT_EQ(parse_order_kind("linear"), OrderKind::linear);
  EXPECT_EQ(parse_order_kind("three-class"), OrderKind::three_class);
  EXPECT_EQ(parse_successor_kind("map"), SuccessorKind::map);
  EXPECT_EQ(parse_unseen_kind("longer"), UnseenKind::longer);
  expect_bad_input({"order is \"four\"", "three-class or linear"}, [] { parse_order_kind("four"); });
}

TEST(UnseenSentences, AreNewAndFollowTheSameOrder) {
  for (const OrderKind order : {OrderKind::three_class, OrderKind::linear})
    for (const UnseenKind kind : {UnseenKind::same_order, UnseenKind::longer}) {
      const RealizableData data = make_realizable({.order = order});
      const Sentences unseen = unseen_sentences(data, kind, 500, 4);
      EXPECT_EQ(unseen.count(), 500);
      EXPECT_EQ(unseen.fingerprint(), unseen_sentences(data, kind, 500, 4).fingerprint());
      EXPECT_NE(unseen.fingerprint(), unseen_sentences(data, kind, 500, 5).fingerprint());
      std::set<Tokens> seen;
      for (std::ptrdiff_t i = 0; i < 100; ++i) seen.insert(tokens_of(data.sentences, i));
      Sentences together = data.sentences;
      for (std::ptrdiff_t i = 0; i < 500; ++i) {
        const Tokens tokens = tokens_of(unseen, i);
        EXPECT_FALSE(seen.contains(tokens));
        EXPECT_EQ(tokens.size() > 6, kind == UnseenKind::longer);
        EXPECT_LE(tokens.size(), 12u);
        together.add(tokens, unseen.label(i));
      }
      EXPECT_TRUE(PartialOrders(together, data.collocations).is_realizable()) << "one order rules both";
    }
}

TEST(UnseenSentences, NonComparableOnesFollowTheExtendedOrder) {
  for (const SuccessorKind successor : {SuccessorKind::permutation, SuccessorKind::map}) {
    const RealizableData data = make_realizable({.successor = successor, .seed = 2});
    const PartialOrders orders(data.sentences, data.collocations);
    const Sentences unseen = unseen_sentences(data, UnseenKind::non_comparable, 400, 1);
    int best_is_optimal = 0, best_is_unknown = 0;
    for (std::ptrdiff_t i = 0; i < 400; ++i) {
      const Token q = unseen.query(i);
      const Tokens tokens = tokens_of(unseen, i);
      // optimal > non-comparable > non-optimal: one token stands alone at the top, and the label is its successor.
      const auto height = [&](Token x) {
        using enum TokenClass;
        const TokenClass kind = orders.token_class(q, x);
        return kind == optimal ? 2 : kind == non_comparable ? 1 : 0;
      };
      const Token best = *std::max_element(tokens.begin(), tokens.end(),
                                           [&](Token a, Token b) { return height(a) < height(b); });
      EXPECT_EQ(
          std::count_if(tokens.begin(), tokens.end(), [&](Token x) { return height(x) == height(best); }), 1);
      EXPECT_TRUE(std::any_of(tokens.begin(), tokens.end(), [&](Token x) { return height(x) == 1; }));
      EXPECT_EQ(unseen.label(i), data.collocations.successor(best));
      ++(height(best) == 2 ? best_is_optimal : best_is_unknown);
      EXPECT_NE(height(best), 0);
    }
    EXPECT_NEAR(best_is_optimal, 200, 40);
    EXPECT_NEAR(best_is_unknown, 200, 40);
  }
}

TEST(UnseenSentences, SaysWhenThereAreNone) {
  const RealizableData linear = make_realizable({.order = OrderKind::linear});
  expect_bad_input({"order is linear"}, [&] { unseen_sentences(linear, UnseenKind::non_comparable, 5, 1); });
  const RealizableData full =
      make_realizable({.vocabulary = 4, .sentences = 4'000, .optimal = 1, .non_optimal = 3});
  expect_bad_input({"no unseen sentences", "compares every token"},
                   [&] { unseen_sentences(full, UnseenKind::non_comparable, 5, 1); });
  const RealizableData all =
      make_realizable({.vocabulary = 2, .sentences = 500, .min_length = 2, .max_length = 2});
  expect_bad_input({"0 of 5", "same-order"}, [&] { unseen_sentences(all, UnseenKind::same_order, 5, 1); });
  expect_bad_input({"count is -1"}, [&] { unseen_sentences(all, UnseenKind::longer, -1, 1); });
  EXPECT_EQ(unseen_sentences(all, UnseenKind::longer, 0, 1).count(), 0);
  EXPECT_EQ(unseen_sentences(all, UnseenKind::longer, 7, 1).count(), 7);
}

TEST(UnseenSentences, AskOnlyQueriesThatTrainingHas) {
  const RealizableData data = make_realizable({.sentences = 3});
  for (const UnseenKind kind : {UnseenKind::same_order, UnseenKind::non_comparable, UnseenKind::longer}) {
    const Sentences unseen = unseen_sentences(data, kind, 60, 1);
    for (std::ptrdiff_t i = 0; i < 60; ++i) EXPECT_LT(unseen.query(i), 3);
  }
}

}  // namespace
}  // namespace attmirror
