// P1's token-selection score: how much of its attention does a network give to the word that decides a review?
//
// P1 asks this for 50 short reviews, each with a pivotal word. It takes the [CLS] row of the attention in the
// last block, averages over heads, and scales it so that the smallest token, [CLS] and [SEP] included, gets 0
// and the largest 1. The score of a review is the value of the pivotal word, and the score of a network is
// the mean. Two things go wrong silently:
//
//   - A review whose word is not one of its tokens is dropped. With bert-base-uncased's vocabulary these are
//     three whose word does not occur at all and three whose word WordPiece splits.
//   - [CLS] and [SEP] take part in the scaling. A network that rests on [SEP] gets low scores for all words,
//     whichever of them it prefers.
//
// So both are computed: P1's number, with the dropped reviews by name, and a corrected one, in which a word gets
// the attention of all its pieces and special tokens are excluded. A word that does not occur has no score.
#pragma once

#include <attmirror/base/sign_test.hpp>
#include <attmirror/deep/text_attention.hpp>
#include <attmirror/deep/text_set.hpp>

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace attmirror::deep {

// How much attention the deciding word of one sentence gets.
struct SentenceScore {
  std::vector<std::string> pieces;   // of the sentence, with [CLS] and [SEP]
  std::vector<std::size_t> pivotal;  // which of them are the word; empty where it does not occur
  std::optional<double> published;   // P1's; none where P1 drops the sentence
  std::string dropped;               // why it does: `"overheats" is split into over ##hea ##ts`
  std::optional<double> sum,
      largest;  // corrected: a word gets the sum, or the largest, of its pieces' attention
  std::optional<std::int64_t> rank;  // of the word within the sentence, by the sum; 1: it has the most
  double share = 0;                  // of the attention to words (not to special tokens) that the word gets
  double probability = 0;            // of label 1
  bool correct = false;
  double tokens_attended = 0;  // effective_count() of the row
};

// A mean over sentences, with its standard error.
struct ScoreMean {
  std::int64_t count = 0;
  double mean = 0;            // NaN where the count is 0
  double standard_error = 0;  // NaN below 2
};

// The scores of one network over all sentences.
struct ModelScore {
  std::string model;
  std::vector<SentenceScore> sentences;  // as given
  ScoreMean published, sum, largest, share, tokens_attended;
  std::int64_t correct = 0,
               first = 0;  // sentences answered right; sentences in which the word has the highest rank
};

// P1's numbers for size 6, from its figures.
inline constexpr double published_score_md = 0.4387, published_score_gd = 0.3122;

// Throws Error (bad input), naming the model or the sentence.
ModelScore token_score(const TextModel& model, const WordPiece& vocabulary,
                       std::span<const PivotalSentence> sentences);

// The same for several networks that are to be compared: all read the same tokens of a sentence, as many as the
// network with the shortest length has places for.
std::vector<ModelScore> model_scores(std::span<const TextModel> models, const WordPiece& vocabulary,
                                     std::span<const PivotalSentence> sentences);

// The networks with the highest number on sentence i, several where they tie; empty where a network has none.
std::vector<std::size_t> highest_networks(std::span<const ModelScore> scores, std::size_t i,
                                          std::optional<double> SentenceScore::*number);

// Where the pieces of `word` are in a sentence, consecutive and not inside a longer word; empty if they are
// not there.
std::vector<std::size_t> places_of(const WordPiece& vocabulary, std::string_view word,
                                   std::span<const TextPiece> pieces);

// The score of one row of attention over `pieces`: the part of token_score() after the network.
SentenceScore sentence_score(const WordPiece& vocabulary, const PivotalSentence& sentence,
                             std::span<const TextPiece> pieces, std::span<const double> attention);

// Two networks, case by case. Means over few sentences have large errors because sentences differ more than
// networks do; who wins each sentence does not suffer from that.
struct ScorePair {
  std::size_t first = 0, second = 0;  // which of the networks
  SignTest published, words;          // by P1's score, and with special tokens left out
};

// For each pair of networks: who wins how many sentences, by P1's score and by the score over words (the sum).
// Throws Error (bad input) unless all have scored as many sentences.
std::vector<ScorePair> score_pairs(std::span<const ModelScore> scores);

// The same from numbers: [network][case] both ways.
std::vector<ScorePair> all_pairs(std::span<const std::vector<std::optional<double>>> published,
                                 std::span<const std::vector<std::optional<double>>> words);

// The mean of numbers, and its standard error.
ScoreMean mean_of(std::span<const double> numbers);

}  // namespace attmirror::deep
