#include "deep/views/differing_sentences.hpp"

#include "deep/views/page_parts.hpp"
#include <attmirror/base/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace attmirror::deep {

namespace {

double published_score(const ModelScore& score, std::size_t i) { return *score.sentences[i].published; }

// Of the sentences on which every network has a score, in the order of the file.
std::vector<SentenceRange> ranges_of(std::span<const ModelScore> scores) {
  std::vector<SentenceRange> ranges;
  for (std::size_t i = 0; i < scores.front().sentences.size(); ++i) {
    SentenceRange one{.sentence = i, .highest = highest_networks(scores, i, &SentenceScore::published)};
    if (one.highest.empty()) continue;
    double least = published_score(scores.front(), i);
    for (const ModelScore& score : scores) least = std::min(least, published_score(score, i));
    for (std::size_t m = 0; m < scores.size(); ++m)
      if (published_score(scores[m], i) == least) one.lowest.push_back(m);
    one.range = published_score(scores[one.highest.front()], i) - least;
    ranges.push_back(std::move(one));
  }
  return ranges;
}

void check_count(std::int64_t count, std::int64_t scored) {
  if (scored < 2)
    throw bad_input(
        fmt::format("differing is {} with {} that every network has a score for: expected at least 2", count,
                    counted(static_cast<std::size_t>(scored), "sentence", "sentences")));
  if (count < 1 || count > scored / 2)
    throw bad_value("differing", count,
                    fmt::format("1 to {}, half of the {} sentences with a score", scored / 2, scored));
}

// The mean of a number of one network over sentences.
template <class Number>
ScoreMean mean_over(const ModelScore& score, std::span<const SentenceRange> sentences, const Number& number) {
  std::vector<double> numbers;
  for (const SentenceRange& one : sentences) numbers.push_back(number(score.sentences[one.sentence]));
  return mean_of(numbers);
}

}  // namespace

DifferingSentences differing_sentences(std::span<const ModelScore> scores, std::int64_t count) {
  if (scores.size() < 2)
    throw bad_input(
        fmt::format("differing is {} with {}: expected at least 2 networks, whose scores can differ", count,
                    counted(scores.size(), "network", "networks")));
  DifferingSentences result;
  result.pairs = score_pairs(scores);
  std::vector<SentenceRange> ranges = ranges_of(scores);
  result.scored = std::ssize(ranges);
  check_count(count, result.scored);

  const auto published = [](const SentenceScore& one) { return *one.published; };
  result.networks.resize(scores.size());
  for (std::size_t m = 0; m < scores.size(); ++m) {
    NetworkStanding& standing = result.networks[m];
    standing.all = mean_over(scores[m], ranges, published);
    standing.tokens_attended =
        mean_over(scores[m], ranges, [](const SentenceScore& one) { return one.tokens_attended; }).mean;
  }
  for (const SentenceRange& one : ranges)
    ++(one.highest.size() == 1 ? result.networks[one.highest.front()].wins : result.ties);
  const auto tokens = [](const SentenceScore& one) { return static_cast<double>(one.pieces.size()); };
  result.tokens = mean_over(scores.front(), ranges, tokens).mean;

  // Stable sorts keep the order of the file. The rest is sorted again after the first `count` are taken, because
  // the smallest of a descending order would be those that come last in the file.
  const auto by_range = [](const SentenceRange& a, const SentenceRange& b) { return a.range < b.range; };
  const auto most_end = ranges.begin() + count;
  std::ranges::stable_sort(ranges, [&](const auto& a, const auto& b) { return by_range(b, a); });
  std::stable_sort(most_end, ranges.end(), by_range);
  result.most.assign(ranges.begin(), most_end);
  result.least.assign(most_end, most_end + count);
  const auto chosen = std::span(ranges).first(static_cast<std::size_t>(2 * count));
  for (std::size_t m = 0; m < scores.size(); ++m)
    result.networks[m].chosen = mean_over(scores[m], chosen, published).mean;
  return result;
}

}  // namespace attmirror::deep
