// Unseen sentences: what the training order implies is predicted.
#include "papers/result_of.hpp"

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

TEST(P4Unseen, NothingDiffers) { expect_sound(quick_result("p4-unseen")); }

TEST(P4Unseen, ImpliedSentencesAreRight) {
  std::ptrdiff_t implied = 0;
  for (const Finding& finding : quick_result("p4-unseen").findings)
    if (finding.quantity.find("implied by the order") != std::string::npos) {
      EXPECT_EQ(finding.ours, 1) << finding.quantity;
      ++implied;
    }
  EXPECT_GE(implied, 4);
  EXPECT_EQ(named(quick_result("p4-unseen"),
                  "one-hot, three classes, never compared tokens: accuracy where the label is by the "
                  "extended order")
                .ours,
            1);
}

// What nothing in the training data tells is not known better than by chance.
TEST(P4Unseen, OpenSentencesAreNot) {
  const double share =
      named(quick_result("p4-unseen"), "Gaussian, linear, new sentences: accuracy where the label is open")
          .ours;
  EXPECT_GT(share, 0.05);
  EXPECT_LT(share, 0.8);
}

}  // namespace
}  // namespace attmirror::test
