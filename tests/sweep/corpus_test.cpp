// Every file of the fuzzing corpora as a sweep, whole, cut short and with single bytes changed, for machines without
// libFuzzer: runs or an Error come out, nothing else, and the same ones each time.
#include "base/atomic_file.hpp"
#include "fuzz/check_parser.hpp"
#include "support/paths.hpp"
#include <attmirror/sweep/plan.hpp>

#include <filesystem>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;

struct Sweep {
  std::string text;
  std::vector<std::string> keys;
  friend bool operator==(const Sweep&, const Sweep&) = default;
};

TEST(SweepCorpus, GivesRunsOrAnError) {
  std::size_t own_files = 0, accepted = 0;
  const auto parse = [&accepted](std::span<const std::byte> file) {
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    const SweepPlan plan = parse_sweep(text, "sweep.toml", "/nonexistent", {.max_runs = 50});
    ++accepted;
    Sweep sweep{plan.text, {}};
    for (const RunSettings& run : plan.runs) sweep.keys.push_back(run.key);
    return sweep;
  };
  const auto format = [](const Sweep& sweep) { return std::as_bytes(std::span(sweep.text)); };
  for (const auto& entry : fs::recursive_directory_iterator(test::source_folder() / "tests/fuzz/corpus")) {
    if (!entry.is_regular_file()) continue;
    SCOPED_TRACE(entry.path().string());
    own_files += entry.path().extension() == ".toml" ? 1 : 0;
    const std::vector<std::byte> file = read_file(entry.path());
    EXPECT_NO_THROW(fuzz::check_parser(file, parse, format));
    for (std::size_t i = 0; i < file.size(); i += 1 + file.size() / 256) {
      EXPECT_NO_THROW(fuzz::check_parser(std::span(file).first(i), parse, format))
          << "cut after " << i << " bytes";
      auto changed = file;
      changed[i] ^= std::byte{0x13};
      EXPECT_NO_THROW(fuzz::check_parser(changed, parse, format)) << "byte " << i << " changed";
    }
  }
  EXPECT_GE(own_files, 8u) << "the corpus is missing";
  EXPECT_GE(accepted, 20u) << "too few files were accepted";
}

}  // namespace
}  // namespace attmirror
