#include "deep/corpus/rows.hpp"

#include <algorithm>

namespace attmirror {

std::vector<std::int64_t> limited_rows(std::int64_t rows, std::int64_t limit) {
  const std::int64_t count = limit == 0 || limit > rows ? rows : limit;
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(count));
  // i rows / count without overflow: quotient and remainder apart.
  for (std::int64_t i = 0; i < count; ++i)
    chosen[static_cast<std::size_t>(i)] = i * (rows / count) + i * (rows % count) / count;
  return chosen;
}

TokenSet shortened(TokenSet tokens, std::int64_t length) {
  if (tokens.length <= length) return tokens;
  TokenSet cut;
  cut.labels = tokens.labels;
  cut.vocabulary = tokens.vocabulary;
  cut.vocabulary_fingerprint = tokens.vocabulary_fingerprint;
  cut.length = length;
  for (std::int64_t r = 0; r < tokens.rows(); ++r) {
    const auto row = tokens.row(r);
    cut.ids.insert(
        cut.ids.end(), row.begin(),
        row.begin() + std::min<std::ptrdiff_t>(std::ssize(row), static_cast<std::ptrdiff_t>(length)));
    cut.offsets.push_back(static_cast<std::int64_t>(cut.ids.size()));
  }
  return cut;
}

}  // namespace attmirror
