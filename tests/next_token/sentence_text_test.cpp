#include "base/atomic_file.hpp"
#include "support/files.hpp"
#include <attmirror/next_token/partial_order.hpp>
#include <attmirror/next_token/realizable.hpp>
#include <attmirror/next_token/sentence_text.hpp>

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::expect_bad_input;
using Words = std::vector<std::string>;

SentenceText parse(std::string_view text, const SentenceTextOptions& options = {}) {
  return parse_sentences(text, "s.txt", options);
}

Words words_of(const SentenceText& text, std::ptrdiff_t i) {
  Words words;
  for (const Token x : text.sentences.tokens(i)) words.push_back(text.vocabulary.word(x));
  words.push_back(text.vocabulary.word(text.sentences.label(i)));
  return words;
}

std::string successor_of(const SentenceText& text, std::string_view word) {
  const Token y = text.collocations.successor(text.vocabulary.find(word).value());
  return y == no_token ? "" : text.vocabulary.word(y);
}

TEST(SentenceText, ReadsCollocationsAndSentences) {
  const SentenceText text = parse(
      "dog barks\n"
      "the dog \t cat  barks\n"
      "cat purrs\r\n"
      "the the\n"
      " the dog cat barks \n"
      "the cat dog purrs");
  EXPECT_EQ(text.source, CollocationSource::lines);
  EXPECT_EQ(text.vocabulary.words(), (Words{"dog", "barks", "the", "cat", "purrs"}));
  ASSERT_EQ(text.sentences.count(), 2);
  EXPECT_EQ(words_of(text, 0), (Words{"the", "dog", "cat", "barks"}));
  EXPECT_EQ(text.sentences.weight(0), 2);
  EXPECT_EQ(words_of(text, 1), (Words{"the", "cat", "dog", "purrs"}));
  EXPECT_EQ(text.sentences.weight(1), 1);
  EXPECT_EQ(text.lines, (std::vector<std::int64_t>{2, 6}));
  EXPECT_EQ(successor_of(text, "dog"), "barks");
  EXPECT_EQ(successor_of(text, "purrs"), "") << "a label only";
  EXPECT_TRUE(text.collocations.is_hard());
  EXPECT_TRUE(PartialOrders(text.sentences, text.collocations).is_realizable());
}

TEST(SentenceText, ContradictionsNameTheirLines) {
  const SentenceText text = parse("a x\nb y\nq z\na b q x\nb a q y\n");
  const auto cycle = PartialOrders(text.sentences, text.collocations).find_cycle();
  ASSERT_TRUE(cycle);
  EXPECT_EQ(to_string(*cycle, text.vocabulary, text.lines), "after q: a > b (line 4) > a (line 5)");
}

TEST(SentenceText, CopiesWhereEveryLabelIsAWordOfItsSentence) {
  const SentenceText text = parse("a b q a\nb q c b\n");
  EXPECT_EQ(text.source, CollocationSource::copy);
  EXPECT_EQ(successor_of(text, "q"), "q");
  EXPECT_EQ(text.collocations.count(), text.vocabulary.size());
}

TEST(SentenceText, ElseTakesTheMostFrequentPairs) {
  const SentenceText text = parse("a b q y\na b q z\na c q z\n");
  EXPECT_EQ(text.source, CollocationSource::bigrams);
  EXPECT_EQ(successor_of(text, "a"), "b");
  EXPECT_EQ(successor_of(text, "q"), "z");
  EXPECT_EQ(successor_of(text, "z"), "");
  EXPECT_TRUE(text.collocations.is_hard());
  // Of equals the first seen; two-word lines count.
  EXPECT_EQ(successor_of(parse("a b q y\na c q z\n"), "a"), "b");
  EXPECT_EQ(successor_of(parse("a b q y\na c q z\na c\n", {.collocations = CollocationSource::bigrams}), "a"),
            "c");
}

TEST(SentenceText, SoftCollocationsAreKept) {
  const SentenceText text = parse("a x\na y\na y\nb b\na b x\n");
  EXPECT_FALSE(text.collocations.is_hard());
  EXPECT_EQ(text.collocations.successors(0).size(), 2u);
  EXPECT_EQ(text.collocations.successors(0)[1].weight, 2);
  EXPECT_EQ(successor_of(text, "a"), "y");
}

