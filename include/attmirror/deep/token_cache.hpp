// Token sets that are made once and then read from a file.
//
// A token file in the cache is used if it is intact and was made from the current input: the same bytes of
// the source, the same vocabulary, length, columns and Unicode version. Otherwise it is made again and
// replaced; the result says which happened, so that nobody wonders about the seconds.
#pragma once

#include <attmirror/deep/text_set.hpp>
#include <attmirror/deep/token_set.hpp>
#include <attmirror/deep/wordpiece.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace attmirror {

// How texts become tokens where no cache has them.
struct TokenCacheOptions {
  // P1's length for IMDb.
  std::int64_t length = 512;
  // Where the labels are in a .tsv file.
  TextColumns columns = TextColumns::found;
  // For making the tokens; 0 means as many as the machine runs at once. Does not change the result.
  int threads = 1;

  void validate() const;
};

// What became of a cache.
enum class TokenCacheOutcome {
  reused,    // read from the cache
  made,      // there was no file
  outdated,  // there was one, made from something else: made again
  damaged,   // there was one that could not be read: made again
};
std::string_view to_string(TokenCacheOutcome outcome);

// Tokens, and whether they were computed or read.
struct CachedTokens {
  TokenSet tokens;
  TokenCacheOutcome outcome = TokenCacheOutcome::made;
  std::string reason;          // for outdated and damaged: what was wrong with the file, one sentence
  std::filesystem::path file;  // where the tokens are now
};

// `source` is anything that read_text_set() takes. For a file, its content is compared; for a folder, the names,
// sizes and times of its files, because reading 25,000 of them is what the cache saves. Makes the folder `cache` if
// needed. Throws what reading, making and writing throw; a cache that cannot be written is an Error (environment).
CachedTokens cached_token_set(const std::filesystem::path& source, const WordPiece& wordpiece,
                              const std::filesystem::path& cache, const TokenCacheOptions& options = {});
CachedTokens cached_token_set(const std::filesystem::path& source, const std::filesystem::path& vocabulary,
                              const std::filesystem::path& cache, const TokenCacheOptions& options = {});

}  // namespace attmirror
