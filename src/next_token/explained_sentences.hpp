// The part of an ordinary text that P4's model can explain. Internal.
//
// The model predicts the successor of a word that it attends to, and for each query it ranks words. So it
// cannot learn
//
//   - a sentence with a word that has no successor;
//   - a sentence whose label is the successor of none of its words;
//   - sentences whose comparisons contradict each other: x >_q x' >_q ... >_q x.
//
// Of the last, which to leave out is a choice. The rule: sentences are read in their order, and one is kept
// if its comparisons, together with those of all sentences kept before it, have no cycle. So a text has one
// answer, its first sentence with an explained label is always kept, and adding lines at the end changes
// nothing before them.
#pragma once

#include <attmirror/next_token/sentences.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace attmirror {

enum class SkipReason { no_successor, unexplained_label, contradiction };
inline constexpr std::array skip_reasons{SkipReason::no_successor, SkipReason::unexplained_label,
                                         SkipReason::contradiction};
std::string_view to_string(SkipReason reason);  // "no successor", "unexplained label", "contradiction"

// Sentences that may contradict each other, where training on cycles is wanted.
enum class Contradictions { skip, keep };

struct SkippedSentence {
  std::int64_t sentence = 0;
  SkipReason reason = SkipReason::no_successor;
};

struct ExplainedSentences {
  Sentences sentences;             // those that were kept, with their weights
  std::vector<std::int64_t> kept;  // their numbers before
  std::vector<SkippedSentence> skipped;
};

// A token that has several successors is explained by any of them.
ExplainedSentences explained_sentences(const Sentences& sentences, const Collocations& collocations,
                                       Contradictions contradictions = Contradictions::skip);

}  // namespace attmirror
