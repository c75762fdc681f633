// The token-selection score on real reviews.
//
// P1's sentences have one word each that decides, and 44 of them decide little: the standard error of their mean is
// about 0.05. Held-out reviews there are by the thousand. What decides them is not marked, so words from a list
// (sentiment_words.hpp) stand in for it: those of the review's own label that occur in it. The attention is P1's,
// of [CLS] in the last block, the mean over heads. With a_t the attention to token t and L the places of the listed
// words in a review:
//
//   score   the mean over L of (a_t - min a) / (max a - min a), over all tokens as in P1, [CLS] and [SEP] included
//   lift    (sum_L a / sum_words a) / (|L| / number of words): how much more attention a listed word gets than the
//           average one. Words are all tokens except [CLS] and [SEP]. 1: attention does not tell them apart
//   top     whether the token with the most attention, [CLS] and [SEP] excluded, is a listed word
#pragma once

#include <attmirror/deep/sentiment_words.hpp>
#include <attmirror/deep/token_score.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace attmirror::deep {

// What one review gets from a network.
struct ReviewScore {
  std::int64_t row = 0;  // of the set
  double score = 0, lift = 0;
  bool top = false;
  double share = 0;            // of the attention to words that listed words get
  double token_share = 0;      // of the words that are listed ones; lift = share / token_share
  double tokens_attended = 0;  // effective_count() of the row of attention
  double probability = 0;      // of label 1
  bool correct = false;
};

// The scores of one network over all reviews.
struct ModelReviews {
  std::string model;
  std::vector<ReviewScore> reviews;
  ScoreMean score, lift, top, share, token_share, tokens_attended;
  std::int64_t correct = 0;  // reviews answered right
};

// How review_scores() computes.
struct ReviewScoreOptions {
  // 0: as many as the machine runs at once. Does not change the result.
  int threads = 1;
  // Called after each batch with the number of reviews done so far, one call at a time.
  std::function<void(std::int64_t)> on_progress{};
};

// The scores of `chosen` rows of `reviews`. Throws Error (bad input), naming the model, for one that has another
// vocabulary or fewer places than the reviews have tokens, or whose numbers are not finite, and for an empty
// choice.
ModelReviews review_scores(const TextModel& model, const WordPiece& vocabulary, const TokenSet& reviews,
                           std::span<const ReviewWords> chosen, const ReviewScoreOptions& options = {});

// The part of review_scores() after the network: all but `row`, `probability` and `correct`, from the attention to the
// tokens of a review. Throws Error (bad input) for lengths that differ, and for no place or one outside.
ReviewScore review_score(const WordPiece& vocabulary, std::span<const std::int32_t> tokens,
                         std::span<const std::size_t> places, std::span<const double> attention);

// For each pair of networks: who wins how many reviews, by the score and by the lift. Throws Error (bad input)
// unless all have scored the same rows.
std::vector<ScorePair> score_pairs(std::span<const ModelReviews> scores);

}  // namespace attmirror::deep
