// Every file of the fuzzing corpora of results, whole, cut short and with single bytes changed, for machines without
// libFuzzer: a value or an Error of one line comes out of each reader, nothing else.
#include "base/atomic_file.hpp"
#include "fuzz/array_checks.hpp"
#include "fuzz/database_checks.hpp"
#include "fuzz/result_checks.hpp"
#include "support/paths.hpp"

#include <filesystem>

#include <gtest/gtest.h>

namespace attmirror {
namespace {

template <class Check>
void check_result_corpus(const char* corpus, std::size_t least_files, std::size_t changes, Check check) {
  std::size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::source_folder() / "tests/fuzz/corpus" / corpus)) {
    SCOPED_TRACE(entry.path().string());
    ++files;
    const std::vector<std::byte> file = read_file(entry.path());
    EXPECT_NO_THROW(check(std::span(file)));
    for (std::size_t i = 1; i < file.size(); i += 1 + file.size() / changes) {
      EXPECT_NO_THROW(check(std::span(file).first(i))) << "cut after " << i << " bytes";
      auto changed = file;
      changed[i] ^= std::byte{0x13};
      EXPECT_NO_THROW(check(std::span<const std::byte>(changed))) << "byte " << i << " changed";
    }
  }
  EXPECT_GE(files, least_files) << "the corpus is missing";
}

TEST(ResultCorpus, TextsGiveAValueOrAnError) {
  check_result_corpus("results", 15, 128, [](auto file) { fuzz::check_results(file); });
}

TEST(ResultCorpus, ArraysGiveAValueOrAnError) {
  check_result_corpus("arrays", 10, 64, [](auto file) { fuzz::check_arrays(file); });
}

TEST(ResultCorpus, DatabasesGiveAValueOrAnError) {
  check_result_corpus("database", 15, 8, [](auto file) { fuzz::check_database(file); });
}

// What the fuzzers start from is in order: else they would only see refusals.
TEST(ResultCorpus, SeedsAreAccepted) {
  const auto text = [](const char* name) {
    return read_text_file(test::source_folder() / "tests/fuzz/corpus/results" / name).substr(1);
  };
  EXPECT_EQ(parse_run_config(text("config_md.txt"), "file").steps, 4);
  EXPECT_EQ(parse_run_config(text("config_next_token.txt"), "file").kind, "next-token");
  EXPECT_EQ(parse_result(text("result_md.txt")).steps, 4);
  EXPECT_EQ(parse_report(text("experiment_p2-lemma.txt")).info.id, "p2-lemma");
  const std::vector<std::byte> seed =
      read_file(test::source_folder() / "tests/fuzz/corpus/arrays/checkpoint_md.bin");
  const fuzz::ScratchFolder folder;
  save_npz(folder / "checkpoint.npz", fuzz::arrays_of(fuzz::ByteSource(std::span(seed).subspan(1))));
  EXPECT_EQ(load_checkpoint(folder / "checkpoint.npz").step, 4);
}

// Json's own conversions would make something of all of these.
TEST(DamagedResults, WholeNumbersAreWhole) {
  const auto expect_refusal_of = [](auto read, const std::string& word) {
    try {
      read();
      ADD_FAILURE() << "accepted where " << word << " was expected in the refusal";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      EXPECT_NE(std::string_view(error.what()).find(word), std::string_view::npos) << error.what();
    }
  };
  const auto seed = [](const char* name) {
    return read_text_file(test::source_folder() / "tests/fuzz/corpus/results" / name).substr(1);
  };
  const auto with = [](std::string text, std::string_view from, std::string_view to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const char* wrong : {"1e+300", "4.5", "9223372036854775808", "true", "\"4\""}) {
    const std::string steps = std::string("\"steps\": ") + wrong;
    expect_refusal_of(
        [&] { parse_run_config(with(seed("config_md.txt"), "\"steps\": 4", steps), "config.json"); },
        std::string("steps: ") + wrong);
    const std::string short_steps = std::string("\"steps\":") + wrong;
    expect_refusal_of([&] { parse_result(with(seed("result_md.txt"), "\"steps\":4", short_steps)); },
                      std::string("steps: ") + wrong);
  }
  const std::string report = seed("experiment_p2-lemma.txt");
  for (const char* wrong : {"-1", "1000000", "2.5"}) {
    const std::size_t at = report.find("\"digits\": ");
    ASSERT_NE(at, std::string::npos);
    std::string changed = report;
    changed.replace(at, std::string_view("\"digits\": 4").size(), std::string("\"digits\": ") + wrong);
    expect_refusal_of([&] { parse_report(changed); }, wrong);
  }
  const fuzz::ScratchFolder folder;
  write_file_atomically(folder / "config.json", R"({"format": "attmirror path", "format_version": "one"})");
  expect_refusal_of([&] { load_path(folder.path()); }, "format_version is \"one\"");
}

}  // namespace
}  // namespace attmirror
