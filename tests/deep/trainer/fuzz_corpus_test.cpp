// The fuzzing corpus of configurations, whole, cut short and with single bytes changed, for machines without libFuzzer.
#include "base/atomic_file.hpp"
#include "fuzz/trainer_checks.hpp"
#include "support/paths.hpp"

#include <filesystem>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

TEST(TrainerCorpus, GivesAConfigurationOrAnError) {
  std::size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::source_folder() / "tests/fuzz/corpus/trainer")) {
    SCOPED_TRACE(entry.path().string());
    ++files;
    const std::vector<std::byte> file = read_file(entry.path());
    EXPECT_NO_THROW(fuzz::check_trainer(file));
    for (std::size_t i = 0; i < file.size(); i += 1 + file.size() / 128) {
      EXPECT_NO_THROW(fuzz::check_trainer(std::span(file).first(i))) << "cut after " << i << " bytes";
      std::vector<std::byte> changed = file;
      changed[i] ^= std::byte{0x13};
      EXPECT_NO_THROW(fuzz::check_trainer(changed)) << "byte " << i << " changed";
    }
  }
  EXPECT_GE(files, 4u) << "the corpus is missing";
}

}  // namespace
}  // namespace attmirror
