// The subcommand tokenize: its numbers, its file and its refusals.
#include "base/atomic_file.hpp"
#include "cli/options.hpp"
#include "deep/corpus/small_vocabulary.hpp"
#include "support/files.hpp"
#include <attmirror/deep/tokenize.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror::cli {
Subcommand add_tokenize(CLI::App& parent);
}

namespace attmirror {
namespace {

using nlohmann::json;
using test::expect_bad_input;

class TokenizeCommand : public testing::Test {
 protected:
  TokenizeCommand() {
    write_file_atomically(folder_ / "a.tsv", "1\tthe movie was fun\n0\tfilm\n");
    write_file_atomically(folder_ / "b.tsv", "unaffable\t0\n");
  }

  // What the command prints; Errors come through.
  std::string run(std::vector<std::string> words) {
    CLI::App app("attmirror-deep");
    const cli::Subcommand command = cli::add_tokenize(app);
    words.insert(words.begin(), "tokenize");
    words.insert(words.end(), {"--vocabulary", test::corpus_fixture("vocabulary.txt").string()});
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    app.parse(words);
    testing::internal::CaptureStdout();
    try {
      EXPECT_EQ(command.run(), 0);
    } catch (...) {
      testing::internal::GetCapturedStdout();
      throw;
    }
    return testing::internal::GetCapturedStdout();
  }
  std::string file(const char* name) const { return (folder_ / name).string(); }

  test::TemporaryFolder folder_;
};

TEST_F(TokenizeCommand, PrintsOneObject) {
  const json answer = json::parse(
      run({file("a.tsv"), file("b.tsv"), "--length", "6", "--json", "-o", file("t.safetensors")}));
  EXPECT_EQ(answer["status"], "done");
  EXPECT_EQ(answer["rows"], 3);
  EXPECT_EQ(answer["tokens"], 6 + 3 + 5);
  EXPECT_EQ(answer["rows_of_full_length"], 1);
  EXPECT_EQ(answer["unknown"], 1);
  EXPECT_EQ(answer["length"], 6);
  EXPECT_EQ(answer["output"], file("t.safetensors"));
  ASSERT_EQ(answer["inputs"].size(), 2u);
  EXPECT_EQ(answer["inputs"][1]["path"], file("b.tsv"));
  EXPECT_EQ(answer["inputs"][1]["rows"], 1);
  const TokenSet tokens = load_token_set(folder_ / "t.safetensors");
  EXPECT_EQ(tokens.labels, (std::vector<std::int32_t>{1, 0, 0}));
  EXPECT_EQ(answer["sha256_uint16_le"], ids_sha256(tokens));
  EXPECT_EQ(answer["vocabulary"]["fingerprint"], tokens.vocabulary_fingerprint);
  for (const char* key : {"seconds", "reading_seconds", "mean_length"})
    EXPECT_TRUE(answer[key].is_number()) << key;
}

TEST_F(TokenizeCommand, PrintsATable) {
  const std::string text = run({file("a.tsv")});
  const TokenSet tokens = make_token_set(read_text_set(folder_ / "a.tsv"), test::small_wordpiece(), 512);
  for (const std::string& words :
       {std::string("rows"), std::string("mean length"), std::string("4.500"), ids_sha256(tokens)})
    EXPECT_NE(text.find(words), std::string::npos) << words << " is not in\n" << text;
  EXPECT_EQ(text.find("all"), text.npos);
  EXPECT_NE(run({file("a.tsv"), file("b.tsv")}).find("\nall "), text.npos);
  EXPECT_EQ(run({file("a.tsv"), "--quiet", "-o", file("t.safetensors")}), "");
}

TEST_F(TokenizeCommand, RefusesInOneSentence) {
  expect_bad_input({"cannot read", "none.tsv"}, [&] { run({file("none.tsv")}); });
  expect_bad_input({"length is 0"}, [&] { run({file("a.tsv"), "--length", "0"}); });
  expect_bad_input({"columns is 'text'"}, [&] { run({file("a.tsv"), "--columns", "text"}); });
  expect_bad_input({"a.tsv, line 1: the label is 'the movie was fun'"}, [&] {
    run({file("a.tsv"), "--columns", "text,label"});
  });
  test::expect_error(ErrorKind::environment, {"cannot write", "nowhere"}, [&] {
    run({file("a.tsv"), "-o", file("nowhere/t.safetensors")});
  });
}

}  // namespace
}  // namespace attmirror
