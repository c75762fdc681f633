// Texts of strangers on a screen, and in a shell.
#include "base/words.hpp"

#include "base/fields.hpp"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace attmirror {
namespace {

TEST(OneLine, ShowsWhatWouldCommandTheTerminal) {
  EXPECT_EQ(one_line("ok \x1b]0;owned\x07"), "ok \\x1b]0;owned\\x07");
  EXPECT_EQ(one_line("a\nb\tc\x7f"), "a\\x0ab\\x09c\\x7f");
  EXPECT_EQ(one_line("\xc2\x9b"
                     "31m"),
            "\\x9b31m")
      << "CSI as UTF-8";
  EXPECT_EQ(one_line("\x9b"
                     "31m \xff"),
            "\\x9b31m \\xff")
      << "CSI as a byte, and another";
  EXPECT_EQ(one_line("gnp.\u202eexe"), "gnp.\\u202eexe");
  EXPECT_EQ(one_line("a\u2028b\u2066c"), "a\\u2028b\\u2066c");
}

TEST(OneLine, LeavesLettersAlone) {
  for (const std::string text : {"", "plain", "‖W‖_1.75, ℓp", "naïve 日本語", "\uFFFD"})
    EXPECT_EQ(one_line(text), text);
}

TEST(Printable, KeepsLinesAndStaysJson) {
  EXPECT_EQ(printable("a\n\tb\x1b", Breaks::keep), "a\n\tb\\x1b");
  const nlohmann::json json{{"name", "x\xc2\x9by\u202ez\x7f"}};
  const std::string shown = printable(json.dump(2), Breaks::keep, Escapes::json);
  EXPECT_EQ(nlohmann::json::parse(shown), json);
  EXPECT_EQ(shown.find('\x7f'), std::string::npos);
  EXPECT_NE(shown.find("\\u009b"), std::string::npos);
}

TEST(NearestWord, ForgivesLettersAndSpellings) {
  const std::vector<std::string_view> options{"--normalized", "--checkpoint-every", "--lr", "--steps",
                                              "--color"};
  EXPECT_EQ(nearest_word("--normalised", options), "--normalized");
  EXPECT_EQ(nearest_word("--Normalised", options), "--normalized");
  EXPECT_EQ(nearest_word("--colour", options), "--color");
  EXPECT_EQ(nearest_word("--setps", options), "--steps") << "two letters exchanged";
  EXPECT_EQ(nearest_word("--check", options), "--checkpoint-every") << "the beginning of a word";
  EXPECT_EQ(nearest_word("checkpoint_every", options), "--checkpoint-every");
  EXPECT_EQ(nearest_word("--x", options), "");
  EXPECT_EQ(nearest_word("--generat", {"-o", "-h", "--seed"}), "")
      << "a short word is not near to everything";
  EXPECT_EQ(nearest_word("--wings", options), "");
  EXPECT_EQ(nearest_word("", options), "");
  EXPECT_EQ(nearest_word(std::string(100'000, 'x'), options), "");
  EXPECT_EQ(nearest_word("trian", {"report", "train", "path"}), "train");
  EXPECT_EQ(nearest_word("artefact", {"artifact", "factory"}), "artifact");
}

TEST(NearestWord, OfEqualSpellingsTheSameOneWins) {
  EXPECT_EQ(nearest_word("regularise", {"regularize_all", "regularize"}), "regularize");
}

TEST(DidYouMean, EndsASentence) {
  EXPECT_EQ(did_you_mean("lrr", {"lr", "p"}), "; did you mean \"lr\"?");
  EXPECT_EQ(did_you_mean("--lrr", {"--lr", "--p"}), "; did you mean --lr?");
  EXPECT_EQ(did_you_mean("wings", {"lr", "p"}), "");
}

TEST(ExpectedChoice, ListsAndPointsToTheNearest) {
  EXPECT_EQ(expected_choice("of", {"auto", "on", "off"}), "auto, on or off; did you mean \"on\"?");
  EXPECT_EQ(expected_choice("normall:2", {"zero", "normal:STD"}),
            "zero or normal:STD; did you mean \"normal\"?");
  EXPECT_EQ(expected_choice("7", {"zero"}), "zero");
}

TEST(ShellPath, IsNeverAnOption) {
  EXPECT_EQ(shell_path("data.npz"), "data.npz");
  EXPECT_EQ(shell_path("--p=3"), "./--p=3");
  EXPECT_EQ(shell_path("-o x"), "'./-o x'");
  EXPECT_EQ(shell_path("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_path("a\x1b[31m'b"), "$'a\\x1b[31m\\'b'");
}

}  // namespace
}  // namespace attmirror
