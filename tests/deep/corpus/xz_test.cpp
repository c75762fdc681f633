// Packed files: whole ones, several in one, and every way to be broken.
#include "deep/corpus/xz.hpp"

#include "base/atomic_file.hpp"
#include "deep/corpus/small_vocabulary.hpp"
#include "support/files.hpp"

#include <gtest/gtest.h>

namespace attmirror {
namespace {

using test::expect_bad_input;

class Xz : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::has_component("xz")) GTEST_SKIP() << "this build has no liblzma";
    packed_ = read_file(test::corpus_fixture("reviews.tsv.xz"));
    whole_ = unpack_xz(packed_, "reviews");
  }
  std::vector<std::byte> packed_;
  std::string whole_;
};

TEST_F(Xz, Unpacks) {
  EXPECT_TRUE(whole_.starts_with("0\treview 0 was no fun\n1\treview 1 was fun\n"));
  EXPECT_TRUE(whole_.ends_with("1\treview 39 was fun\n"));
  std::vector<std::byte> twice = packed_;
  twice.insert(twice.end(), packed_.begin(), packed_.end());
  EXPECT_EQ(unpack_xz(twice, "reviews"), whole_ + whole_);
}

TEST_F(Xz, RefusesFilesCutShort) {
  for (std::size_t size = 0; size < packed_.size(); ++size)
    expect_bad_input({"reviews.xz"}, [&] { unpack_xz(std::span(packed_).first(size), "reviews.xz"); });
  expect_bad_input({"reviews.xz ends too early: the file is truncated"},
                   [&] { unpack_xz(std::span(packed_).first(packed_.size() / 2), "reviews.xz"); });
  expect_bad_input({"truncated"}, [&] { unpack_xz({}, "reviews.xz"); });
}

TEST_F(Xz, NoticesEveryChangedByte) {
  for (std::size_t i = 0; i < packed_.size(); ++i) {
    std::vector<std::byte> changed = packed_;
    changed[i] ^= std::byte{0x20};
    expect_bad_input({"reviews.xz"}, [&] { unpack_xz(changed, "reviews.xz"); });
  }
  expect_bad_input({"note.xz is not an .xz file"},
                   [] { unpack_xz(test::to_bytes("just a text"), "note.xz"); });
  std::vector<std::byte> more = packed_;
  more.resize(more.size() + 12, std::byte{'x'});
  expect_bad_input({"reviews.xz is damaged"}, [&] { unpack_xz(more, "reviews.xz"); });
}

TEST_F(Xz, RefusesToFillTheMemory) {
  EXPECT_EQ(unpack_xz(packed_, "reviews", whole_.size()), whole_);
  expect_bad_input({"reviews unpacks to more than 100 bytes"}, [&] { unpack_xz(packed_, "reviews", 100); });
}

TEST(XzAbsent, SaysWhichPackageIsMissing) {
  if (test::has_component("xz")) GTEST_SKIP() << "this build has liblzma";
  expect_bad_input({"reviews.xz", "liblzma-dev"}, [] { unpack_xz({}, "reviews.xz"); });
}

}  // namespace
}  // namespace attmirror
