// The folder of a next-token run: what a killed writer left out is written when it goes on, and nothing of others.
#include "next_token/next_token_folder.hpp"

#include "base/atomic_file.hpp"
#include "next_token/run_folders.hpp"
#include "support/files.hpp"

#include <gtest/gtest.h>

namespace attmirror::test {
namespace {

namespace fs = std::filesystem;

class NextTokenFolderTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
  const fs::path path = folder / "run";
  const RealizableData data = make_realizable({.vocabulary = 8, .sentences = 10});
  const Embedding embedding = make_embedding(8, {.kind = EmbeddingKind::gaussian, .dim = 5});
  const NextTokenInput input{&data.vocabulary, &data.collocations, &data.sentences, &embedding};

  NextTokenConfig config(std::int64_t steps = 20) const {
    NextTokenConfig result;
    result.vocabulary = 8;
    result.sentences = 10;
    result.generator = data.options;
    result.data_fingerprint = input.fingerprint();
    result.steps = steps;
    return result;
  }
  NextTokenFolder open(ExistingResult existing, const NextTokenConfig& with) const {
    return {path, with, existing};
  }
};

TEST_F(NextTokenFolderTest, GoesOnWithWhatIsMissing) {
  open(ExistingResult::refuse, config()).begin(input);
  EXPECT_EQ(folder_kind(path), ResultKind::next_token);
  EXPECT_TRUE(next_token_stages(path).empty());
  const char* const names[] = {"sentences.txt", "vocabulary.txt", "embedding.npy"};
  for (const char* name : names) {
    const std::string before = read_text_file(path / name);
    fs::remove(path / name);
    open(ExistingResult::resume, config(40)).begin(input);
    EXPECT_EQ(read_text_file(path / name), before) << name;
  }
}

TEST_F(NextTokenFolderTest, RefusesWithNothingChanged) {
  open(ExistingResult::refuse, config()).begin(input);
  const std::string before = read_text_file(path / "config.json");
  expect_bad_input({"already holds a run"}, [&] { open(ExistingResult::refuse, config()); });
  NextTokenConfig other = config();
  other.generator->seed = 7;
  expect_bad_input({"cannot resume", "generator.seed is 1 there and 7 here"},
                   [&] { open(ExistingResult::resume, other); });
  const NextTokenFolder writer = open(ExistingResult::resume, config());
  expect_error(ErrorKind::environment, {"is in use"}, [&] { open(ExistingResult::resume, config()); });
  EXPECT_EQ(read_text_file(path / "config.json"), before);
}

TEST_F(NextTokenFolderTest, WithoutAPathNothingIsWritten) {
  NextTokenFolder none({}, config(), ExistingResult::refuse);
  none.begin(input);
  none.go_on();
  EXPECT_FALSE(none.writes());
}

}  // namespace
}  // namespace attmirror::test
