#include "support/files.hpp"
#include <attmirror/next_token/sentences.hpp>

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::expect_bad_input;
using Tokens = std::vector<Token>;

TEST(Sentences, HoldsWhatWasAdded) {
  Sentences sentences(5);
  EXPECT_TRUE(sentences.empty());
  sentences.add(Tokens{3, 1, 3, 0}, 4, 2.5);
  sentences.add(Tokens{2}, 2);
  EXPECT_EQ(sentences.count(), 2);
  EXPECT_EQ(sentences.total_tokens(), 5);
  EXPECT_EQ(sentences.max_length(), 4);
  EXPECT_EQ(sentences.first(1), 4);
  EXPECT_EQ(Tokens(sentences.tokens(0).begin(), sentences.tokens(0).end()), (Tokens{3, 1, 3, 0}));
  EXPECT_EQ(sentences.query(0), 0);
  EXPECT_EQ(sentences.query(1), 2);
  EXPECT_EQ(sentences.label(0), 4);
  EXPECT_EQ(sentences.weight(1), 1.0);
  EXPECT_EQ(sentences.total_weight(), 3.5);
}

TEST(Sentences, RefusesWhatItCannotUseAndStaysAsItWas) {
  Sentences sentences(5);
  sentences.add(Tokens{0, 1}, 2);
  const std::uint64_t before = sentences.fingerprint();
  constexpr double infinity = std::numeric_limits<double>::infinity(),
                   nan = std::numeric_limits<double>::quiet_NaN(), huge = std::numeric_limits<double>::max();
  expect_bad_input({"sentence 1 has no token"}, [&] { sentences.add({}, 0); });
  expect_bad_input({"sentence 1: token 1 is 5", "0 to 4"}, [&] { sentences.add(Tokens{0, 5}, 0); });
  expect_bad_input({"token 0 is -1"}, [&] { sentences.add(Tokens{-1}, 0); });
  expect_bad_input({"label is 7"}, [&] { sentences.add(Tokens{0}, 7); });
  for (const double weight : {0.0, -1.0, infinity, nan})
    expect_bad_input({"weight", "finite number greater than 0"},
                     [&] { sentences.add(Tokens{0}, 0, weight); });
  EXPECT_EQ(sentences.fingerprint(), before);
  sentences.add(Tokens{0}, 0, huge);
  expect_bad_input({"sum of all weights"}, [&] { sentences.add(Tokens{0}, 0, huge); });
  expect_bad_input({"the vocabulary is empty"}, [] { Sentences().add(Tokens{0}, 0); });
}

TEST(Sentences, FingerprintTellsEveryNumberApart) {
  const auto of = [](std::ptrdiff_t size, std::vector<Tokens> rows, Token label, double weight) {
    Sentences sentences(size);
    for (const Tokens& row : rows) sentences.add(row, label, weight);
    return sentences.fingerprint();
  };
  const std::uint64_t reference = of(4, {{0, 1}, {2, 3}}, 1, 1);
  EXPECT_EQ(of(4, {{0, 1}, {2, 3}}, 1, 1), reference);
  EXPECT_NE(of(5, {{0, 1}, {2, 3}}, 1, 1), reference);
  EXPECT_NE(of(4, {{0, 1, 2}, {3}}, 1, 1), reference);
  EXPECT_NE(of(4, {{0, 1}, {2, 2}}, 1, 1), reference);
  EXPECT_NE(of(4, {{0, 1}, {2, 3}}, 0, 1), reference);
  EXPECT_NE(of(4, {{0, 1}, {2, 3}}, 1, 2), reference);
}

TEST(Collocations, HardSoftAndNone) {
  Collocations hard = Collocations::hard(Tokens{2, no_token, 0});
  EXPECT_TRUE(hard.is_hard());
  EXPECT_EQ(hard.count(), 2);
  EXPECT_EQ(hard.successor(0), 2);
  EXPECT_EQ(hard.successor(1), no_token);
  EXPECT_TRUE(hard.follows(2, 0));
  EXPECT_FALSE(hard.follows(2, 1));

  hard.add(0, 2, 1.5);  // the same again
  EXPECT_TRUE(hard.is_hard());
  EXPECT_EQ(hard.successors(0).front().weight, 2.5);
  hard.add(0, 1, 2.5);
  EXPECT_FALSE(hard.is_hard());
  EXPECT_EQ(hard.successor(0), 2) << "of equals the first added";
  hard.add(0, 1, 0.5);
  EXPECT_EQ(hard.successor(0), 1);
  EXPECT_TRUE(hard.follows(2, 0));
  EXPECT_TRUE(hard.follows(1, 0));
  EXPECT_FALSE(hard.follows(0, 0));
  EXPECT_EQ(hard.count(), 2);
}

TEST(Collocations, IdentityCopies) {
  const Collocations copy = Collocations::identity(4);
  EXPECT_EQ(copy.count(), 4);
  for (Token x = 0; x < 4; ++x) EXPECT_EQ(copy.successor(x), x);
  EXPECT_NE(copy.fingerprint(), Collocations::identity(5).fingerprint());
  EXPECT_NE(copy.fingerprint(), Collocations::hard(Tokens{0, 1, 2, no_token}).fingerprint());
}

TEST(Collocations, RefusesWhatItCannotUse) {
  expect_bad_input({"token 1: the successor is 3", "0 to 2"}, [] { Collocations::hard(Tokens{0, 3, 1}); });
  Collocations collocations(3);
  expect_bad_input({"token is 3"}, [&] { collocations.add(3, 0); });
  expect_bad_input({"successor is -1"}, [&] { collocations.add(0, -1); });
  expect_bad_input({"weight of successor 1 is 0"}, [&] { collocations.add(0, 1, 0); });
  collocations.add(0, 1, std::numeric_limits<double>::max());
  expect_bad_input({"not a finite number"},
                   [&] { collocations.add(0, 1, std::numeric_limits<double>::max()); });
  EXPECT_EQ(collocations.successors(0).front().weight, std::numeric_limits<double>::max());
}

}  // namespace
}  // namespace attmirror
