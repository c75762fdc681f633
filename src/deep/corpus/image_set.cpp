// CIFAR-10's binary files. An image is a record of 3,073 bytes and there is no header, so the size is the only sign
// that a file is whole.
#include "deep/corpus/xz.hpp"
#include <attmirror/base/error.hpp>
#include <attmirror/deep/image_set.hpp>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t image_size = 3 * 32 * 32, record_size = 1 + image_size;

void append_images(std::string_view content, const std::string& name, ImageSet& set) {
  if (content.empty()) throw bad_input(fmt::format("{} has no images", name));
  if (content.size() % record_size != 0)
    throw bad_input(
        fmt::format("{} has {} bytes: expected a multiple of {}, a label and 3 x 32 x 32 pixels an image",
                    name, content.size(), record_size));
  for (std::size_t i = 0; i < content.size() / record_size; ++i) {
    const std::string_view record = content.substr(i * record_size, record_size);
    const auto label = static_cast<unsigned char>(record[0]);
    if (label > 9) throw bad_input(fmt::format("{}: image {} has label {}: expected 0 to 9", name, i, label));
    set.labels.push_back(label);
    set.pixels.insert(set.pixels.end(), record.begin() + 1, record.end());
  }
}

// The file, or the same packed by xz; empty if there is neither.
fs::path with_or_without_xz(const fs::path& file) {
  std::error_code error;
  if (fs::is_regular_file(file, error)) return file;
  const fs::path packed = file.string() + ".xz";
  return fs::is_regular_file(packed, error) ? packed : fs::path();
}

}  // namespace

ImageSet load_cifar10(const std::vector<fs::path>& files) {
  if (files.empty()) throw bad_input("there are no files of images: expected one or more");
  ImageSet set;
  for (const fs::path& file : files) append_images(read_maybe_packed(file), file.string(), set);
  return set;
}

const std::vector<std::string>& cifar10_classes() {
  static const std::vector<std::string> names{"airplane", "automobile", "bird",  "cat",  "deer",
                                              "dog",      "frog",       "horse", "ship", "truck"};
  return names;
}

std::vector<fs::path> cifar10_files(const fs::path& place, const std::string& part) {
  if (part != "train" && part != "test")
    throw bad_input(fmt::format("part is \"{}\": expected train or test", part));
  std::error_code error;
  if (!fs::exists(place, error))
    throw bad_input(fmt::format("cannot read {}: {}", place.string(),
                                error ? error.message() : "No such file or directory"));
  if (!fs::is_directory(place, error)) return {place};
  std::vector<fs::path> files;
  if (part == "train") {
    for (int batch = 1; batch <= 5; ++batch)
      if (const fs::path file = with_or_without_xz(place / fmt::format("data_batch_{}.bin", batch));
          !file.empty())
        files.push_back(file);
  } else if (const fs::path official = with_or_without_xz(place / "test_batch.bin"); !official.empty()) {
    files.push_back(official);
  } else {
    for (fs::directory_iterator entry(place, error), end; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().filename().string();
      if (name.starts_with("test_") && (name.ends_with(".bin") || name.ends_with(".bin.xz")))
        files.push_back(entry->path());
    }
    if (error) throw bad_input(fmt::format("cannot read {}: {}", place.string(), error.message()));
    std::sort(files.begin(), files.end());
    // Packed and unpacked lying side by side are one file.
    const std::vector<fs::path> all = files;
    std::erase_if(files, [&](const fs::path& file) {
      return file.extension() == ".xz" &&
             std::find(all.begin(), all.end(), fs::path(file).replace_extension()) != all.end();
    });
  }
  if (files.empty())
    throw bad_input(fmt::format("{} has no {} of CIFAR-10: expected {}, .xz accepted", place.string(),
                                part == "train" ? "training images" : "test images",
                                part == "train" ? "data_batch_1.bin to data_batch_5.bin" : "test_batch.bin"));
  return files;
}

}  // namespace attmirror
