// Token sets: what is valid, files and their damages, and the same tokens from any number of threads.
#include "base/atomic_file.hpp"
#include "deep/corpus/small_vocabulary.hpp"
#include "deep/corpus/token_file.hpp"
#include "support/files.hpp"
#include <attmirror/deep/tokenize.hpp>

#include <functional>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::expect_bad_input;
using Ids = std::vector<std::int32_t>;

TokenSet some_tokens(std::int64_t vocabulary = 100) {
  TokenSet tokens;
  tokens.ids = {2, 7, 3, 2, 3, 2, 99, 98, 97, 3};
  tokens.offsets = {0, 3, 5, 10};
  tokens.labels = {1, 0, 4};
  tokens.vocabulary = vocabulary;
  tokens.length = 5;
  tokens.vocabulary_fingerprint = "0123456789abcdef";
  return tokens;
}

TEST(TokenSet, KnowsItsRows) {
  const TokenSet tokens = some_tokens();
  EXPECT_NO_THROW(tokens.validate());
  EXPECT_NO_THROW(TokenSet{}.validate());
  EXPECT_EQ(tokens.rows(), 3);
  EXPECT_EQ(Ids(tokens.row(1).begin(), tokens.row(1).end()), (Ids{2, 3}));
}

TEST(TokenSet, RefusesWhatBreaksTheRules) {
  const auto refused = [](std::initializer_list<std::string_view> words,
                          const std::function<void(TokenSet&)>& change) {
    TokenSet tokens = some_tokens();
    change(tokens);
    expect_bad_input(words, [&] { tokens.validate(); });
    expect_bad_input(words, [&] { format_token_set(tokens); });
  };
  refused({"ids[7] is 100: expected an id of the vocabulary, 0 to 99"}, [](TokenSet& t) { t.ids[7] = 100; });
  refused({"ids[0] is -1"}, [](TokenSet& t) { t.ids[0] = -1; });
  refused({"4 offsets and 2 labels"}, [](TokenSet& t) { t.labels.pop_back(); });
  refused({"0 offsets and 3 labels"}, [](TokenSet& t) { t.offsets.clear(); });
  refused({"offsets[0] is 1"}, [](TokenSet& t) { t.offsets[0] = 1; });
  refused({"offsets[2] is 3", "no row is empty"}, [](TokenSet& t) { t.offsets[2] = 3; });
  refused({"offsets[1] is -9223372036854775808"},
          [](TokenSet& t) { t.offsets[1] = std::numeric_limits<std::int64_t>::min(); });
  refused({"row 1 has 9223372036854775804 ids"},
          [](TokenSet& t) { t.offsets[2] = std::numeric_limits<std::int64_t>::max(); });
  refused({"offsets[3] is 9: expected the number of ids, 10"}, [](TokenSet& t) { t.offsets[3] = 9; });
  refused({"row 2 has 5 ids: expected at most the length, 4"}, [](TokenSet& t) { t.length = 4; });
  refused({"labels[1] is -1"}, [](TokenSet& t) { t.labels[1] = -1; });
  refused({"length is -1"}, [](TokenSet& t) { t.length = -1; });
  refused({"vocabulary is -1"}, [](TokenSet& t) { t.vocabulary = -1; });
}

TEST(TokenSet, SurvivesAFile) {
  const test::TemporaryFolder folder;
  // Above 65,536 the ids are int32.
  for (const std::int64_t vocabulary : {100, 65'536, 65'537, 1 << 30}) {
    TokenSet tokens = some_tokens(vocabulary);
    tokens.ids[6] = static_cast<std::int32_t>(vocabulary - 1);
    save_token_set(folder / "t.safetensors", tokens);
    EXPECT_EQ(load_token_set(folder / "t.safetensors"), tokens);
    const Safetensors content = load_safetensors(folder / "t.safetensors");
    EXPECT_EQ(content.tensors.at("ids").dtype(), vocabulary <= 65'536 ? DType::uint16 : DType::int32);
  }
  save_token_set(folder / "empty.safetensors", TokenSet{});
  EXPECT_EQ(load_token_set(folder / "empty.safetensors"), TokenSet{});
  TokenSet wrong = some_tokens();
  wrong.ids[0] = 500;
  expect_bad_input({"cannot write", "t.safetensors: ids[0] is 500"},
                   [&] { save_token_set(folder / "t.safetensors", wrong); });
}

TEST(TokenSet, NoticesEveryDamage) {
  const TokenSet tokens = some_tokens();
  const std::vector<std::byte> file = format_token_set(tokens);
  for (std::size_t size = 0; size < file.size(); ++size)
    expect_bad_input({"t.st"}, [&] { parse_token_set(std::span(file).first(size), "t.st"); });
  // A changed byte is noticed, unless it is one that says nothing (a blank of the header's padding, a name of metadata
  // that we do not read) or renames the vocabulary.
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::vector<std::byte> changed = file;
    changed[i] ^= std::byte{0x01};
    try {
      TokenSet read = parse_token_set(changed, "t.st");
      EXPECT_EQ(read.ids, tokens.ids) << i;
      EXPECT_EQ(read.offsets, tokens.offsets) << i;
      EXPECT_EQ(read.labels, tokens.labels) << i;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    }
  }
}

