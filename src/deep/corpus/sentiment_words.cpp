#include "base/atomic_file.hpp"
#include "base/csv.hpp"
#include "base/words.hpp"
#include "data/messages.hpp"
#include "deep/corpus/rows.hpp"
#include "deep/corpus/whole_words.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/sentiment_words.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace attmirror {

namespace {

void check_reviews(const TokenSet& reviews, const WordPiece& vocabulary) {
  if (reviews.vocabulary != vocabulary.size() || reviews.vocabulary_fingerprint != vocabulary.fingerprint())
    throw bad_input(fmt::format(
        "the reviews have a vocabulary of {} pieces with fingerprint {}, not the given one of {} pieces with "
        "fingerprint {}",
        reviews.vocabulary, reviews.vocabulary_fingerprint, vocabulary.size(), vocabulary.fingerprint()));
  for (std::size_t r = 0; r < reviews.labels.size(); ++r)
    if (reviews.labels[r] < 0 || reviews.labels[r] > 1)
      throw bad_whole_entry("labels", r, reviews.labels[r], "0 or 1");
}

bool is_listable(std::string_view piece) {
  return piece.size() >= 2 &&
         std::ranges::all_of(piece, [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
}

// One line of a list, with the words of its messages.
struct ListLine {
  std::string_view file;
  std::size_t line;

  Error error(std::string_view column, std::string_view text, std::string_view expected) const {
    return bad_input(
        fmt::format("{} line {}: {} is \"{}\": expected {}", file, line, column, one_line(text), expected));
  }

  template <class Number>
  Number number(std::string_view column, const std::string& text, std::string_view expected) const {
    Number value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size()) throw error(column, text, expected);
    return value;
  }
};

}  // namespace

void SentimentRule::validate() const {
  if (least_reviews < 1)
    throw bad_input(fmt::format("least_reviews is {}: expected at least 1", least_reviews));
  if (!(least_share > 0.5 && least_share <= 1))
    throw bad_input(fmt::format("least_share is {}: expected more than 0.5 and at most 1", least_share));
}

std::vector<SentimentWord> sentiment_words(const TokenSet& reviews, const WordPiece& vocabulary,
                                           const SentimentRule& rule) {
  rule.validate();
  check_reviews(reviews, vocabulary);
  const auto size = static_cast<std::size_t>(vocabulary.size());
  std::vector<std::array<std::int64_t, 2>> counts(size);
  // In which review a piece was last counted: a word counts once a review.
  std::vector<std::int64_t> last(size, -1);
  for (std::int64_t r = 0; r < reviews.rows(); ++r) {
    const auto row = reviews.row(r);
    for (std::size_t t = 0; t < row.size(); ++t) {
      const auto id = static_cast<std::size_t>(row[t]);
      if (last[id] == r || !is_whole_word(vocabulary, row, t)) continue;
      last[id] = r;
      ++counts[id][static_cast<std::size_t>(reviews.labels[static_cast<std::size_t>(r)])];
    }
  }
  std::vector<SentimentWord> words;
  for (std::size_t id = 0; id < size; ++id) {
    const std::int64_t count = counts[id][0] + counts[id][1];
    const std::string& piece = vocabulary.piece(static_cast<std::int64_t>(id));
    if (count < rule.least_reviews || !is_listable(piece)) continue;
    const std::int32_t label = counts[id][1] > counts[id][0] ? 1 : 0;
    const double share =
        static_cast<double>(counts[id][static_cast<std::size_t>(label)]) / static_cast<double>(count);
    if (share >= rule.least_share) words.push_back({piece, label, count, share});
  }
  std::ranges::sort(words, [](const SentimentWord& a, const SentimentWord& b) {
    return std::tuple(a.label, -*a.share, std::string_view(a.word)) <
           std::tuple(b.label, -*b.share, std::string_view(b.word));
  });
  return words;
}

std::vector<SentimentWord> read_sentiment_words(const std::filesystem::path& path,
                                                const WordPiece& vocabulary) {
  return parse_sentiment_words(read_text_file(path), path.string(), vocabulary);
}

std::vector<SentimentWord> parse_sentiment_words(std::string_view content, std::string_view name,
                                                 const WordPiece& vocabulary) {
  const std::vector<CsvRow> rows = parse_csv(content, name);
  using Names = std::vector<std::string>;
  const Names all{"word", "label", "count", "share"}, two{"word", "label"};
  if (rows.empty() || (rows.front().cells != all && rows.front().cells != two))
    throw bad_input(fmt::format("{} line 1 is not word,label,count,share: expected a list of words", name));
  if (rows.size() == 1) throw bad_input(fmt::format("{} has no words after its first line", name));
  std::vector<SentimentWord> words;
  std::set<std::string, std::less<>> seen;
  for (const CsvRow& row : std::span(rows).subspan(1)) {
    const ListLine line{name, row.line};
    const std::string& word = row.cells[0];
    if (!vocabulary.contains(word) || piece_continues(word))
      throw line.error("word", word, "a word that is a single piece of the vocabulary");
    if (!seen.insert(word).second) throw line.error("word", word, "each word once");
    const auto label = line.number<std::int32_t>("label", row.cells[1], "0 or 1");
    if (label != 0 && label != 1) throw line.error("label", row.cells[1], "0 or 1");
    words.push_back({word, label});
    if (row.cells.size() == 2) continue;
    words.back().count = line.number<std::int64_t>("count", row.cells[2], "a number of reviews");
    words.back().share = line.number<double>("share", row.cells[3], "a share between 0 and 1");
    if (*words.back().count < 0) throw line.error("count", row.cells[2], "a number of reviews");
    if (!(*words.back().share >= 0 && *words.back().share <= 1))
      throw line.error("share", row.cells[3], "a share between 0 and 1");
  }
  return words;
}

std::string format_sentiment_words(std::span<const SentimentWord> words) {
  const bool counted =
      std::ranges::all_of(words, [](const SentimentWord& word) { return word.count && word.share; });
  std::string text = counted ? "word,label,count,share\n" : "word,label\n";
  for (const SentimentWord& word : words) {
    append_csv_cell(text, word.word);
    text += fmt::format(",{}", word.label);
    if (counted) text += fmt::format(",{},{}", *word.count, *word.share);
    text += '\n';
  }
  return text;
}

ReviewChoice reviews_with_words(const TokenSet& reviews, const WordPiece& vocabulary,
                                std::span<const SentimentWord> words, std::int64_t limit) {
  if (limit < 0) throw bad_input(fmt::format("limit is {}: expected 0 or more", limit));
  check_reviews(reviews, vocabulary);
  std::unordered_map<std::int32_t, std::int32_t> label_of;
  for (const SentimentWord& word : words) label_of.emplace(vocabulary.id(word.word), word.label);
  std::vector<ReviewWords> found;
  for (std::int64_t r = 0; r < reviews.rows(); ++r) {
    const auto row = reviews.row(r);
    ReviewWords review{r, {}};
    for (std::size_t t = 0; t < row.size(); ++t) {
      const auto listed = label_of.find(row[t]);
      if (listed != label_of.end() && listed->second == reviews.labels[static_cast<std::size_t>(r)] &&
          is_whole_word(vocabulary, row, t))
        review.places.push_back(t);
    }
    if (!review.places.empty()) found.push_back(std::move(review));
  }
  ReviewChoice choice{{}, static_cast<std::int64_t>(found.size())};
  for (const std::int64_t chosen : limited_rows(choice.found, limit))
    choice.reviews.push_back(std::move(found[static_cast<std::size_t>(chosen)]));
  return choice;
}

}  // namespace attmirror
