#include "deep/corpus/whole_words.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/token_score.hpp>
#include <attmirror/report/token_maps.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace attmirror::deep {

namespace {

bool is_special(const WordPiece& vocabulary, const TextPiece& piece) {
  return piece.id == vocabulary.classifier() || piece.id == vocabulary.separator();
}

// A word of the sentence: pieces begin up to end.
struct Word {
  std::size_t begin, end;
};

// The pivotal word is one word, also where its pieces are not joined by ## ("well-kept" is three).
std::vector<Word> words_of(const WordPiece& vocabulary, std::span<const TextPiece> pieces,
                           std::span<const std::size_t> pivotal) {
  std::vector<Word> words;
  for (std::size_t t = 0; t < pieces.size(); ++t) {
    if (is_special(vocabulary, pieces[t])) continue;
    const bool within = !pivotal.empty() && t > pivotal.front() && t <= pivotal.back();
    if (!words.empty() && words.back().end == t && (piece_continues(pieces[t].piece) || within))
      ++words.back().end;
    else
      words.push_back({t, t + 1});
  }
  return words;
}

struct WordScore {
  std::optional<double> score;
  std::int64_t rank = 1;
  double share = 0;
};

template <class Measure>
WordScore word_score(std::span<const Word> words, std::size_t pivotal, const Measure& measure) {
  std::vector<double> attention;
  double all = 0;
  for (const Word& word : words) {
    attention.push_back(measure(word));
    all += attention.back();
  }
  WordScore result;
  for (const double other : attention) result.rank += other > attention[pivotal] ? 1 : 0;
  result.share = all > 0 ? attention[pivotal] / all : 0;
  const auto [least, most] = std::ranges::minmax(attention);
  if (most > least) result.score = (attention[pivotal] - least) / (most - least);
  return result;
}

template <class Value>
std::vector<double> present(std::span<const SentenceScore> scores, const Value& value) {
  std::vector<double> numbers;
  for (const SentenceScore& score : scores)
    if (const std::optional<double> number = value(score)) numbers.push_back(*number);
  return numbers;
}

}  // namespace

std::vector<std::size_t> places_of(const WordPiece& vocabulary, std::string_view word,
                                   std::span<const TextPiece> pieces) {
  std::vector<TextPiece> wanted = vocabulary.encode_pieces(word);
  std::erase_if(wanted, [&](const TextPiece& piece) { return is_special(vocabulary, piece); });
  if (wanted.empty()) return {};
  for (std::size_t begin = 0; begin + wanted.size() <= pieces.size(); ++begin) {
    const std::size_t end = begin + wanted.size();
    const bool equal =
        std::equal(wanted.begin(), wanted.end(), pieces.begin() + static_cast<std::ptrdiff_t>(begin),
                   [](const TextPiece& a, const TextPiece& b) { return a.id == b.id; });
    const bool goes_on = end < pieces.size() && piece_continues(pieces[end].piece);
    if (!equal || goes_on) continue;
    std::vector<std::size_t> places;
    for (std::size_t t = begin; t < end; ++t) places.push_back(t);
    return places;
  }
  return {};
}

SentenceScore sentence_score(const WordPiece& vocabulary, const PivotalSentence& sentence,
                             std::span<const TextPiece> pieces, std::span<const double> attention) {
  if (attention.size() != pieces.size())
    throw bad_input(fmt::format("attention has {} numbers: expected {}, one for each token", attention.size(),
                                pieces.size()));
  SentenceScore score;
  for (const TextPiece& piece : pieces) score.pieces.push_back(piece.piece);
  score.tokens_attended = effective_count(attention);
  score.pivotal = places_of(vocabulary, sentence.pivotal, pieces);
  if (score.pivotal.empty()) {
    score.dropped = fmt::format("\"{}\" does not occur", sentence.pivotal);
    return score;
  }
  if (score.pivotal.size() > 1) {
    std::vector<std::string> parts;
    for (const std::size_t t : score.pivotal) parts.push_back(pieces[t].piece);
    score.dropped = fmt::format("\"{}\" is split into {}", sentence.pivotal, fmt::join(parts, " "));
  } else {
    score.published = min_max({attention.begin(), attention.end()})[score.pivotal.front()];
  }
  const std::vector<Word> words = words_of(vocabulary, pieces, score.pivotal);
  const auto pivotal =
      static_cast<std::size_t>(std::ranges::find(words, score.pivotal.front(), &Word::begin) - words.begin());
  const auto part = [&](const Word& word) { return attention.subspan(word.begin, word.end - word.begin); };
  const WordScore sum = word_score(words, pivotal, [&](const Word& word) {
    double total = 0;
    for (const double p : part(word)) total += p;
    return total;
  });
  score.sum = sum.score;
  score.rank = sum.rank;
  score.share = sum.share;
  score.largest =
      word_score(words, pivotal, [&](const Word& word) { return std::ranges::max(part(word)); }).score;
  return score;
}

