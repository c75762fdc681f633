// Every file of the fuzzing corpora through its parser, for machines without libFuzzer: a value or an Error comes
// out, nothing else, and values survive a round trip. Each parser also gets the files of the other formats.
#include "base/atomic_file.hpp"
#include "data/npy.hpp"
#include "fuzz/check_parser.hpp"
#include "support/paths.hpp"
#include <attmirror/data/npz.hpp>
#include <attmirror/data/safetensors.hpp>

#include <map>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;

std::map<fs::path, std::vector<std::byte>> corpus_files() {
  std::map<fs::path, std::vector<std::byte>> files;
  for (const auto& root : {test::source_folder() / "tests/fuzz/corpus", test::fixture("formats")})
    for (const auto& entry : fs::recursive_directory_iterator(root))
      if (entry.is_regular_file()) files.emplace(entry.path(), read_file(entry.path()));
  return files;
}

template <class Parse, class Format>
void check_corpus(std::string_view format_name, Parse parse, Format format) {
  std::size_t own_files = 0, accepted = 0;
  const auto counting = [&](std::span<const std::byte> file) {
    auto value = parse(file);
    ++accepted;
    return value;
  };
  for (const auto& [path, file] : corpus_files()) {
    SCOPED_TRACE(path.string());
    own_files += path.parent_path().filename() == format_name;
    EXPECT_NO_THROW(fuzz::check_parser(file, counting, format));
    // Cut short at any length, and with any one byte changed, the same must hold.
    for (std::size_t i = 0; i < file.size(); i += 1 + file.size() / 64) {
      EXPECT_NO_THROW(fuzz::check_parser(std::span(file).first(i), counting, format))
          << "cut after " << i << " bytes";
      auto changed = file;
      changed[i] ^= std::byte{0xff};
      EXPECT_NO_THROW(fuzz::check_parser(changed, counting, format)) << "byte " << i << " changed";
    }
  }
  EXPECT_GE(own_files, 5u) << "the corpus is missing";
  EXPECT_GE(accepted, 5u) << "no file of the corpus was accepted";
}

TEST(Corpus, NpyGivesAValueOrAnError) {
  check_corpus(
      "npy", [](std::span<const std::byte> file) { return parse_npy(file, "file"); },
      [](const Array& array) { return format_npy(array, {.order = MemoryOrder::fortran}); });
}

TEST(Corpus, NpzGivesAValueOrAnError) {
  check_corpus(
      "npz", [](std::span<const std::byte> file) { return parse_npz(file, "file", {.max_bytes = 1 << 20}); },
      [](const NamedArrays& arrays) {
        return format_npz(arrays, {.compression = NpzCompression::deflated});
      });
}

TEST(Corpus, SafetensorsGivesAValueOrAnError) {
  check_corpus(
      "safetensors", [](std::span<const std::byte> file) { return parse_safetensors(file, "file"); },
      [](const Safetensors& content) { return format_safetensors(content); });
}

}  // namespace
}  // namespace attmirror
