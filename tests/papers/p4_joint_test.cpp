// One stage instead of two.
#include "papers/result_of.hpp"

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

TEST(P4Joint, NothingDiffers) { expect_sound(quick_result("p4-joint")); }

// Both ways learn the training sentences; W_ov of two stages is exact for one-hot embeddings, that of one stage is not,
// because the sentences pull at it as well.
TEST(P4Joint, BothLearn) {
  for (const char* way : {"two stages", "joint, lr 0.05/√d", "joint, lr 0.2/√d"}) {
    const std::string name = std::string("one-hot, three classes, ") + way;
    EXPECT_EQ(named(quick_result("p4-joint"), name + ": training accuracy").ours, 1) << way;
    EXPECT_LT(named(quick_result("p4-joint"), name + ": 1 − cos(W_kq, W_kq*) at the end").ours, 0.5) << way;
  }
  EXPECT_LT(
      named(quick_result("p4-joint"), "one-hot, three classes, two stages: 1 − cos(W_ov, W_ov*) at the end")
          .ours,
      1e-12);
  EXPECT_GT(named(quick_result("p4-joint"),
                  "one-hot, three classes, joint, lr 0.2/√d: 1 − cos(W_ov, W_ov*) at the end")
                .ours,
            1e-6);
}

}  // namespace
}  // namespace attmirror::test