TEST(TokenSet, RefusesOtherFiles) {
  const auto refused = [](std::initializer_list<std::string_view> words,
                          const std::function<void(Safetensors&)>& change) {
    Safetensors content = to_safetensors(some_tokens());
    change(content);
    expect_bad_input(words, [&] { parse_token_set(format_safetensors(content), "t.st"); });
  };
  for (const char* key : {"format", "vocabulary", "length", "vocabulary_fingerprint", "content_fingerprint"})
    refused({"t.st", key}, [&](Safetensors& c) { c.metadata.erase(key); });
  for (const char* key : {"ids", "offsets", "labels"}) {
    refused({"t.st is not a token file", key}, [&](Safetensors& c) { c.tensors.erase(key); });
    refused({"t.st", key}, [&](Safetensors& c) { c.tensors[key] = Array::scalar(1.0); });
    refused({"t.st", "float64"}, [&](Safetensors& c) { c.tensors[key] = Array(); });
  }
  refused({"format 'attmirror tokens 2': expected 'attmirror tokens 1'"},
          [](Safetensors& c) { c.metadata["format"] = "attmirror tokens 2"; });
  for (const char* number : {"", "x", "1x", "-1", "1.5", "99999999999999999999"})
    refused({"t.st", "length"}, [&](Safetensors& c) { c.metadata["length"] = number; });
  refused({"t.st is damaged", "fingerprint"}, [](Safetensors& c) {
    c.tensors["labels"] = Array({3}, std::vector<std::int32_t>{1, 0, 5});
  });
  // Whole, but not valid: ids beyond the vocabulary that its metadata claim.
  refused({"t.st: ids[6] is 99"}, [](Safetensors& c) { c.metadata["vocabulary"] = "50"; });
}

TEST(TokenSet, Sha256OfIdsIsThatOfTheirBytes) {
  TokenSet tokens = some_tokens();
  // printf '\x02\0\x07\0\x03\0\x02\0\x03\0\x02\0\x63\0\x62\0\x61\0\x03\0' | sha256sum
  EXPECT_EQ(ids_sha256(tokens), "8188eb524f37bf9372a4258b8a9027b07ee0f344e3214969d738d98c3e190368");
  tokens.ids[0] = 65'536;
  expect_bad_input({"row 0 has the id 65536"}, [&] { ids_sha256(tokens); });
}

TextSet many_texts(int count) {
  TextSet set;
  for (int i = 0; i < count; ++i) {
    set.texts.push_back("the movie was " + std::string(i % 3 == 0 ? "fun" : "unaffable") +
                        std::string(i % 7, '!'));
    set.labels.push_back(i % 2);
  }
  return set;
}

TEST(MakeTokenSet, GivesTheSameForAnyNumberOfThreads) {
  const WordPiece wordpiece = test::small_wordpiece();
  for (const int rows : {0, 1, 63, 64, 65, 5'000}) {
    const TextSet texts = many_texts(rows);
    const TokenSet one = make_token_set(texts, wordpiece, 8, 1);
    EXPECT_NO_THROW(one.validate());
    EXPECT_EQ(one.rows(), rows);
    EXPECT_EQ(one.vocabulary, wordpiece.size());
    EXPECT_EQ(one.vocabulary_fingerprint, wordpiece.fingerprint());
    for (int r = 0; r < rows; r += 31) {
      const auto row = one.row(r);
      EXPECT_EQ(Ids(row.begin(), row.end()), wordpiece.encode(texts.texts[static_cast<std::size_t>(r)], 8));
    }
    for (const int threads : {0, 2, 3, 7}) EXPECT_EQ(make_token_set(texts, wordpiece, 8, threads), one);
  }
}

TEST(MakeTokenSet, RefusesWhatMakesNoSense) {
  const WordPiece wordpiece = test::small_wordpiece();
  TextSet texts = many_texts(3);
  expect_bad_input({"length is 0"}, [&] { make_token_set(texts, wordpiece, 0); });
  expect_bad_input({"threads is -1"}, [&] { make_token_set(texts, wordpiece, 8, -1); });
  texts.labels.pop_back();
  expect_bad_input({"3 texts and 2 labels"}, [&] { make_token_set(texts, wordpiece, 8); });
}

TEST(MakeTokenSet, StatisticsAndJoins) {
  const WordPiece wordpiece = test::small_wordpiece();
  const TextSet texts{{"hi", "film", "the movie was fun fun fun"}, {1, 0, 1}};
  const TokenSet tokens = make_token_set(texts, wordpiece, 6);
  const TokenStatistics statistics = token_statistics(tokens, wordpiece.unknown());
  EXPECT_EQ(statistics.rows, 3);
  EXPECT_EQ(statistics.tokens, 12);
  EXPECT_EQ(statistics.mean_length, 4);
  EXPECT_EQ(statistics.rows_of_full_length, 1);
  EXPECT_EQ(statistics.unknown, 1);
  EXPECT_EQ(token_statistics(TokenSet{}, 1).mean_length, 0);

  const std::vector<TokenSet> sets = {tokens, make_token_set({{"hi"}, {0}}, wordpiece, 6), tokens};
  const TokenSet joined = join_token_sets(sets);
  EXPECT_NO_THROW(joined.validate());
  EXPECT_EQ(joined.labels, (std::vector<std::int32_t>{1, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(joined.offsets, (std::vector<std::int64_t>{0, 3, 6, 12, 15, 18, 21, 27}));
  expect_bad_input({"no token sets"}, [] { join_token_sets({}); });
  const std::vector<TokenSet> lengths = {tokens, make_token_set(texts, wordpiece, 7)};
  expect_bad_input({"sets[1] has length 7 and sets[0] 6"}, [&] { join_token_sets(lengths); });
  const std::vector<TokenSet> others = {tokens, some_tokens()};
  expect_bad_input({"sets[1] has another vocabulary"}, [&] { join_token_sets(others); });
}

}  // namespace
}  // namespace attmirror
