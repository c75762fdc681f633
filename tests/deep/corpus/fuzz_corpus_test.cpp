// The fuzzing corpora of this room, whole, cut short and with single bytes changed, for machines without libFuzzer.
#include "base/atomic_file.hpp"
#include "deep/corpus/small_vocabulary.hpp"
#include "fuzz/corpus_checks.hpp"
#include "support/paths.hpp"
#include "support/size.hpp"

#include <gtest/gtest.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;

template <class Check>
void check_corpus(const std::string& name, Check check) {
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(test::source_folder() / "tests/fuzz/corpus" / name)) {
    SCOPED_TRACE(entry.path().string());
    ++files;
    const std::vector<std::byte> file = read_file(entry.path());
    EXPECT_NO_THROW(check(file));
    const std::size_t step = 1 + file.size() / (test::reduced_size ? 32 : 128);
    for (std::size_t i = 0; i < file.size(); i += step) {
      EXPECT_NO_THROW(check(std::span(file).first(i))) << "cut after " << i << " bytes";
      for (const int bits : {0x01, 0x20, 0x80, 0xff}) {
        std::vector<std::byte> changed = file;
        changed[i] ^= static_cast<std::byte>(bits);
        EXPECT_NO_THROW(check(changed)) << "byte " << i << " changed";
      }
    }
  }
  EXPECT_GE(files, 4u) << "the corpus is missing";
}

TEST(FuzzCorpus, WordPieceEnginesAgree) {
  if (!test::has_component("unicode")) GTEST_SKIP() << "this build has no ICU";
  check_corpus("wordpiece", fuzz::check_wordpiece);
}

TEST(FuzzCorpus, TextSetsGiveAValueOrAnError) { check_corpus("text_set", fuzz::check_text_set); }

TEST(FuzzCorpus, TokenFilesGiveAValueOrAnError) { check_corpus("tokens", fuzz::check_tokens); }

}  // namespace
}  // namespace attmirror
