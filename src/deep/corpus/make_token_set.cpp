// Chunks of rows on the threads of a pool, joined in the order of the rows.
#include <attmirror/base/error.hpp>
#include <attmirror/base/thread_pool.hpp>
#include <attmirror/deep/tokenize.hpp>

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace attmirror {

TokenSet make_token_set(const TextSet& texts, const WordPiece& wordpiece, std::int64_t length, int threads) {
  if (length < 1)
    throw bad_input(fmt::format("length is {}: expected a number of ids of at least 1", length));
  if (threads < 0 || threads > ThreadPool::max_threads)
    throw bad_input(fmt::format("threads is {}: expected 0 to {}", threads, ThreadPool::max_threads));
  if (texts.texts.size() != texts.labels.size())
    throw bad_input(fmt::format("there are {} texts and {} labels: expected as many labels as texts",
                                texts.texts.size(), texts.labels.size()));
  const Chunking parts = fixed_chunks(static_cast<std::ptrdiff_t>(texts.texts.size()), 64, 512);
  struct Part {
    std::vector<std::int32_t> ids;
    std::vector<std::int64_t> lengths;
  };
  std::vector<Part> results(static_cast<std::size_t>(parts.count));
  ThreadPool pool(threads);
  pool.run(parts.count, [&](std::ptrdiff_t chunk) {
    Part& part = results[static_cast<std::size_t>(chunk)];
    for (std::ptrdiff_t r = parts.begin(chunk); r < parts.end(chunk); ++r) {
      const std::vector<std::int32_t> ids =
          wordpiece.encode(texts.texts[static_cast<std::size_t>(r)], length);
      part.ids.insert(part.ids.end(), ids.begin(), ids.end());
      part.lengths.push_back(static_cast<std::int64_t>(ids.size()));
    }
  });

  TokenSet tokens;
  tokens.vocabulary = wordpiece.size();
  tokens.length = length;
  tokens.vocabulary_fingerprint = wordpiece.fingerprint();
  tokens.labels = texts.labels;
  tokens.offsets.reserve(texts.labels.size() + 1);
  std::size_t total = 0;
  for (const Part& part : results) total += part.ids.size();
  tokens.ids.reserve(total);
  for (Part& part : results) {
    tokens.ids.insert(tokens.ids.end(), part.ids.begin(), part.ids.end());
    part.ids = {};  // so that both copies are never there in full
    for (const std::int64_t count : part.lengths) tokens.offsets.push_back(tokens.offsets.back() + count);
  }
  return tokens;
}

TokenSet join_token_sets(std::span<const TokenSet> sets) {
  if (sets.empty()) throw bad_input("there are no token sets to join: expected one or more");
  TokenSet joined = sets.front();
  for (std::size_t s = 1; s < sets.size(); ++s) {
    const TokenSet& set = sets[s];
    if (set.vocabulary != joined.vocabulary || set.vocabulary_fingerprint != joined.vocabulary_fingerprint)
      throw bad_input(fmt::format("sets[{}] has another vocabulary than sets[0]: expected the same", s));
    if (set.length != joined.length)
      throw bad_input(fmt::format("sets[{}] has length {} and sets[0] {}: expected the same", s, set.length,
                                  joined.length));
    const std::int64_t before = joined.offsets.back();
    joined.ids.insert(joined.ids.end(), set.ids.begin(), set.ids.end());
    joined.labels.insert(joined.labels.end(), set.labels.begin(), set.labels.end());
    for (std::size_t r = 1; r < set.offsets.size(); ++r) joined.offsets.push_back(before + set.offsets[r]);
  }
  return joined;
}

TokenStatistics token_statistics(const TokenSet& tokens, std::int32_t unknown_id) {
  TokenStatistics result;
  result.rows = tokens.rows();
  result.tokens = static_cast<std::int64_t>(tokens.ids.size());
  if (result.rows > 0)
    result.mean_length = static_cast<double>(result.tokens) / static_cast<double>(result.rows);
  for (std::int64_t r = 0; r < result.rows; ++r)
    result.rows_of_full_length += static_cast<std::int64_t>(tokens.row(r).size()) == tokens.length ? 1 : 0;
  result.unknown = std::count(tokens.ids.begin(), tokens.ids.end(), unknown_id);
  return result;
}

}  // namespace attmirror
