// Which sentences of a text P4's model can explain: those that are kept are realizable, and each of the others is not.
#include "next_token/explained_sentences.hpp"

#include <attmirror/next_token/partial_order.hpp>
#include <attmirror/next_token/realizable.hpp>
#include <attmirror/next_token/sentence_text.hpp>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

TEST(ExplainedSentences, KeepAllOfRealizableData) {
  const RealizableData data = make_realizable({.vocabulary = 20, .sentences = 200, .seed = 3});
  const ExplainedSentences result = explained_sentences(data.sentences, data.collocations);
  EXPECT_TRUE(result.skipped.empty());
  EXPECT_EQ(result.sentences.fingerprint(), data.sentences.fingerprint());
}

// Random sentences with random labels: what is kept has no contradiction, and any sentence that was skipped as one
// makes a cycle with those kept before it.
TEST(ExplainedSentences, AreRealizableAndNoneMoreCouldBeKept) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const RealizableData data = make_realizable({.vocabulary = 8, .sentences = 60, .seed = seed});
    Sentences mixed(8);
    for (std::ptrdiff_t i = 0; i < data.sentences.count(); ++i) {
      const auto tokens = data.sentences.tokens(i);
      // Every third label is that of another token of the sentence, every seventh that of none.
      const Token label =
          i % 7 == 6   ? static_cast<Token>(i % 8)
          : i % 3 == 2 ? data.collocations.successor(tokens[static_cast<std::size_t>(i) % tokens.size()])
                       : data.sentences.label(i);
      mixed.add(tokens, label, 1 + static_cast<double>(i % 2));
    }
    const ExplainedSentences result = explained_sentences(mixed, data.collocations);
    EXPECT_EQ(result.kept.size() + result.skipped.size(), 60U);
    EXPECT_EQ(static_cast<std::size_t>(result.sentences.count()), result.kept.size());
    EXPECT_TRUE(PartialOrders(result.sentences, data.collocations).is_realizable());
    std::size_t contradictions = 0;
    for (const SkippedSentence& skipped : result.skipped) {
      Sentences before(8);
      for (const std::int64_t kept : result.kept)
        if (kept < skipped.sentence) before.add(mixed.tokens(kept), mixed.label(kept));
      before.add(mixed.tokens(skipped.sentence), mixed.label(skipped.sentence));
      const PartialOrders orders(before, data.collocations);
      EXPECT_EQ(orders.unexplained().empty(), skipped.reason == SkipReason::contradiction);
      EXPECT_EQ(orders.find_cycle().has_value(), skipped.reason == SkipReason::contradiction);
      contradictions += skipped.reason == SkipReason::contradiction ? 1 : 0;
    }
    EXPECT_GT(contradictions, 3U);
  }
}

TEST(ExplainedSentences, LinesAtTheEndChangeNothingBefore) {
  const std::string text = "a x\nb y\nc z\nq w\na b q x\nb c q y\nc a q z\n";
  const SentenceText shorter = parse_sentences(text, "text"),
                     longer = parse_sentences(text + "c b q z\na c q x\n", "text");
  const ExplainedSentences few = explained_sentences(shorter.sentences, shorter.collocations),
                           more = explained_sentences(longer.sentences, longer.collocations);
  EXPECT_EQ(few.kept, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(more.kept, (std::vector<std::int64_t>{0, 1, 4}));
  const ExplainedSentences cyclic =
      explained_sentences(longer.sentences, longer.collocations, Contradictions::keep);
  EXPECT_EQ(cyclic.kept.size(), 5U);
}

TEST(ExplainedSentences, CountShortLinesAndAllowWordsWithoutSuccessor) {
  const std::string text = "a x\n\nq w\nalone\na q x\na e q x\n";
  const SentenceText read = parse_sentences(text, "text", {.skip_unexplained = true});
  EXPECT_EQ(read.short_lines, 2);
  EXPECT_EQ(read.lines, (std::vector<std::int64_t>{5, 6}));
  const ExplainedSentences result = explained_sentences(read.sentences, read.collocations);
  ASSERT_EQ(result.skipped.size(), 1U);
  EXPECT_EQ(result.skipped[0].reason, SkipReason::no_successor);
  EXPECT_EQ(result.skipped[0].sentence, 1);
}

}  // namespace
}  // namespace attmirror