TEST(SentenceText, AcceptsWhatEditorsWrite) {
  const SentenceText text = parse("\xEF\xBB\xBF\xC3\xA4 b q \xC3\xA4\r\n\xE6\xBC\xA2 b q b\r\n");
  EXPECT_EQ(text.sentences.count(), 2);
  EXPECT_EQ(text.vocabulary.word(0), "\xC3\xA4");
  EXPECT_TRUE(text.vocabulary.find("\xE6\xBC\xA2"));
}

TEST(SentenceText, NamesTheLineAndTheWord) {
  expect_bad_input({"s.txt, line 2 is empty"}, [] { parse("a b c\n\nb c a\n"); });
  expect_bad_input({"s.txt, line 2 is empty"}, [] { parse("a b c\n \t\r\nb c a\n"); });
  expect_bad_input({"s.txt, line 3 is empty"}, [] { parse("a b c\nb c a\n\n"); });
  expect_bad_input({"s.txt, line 2 has one word"}, [] { parse("a b c\nzebra\n"); });
  expect_bad_input({"s.txt, line 2, word 3: byte 2 is 0xff", "UTF-8"}, [] { parse("a b c\na b c\xFF\n"); });
  expect_bad_input({"s.txt, line 1, word 1: byte 1 is 0xc3"}, [] { parse("\xC3 b c\n"); });
  expect_bad_input({"line 1, word 2", "control character 0x00"},
                   [] { parse(std::string_view("a b\0 c", 6)); });
  expect_bad_input({"line 1, word 1", "control character 0x0d"}, [] { parse("a\rb b c\n"); });
  expect_bad_input({"s.txt has no sentence", "three words"}, [] { parse(""); });
  expect_bad_input({"s.txt has no sentence", "three words"}, [] { parse("\xEF\xBB\xBF"); });
  expect_bad_input({"s.txt has no sentence", "three words"}, [] { parse("a b\nb a\n"); });
  expect_bad_input({"s.txt has one word, \"a\""}, [] { parse("a a a\n"); });
  expect_bad_input({"s.txt, line 2: \"zebra\" has no successor: expected a line \"zebra NEXT\""},
                   [] { parse("a x\nzebra a x\n"); });
  expect_bad_input({"line 1: \"a\" has no successor"},
                   [] { parse("a b q\n", {.collocations = CollocationSource::lines}); });
  expect_bad_input({"s.txt, line 2 says that \"b\" follows \"a\"", "copy"},
                   [] { parse("a b a\na b\n", {.collocations = CollocationSource::copy}); });
}

TEST(SentenceText, LongWordsAreCutInMessages) {
  const std::string word(100'000, 'x');
  try {
    parse("a b\nb a\n" + word + " a b\n");
    FAIL();
  } catch (const Error& error) {
    EXPECT_LT(std::string(error.what()).size(), 300u);
  }
}

TEST(SentenceText, AGivenVocabularyNumbersTheWords) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "words.txt", std::string_view("the\r\ncat\r\ndog\r\nbird\r\n"));
  const SentenceTextOptions options{.vocabulary = folder / "words.txt"};
  const SentenceText text = parse("dog cat the dog\n", options);
  EXPECT_EQ(text.vocabulary.words(), (Words{"the", "cat", "dog", "bird"}));
  EXPECT_EQ(text.sentences.label(0), 2);
  EXPECT_EQ(text.sentences.vocabulary_size(), 4);
  expect_bad_input(
      {"s.txt, line 1, word 2: \"bird5\" is not in the vocabulary ", "words.txt; did you mean \"bird\"?"},
      [&] { parse("dog bird5 the dog\n", options); });
  expect_bad_input({"word 1", "not UTF-8"}, [&] { parse("\xFF dog the dog\n", options); });
  expect_bad_input({"nowhere.txt"}, [&] { parse("a b c\n", {.vocabulary = folder / "nowhere.txt"}); });
}

TEST(SentenceText, VocabularyFilesAreChecked) {
  const auto refuse = [](std::string_view text, std::initializer_list<std::string_view> words) {
    expect_bad_input(words, [&] { parse_vocabulary(text, "v.txt"); });
  };
  refuse("a\nb\na\n", {"v.txt, line 3: \"a\" is already given in line 1"});
  refuse("a\n\nb\n", {"v.txt, line 2 is empty"});
  refuse("a\nb c\n", {"v.txt, line 2 has several words"});
  refuse("a\n\xFF\n", {"v.txt, line 2", "UTF-8"});
  refuse("a\n", {"v.txt has one word"});
  refuse("", {"v.txt has no words"});
}

