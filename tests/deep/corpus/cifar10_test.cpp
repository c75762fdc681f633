// CIFAR-10's binary files.
#include "base/atomic_file.hpp"
#include "base/sha256.hpp"
#include "deep/corpus/small_vocabulary.hpp"
#include "support/files.hpp"
#include "support/paths.hpp"
#include <attmirror/deep/image_set.hpp>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;
using test::expect_bad_input;

// Image i has label (first + i) % 10, and its pixel j is the byte i + j.
std::string images(int count, int first = 0) {
  std::string file;
  for (int i = 0; i < count; ++i) {
    file += static_cast<char>((first + i) % 10);
    for (int j = 0; j < 3072; ++j) file += static_cast<char>(static_cast<unsigned char>(i + j));
  }
  return file;
}

TEST(Cifar10, JoinsFilesInTheirOrder) {
  const test::TemporaryFolder folder;
  write_file_atomically(folder / "a.bin", images(3));
  write_file_atomically(folder / "b.bin", images(2, 8));
  const ImageSet set = load_cifar10({folder / "b.bin", folder / "a.bin"});
  EXPECT_EQ(set.count(), 5);
  EXPECT_EQ(set.labels, (std::vector<std::int32_t>{8, 9, 0, 1, 2}));
  EXPECT_EQ(set.image_bytes(), 3072);
  ASSERT_EQ(set.pixels.size(), 5u * 3072);
  EXPECT_EQ(set.pixels[0], 0);
  EXPECT_EQ(set.pixels[3072], 1);  // the first pixel of the second image
  EXPECT_EQ(set.pixels[3072 - 1], 255);
  EXPECT_EQ(set.pixels[4 * 3072], 2);
}

TEST(Cifar10, EveryLabelHasAName) {
  EXPECT_EQ(static_cast<std::int64_t>(cifar10_classes().size()), ImageSet{}.classes);
  EXPECT_EQ(cifar10_classes()[3], "cat");
  EXPECT_EQ(cifar10_classes()[9], "truck");
}

TEST(Cifar10, RefusesBrokenFiles) {
  const test::TemporaryFolder folder;
  const auto load = [&](std::string_view content) {
    write_file_atomically(folder / "a.bin", content);
    return load_cifar10({folder / "a.bin"});
  };
  expect_bad_input({"no files of images"}, [] { load_cifar10({}); });
  expect_bad_input({"a.bin has no images"}, [&] { load(""); });
  std::string file = images(2);
  expect_bad_input({"a.bin has 6145 bytes", "3073"}, [&] { load(file.substr(0, file.size() - 1)); });
  expect_bad_input({"a.bin has 6147 bytes"}, [&] { load(file + "x"); });
  file[3073] = 10;
  expect_bad_input({"a.bin: image 1 has label 10: expected 0 to 9"}, [&] { load(file); });
  file[3073] = static_cast<char>(0xff);
  expect_bad_input({"image 1 has label 255"}, [&] { load(file); });
  expect_bad_input({"cannot read", "none.bin"}, [&] { load_cifar10({folder / "none.bin"}); });
  if (test::has_component("xz")) {
    write_file_atomically(folder / "a.bin.xz", images(1));
    expect_bad_input({"a.bin.xz is not an .xz file"}, [&] { load_cifar10({folder / "a.bin.xz"}); });
  }
}

TEST(Cifar10, FindsTheFilesOfASet) {
  const test::TemporaryFolder folder;
  const auto names = [&](const std::string& part) {
    std::vector<std::string> result;
    for (const fs::path& file : cifar10_files(folder.path(), part))
      result.push_back(file.filename().string());
    return result;
  };
  using Names = std::vector<std::string>;
  expect_bad_input({"training images", "data_batch_1.bin"}, [&] { names("train"); });
  expect_bad_input({"test images", "test_batch.bin"}, [&] { names("test"); });
  for (const char* name : {"data_batch_3.bin", "data_batch_1.bin.xz", "data_batch_1.bin",
                           "data_batch_5.bin.xz", "data_batch_6.bin", "test_b.bin", "test_a.bin.xz",
                           "test_b.bin.xz", "test_rows.txt", "batches.meta.txt"})
    write_file_atomically(folder / name, "x");
  EXPECT_EQ(names("train"), (Names{"data_batch_1.bin", "data_batch_3.bin", "data_batch_5.bin.xz"}));
  EXPECT_EQ(names("test"), (Names{"test_a.bin.xz", "test_b.bin"}));
  write_file_atomically(folder / "test_batch.bin.xz", "x");
  EXPECT_EQ(names("test"), (Names{"test_batch.bin.xz"}));
  EXPECT_EQ(cifar10_files(folder / "test_b.bin", "train"), (std::vector<fs::path>{folder / "test_b.bin"}));
  expect_bad_input({"part is \"dev\""}, [&] { names("dev"); });
  expect_bad_input({"cannot read", "nowhere"}, [&] { cifar10_files(folder / "nowhere", "test"); });
}

TEST(Cifar10, ReadsTheRealOne) {
  const test::SharedFile folder("data/cifar10");
  if (folder.is_absent()) GTEST_SKIP() << folder.absence();
  if (!test::has_component("xz")) GTEST_SKIP() << "this build has no liblzma";
  const std::vector<fs::path> files = cifar10_files(folder.path(), "train");
  ASSERT_FALSE(files.empty());
  const ImageSet set = load_cifar10({files[0]});
  ASSERT_EQ(set.count(), 10'000);
  // Put together again it is the official file, whose MD5 is 5dd7e06a14cb22eb9f671a540d1b7c25.
  Sha256 sum;
  for (std::size_t i = 0; i < 10'000; ++i) {
    const auto label = static_cast<std::byte>(set.labels[i]);
    sum.add(std::span(&label, 1));
    sum.add(std::as_bytes(std::span(set.pixels).subspan(i * 3072, 3072)));
  }
  EXPECT_EQ(sum.hex(), "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5");
  EXPECT_EQ(set.labels[0], 6);  // a frog, as everybody's first CIFAR-10 image
  EXPECT_EQ(std::count(set.labels.begin(), set.labels.end(), 6), 1'030);
  EXPECT_EQ(static_cast<int>(set.pixels[0]), 59);
}

}  // namespace
}  // namespace attmirror
