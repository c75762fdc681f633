// The cache: reused when nothing changed, made again when anything did, never trusting a damaged file.
#include "base/atomic_file.hpp"
#include "deep/corpus/small_vocabulary.hpp"
#include "support/files.hpp"
#include <attmirror/deep/token_cache.hpp>
#include <attmirror/deep/tokenize.hpp>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;
using test::expect_bad_input;
using enum TokenCacheOutcome;

class TokenCache : public testing::Test {
 protected:
  TokenCache() { write_file_atomically(source_, "1\tthe movie was fun\n0\tunaffable\n"); }
  CachedTokens get(const TokenCacheOptions& options = {.length = 16}) {
    return cached_token_set(source_, test::corpus_fixture("vocabulary.txt"), cache_, options);
  }
  test::TemporaryFolder folder_;
  fs::path source_ = folder_ / "reviews.tsv", cache_ = folder_ / "deeper/cache";
};

TEST_F(TokenCache, MakesOnceAndReuses) {
  const CachedTokens first = get();
  EXPECT_EQ(first.outcome, made);
  EXPECT_EQ(first.reason, "");
  EXPECT_EQ(first.tokens.labels, (std::vector<std::int32_t>{1, 0}));
  EXPECT_EQ(first.tokens, make_token_set(read_text_set(source_), test::small_wordpiece(), 16));
  EXPECT_TRUE(fs::exists(first.file));
  EXPECT_EQ(load_token_set(first.file), first.tokens);
  const CachedTokens second = get({.length = 16, .threads = 2});
  EXPECT_EQ(second.outcome, reused);
  EXPECT_EQ(second.tokens, first.tokens);
  EXPECT_EQ(second.file, first.file);
  // The time of a file says nothing, its content all.
  fs::last_write_time(source_, fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(get().outcome, reused);
}

TEST_F(TokenCache, SetsLieSideBySide) {
  EXPECT_EQ(get().outcome, made);
  EXPECT_EQ(get({.length = 4}).outcome, made);
  EXPECT_EQ(get({.length = 16, .columns = TextColumns::label_text}).outcome, made);
  const WordPiece other({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "fun"});
  EXPECT_EQ(cached_token_set(source_, other, cache_, {.length = 16}).outcome, made);
  fs::create_directories(folder_ / "b");
  fs::copy_file(source_, folder_ / "b/reviews.tsv");
  EXPECT_EQ(cached_token_set(folder_ / "b/reviews.tsv", other, cache_, {.length = 16}).outcome, made);
  EXPECT_EQ(get().outcome, reused);
  EXPECT_EQ(get({.length = 4}).outcome, reused);
  EXPECT_EQ(cached_token_set(source_, other, cache_, {.length = 16}).outcome, reused);
}

TEST_F(TokenCache, AChangedSourceIsReadAgain) {
  get();
  write_file_atomically(source_, "0\tthe movie was fun\n0\tunaffable\n");  // as many bytes as before
  const CachedTokens again = get();
  EXPECT_EQ(again.outcome, outdated);
  EXPECT_NE(again.reason.find("source_fingerprint"), std::string::npos) << again.reason;
  EXPECT_EQ(again.tokens.labels, (std::vector<std::int32_t>{0, 0}));
  EXPECT_EQ(get().outcome, reused);
}

TEST_F(TokenCache, ADamagedFileIsMadeAgain) {
  const CachedTokens first = get();
  const std::vector<std::byte> whole = read_file(first.file);
  for (std::size_t i = 0; i < whole.size(); i += 23) {
    std::vector<std::byte> changed = whole;
    changed[i] ^= std::byte{0x04};
    write_file_atomically(first.file, changed);
    const CachedTokens again = get();
    EXPECT_EQ(again.tokens, first.tokens) << i;
    if (again.outcome != reused) {
      EXPECT_NE(again.reason, "") << i;
      EXPECT_EQ(get().outcome, reused);
    }
  }
  write_file_atomically(first.file, std::span(whole).first(whole.size() / 2));
  const CachedTokens again = get();
  EXPECT_EQ(again.outcome, damaged);
  EXPECT_NE(again.reason.find(first.file.string()), std::string::npos) << again.reason;
  EXPECT_EQ(again.tokens, first.tokens);
  EXPECT_EQ(read_file(first.file), whole);
  write_file_atomically(first.file, "");
  EXPECT_EQ(get().outcome, damaged);
}

// A whole and valid token file of somebody else's under the name of ours.
TEST_F(TokenCache, AnotherTokenFileIsNotTakenForOurs) {
  const CachedTokens first = get();
  TokenSet foreign = first.tokens;
  foreign.labels = {1, 1};
  save_token_set(first.file, foreign);
  const CachedTokens again = get();
  EXPECT_EQ(again.outcome, outdated);
  EXPECT_EQ(again.tokens, first.tokens);
}

TEST_F(TokenCache, FoldersAreComparedByTheirFiles) {
  fs::create_directories(folder_ / "train/neg");
  fs::create_directories(folder_ / "train/pos");
  write_file_atomically(folder_ / "train/neg/0_1.txt", "unaffable");
  write_file_atomically(folder_ / "train/pos/0_9.txt", "fun");
  const auto get_folder = [&] {
    return cached_token_set(folder_ / "train", test::small_wordpiece(), cache_, {.length = 16});
  };
  EXPECT_EQ(get_folder().outcome, made);
  EXPECT_EQ(get_folder().outcome, reused);
  write_file_atomically(folder_ / "train/pos/1_9.txt", "good");
  EXPECT_EQ(get_folder().outcome, outdated);
  EXPECT_EQ(get_folder().tokens.rows(), 3);
  fs::last_write_time(folder_ / "train/pos/1_9.txt",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(get_folder().outcome, outdated);
}

TEST_F(TokenCache, SaysWhatIsWrong) {
  expect_bad_input({"length is 0"}, [&] { get({.length = 0}); });
  expect_bad_input({"threads is -1"}, [&] { get({.threads = -1}); });
  write_file_atomically(source_, "no tab\n");
  expect_bad_input({"reviews.tsv, line 1 has no tab"}, [&] { get(); });
  fs::remove(source_);
  expect_bad_input({"cannot read", "reviews.tsv"}, [&] { get(); });
  write_file_atomically(source_, "1\tfun\n0\tx\n");
  fs::remove_all(folder_ / "deeper");
  write_file_atomically(folder_ / "deeper", "a file where the folder should be");
  test::expect_error(ErrorKind::environment, {"cache"}, [&] { get(); });
}

}  // namespace
}  // namespace attmirror
