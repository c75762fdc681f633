#include <attmirror/base/error.hpp>
#include <attmirror/next_token/sentences.hpp>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

TEST(Vocabulary, NumbersWordsInTheirOrder) {
  Vocabulary vocabulary({"the", "cat", "sat"});
  EXPECT_EQ(vocabulary.size(), 3);
  EXPECT_EQ(vocabulary.find("cat"), Token{1});
  EXPECT_EQ(vocabulary.find("Cat"), std::nullopt);
  EXPECT_EQ(vocabulary.add("the"), 0);
  EXPECT_EQ(vocabulary.add("mat"), 3);
  EXPECT_EQ(vocabulary.word(3), "mat");
  EXPECT_EQ(Vocabulary::numbered(12).word(11), "w11");
}

TEST(Vocabulary, RefusesEmptyAndRepeatedWords) {
  EXPECT_THROW(Vocabulary({"a", ""}), Error);
  try {
    Vocabulary({"a", "b", "a"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "words 0 and 2 of the vocabulary are both \"a\"");
  }
}

}  // namespace
}  // namespace attmirror
