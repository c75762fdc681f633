// SHA-256 against the examples of the standard (FIPS 180-4) and its test vectors.
#include "base/sha256.hpp"

#include <string>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

std::string digest(std::string_view text) {
  Sha256 sum;
  sum.add(text);
  return sum.hex();
}

TEST(Sha256, EqualsTheStandardsExamples) {
  EXPECT_EQ(digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                   "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(digest(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The padding changes its form at 55, 56 and 64 bytes; pieces may be cut anywhere.
TEST(Sha256, DoesNotDependOnHowContentIsCut) {
  for (const std::size_t size :
       {0u, 1u, 54u, 55u, 56u, 57u, 63u, 64u, 65u, 119u, 120u, 127u, 128u, 129u, 300u}) {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) text += static_cast<char>('a' + i % 23);
    const std::string whole = digest(text);
    for (const std::size_t step : {1u, 3u, 55u, 63u, 64u, 65u}) {
      Sha256 sum;
      for (std::size_t at = 0; at < size; at += step) {
        sum.add(std::string_view(text).substr(at, step));
        sum.hex();  // looking changes nothing
      }
      EXPECT_EQ(sum.hex(), whole) << size << " bytes by " << step;
    }
  }
  EXPECT_NE(digest(std::string(55, 'a')), digest(std::string(56, 'a')));
}

}  // namespace
}  // namespace attmirror