TEST(SentenceText, MoreSentencesUseTheWordsThereAre) {
  const Vocabulary vocabulary({"the", "cat", "dog"});
  const SentenceFile file = parse_more_sentences("the cat\nthe dog cat dog\nthe cat\n", "t.txt", vocabulary);
  ASSERT_EQ(file.sentences.count(), 2);
  EXPECT_EQ(file.sentences.tokens(0).size(), 1u);
  EXPECT_EQ(file.sentences.weight(0), 2);
  EXPECT_EQ(file.lines, (std::vector<std::int64_t>{1, 2}));
  expect_bad_input({"t.txt, line 1, word 2: \"cow\" is not in the vocabulary"},
                   [&] { parse_more_sentences("the cow\n", "t.txt", vocabulary); });
  expect_bad_input({"t.txt has no sentence"}, [&] { parse_more_sentences("", "t.txt", vocabulary); });
}

TEST(SentenceText, FilesThatAreNotThereAreBadInput) {
  const test::TemporaryFolder folder;
  expect_bad_input({"none.txt"}, [&] { load_sentences(folder / "none.txt"); });
  expect_bad_input({folder.path().string()}, [&] { load_sentences(folder.path()); });
  expect_bad_input({"none.txt"}, [&] { load_more_sentences(folder / "none.txt", Vocabulary::numbered(2)); });
}

TEST(SentenceText, WordsOfTheOptionsReadBack) {
  using enum CollocationSource;
  for (const CollocationSource source : {automatic, lines, copy, bigrams})
    EXPECT_EQ(parse_collocation_source(to_string(source)), source);
  expect_bad_input({"collocations is \"pairs\"", "auto, lines, copy or bigrams"},
                   [] { parse_collocation_source("pairs"); });
}

TEST(SentenceText, WhatIsWrittenReadsBack) {
  const test::TemporaryFolder folder;
  const RealizableData data = make_realizable({.sentences = 200, .seed = 6});
  write_file_atomically(folder / "s.txt", to_text(data.vocabulary, data.collocations, data.sentences));
  std::string words;
  for (const std::string& word : data.vocabulary.words()) words += word + "\n";
  write_file_atomically(folder / "v.txt", words);
  // With the vocabulary every number is the same; equal sentences are one.
  const SentenceText text = load_sentences(folder / "s.txt", {.vocabulary = folder / "v.txt"});
  EXPECT_EQ(text.collocations.fingerprint(), data.collocations.fingerprint());
  EXPECT_EQ(text.sentences.total_weight(), 200);
  const auto counted = [](const Sentences& sentences) {
    std::map<std::vector<Token>, double> result;
    for (std::ptrdiff_t i = 0; i < sentences.count(); ++i) {
      std::vector<Token> key(sentences.tokens(i).begin(), sentences.tokens(i).end());
      key.push_back(sentences.label(i));
      result[key] += sentences.weight(i);
    }
    return result;
  };
  EXPECT_EQ(counted(text.sentences), counted(data.sentences));
  EXPECT_EQ(text.sentences.count(), static_cast<std::ptrdiff_t>(counted(data.sentences).size()));
  // Without it, words are numbered as they occur.
  const SentenceText own = load_sentences(folder / "s.txt");
  ASSERT_EQ(own.sentences.count(), text.sentences.count());
  for (std::ptrdiff_t i = 0; i < own.sentences.count(); ++i) EXPECT_EQ(words_of(own, i), words_of(text, i));
  EXPECT_EQ(own.lines, text.lines);
}

TEST(SentenceText, RefusesToWriteWhatWouldNotReadBack) {
  const Vocabulary vocabulary({"a", "b"});
  const auto refuse = [&](std::initializer_list<std::string_view> words, const Vocabulary& named,
                          std::vector<Token> tokens, double weight) {
    Sentences sentences(2);
    sentences.add(tokens, 0, weight);
    expect_bad_input(words, [&] { to_text(named, Collocations::identity(2), sentences); });
  };
  refuse({"weight of sentence 0 is 1.5"}, vocabulary, {0, 1}, 1.5);
  refuse({"weight of sentence 0 is 1000000000000000", "bytes"}, vocabulary, {0, 1}, 1e15);
  refuse({"sentence 0 has one token"}, vocabulary, {0}, 1);
  refuse({"has a blank"}, Vocabulary({"a", "b c"}), {0, 1}, 1);
  refuse({"control character"}, Vocabulary({"a", "b\nc"}), {0, 1}, 1);
  refuse({"has 3 words"}, Vocabulary({"a", "b", "c"}), {0, 1}, 1);
}

}  // namespace
}  // namespace attmirror
