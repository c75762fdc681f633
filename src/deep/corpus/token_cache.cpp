// The file's name holds what tells sets apart that are used side by side (path, vocabulary, length, columns), so they
// do not drive each other out; its metadata hold what may change under the same name (the source's content, Unicode).
#include "base/atomic_file.hpp"
#include "data/messages.hpp"
#include "deep/corpus/byte_fingerprint.hpp"
#include "deep/corpus/token_file.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/deep/token_cache.hpp>
#include <attmirror/deep/tokenize.hpp>

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;

Error unreadable(const fs::path& path, const std::string& why) {
  return bad_input(fmt::format("cannot read {}: {}", path.string(), why));
}

std::string folder_fingerprint(const fs::path& folder) {
  std::map<std::string, std::pair<std::uintmax_t, fs::file_time_type>> files;
  for (const char* part : {"neg", "pos"}) {
    std::error_code error;
    for (fs::directory_iterator entry(folder / part, error), end; !error && entry != end;
         entry.increment(error)) {
      if (entry->path().extension() != ".txt") continue;
      const std::uintmax_t size = entry->file_size(error);
      if (error) break;
      const fs::file_time_type time = entry->last_write_time(error);
      if (error) break;
      files[(fs::path(part) / entry->path().filename()).string()] = {size, time};
    }
    if (error) throw unreadable(folder / part, error.message());
  }
  Fingerprint sum;
  for (const auto& [name, file] : files) {
    sum.add(std::string_view(name));
    sum.add(static_cast<std::uint64_t>(file.first));
    sum.add(static_cast<std::uint64_t>(file.second.time_since_epoch().count()));
  }
  return fmt::format("{:016x}", sum.value());
}

std::string source_fingerprint(const fs::path& source) {
  std::error_code error;
  if (fs::is_directory(source, error)) return folder_fingerprint(source);
  Fingerprint sum;
  add_bytes(sum, read_file(source));
  return fmt::format("{:016x}", sum.value());
}

fs::path file_in_cache(const fs::path& cache, const fs::path& source, const WordPiece& wordpiece,
                       const TokenCacheOptions& options) {
  std::error_code error;
  const fs::path absolute = fs::weakly_canonical(source, error);
  if (error) throw unreadable(source, error.message());
  Fingerprint sum;
  sum.add(std::string_view(absolute.native()));
  sum.add(std::string_view(wordpiece.fingerprint()));
  sum.add(static_cast<std::ptrdiff_t>(options.length));
  sum.add(to_string(options.columns));
  const std::string name = absolute.filename().string();
  return cache / fmt::format("{}-{:016x}.safetensors", name.substr(0, name.find('.')), sum.value());
}

// What must be equal for the tokens to be the same.
std::map<std::string, std::string> origin(const fs::path& source, const TokenCacheOptions& options) {
  return {{"source_fingerprint", source_fingerprint(source)},
          {"columns", std::string(to_string(options.columns))},
          {"unicode", unicode_version()}};
}

// Fills in the tokens if the file is whole and of this origin, and otherwise says why not.
CachedTokens look_up(const fs::path& file, const std::map<std::string, std::string>& wanted,
                     const WordPiece& wordpiece, const TokenCacheOptions& options) {
  CachedTokens result;
  result.file = file;
  std::error_code error;
  if (!fs::exists(file, error)) return result;
  try {
    const Safetensors content = load_safetensors(file);
    result.tokens = to_token_set(content, file.string());
    const auto found = [&](const std::string& key) {
      const auto entry = content.metadata.find(key);
      return entry == content.metadata.end() ? std::string() : entry->second;
    };
    for (const auto& [key, value] : wanted)
      if (found(key) != value) {
        result.outcome = TokenCacheOutcome::outdated;
        result.reason = fmt::format("{} was made with {} {}: expected {}", file.string(), key,
                                    in_quotes(found(key)), in_quotes(value));
        return result;
      }
    if (result.tokens.vocabulary_fingerprint != wordpiece.fingerprint() ||
        result.tokens.vocabulary != wordpiece.size() || result.tokens.length != options.length) {
      result.outcome = TokenCacheOutcome::outdated;
      result.reason = fmt::format("{} was made with another vocabulary or length", file.string());
      return result;
    }
    result.outcome = TokenCacheOutcome::reused;
  } catch (const Error& failure) {
    if (failure.kind() != ErrorKind::bad_input) throw;
    result.outcome = TokenCacheOutcome::damaged;
    result.reason = failure.what();
  }
  return result;
}

}  // namespace

void TokenCacheOptions::validate() const {
  if (length < 1)
    throw bad_input(fmt::format("length is {}: expected a number of ids of at least 1", length));
  if (threads < 0 || threads > ThreadPool::max_threads)
    throw bad_input(fmt::format("threads is {}: expected 0 to {}", threads, ThreadPool::max_threads));
}

std::string_view to_string(TokenCacheOutcome outcome) {
  switch (outcome) {
    case TokenCacheOutcome::reused:
      return "reused";
    case TokenCacheOutcome::made:
      return "made";
    case TokenCacheOutcome::outdated:
      return "outdated";
    case TokenCacheOutcome::damaged:
      return "damaged";
  }
  return "unknown";
}

CachedTokens cached_token_set(const fs::path& source, const WordPiece& wordpiece, const fs::path& cache,
                              const TokenCacheOptions& options) {
  options.validate();
  // Before the tokens are made: if the source changes meanwhile, the file is outdated, not wrong.
  const std::map<std::string, std::string> wanted = origin(source, options);
  CachedTokens result = look_up(file_in_cache(cache, source, wordpiece, options), wanted, wordpiece, options);
  if (result.outcome == TokenCacheOutcome::reused) return result;

  std::error_code error;
  fs::create_directories(cache, error);
  if (error)
    throw environment_error(fmt::format("cannot create the folder {}: {}", cache.string(), error.message()));
  check_writable(result.file);
  result.tokens = make_token_set(read_text_set(source, {.columns = options.columns}), wordpiece,
                                 options.length, options.threads);
  Safetensors content = to_safetensors(result.tokens);
  content.metadata.insert(wanted.begin(), wanted.end());
  content.metadata.emplace("source", source.filename().string());
  save_safetensors(result.file, content);
  return result;
}

CachedTokens cached_token_set(const fs::path& source, const fs::path& vocabulary, const fs::path& cache,
                              const TokenCacheOptions& options) {
  return cached_token_set(source, load_wordpiece(vocabulary), cache, options);
}

}  // namespace attmirror