ScoreMean mean_of(std::span<const double> numbers) {
  constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
  ScoreMean result{static_cast<std::int64_t>(numbers.size()), nothing, nothing};
  const auto n = static_cast<double>(numbers.size());
  if (numbers.empty()) return result;
  double sum = 0, squares = 0;
  for (const double number : numbers) sum += number;
  result.mean = sum / n;
  for (const double number : numbers) squares += (number - result.mean) * (number - result.mean);
  if (numbers.size() > 1) result.standard_error = std::sqrt(squares / (n - 1) / n);
  return result;
}

namespace {

// `pieces` are those of the sentences.
ModelScore score_of(const TextModel& model, const WordPiece& vocabulary,
                    std::span<const PivotalSentence> sentences, std::span<const ViewedPieces> pieces) {
  ModelScore result;
  result.model = model.name;
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    const TextAttention attention = text_attention(model, pieces[i].pieces, AttentionRows::first);
    SentenceScore score =
        sentence_score(vocabulary, sentences[i], pieces[i].pieces, attention.answering_row());
    score.probability = attention.probability;
    score.correct = (attention.probability > 0.5) == (sentences[i].label == 1);
    result.correct += score.correct ? 1 : 0;
    result.first += score.rank == 1 ? 1 : 0;
    result.sentences.push_back(std::move(score));
  }
  const std::span<const SentenceScore> all = result.sentences;
  using Number = std::optional<double>;
  result.published = mean_of(present(all, [](const SentenceScore& one) { return one.published; }));
  result.sum = mean_of(present(all, [](const SentenceScore& one) { return one.sum; }));
  result.largest = mean_of(present(all, [](const SentenceScore& one) { return one.largest; }));
  result.share =
      mean_of(present(all, [](const SentenceScore& one) { return one.rank ? Number(one.share) : Number(); }));
  result.tokens_attended =
      mean_of(present(all, [](const SentenceScore& one) { return Number(one.tokens_attended); }));
  return result;
}

}  // namespace

ModelScore token_score(const TextModel& model, const WordPiece& vocabulary,
                       std::span<const PivotalSentence> sentences) {
  return model_scores(std::span(&model, 1), vocabulary, sentences).front();
}

std::vector<ModelScore> model_scores(std::span<const TextModel> models, const WordPiece& vocabulary,
                                     std::span<const PivotalSentence> sentences) {
  if (models.empty()) throw bad_input("no model is given");
  if (sentences.empty()) throw bad_input("there are no sentences to score");
  std::vector<ViewedPieces> pieces;
  for (std::size_t i = 0; i < sentences.size(); ++i)
    pieces.push_back(
        viewed_pieces(models, vocabulary, sentences[i].sentence, fmt::format("sentence {}", i + 1)));
  std::vector<ModelScore> scores;
  for (const TextModel& model : models) scores.push_back(score_of(model, vocabulary, sentences, pieces));
  return scores;
}

std::vector<std::size_t> highest_networks(std::span<const ModelScore> scores, std::size_t i,
                                          std::optional<double> SentenceScore::*number) {
  std::vector<std::size_t> highest;
  for (std::size_t m = 0; m < scores.size(); ++m) {
    const std::optional<double>& value = scores[m].sentences[i].*number;
    if (!value) return {};
    if (!highest.empty() && *value < *(scores[highest.front()].sentences[i].*number)) continue;
    if (!highest.empty() && *value > *(scores[highest.front()].sentences[i].*number)) highest.clear();
    highest.push_back(m);
  }
  return highest;
}

std::vector<ScorePair> score_pairs(std::span<const ModelScore> scores) {
  std::vector<std::vector<std::optional<double>>> published, words;
  for (const ModelScore& model : scores) {
    auto& by_token = published.emplace_back();
    auto& by_word = words.emplace_back();
    for (const SentenceScore& one : model.sentences) {
      by_token.push_back(one.published);
      by_word.push_back(one.sum);
    }
  }
  return all_pairs(published, words);
}

std::vector<ScorePair> all_pairs(std::span<const std::vector<std::optional<double>>> published,
                                 std::span<const std::vector<std::optional<double>>> words) {
  std::vector<ScorePair> pairs;
  for (std::size_t i = 0; i < published.size(); ++i)
    for (std::size_t j = i + 1; j < published.size(); ++j)
      pairs.push_back({i, j, sign_test(published[i], published[j]), sign_test(words[i], words[j])});
  return pairs;
}

}  // namespace attmirror::deep
