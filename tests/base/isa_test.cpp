// Which instruction sets there are: what the processor lacks and what the build leaves out is refused in a sentence.
#include "base/dispatch.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/base/isa.hpp>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

constexpr Isa all_sets[] = {Isa::sse2, Isa::avx2, Isa::avx512};

TEST(Isa, NamesAreReadBack) {
  for (const Isa isa : all_sets) EXPECT_EQ(parse_isa(to_string(isa)), isa);
  EXPECT_THROW(parse_isa("avx"), Error);
}

TEST(Isa, TheBestIsSupportedAndNoneIsBetter) {
  EXPECT_TRUE(is_supported(best_isa()));
  EXPECT_TRUE(is_built(best_isa()));
  for (const Isa isa : all_sets)
    if (isa > best_isa()) EXPECT_FALSE(is_supported(isa)) << to_string(isa);
}

TEST(Isa, ASetThatTheBuildLeavesOutIsNamed) {
  const Isa before = active_isa();
  for (const Isa isa : all_sets) {
    if (is_supported(isa)) {
      set_isa(isa);
      EXPECT_EQ(active_isa(), isa);
      set_isa(before);
      continue;
    }
    try {
      set_isa(isa);
      ADD_FAILURE() << to_string(isa) << " is not supported, and was accepted";
      set_isa(before);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      const std::string text = error.what();
      EXPECT_NE(text.find(to_string(isa)), std::string::npos) << text;
      EXPECT_EQ(text.find("ATTMIRROR_KERNELS=all") != std::string::npos, !is_built(isa)) << text;
    }
    EXPECT_EQ(active_isa(), before);
  }
}

}  // namespace
}  // namespace attmirror
