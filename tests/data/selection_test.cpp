#include "support/files.hpp"
#include <attmirror/data/generators.hpp>
#include <attmirror/data/selection.hpp>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

std::string selection_refusal(const Selection& selection, const Dataset& data) {
  return test::refusal([&] { selection.validate(data); });
}

TEST(Selection, NeedsOneTokenOfEachSequence) {
  const Dataset data = generate(JointData{});  // two sequences of three tokens
  EXPECT_EQ(selection_refusal({{2, 0}}, data), "accepted");
  EXPECT_EQ(selection_refusal({{2}}, data), "selected has 1 tokens: expected 2, one per sequence");
  EXPECT_EQ(selection_refusal({{0, 3}}, data), "selected[1] is 3: expected 0 to 2, a token of sequence 1");
  EXPECT_EQ(selection_refusal({{-1, 0}}, data), "selected[0] is -1: expected 0 to 2, a token of sequence 0");
}

TEST(Selection, IsComparedAndPrinted) {
  EXPECT_EQ((Selection{{1, 0}}), (Selection{{1, 0}}));
  EXPECT_NE((Selection{{1, 0}}), (Selection{{0, 0}}));
  EXPECT_EQ(to_string(Selection{{3, 0, 7}}), "(3, 0, 7)");
  EXPECT_EQ(to_string(Selection{}), "()");
}

}  // namespace
}  // namespace attmirror
