// The sentences in which networks differ most, and least, in how much attention they give the pivotal word. Internal.
//
// Let s_mi be P1's score of network m on sentence i (token_score.hpp), for the sentences on which every network has
// one. How far the networks are apart is the range
//
//   D_i = max_m s_mi - min_m s_mi,
//
// 0 where all give the pivotal word the same score, 1 where it gets the most attention of all tokens from one network
// and the least from another. Most: the `count` sentences with the largest D_i, the largest first. Least: of the
// others, the `count` with the smallest D_i, the smallest first. Sentences with the same range are taken in the order
// of the file.
//
// A network wins a sentence if it alone has the highest score.
//
// Scaling exaggerates small differences: where attention is nearly even, a score is nearly random. So the number of
// tokens over which a network spreads its attention goes with its score.
//
// Sentences that are chosen by their scores are not a sample: the mean over them describes them alone, and the
// mean over all sentences says which network is better.
#pragma once

#include <attmirror/deep/token_score.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace attmirror::deep {

struct SentenceRange {
  std::size_t sentence = 0;
  double range = 0;                                    // D_i
  std::vector<std::size_t> highest = {}, lowest = {};  // the networks there, several where they tie
};

struct NetworkStanding {
  ScoreMean all;               // over all sentences with a score
  double chosen = 0;           // the mean over those of most and least
  double tokens_attended = 0;  // its mean over all
  std::int64_t wins = 0;       // of all
};

struct DifferingSentences {
  std::vector<SentenceRange> most, least;
  std::int64_t scored = 0;  // sentences on which every network has a score
  std::int64_t ties = 0;    // those of them that several networks share
  double tokens = 0;        // the mean of their numbers of tokens
  std::vector<NetworkStanding> networks;
  std::vector<ScorePair> pairs;  // each with each, by score_pairs()
};

// `scores` are those of model_scores(). Throws Error (bad input) for a single network, and for a count, the command's
// --differing, below 1 or above half of the sentences with a score.
DifferingSentences differing_sentences(std::span<const ModelScore> scores, std::int64_t count);

}  // namespace attmirror::deep
