// Token selection in p1-imdb-depth: which optimizer's networks attend more to the words that decide a text. Internal.
//
// P1 scores one network of each optimizer on its short sentences, each of which has one pivotal word. Two questions are
// kept apart here.
//
// - Would new trainings select better? The unit is a training: means over seeds, with Welch's interval.
// - Do the trainings at hand select better on new sentences? The unit is a sentence: its score is averaged over the
//   seeds of each optimizer, who has the larger mean wins it, and the sign test judges the wins. The same networks
//   judge all sentences, so that this says nothing about new trainings.
//
// Real reviews have no pivotal words. Listed sentiment words stand in, and trainings have their mean score over reviews
// (docs/deep-views.md).
#pragma once

#include "papers/imdb_depth.hpp"
#include <attmirror/base/sign_test.hpp>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace attmirror {

// As published, or the corrected one.
using SentenceScore = std::optional<double> SentenceRecord::*;

// The mean score of each sentence over the trainings that came to their end, nothing for a sentence that has none.
// Empty where no sentences were recorded.
std::vector<std::optional<double>> sentence_means(const TrainingGroup& group, SentenceScore member);

// Who wins how many sentences; nothing unless both have recorded sentences at this size.
std::optional<SignTest> sentence_wins(const DepthStudy& study, int blocks, std::string_view first,
                                      std::string_view second, SentenceScore member = &SentenceRecord::score);

// The first optimizer minus the second over the sizes at which both have this number, in one model
// (pooled_difference.hpp); nothing without any, and where one training of each is all.
std::optional<std::pair<std::vector<int>, WelchComparison>> selection_over_sizes(const DepthStudy& study,
                                                                                 std::string_view first,
                                                                                 std::string_view second,
                                                                                 RecordedNumber member);

Table depth_selection_table(const DepthStudy& study);  // all scores, by optimizer and size
Table depth_wins_table(const DepthStudy& study);  // pairs of optimizers: sentences, and seeds beside them
Table depth_selection_difference_table(
    const DepthStudy& study);  // pairs of optimizers over seeds, by every score
// One sentence after the other at the largest size, with who wins it at each size.
Table depth_sentence_table(const DepthStudy& study);

}  // namespace attmirror
