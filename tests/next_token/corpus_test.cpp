// Every file of the fuzzing corpora as sentences, whole, cut short and with single bytes changed, for machines without
// libFuzzer: sentences or an Error come out, nothing else, and what is written reads back.
#include "base/atomic_file.hpp"
#include "fuzz/check_parser.hpp"
#include "fuzz/sentence_words.hpp"
#include "support/paths.hpp"

#include <filesystem>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;

TEST(SentenceCorpus, GivesSentencesOrAnError) {
  std::size_t own_files = 0, accepted = 0;
  const auto parse = [&accepted](std::span<const std::byte> file) {
    fuzz::SentenceWords words = fuzz::read_sentence_words(file);
    ++accepted;
    return words;
  };
  for (const auto& entry : fs::recursive_directory_iterator(test::source_folder() / "tests/fuzz/corpus")) {
    if (!entry.is_regular_file()) continue;
    SCOPED_TRACE(entry.path().string());
    own_files += entry.path().extension() == ".txt" ? 1 : 0;
    const std::vector<std::byte> file = read_file(entry.path());
    EXPECT_NO_THROW(fuzz::check_parser(file, parse, fuzz::text_of));
    for (std::size_t i = 0; i < file.size(); i += 1 + file.size() / 256) {
      EXPECT_NO_THROW(fuzz::check_parser(std::span(file).first(i), parse, fuzz::text_of))
          << "cut after " << i << " bytes";
      auto changed = file;
      changed[i] ^= std::byte{0x13};
      EXPECT_NO_THROW(fuzz::check_parser(changed, parse, fuzz::text_of)) << "byte " << i << " changed";
    }
  }
  EXPECT_GE(own_files, 8u) << "the corpus is missing";
  EXPECT_GE(accepted, 200u) << "too few files were accepted";
}

}  // namespace
}  // namespace attmirror
