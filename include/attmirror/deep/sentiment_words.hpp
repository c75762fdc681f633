// Words that tell whether a review is positive or negative, found by counting.
//
// P1's sentences name the word that decides each of them. Real reviews do not, so a list is made from labeled ones,
// by a rule that leaves nothing to taste: a word is listed if it
//
//   - is a single WordPiece, a word by itself, of two or more letters from a to z,
//   - occurs in at least 300 of the reviews, and
//   - at least 75 % of the reviews in which it occurs have the same label: the word's.
//
// The 25,000 training reviews of IMDb give 22 positive words (excellent, superb, touching, loved ...) and 37
// negative ones (worst, awful, waste, boring ...); docs/deep-views.md has them all. Fewer occurrences let in names
// of actors and genres, a higher share leaves few positive words.
#pragma once

#include <attmirror/deep/token_set.hpp>
#include <attmirror/deep/wordpiece.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attmirror {

// A word of the list.
struct SentimentWord {
  std::string word;
  std::int32_t label = 0;  // 0 negative, 1 positive
  std::optional<std::int64_t>
      count{};                    // reviews in which it occurs; none in a list that somebody wrote by hand
  std::optional<double> share{};  // of these with its label

  friend bool operator==(const SentimentWord&, const SentimentWord&) = default;
};

// When a word is listed.
struct SentimentRule {
  // More reviews make a share more certain, and the list shorter.
  std::int64_t least_reviews = 300;
  // Above one half, so that no word has two labels.
  double least_share = 0.75;

  void validate() const;  // throws Error (bad input)
};

// Sorted by label, the larger share first, then by word. Empty where no word is frequent and one-sided enough.
// Throws Error (bad input) for tokens of another vocabulary and for a label above 1.
std::vector<SentimentWord> sentiment_words(const TokenSet& reviews, const WordPiece& vocabulary,
                                           const SentimentRule& rule = {});

// A list as comma-separated values with the columns word, label, count and share; the last two may be missing.
// Throws Error (bad input), naming file and line, for other columns, a label that is neither 0 nor 1, a word that
// is there twice or that is not a single piece of the vocabulary, and for a list without words.
std::vector<SentimentWord> read_sentiment_words(const std::filesystem::path& path,
                                                const WordPiece& vocabulary);
std::vector<SentimentWord> parse_sentiment_words(std::string_view content, std::string_view name,
                                                 const WordPiece& vocabulary);
std::string format_sentiment_words(std::span<const SentimentWord> words);

// A review in which words of its own label are listed.
struct ReviewWords {
  std::int64_t row = 0;             // of the set
  std::vector<std::size_t> places;  // of the listed words among its tokens; at least one
};

// Up to `limit` such reviews, evenly spaced over those that there are; 0: all. Throws Error (bad input) for tokens of
// another vocabulary and for a label above 1.
struct ReviewChoice {
  std::vector<ReviewWords> reviews;
  std::int64_t found = 0;  // before the limit
};
ReviewChoice reviews_with_words(const TokenSet& reviews, const WordPiece& vocabulary,
                                std::span<const SentimentWord> words, std::int64_t limit = 0);

}  // namespace attmirror
