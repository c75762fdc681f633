// Small color images with labels, in CIFAR-10's layout: bytes in planes (red, green, blue), row by row.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace attmirror {

// Images of one size with their classes, in memory.
struct ImageSet {
  std::int64_t channels = 3, height = 32, width = 32;
  std::vector<std::uint8_t> pixels;  // image after image, `channels` planes each
  std::vector<std::int32_t> labels;  // from 0
  std::int64_t classes = 10;

  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t image_bytes() const { return channels * height * width; }
};

// CIFAR-10's binary files: 1 label byte and 3,072 pixel bytes per image. Reads *.bin and *.bin.xz; the files
// are joined in the order given. Throws Error (bad input), naming the file and the image, for a size that is
// not a multiple of 3,073, a label above 9, an empty list, or a truncated or damaged .xz file.
ImageSet load_cifar10(const std::vector<std::filesystem::path>& files);

// "airplane", "automobile" and so on: the names of CIFAR-10's classes, by label.
const std::vector<std::string>& cifar10_classes();

// The files of a set: a single file, or the contents of a folder, where `part` is "train" (data_batch_1.bin
// ... _5, whichever of them exist, in this order, .xz accepted) or "test" (test_batch.bin, otherwise
// test_*.bin or .bin.xz).
std::vector<std::filesystem::path> cifar10_files(const std::filesystem::path& place, const std::string& part);

}  // namespace attmirror
